"""Text files of profilers: their lines, whatever wrote them, and the messages that a profiler leaves in place of results."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from modelstat.errors import ProfileError

PERMISSION = "ERR_NVGPUCTRPERM"


def lines_of(path: Path, data: bytes) -> list[str]:
    """The lines of a text file: UTF-8, or UTF-16 with its mark, as PowerShell writes what it redirects.

    Raises ProfileError for a binary file, and for the output of an ncu that was not allowed to read counters.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", errors="replace")
    elif b"\0" in data[:65536]:
        raise ProfileError(f"{path} is binary and none of the formats that can be read: {FORMATS}")
    else:
        text = data.decode("utf-8-sig", errors="replace")
    lines = text.splitlines()
    for place, line in enumerate(lines, 1):
        if PERMISSION in line:
            raise ProfileError(
                f"{path}, line {place}: ncu was not allowed to read the GPU's counters ({PERMISSION}): run it as root, or load the driver "
                "with NVreg_RestrictProfilingToAdminUsers=0 (https://developer.nvidia.com/ERR_NVGPUCTRPERM), and profile again"
            )
    return lines


FORMATS = (
    "Nsight Compute (`ncu --csv`, raw or details page, or its text log), Nsight Systems (`nsys stats --format csv` of cuda_gpu_kern_sum or "
    "cuda_gpu_trace, or `nsys export --type sqlite`), a PyTorch profiler trace (export_chrome_trace, .json or .json.gz), or a CSV with the "
    "columns name, ms[, flops, bytes]"
)


def delimiter_of(line: str) -> str:
    """What separates the cells of a header: the most frequent of comma, semicolon and tab.

    >>> delimiter_of("name;ms"), delimiter_of('"ID","Kernel Name"')
    (';', ',')
    """
    return max((",", ";", "\t"), key=line.count)


def cells(line: str, delimiter: str) -> list[str]:
    """The cells of one line."""
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]


def rows(lines: Sequence[str], start: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number (from 1) and cells of each row from line index ``start`` on; a cell may hold line breaks."""
    reader = csv.reader((f"{line}\n" for line in lines[start:]), delimiter=delimiter)
    before = 0
    for row in reader:
        yield start + before + 1, [cell.strip() for cell in row]
        before = reader.line_num
