"""`--output`: a file that appears whole or not at all."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelstat.cli.output import Output
from modelstat.errors import OutputError

Run = Callable[..., Any]
SHAPE = ("--input", "3x32x128")


def test_the_report_goes_into_the_file(run: Run, small: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    code, out, err = run(f"{small}:Net", *SHAPE, "--format", "json", "--output", str(path))
    assert (code, out, err) == (0, "", "")
    assert json.loads(path.read_text())["totals"]["params"] == 224
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_written_fails_before_the_model_is_built(run: Run, tmp_path: Path) -> None:
    proof, model = tmp_path / "built", tmp_path / "model.py"
    model.write_text(f"def build():\n    open({str(proof)!r}, 'w').close()\n")
    code, _, err = run(f"{model}:build", *SHAPE, "--output", str(tmp_path / "absent" / "report.txt"))
    assert code == 2
    assert "no directory" in err
    assert not proof.exists()


def test_a_failed_run_leaves_the_old_file(run: Run, small: str, tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    assert run(f"{small}:Raises", *SHAPE, "--output", str(path)).code == 2
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_strict_writes_the_file_first(run: Run, small: str, tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    assert run(f"{small}:Unknown", *SHAPE, "--strict", "--output", str(path)).code == 3
    assert "modelstat_tests::twist" in path.read_text()


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    path.chmod(0o640)
    with Output(path) as out:
        out.stream.write("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    with Output(link) as out:
        out.stream.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_device_is_written_in_place() -> None:
    with Output(Path("/dev/null")) as out:
        out.stream.write("gone")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("name", ["", "absent/report.txt"])
def test_what_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="cannot be written"), Output(tmp_path / name):
        pass
