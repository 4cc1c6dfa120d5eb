"""The process that models are forked from, one beside each worker.

It imports torch and walks a tiny model once, then forks a process for every model. So each model starts in the same clean state, at
once, and whatever it does to its process (hang, crash, exit, eat memory, patch torch) ends with it. It reads requests from stdin and
writes outcomes to stdout, and ends with whoever holds the other end of stdin.
"""

from __future__ import annotations

import contextlib
import gc
import os
from importlib import import_module

import msgspec

from modelstat.errors import ModelstatError
from modelstat.sweeping import frames
from modelstat.sweeping.request import Request
from modelstat.sweeping.supervise import supervised


def main() -> None:
    """Answer requests until stdin ends."""
    source, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    with contextlib.suppress(Exception):  # a torch that cannot be imported is every model's own failure, with its reason
        import_module("modelstat.trace.warmup").warm_up()
    decoder = msgspec.msgpack.Decoder(Request)
    while True:
        try:
            request = decoder.decode(frames.read(source))
        except EOFError:
            return
        load_libraries(request.job.target)
        # What is there now stays: the collector of a forked process would only copy its pages.
        gc.collect()
        gc.freeze()
        frames.write(answers, msgspec.msgpack.encode(supervised(request, source)))


_loaded: set[str] = set()


def load_libraries(text: str) -> None:
    """Import the installed library that a spec's model comes from, once for all models that follow. A user's own code is not run."""
    from modelstat.sources import parse
    from modelstat.sources.bare import LIBRARIES, BareSource
    from modelstat.sources.library import Library
    from modelstat.sources.yaml import YamlSource

    with contextlib.suppress(ModelstatError):
        source = parse(text)
        while isinstance(source, YamlSource):
            source = source.inner
        needed = [type(source)] if isinstance(source, Library) else [*LIBRARIES] if isinstance(source, BareSource) else []
        for library in needed:
            if library.package not in _loaded and library.installed():
                _loaded.add(library.package)
                library.require()
