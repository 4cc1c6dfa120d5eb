"""``nsys export --type sqlite``: every launch, with the NVTX ranges that were open when the host launched it.

Tables (Nsight Systems documentation, SQLite schema): CUPTI_ACTIVITY_KIND_KERNEL and _RUNTIME share a correlation id; NVTX_EVENTS hold
ranges of a thread; StringIds the texts. Times are nanoseconds.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from modelstat.errors import ProfileError
from modelstat.measure.imports.nesting import LARGEST
from modelstat.measure.imports.ranges import read_ranges
from modelstat.measure.imports.record import MeasuredKernel, Profile

MAGIC = b"SQLite format 3\0"

Range = tuple[int, int, int, str]
"""Start, end (ns), index and text."""


def read(path: Path, most: int = LARGEST) -> Profile:
    """The first ``most`` launches of one export, in the order in which they ran. Raises ProfileError for another or a damaged database."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            names = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
            if "CUPTI_ACTIVITY_KIND_KERNEL" not in names:
                held = f"its tables are {', '.join(sorted(names)[:5])}" if names else "it is empty"
                raise ProfileError(
                    f"{path}: a database without kernels ({held}): profile with `nsys profile --trace cuda,nvtx`, "
                    "export with `nsys export --type sqlite`"
                )
            kernels = _kernels(database, names, most + 1)
    except sqlite3.DatabaseError as error:
        raise ProfileError(f"{path} cannot be read as a database ({error}): export it again with `nsys export --type sqlite`") from error
    if not kernels:
        raise ProfileError(f"{path}: no kernel in it: nothing ran on the GPU while nsys was recording")
    told = (f"only the first {most:,} kernels were read: a profile of fewer steps says as much",) if len(kernels) > most else ()
    return Profile(file=str(path), format="Nsight Systems SQLite", kernels=tuple(kernels[:most]), ordered=True, problems=told)


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}


def _kernels(database: sqlite3.Connection, names: set[str], most: int) -> list[MeasuredKernel]:
    columns = _columns(database, "CUPTI_ACTIVITY_KIND_KERNEL")
    name = next(each for each in ("demangledName", "shortName", "mangledName") if each in columns)
    launched, joined = "NULL, NULL", ""
    if "CUPTI_ACTIVITY_KIND_RUNTIME" in names:
        launched = "runtime.start, runtime.globalTid"
        # Correlation ids are those of one process, whose number is the upper part of a thread's.
        same = "AND kernel.globalPid / 0x1000000 = runtime.globalTid / 0x1000000" if "globalPid" in columns else ""
        joined = f"LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS runtime ON kernel.correlationId = runtime.correlationId {same}"
    rows = database.execute(
        f"SELECT kernel.start, kernel.end, StringIds.value, {launched} FROM CUPTI_ACTIVITY_KIND_KERNEL AS kernel "
        f"LEFT JOIN StringIds ON StringIds.id = kernel.{name} {joined} ORDER BY kernel.start LIMIT {most}"
    ).fetchall()
    ranges = _ranges(database, names, max((row[3] for row in rows if row[3] is not None), default=0))
    around: dict[int, list[Range]] = {}
    for thread in {row[4] for row in rows if row[4] is not None}:
        launches = sorted((row[3], index) for index, row in enumerate(rows) if row[4] == thread)
        around |= _around(launches, ranges.get(thread, []))
    found: list[MeasuredKernel] = []
    for index, (start, end, text, *_) in enumerate(rows):
        calls, path, step = read_ranges((each[2], each[3]) for each in around.get(index, ()))
        found.append(MeasuredKernel(name=text or "?", seconds=(end - start) / 1e9, calls=calls, path=path, step=step))
    return found


def _ranges(database: sqlite3.Connection, names: set[str], until: int) -> dict[int, list[Range]]:
    """The closed ranges of each thread that open before a moment (ns), by their start; a range comes before those inside it."""
    if "NVTX_EVENTS" not in names:
        return {}
    registered = "textId" in _columns(database, "NVTX_EVENTS")
    text = "COALESCE(nvtx.text, StringIds.value)" if registered else "nvtx.text"
    joined = "LEFT JOIN StringIds ON StringIds.id = nvtx.textId" if registered else ""
    found: dict[int, list[Range]] = {}
    rows = database.execute(
        f"SELECT nvtx.globalTid, nvtx.start, nvtx.end, nvtx.rowid, {text} FROM NVTX_EVENTS AS nvtx {joined} "
        "WHERE nvtx.end IS NOT NULL AND nvtx.start <= ? ORDER BY nvtx.start, nvtx.end DESC",
        (until,),
    )
    for thread, start, end, index, words in rows:
        if words:
            found.setdefault(thread, []).append((start, end, index, words))
    return found


def _around(launches: list[tuple[int, int]], ranges: list[Range]) -> dict[int, list[Range]]:
    """For each launch (time, index) of a thread the ranges that are open then, outermost first."""
    found: dict[int, list[Range]] = {}
    opened: list[Range] = []
    position = 0
    for time, index in launches:
        while position < len(ranges) and ranges[position][0] <= time:
            opened.append(ranges[position])
            position += 1
        opened = [each for each in opened if each[1] >= time]
        found[index] = list(opened)
    return found
