"""Measured rows: what is wrong with one is said with its line, and none of the others is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HEAD = "source,gpu,model,input,batch,precision,layout,mode,measured_ms,params_m,gmacs\n"
GOOD = "timm,rtx-3090,timm:resnet18,3x224x224,256,amp-fp16,nhwc,eager,12.5,11.69,1.82\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("timm,rtx-3090,timm:a,3x2x2,256,fp32,,eager,soon,,\n", "could not convert string to float"),
        ("timm,rtx-3090,timm:a,3x2x2,0,fp32,,eager,1,,\n", "batch 0 must be positive"),
        ("timm,rtx-3090,timm:a,3x2x2,1,fp32,,eager,-1,,\n", "measured_ms -1"),
        ("timm,rtx-3090,timm:a,3x2x2,1,fp32,,jit,1,,\n", "mode 'jit': eager or compile"),
        ("timm,rtx-3090\n", "line 3"),
    ],
)
def test_a_malformed_row_costs_that_row(script: Callable[[str], Any], tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "m.csv"
    file.write_text(HEAD + GOOD + line + GOOD)
    rows, bad = script("rows").read(file)
    assert [row.line for row in rows] == [2, 4]
    assert len(bad) == 1
    assert words in bad[0]
    assert "line 3" in bad[0]
    row = rows[0]
    assert (row.batch, row.layout, row.measured_seconds, row.params_m, row.gmacs) == (256, "nhwc", 0.0125, 11.69, 1.82)
    assert row.group == ("timm", "rtx-3090", "nhwc", "eager", "amp-fp16")


def test_a_file_without_a_needed_column(script: Callable[[str], Any], tmp_path: Path) -> None:
    file = tmp_path / "m.csv"
    file.write_text(HEAD.replace("measured_ms,", ""))
    assert script("rows").read(file) == ([], [f"{file}: no column measured_ms"])
