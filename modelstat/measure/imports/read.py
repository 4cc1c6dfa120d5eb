"""One function for every format: which one a file is in is found out from what stands in it."""

from __future__ import annotations

import re
from pathlib import Path

from modelstat.errors import ProfileError
from modelstat.measure.imports import chrome, ncu_csv, ncu_log, nsys_csv, nsys_sqlite, plain_csv
from modelstat.measure.imports.record import Profile
from modelstat.measure.imports.text import FORMATS, lines_of

_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[{\]])")
"""The start of an object, or of a list of objects: a log of ncu may start with the number of a process in brackets."""

REPORTS = {
    ".ncu-rep": "ncu --import {} --csv --page raw > kernels.csv",
    ".nsys-rep": "nsys stats --report cuda_gpu_trace --format csv {} > kernels.csv",
    ".qdrep": "nsys export --type sqlite {}",
}
"""Reports in formats of NVIDIA's own, and the command that turns one into something that can be read."""


def read_profile(path: str | Path) -> Profile:
    """The kernels of one file: Nsight Compute CSV or log, Nsight Systems CSV or SQLite, a PyTorch profiler trace, or a plain CSV.

    A row that cannot be read is left out and named in ``problems``. Raises ProfileError for a file that cannot be read at all, with
    what to do instead; MissingExtraError where a trace needs ijson and it is not installed.
    """
    path = Path(path)
    command = REPORTS.get(path.suffix.lower())
    if command:
        raise ProfileError(f"{path} is a report in NVIDIA's own format: export it with `{command.format(path)}` and give that file")
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        if not head.strip():
            raise ProfileError(f"{path} is empty: {FORMATS} are read")
        if head.startswith(nsys_sqlite.MAGIC):
            return nsys_sqlite.read(path)
        if head.startswith(b"\x1f\x8b") or _JSON.match(head):
            return chrome.read(path)
        data = path.read_bytes()
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror or error}") from error
    return _text(path, lines_of(path, data))


def _text(path: Path, lines: list[str]) -> Profile:
    if ncu_csv.header_index(lines) is not None:
        return ncu_csv.read(path, lines)
    if ncu_log.is_log(lines):
        return ncu_log.read(path, lines)
    if nsys_csv.tables(lines):
        return nsys_csv.read(path, lines)
    first = next(line for line in lines if line.strip())
    if plain_csv.columns(first):
        return plain_csv.read(path, lines)
    if any(line.startswith("==PROF==") for line in lines):
        raise ProfileError(f"{path}: ncu's output without a kernel: it profiled nothing, or the file ends before its results")
    raise ProfileError(f"{path} is in none of the formats that can be read: {FORMATS}; its first line is {first.strip()[:60]!r}")
