"""The examples of the documents: every command that shows its output is run, and what it prints is what stands there."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from modelstat.cli import main

ROOT = Path(__file__).parents[1]
TABLE = r"\n(?P<table>(?:\|[^\n]*\n)+)"
BLOCK = re.compile(rf"(?:<!-- (?P<hidden>modelstat .*?) -->\n+)?```(?P<kind>console|text)\n(?P<body>.*?)```\n(?:{TABLE})?", re.DOTALL)
COMMAND = re.compile(r"\$ (modelstat (?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)")
GAP = "..."
"""A line of an example that stands for any number of lines."""


class Example(NamedTuple):
    """A command, and the lines that a document says it prints."""

    document: str
    command: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.document}: {self.command}"


def examples(path: Path) -> list[Example]:
    """Commands of console blocks that show an output or write the table below, and text blocks below a comment with their command."""
    found = []
    for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
        pairs = COMMAND.findall(block["body"]) if block["kind"] == "console" else [(block["hidden"] or "", block["body"])]
        for command, output in pairs:
            if "--format markdown" in command and block["table"]:
                output = f"{block['table']}{GAP}"
            lines = tuple(line.rstrip() for line in output.strip("\n").splitlines())
            if command and any(line not in ("", GAP) for line in lines):
                found.append(Example(path.name, command.replace("\\\n", " ").partition("  #")[0].strip(), lines))
    return found


def missing(lines: tuple[str, ...], printed: list[str]) -> str | None:
    """The first line of an example that was not printed where it should be, None where all were.

    Lines without a gap between them follow each other; the first stands at the start unless a gap comes before it.
    """
    place, free = 0, False
    for line in lines:
        if line == GAP:
            free = True
            continue
        if free:
            while place < len(printed) and printed[place] != line:
                place += 1
        if place >= len(printed) or printed[place] != line:
            return line
        place, free = place + 1, False
    return None


SLOW = {
    "llama3.1_8b": "walks eight billion parameters several times",
    "--best": "tries some forty swaps",
    "--tensor-parallel": "walks a transformer for one table",
}
"""What an example says that takes long to run, and why: run with MODELSTAT_ALL_EXAMPLES=1 in the environment."""
OWN = {"modelstat check": "the models of its budgets are a reader's own"}
"""Examples that cannot be run."""


def left_out(example: Example) -> list[str]:
    """Why an example is run on request only; [] for one that always is."""
    return [reason for part, reason in SLOW.items() if part in example.command]


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL = [example for path in DOCUMENTS for example in examples(path)]
RUN = [
    pytest.param(example, marks=[pytest.mark.skipif(not os.environ.get("MODELSTAT_ALL_EXAMPLES"), reason=why) for why in left_out(example)])
    for example in ALL
    if example.command not in OWN
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the examples name: the model of the README, a profile, and the model files."""
    (tmp_path / "zoo_configs").symlink_to(ROOT / "zoo_configs")
    (tmp_path / "trace.json").symlink_to(ROOT / "tests" / "measure" / "data" / "torch_gpu.json")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "tiny.py").write_text(readme.partition("```python\n# tiny.py\n")[2].partition("```")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("example", RUN, ids=str)
def test_a_command_prints_what_its_document_shows(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(example.command)[1:]) == 0
    printed = capsys.readouterr().out
    assert missing(example.lines, [line.rstrip() for line in printed.splitlines()]) is None, printed


def test_the_examples_are_found() -> None:
    """A pattern that finds nothing would pass: each of these documents shows an output."""
    assert {"README.md", "compare.md", "deploy.md", "language-models.md", "measure.md", "review.md"} <= {each.document for each in ALL}


LINES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("shown", "absent"),
    [
        (("a", "b", "c", "d"), None),
        (("a", "b"), None),
        (("a", "...", "d"), None),
        (("...", "c"), None),
        (("a", "..."), None),
        (("b",), "b"),
        (("a", "c"), "c"),
        (("...", "c", "b"), "b"),
        (("...", "e"), "e"),
        (("a", "b", "c", "d", "e"), "e"),
    ],
)
def test_lines_stand_where_they_are_shown(shown: tuple[str, ...], absent: str | None) -> None:
    assert missing(shown, LINES) == absent
