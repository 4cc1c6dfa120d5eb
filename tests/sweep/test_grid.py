"""The product of what is given, and which of it shares a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelstat.hardware.database import resolve
from modelstat.sweeping.grid import Grid, difference


def test_the_grid_is_the_product() -> None:
    grid = Grid(("a", "b"), ("3x8x8", "3x9x9"), (1, 8, 64), ("fp32", "tf32", "fp16"), resolve(["v100,t4"]))
    assert grid.points == 2 * 2 * 3 * 3 * 2
    # fp32 and tf32 run the same ops and share a trace; fp16 does not.
    assert grid.size == 2 * 2 * 2
    jobs = list(grid.jobs())
    assert [job.index for job in jobs] == list(range(8))
    assert sum(job.points for job in jobs) == grid.points
    assert [(job.spec, job.inputs, job.precisions) for job in jobs[:4]] == [
        ("a", "3x8x8", ("fp32", "tf32")), ("a", "3x8x8", ("fp16",)), ("a", "3x9x9", ("fp32", "tf32")), ("a", "3x9x9", ("fp16",)),
    ]  # fmt: skip


def test_by_default_one_point_a_model() -> None:
    grid = Grid(("a",))
    (job,) = grid.jobs(cache=False)
    assert (grid.points, job.batches, job.precisions, job.inputs, job.cache) == (1, (None,), (None,), None, False)


def test_a_file_is_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (job,) = Grid(("nets/a.py:build(width=2)",)).jobs()
    assert (job.spec, job.target) == ("nets/a.py:build(width=2)", f"{tmp_path}/nets/a.py:build(width=2)")


@pytest.mark.parametrize(
    ("mine", "other", "words"),
    [
        (Grid(("a",)), Grid(("a",)), None),
        (Grid(("a",), batches=(1,)), Grid(("a",), batches=(1, 2)), "--batch 1,2 there, 1 here"),
        (Grid(("a",), gpus=resolve(["t4"])), Grid(("a",)), "--gpu none there, t4 here"),
    ],
)
def test_difference(mine: Grid, other: Grid, words: str | None) -> None:
    assert difference(mine.describe(), other.describe()) == words


def test_other_models_are_another_grid() -> None:
    found = difference(Grid(("a", "b")).describe(), Grid(("b", "a")).describe())
    assert found is not None
    assert found.startswith("models (2, digest ")
