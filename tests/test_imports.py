"""Only four packages may import torch, and nothing that answers from a cached trace ever loads it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import modelstat

PACKAGE = Path(modelstat.__file__).parent
MAY_IMPORT_TORCH = {"sources", "trace", "rewrite", "measure"}
TORCH_FREE_INSIDE = {"trace/cache.py", "trace/__init__.py", "sources/__init__.py", "sources/source.py"} | {
    f"rewrite/{name}.py" for name in ("__init__", "flow", "plan", "registry", "selection", "source", "stages", "text")
} | {file.relative_to(PACKAGE).as_posix() for file in (PACKAGE / "rewrite" / "rules").glob("*.py")}
"""Files of those packages that the cached path imports: they may import torch inside a function, never at the top."""
TORCH = {"torch", "torchvision", "timm", "transformers", "fvcore"}
DRAWING = {"plotly", "matplotlib", "jinja2"}


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of everything that a syntax tree imports, type-checking blocks left out."""
    names: set[str] = set()
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
        pending.extend(ast.iter_child_nodes(node))
    return names


def test_the_walk_sees_imports_in_functions_and_not_those_for_types() -> None:
    source = "import os\ndef f():\n    from torch import nn\nif TYPE_CHECKING:\n    import timm\nelse:\n    import fvcore.nn\n"
    assert imported(ast.parse(source)) == {"os", "torch", "fvcore"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_four_packages_import_torch(path: Path) -> None:
    relative = path.relative_to(PACKAGE)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if relative.parts[0] not in MAY_IMPORT_TORCH:
        assert not imported(tree) & TORCH
    elif relative.as_posix() in TORCH_FREE_INSIDE:
        assert not imported(ast.Module([node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], [])) & TORCH


TORCH_FREE = [
    "modelstat",
    "modelstat.cli",
    "modelstat.cli.app",
    "modelstat.records",
    "modelstat.units",
    "modelstat.errors",
    "modelstat.cost.registry",
    "modelstat.hardware.database",
    "modelstat.predict.roofline",
    "modelstat.report.document",
    "modelstat.analysis",
    "modelstat.api",
    "modelstat.walking",
    "modelstat.budget.check",
    "modelstat.budget.file",
    "modelstat.report.compare",
    "modelstat.swapping",
    "modelstat.cli.swap",
    "modelstat.rewrite.registry",
    "modelstat.rewrite.source",
    "modelstat.measure.imports.read",
    "modelstat.sources",
    "modelstat.trace.cache",
    "modelstat.report.chart.view",
    "modelstat.report.interactive",
    "modelstat.report.page.build",
    "modelstat.report.plot.figure",
    "modelstat.report.terminal.roofline",
]


def test_nothing_on_the_cached_path_loads_torch() -> None:
    names = ", ".join(TORCH_FREE)
    slow = TORCH | DRAWING
    program = f"import sys, {names}\nloaded = sorted({slow!r} & set(sys.modules))\nsys.exit(f'loaded: {{loaded}}' if loaded else 0)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_importing_modelstat_is_light() -> None:
    heavy = {"msgspec", "rich", "cyclopts", "yaml", "pandas", "tabulate", "torch"}
    program = f"import sys, modelstat; print(sorted({heavy!r} & set(sys.modules)))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"
