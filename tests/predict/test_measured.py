"""A measurement on one GPU corrects the others by its ratio."""

from __future__ import annotations

from math import exp, log, sqrt
from pathlib import Path
from statistics import stdev

import pytest

from modelstat.errors import InputError, UnknownModelError, UsageError
from modelstat.hardware.database import find
from modelstat.predict.execution import Execution
from modelstat.predict.measured import SPREAD, Row, corrected, correction, is_file, parse, read
from modelstat.predict.prediction import predict
from modelstat.records import Trace
from tests.predict.sample import block

HEAD = "source,gpu,model,input,batch,precision,layout,mode,measured_ms\n"
T4, V100 = find("t4"), find("v100")


def never(row: Row) -> Trace:
    raise AssertionError(f"a time alone needs no other model, not {row.model}")


def by_batch(row: Row) -> Trace:
    """The block at the row's batch: what a model's spec would give."""
    if row.model == "unknown":
        raise UnknownModelError("no origin knows 'unknown'")
    return block(batch=row.batch)[0]


def predicted_ms(batch: int, execution: Execution | None = None) -> float:
    trace, costs = block(batch=batch)
    return 1e3 * (predict(trace, costs, T4, execution).seconds or 0.0)


def file(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "mine.csv"
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_the_ratio_of_one_gpu_is_that_of_all() -> None:
    trace, costs = block(batch=8)
    measured = 2.5 * predicted_ms(8)
    found = correction(f"{measured}ms@t4", trace, Execution(), never)
    assert found.ratio == pytest.approx(2.5)
    plain = predict(trace, costs, V100)
    fixed = corrected(plain, found)
    assert fixed.seconds == pytest.approx(2.5 * (plain.seconds or 0.0))
    assert sum(op.total_seconds for op in fixed.ops) == pytest.approx(fixed.seconds)
    assert fixed.low_seconds == pytest.approx((fixed.seconds or 0.0) / (1 + SPREAD) / plain.widening)
    assert fixed.high_seconds == pytest.approx((fixed.seconds or 0.0) * (1 + SPREAD) * plain.widening)
    assert "measured on Tesla T4" in (fixed.correction or "")


def test_a_missing_peak_stays_missing() -> None:
    trace, costs = block(precision="tf32")
    found = correction("3ms@a100", trace, Execution(), never)
    assert corrected(predict(trace, costs, V100), found).seconds is None
    with pytest.raises(InputError, match="no prediction for Tesla T4"):
        correction("3ms@t4", trace, Execution(), never)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("12ms", "such as 12.3ms@rtx-3090, or a CSV file"),
        ("12ms@", "such as 12.3ms@rtx-3090"),
        ("12@t4", "'12' is not a time: write it like 3ms"),
        ("0ms@t4", "no model runs in 0 s"),
        ("-3ms@t4", "is not a time"),
    ],
)
def test_what_is_no_measurement(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(text)


def test_a_file_is_told_from_a_time() -> None:
    assert is_file("mine.csv")
    assert not is_file("12ms@t4")
    assert not is_file("12ms")


def test_a_file_gives_the_geometric_mean(tmp_path: Path) -> None:
    trace, _ = block(batch=64)
    ratios = (1.1, 1.3, 1.2)
    rows = [f"me,t4,m,3x224x224,{size},fp32,nchw,eager,{ratio * predicted_ms(size)}" for size, ratio in zip((1, 2, 4), ratios, strict=True)]
    found = correction(file(tmp_path, *rows), trace, Execution(), by_batch)
    assert found.ratio == pytest.approx((1.1 * 1.3 * 1.2) ** (1 / 3))
    spread = exp(1.645 * stdev(map(log, ratios)) * sqrt(1 + 1 / 3)) - 1
    assert found.spread == pytest.approx(max(SPREAD, spread))
    assert found.source.startswith("3 times of other models measured on Tesla T4")


def test_rows_of_the_very_pass_go_first(tmp_path: Path) -> None:
    trace, _ = block(batch=2)
    rows = [f"me,t4,m,,{size},fp32,nchw,eager,{ratio * predicted_ms(size)}" for size, ratio in ((1, 9.0), (2, 1.5))]
    found = correction(file(tmp_path, *rows), trace, Execution(), by_batch)
    assert found.ratio == pytest.approx(1.5)
    assert found.spread == SPREAD
    assert "of this very pass" in found.source


def test_rows_run_another_way_are_left_out(tmp_path: Path) -> None:
    trace, _ = block()
    execution = Execution(mode="compile", channels_last=True)
    rows = [f"me,t4,m,,4,fp32,nchw,eager,{9 * predicted_ms(4)}", f"me,t4,m,,4,fp32,nhwc,compile,{1.5 * predicted_ms(4, execution)}"]
    assert correction(file(tmp_path, *rows), trace, execution, by_batch).ratio == pytest.approx(1.5)
    with pytest.raises(InputError, match="no row of mode eager, layout nhwc and precision fp32"):
        correction(file(tmp_path, *rows), trace, Execution(channels_last=True), by_batch)


def test_a_bad_row_is_named_with_its_line_and_no_other_is_lost(tmp_path: Path) -> None:
    good = f"me,t4,m,,4,fp32,nchw,eager,{1.2 * predicted_ms(4)}"
    bad = ["me,t4,m,,four,fp32,nchw,eager,1", "me,t4,unknown,,4,fp32,nchw,eager,1", "me,nothing,m,,4,fp32,nchw,eager,1"]
    found = correction(file(tmp_path, bad[0], good, *bad[1:]), block()[0], Execution(), by_batch)
    assert found.ratio == pytest.approx(1.2)
    assert "skipped 3" in found.source
    for text in ("line 2: batch 'four'", "line 4: no origin knows", "line 5: no GPU is called 'nothing'"):
        assert text in found.source


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("me,,m,,4,fp32,nchw,eager,1", "no gpu"),
        ("me,t4,,,4,fp32,nchw,eager,1", "no model"),
        ("me,t4,m,,0,fp32,nchw,eager,1", "must be above 0"),
        ("me,t4,m,,4,fp32,nchw,eager,nan", "must be above 0"),
        ("me,t4,m,,4,fp12,nchw,eager,1", "precision 'fp12' is not one of"),
        ("me,t4,m,,4,fp32,hwcn,eager,1", "layout 'hwcn'"),
        ("me,t4,m,,4,fp32,nchw,jit,1", "mode 'jit'"),
        ("me,t4", "no model"),
    ],
)
def test_what_a_row_may_not_hold(tmp_path: Path, line: str, message: str) -> None:
    rows, problems = read(Path(file(tmp_path, line)))
    assert rows == []
    assert problems[0].startswith("line 2: ")
    assert message in problems[0]


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.csv")
    (tmp_path / "other.csv").write_text("gpu,model\nt4,m\n")
    with pytest.raises(InputError, match="no column input, batch, precision, measured_ms"):
        read(tmp_path / "other.csv")
    rows = (f"me,{gpu},m,,4,fp32,nchw,eager,1" for gpu in ("t4", "v100"))
    with pytest.raises(InputError, match="rows of several GPUs"):
        correction(file(tmp_path, *rows), block()[0], Execution(), by_batch)
