"""Chrome traces of the PyTorch profiler (``export_chrome_trace``), plain or gzip, read event by event.

Times are microseconds. A kernel names the op that launched it by its ``External id``; ops of one thread lie inside one another by time.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

from modelstat.errors import MissingExtraError, ProfileError
from modelstat.measure.imports.nesting import Events, kernels
from modelstat.measure.imports.ranges import shapes_of, step_of
from modelstat.measure.imports.record import Profile

OPS = frozenset(("cpu_op", "operator"))
KERNELS = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))
RANGES = frozenset(("user_annotation",))
SHOWN = 5
"""Problems with single events that are spelt out."""


def read(path: Path) -> Profile:
    """The kernels of one trace, or where none ran on a GPU the ops of the CPU without the ops inside them.

    The memory that this takes has a bound, whatever the size of the file: of a long run the first steps are kept, and that is said. Raises
    ProfileError for a file that is cut off, or is no trace of the PyTorch profiler, MissingExtraError without ijson.
    """
    try:
        import ijson
    except ImportError as error:
        raise MissingExtraError("ijson", "measure", "reading a PyTorch profiler trace") from error
    events, problems, bad, seen = Events(), [], 0, 0
    try:
        with _opened(path) as file:
            first = _first(file)
            for seen, event in enumerate(ijson.items(file, "item" if first == b"[" else "traceEvents.item", use_float=True), 1):
                try:
                    _take(events, event)
                except (KeyError, TypeError, ValueError, OverflowError) as error:
                    bad += 1
                    if bad <= SHOWN:
                        problems.append(f"event {seen}: {type(error).__name__}: {error}; left out")
    except ijson.IncompleteJSONError as error:
        if "premature EOF" not in str(error) and "ncomplete" not in str(error):
            raise ProfileError(f"{path} is not JSON, after event {seen}: {' '.join(str(error).split())[:120]}") from error
        raise ProfileError(f"{path} is cut off after event {seen}: export the trace again, and let the export finish") from error
    except ijson.JSONError as error:
        raise ProfileError(f"{path} is not JSON, after event {seen}: {' '.join(str(error).split())[:120]}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ProfileError(f"{path} is cut off or damaged after event {seen} (gzip: {error}): export the trace again") from error
    found, ordered = kernels(events)
    if not found:
        what = f"{seen} events, but no op and no kernel" if seen else "no traceEvents"
        raise ProfileError(f"{path}: JSON with {what} in it: give a trace that torch.profiler wrote with export_chrome_trace")
    told = [*problems, *([f"{bad - SHOWN} more events were left out"] if bad > SHOWN else [])]
    if events.until < float("inf"):
        told.append(f"only the first {len(found):,} kernels were read: a profile of fewer steps says as much")
    if not any(len(call.shapes or ()) for kernel in found for call in kernel.calls):
        told.append("no shapes in it: record_shapes=True makes the match to the model's ops certain")
    return Profile(file=str(path), format="PyTorch profiler", kernels=found, ordered=ordered, problems=tuple(told))


def _opened(path: Path) -> gzip.GzipFile | BufferedReader:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else path.open("rb")


def _first(file: gzip.GzipFile | BufferedReader) -> bytes:
    """The first character that is no space; the file is back at its start."""
    start: Iterator[bytes] = iter(lambda: file.read(1), b"")
    found = next((each for each in start if not each.isspace()), b"")
    file.seek(0)
    return found


def _take(events: Events, event: Any) -> None:
    """Remembers what an event says of ops, kernels and ranges; others are nobody's business."""
    if not isinstance(event, dict) or event.get("ph") != "X":
        return
    kind = str(event.get("cat", "")).lower()
    if kind not in OPS and kind not in KERNELS and kind not in RANGES:
        return
    name, start, duration = str(event["name"]), float(event["ts"]), float(event["dur"])
    if not (duration >= 0 and abs(start) < float("inf") and duration < float("inf")):
        raise ValueError(f"{name} lasts {event['dur']} us")
    args = event.get("args") or {}
    external = int(args.get("External id", args.get("external id", -1)))
    if kind in KERNELS:
        events.add_kernel(name, start, duration, external)
        return
    thread = f"{event.get('pid')}/{event.get('tid')}"
    step = step_of(name) if kind in RANGES else None
    if step is not None:
        events.add_step(start, duration, step)
        return
    shapes = shapes_of(args["Input Dims"]) if "Input Dims" in args else None
    events.add_op(name, start, duration, external, thread, shapes, is_range=kind in RANGES)
