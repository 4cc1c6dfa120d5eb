"""Reading budgets from ``modelstat.toml``, or from ``[tool.modelstat]`` of ``pyproject.toml``."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from modelstat.budget.limits import LIMITS, QUANTITIES, read_regression
from modelstat.budget.record import Budget
from modelstat.errors import BudgetError, ModelstatError, UsageError
from modelstat.hardware.gpu import Gpu
from modelstat.predict.execution import Execution, parse_execution
from modelstat.report.columns import nearest

NAME = "modelstat.toml"
PROJECT = "pyproject.toml"
BASELINES = "baselines"
"""The folder of baselines where the file names none."""
WHAT: dict[str, type] = {
    "name": str, "model": str, "input": str, "batch": int, "precision": str, "eval": bool, "gpu": str,
    "mode": str, "host": str, "channels_last": bool, "cuda_graph": bool, "baseline": str,
}  # fmt: skip
"""Keys of a budget that say what is measured, and their types."""
EXAMPLE = """`[[budget]]`, `model = "resnet50"` and `max_params = "26M"`, on a line each (docs/check.md has more)"""
"""The least that a budget is, for a message where there is none to read."""
KEYS = (*WHAT, *LIMITS, "max_regression")
TYPES = {str: "a text", int: "a whole number", bool: "true or false"}
_HEADER = re.compile(r"\s*\[\[\s*(?:tool\s*\.\s*modelstat\s*\.\s*)?budget\s*\]\]")


def find_file(folder: Path) -> Path:
    """The budget file of a folder. Raises BudgetError where there is none."""
    own, project = folder / NAME, folder / PROJECT
    if own.is_file():
        return own
    if project.is_file() and _File(project).table is not None:
        return project
    places = f"[[budget]] tables into {own}, or [[tool.modelstat.budget]] into {project}"
    raise BudgetError(f"no budgets here: write {places}, such as {EXAMPLE}")


def read_budgets(path: Path) -> tuple[Budget, ...]:
    """All budgets of a file, checked. Raises BudgetError, which names the file, the line where it is known, and the nearest key."""
    file = _File(path)
    table, where = file.table, "tool.modelstat" if path.name == PROJECT else "the file"
    if table is None:
        file.refuse(None, f"there is no [[tool.modelstat.budget]] in it: write {EXAMPLE.replace('[[', '[[tool.modelstat.')}")
    if not isinstance(table, dict):
        file.refuse(None, f"{where} must be a table, not {table!r}")
    for key in table:
        if key not in ("budget", BASELINES):
            file.refuse(file.line_of(key), f"unknown key {key!r} in {where}{nearest(key, ('budget', BASELINES))}")
    entries, folder = table.get("budget", []), table.get(BASELINES, BASELINES)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        file.refuse(file.line_of("budget"), "a budget is a table of its own: head it with [[budget]], in double brackets")
    if not isinstance(folder, str):
        file.refuse(file.line_of(BASELINES), f"{BASELINES} must be a text, not {folder!r}")
    if not entries:
        file.refuse(None, f"there is no budget in it: write {EXAMPLE}")
    starts = file.starts(len(entries))
    budgets = [_Reader(file, entry, place, starts[place]).budget(folder) for place, entry in enumerate(entries)]
    for attribute, what in (("name", "are called"), ("baseline", "have the baseline")):
        for value, times in Counter(getattr(budget, attribute) for budget in budgets).items():
            if times > 1:
                second = [budget for budget in budgets if getattr(budget, attribute) == value][1]
                file.refuse(second.line, f"{times} budgets {what} {value}: give each a name of its own")
    return tuple(budgets)


class _File:
    """A TOML file, and where in it things are: the parsers tell no lines but those of mistakes in TOML itself."""

    def __init__(self, path: Path) -> None:
        toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
        self.path = path
        try:
            text = path.read_text(encoding="utf-8")
            self.document: dict[str, Any] = toml.loads(text)
        except OSError as error:
            raise BudgetError(f"{path} cannot be read: {error.strerror or error}; a budget is {EXAMPLE}") from error
        except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BudgetError(f"{path} is not TOML: {error}; a budget is {EXAMPLE}") from error
        self._lines = text.splitlines()

    @property
    def table(self) -> Any:
        """What is modelstat's in it: everything, or [tool.modelstat] of a project; None where there is none."""
        if self.path.name != PROJECT:
            return self.document
        tool = self.document.get("tool")
        return tool.get("modelstat") if isinstance(tool, dict) else None

    def refuse(self, line: int | None, reason: str) -> NoReturn:
        raise BudgetError(f"{self.path}{'' if line is None else f', line {line}'}: {reason}")

    def starts(self, count: int) -> list[int | None]:
        """The lines of the [[budget]] heads, all None where they are written otherwise (``budget = [...]``)."""
        lines = [number for number, line in enumerate(self._lines, 1) if _HEADER.match(line)]
        return [*lines] if len(lines) == count else [None] * count

    def line_of(self, key: str, start: int | None = None) -> int | None:
        """The first line that gives ``key`` after line ``start`` and before the next budget; ``start`` itself where none does."""
        given = re.compile(rf"""\s*\[*\s*(?:tool\s*\.\s*modelstat\s*\.\s*)?["']?{re.escape(key)}["']?\s*[\]=.]""")
        for number, line in enumerate(self._lines[start or 0 :], (start or 0) + 1):
            if start and _HEADER.match(line):
                break
            if given.match(line):
                return number
        return start


class _Reader:
    """One entry of a file on its way to a Budget."""

    def __init__(self, file: _File, entry: Mapping[str, Any], place: int, start: int | None) -> None:
        self.file, self.entry, self.start = file, entry, start
        given = entry.get("name", entry.get("model"))
        self.shown = f"budget {place + 1}" + (f" ({given})" if isinstance(given, str) else "")

    def refuse(self, key: str | None, reason: str) -> NoReturn:
        self.file.refuse(self.start if key is None else self.file.line_of(key, self.start), f"{self.shown}: {reason}")

    def budget(self, baselines: str) -> Budget:
        """Checks every key. Raises BudgetError."""
        for key, value in self.entry.items():
            if key not in KEYS:
                self.refuse(key, f"unknown key {key!r}{nearest(key, KEYS)}")
            if key in WHAT and type(value) is not WHAT[key]:
                self.refuse(key, f"{key} must be {TYPES[WHAT[key]]}, not {value!r}")
        if not self.entry.get("model", "").strip():
            self.refuse(None, 'model is missing, as in model = "src/net.py:build"')
        limits = {key: self._checked(key, limit.read) for key, limit in LIMITS.items() if key in self.entry}
        regression = self._checked("max_regression", read_regression) if "max_regression" in self.entry else {}
        if not limits and not regression:
            self.refuse(None, f"it limits nothing: set one of {', '.join((*LIMITS, 'max_regression'))}")
        gpu = self._checked("gpu", self._gpu) if "gpu" in self.entry else None
        if gpu is None:
            for key in ("max_ideal", "max_predicted", "mode", "host", "channels_last", "cuda_graph"):
                if key in self.entry:
                    self.refuse(key, f'{key} needs a GPU: add gpu = "t4"')
            timed = [name for name in regression if QUANTITIES[name].timed]
            if timed and isinstance(self.entry["max_regression"], dict):
                self.refuse("max_regression", f'max_regression: {timed[0]} needs a GPU: add gpu = "t4"')
            # Without a GPU there are no times that could regress.
            regression = {name: share for name, share in regression.items() if name not in timed}
        name = self.entry.get("name") or self._name(gpu)
        committed = self.entry.get("baseline") or f"{baselines}/{re.sub(r'[^A-Za-z0-9_.]+', '-', name).strip('-.') or 'budget'}.json"
        return Budget(
            name=name,
            model=self.entry["model"],
            folder=self.file.path.parent,
            line=self.start,
            input=self._checked("input", _input) if "input" in self.entry else None,
            batch=self._checked("batch", _batch) if "batch" in self.entry else None,
            precision=self._checked("precision", _precision) if "precision" in self.entry else None,
            eval=self.entry.get("eval", False),
            gpu=gpu,
            execution=self._execution(),
            limits=limits,
            regression=regression,
            baseline=self.file.path.parent / committed,
        )

    def _checked(self, key: str, read: Any) -> Any:
        try:
            return read(self.entry[key])
        except ModelstatError as error:
            self.refuse(key, f"{key}: {error}")

    def _gpu(self, text: str) -> Gpu:
        from modelstat.hardware.database import resolve

        file = self.file.path.parent / text
        found = resolve([str(file) if text.lower().endswith(".toml") else text])
        if len(found) != 1:
            raise UsageError(f"{text!r} is {len(found)} GPUs: a budget is for one, write a budget for each")
        return found[0]

    def _execution(self) -> Execution:
        flags = {key: self.entry.get(key, False) for key in ("channels_last", "cuda_graph")}
        try:
            return parse_execution(self.entry.get("mode", "eager"), self.entry.get("host", "typical"), **flags)
        except ModelstatError as error:
            self.refuse("mode" if "mode" in str(error) else "host", str(error))

    def _name(self, gpu: Gpu | None) -> str:
        """Model and circumstances: unique unless a model has two budgets under the same ones."""
        parts = [self.entry["model"]]
        parts += [f"batch {self.entry['batch']}"] if "batch" in self.entry else []
        parts += [self.entry["precision"]] if "precision" in self.entry else []
        return " ".join([*parts, *([] if gpu is None else [f"on {self.entry['gpu']}"])])


def _batch(size: int) -> int:
    if size < 1:
        raise UsageError(f"{size} is not a batch size: give at least 1")
    return size


def _input(text: str) -> str:
    from modelstat.sources.inputs import parse_inputs

    parse_inputs(text)
    return text


def _precision(text: str) -> str:
    from modelstat.cli.lists import precisions

    return str(precisions([text])[0])
