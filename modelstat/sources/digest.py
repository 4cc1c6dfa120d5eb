"""Which files a Python file imports beside it, and their digest: what decides the model, found without running anything."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Imports(NamedTuple):
    """What a file and the files beside it import."""

    files: tuple[Path, ...]
    """The file itself, and all files that it reaches, sorted."""
    packages: tuple[str, ...]
    """Top-level names that are not beside it and not in the standard library, sorted."""


def package_root(path: Path) -> Path:
    """The folder above the outermost package that a file is in; its own folder, if that is no package."""
    root = path.parent
    while (root / "__init__.py").is_file() and root.parent != root:
        root = root.parent
    return root


def imports(path: Path) -> Imports:
    """Follow the imports of a file through the files beside it. A file with a syntax error imports nothing."""
    roots = (path.parent, package_root(path))
    found: set[Path] = set()
    packages: set[str] = set()
    pending = [path]
    if is_relative(path):
        pending += [folder / "__init__.py" for folder in path.parents if folder != roots[1] and folder.is_relative_to(roots[1])]
    while pending:
        file = pending.pop()
        if file in found:
            continue
        found.add(file)
        for level, name in _imported_names(file):
            folders = (file.parents[level - 1],) if 0 < level <= len(file.parents) else roots if level == 0 else ()
            beside = [target for folder in folders for target in _module_files(folder, name)]
            pending.extend(beside)
            top = name.partition(".")[0]
            if level == 0 and not beside and top and top not in sys.stdlib_module_names:
                packages.add(top)
    return Imports(tuple(sorted(found)), tuple(sorted(packages)))


def is_relative(path: Path) -> bool:
    """Whether a file has relative imports, so that the packages around it are part of it."""
    return any(level > 0 for level, _ in _imported_names(path))


def digest(files: tuple[Path, ...], root: Path) -> str:
    """SHA-256 over the names, relative to ``root``, and the contents of files. Raises OSError if one cannot be read."""
    total = hashlib.sha256()
    for file in files:
        name = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.as_posix()
        content = file.read_bytes()
        total.update(f"{len(name)} {name} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def _imported_names(path: Path) -> Iterator[tuple[int, str]]:
    """Level (0: absolute) and dotted name of each import of a file, with each imported member, which may be a module.

    ``import_module("name")`` and ``__import__("name")`` count where the name is written out.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module:
                yield node.level, module
            for alias in node.names:
                if node.level or module:
                    yield node.level, f"{module}.{alias.name}".strip(".")
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"}:
                name = node.args[0].value
                yield len(name) - len(name.lstrip(".")), name.lstrip(".")


def _module_files(folder: Path, name: str) -> list[Path]:
    """The files that importing ``name`` from ``folder`` runs: the packages on the way and the module, as far as they exist."""
    files: list[Path] = []
    for part in name.split("."):
        package, module = folder / part / "__init__.py", folder / f"{part}.py"
        if package.is_file():
            files.append(package)
        elif module.is_file():
            return [*files, module]
        elif not (folder / part).is_dir():
            break
        folder = folder / part
    return files
