"""``modelstat cache``: what the trace cache holds, and how to empty it."""

from __future__ import annotations

from typing import Literal


def cache(action: Literal["info", "clear"] = "info", /) -> None:
    """Show or empty the cache of traces.

    Args:
        action: info (the default): where it is and what it holds; clear: delete it all.
    """
    from modelstat.trace.cache import TraceCache
    from modelstat.units import bytes_

    store = TraceCache()
    if action == "clear":
        files, size = store.clear()
        print(f"deleted {_traces(files)}, {bytes_(size)}")
    else:
        _, files, size = store.info()
        print(f"{store.directory}: {_traces(files)}, {bytes_(size)}")


def _traces(files: int) -> str:
    return "1 trace" if files == 1 else f"{files} traces"
