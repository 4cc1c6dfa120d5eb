"""Run a user's Python file as a module of its own, and leave no trace of it in the import system."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from modelstat.errors import ModelFileError
from modelstat.sources.digest import is_relative, package_root
from modelstat.sources.library import one_line


@contextlib.contextmanager
def import_scope(path: Path) -> Iterator[None]:
    """Put the file's folder on sys.path, and afterwards take away the path and the modules that were imported from there.

    A module of the same name from another folder steps aside for that long, so two folders that both have a ``layers.py``
    each get their own. Installed packages stay imported. No bytecode is written beside the user's files.
    """
    folders = list(dict.fromkeys((path.parent, package_root(path))))
    aside = {name: module for name, module in sys.modules.items() if _is_foreign_copy(name, module, folders)}
    for name in aside:
        del sys.modules[name]
    before, search_path, arguments, bytecode = set(sys.modules), list(sys.path), list(sys.argv), sys.dont_write_bytecode
    sys.path[:0] = map(str, folders)
    sys.argv[:] = [str(path)]
    sys.dont_write_bytecode = True
    invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.argv[:], sys.dont_write_bytecode = search_path, arguments, bytecode
        for name in set(sys.modules) - before:
            if not name.startswith(_PREFIX) and _is_below(sys.modules[name], folders):
                del sys.modules[name]
        sys.modules.update(aside)


_PREFIX = "_modelstat_"


def load_module(path: Path) -> ModuleType:
    """Run the file under a name that no other file has, within an :func:`import_scope`; relative imports work in it.

    The packages around a file run only where it imports relatively. The module stays in sys.modules under that name,
    since functions and classes look their module up there.
    """
    root = package_root(path)
    top = f"{_PREFIX}{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"
    for name in [name for name in sys.modules if name == top or name.startswith(f"{top}.")]:
        del sys.modules[name]
    package = module_from_spec(ModuleSpec(top, None, is_package=True))
    package.__path__ = [str(root)]
    sys.modules[top] = package
    parent = top
    if is_relative(path):
        parent = ".".join((top, *path.parent.relative_to(root).parts))
        import_module(parent)
    name = f"{parent}.{path.stem.replace('.', '_')}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModelFileError(f"{path} cannot be loaded as a Python module")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def failure(path: Path, error: BaseException) -> str:
    """``file, line N: Kind: message``: the innermost line of the user's own files that an exception passed through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(Path(error.filename), path)}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    root = package_root(path.resolve())
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_absolute() and Path(frame.filename).is_relative_to(root)]
    own = [frame for frame in own if "site-packages" not in frame.filename]
    where = f"{_shown(Path(own[-1].filename), path)}, line {own[-1].lineno}" if own else str(path)
    what = f"exit({error.code!r}) was called" if isinstance(error, SystemExit) else f"{type(error).__name__}: {one_line(error)}"
    return f"{where}: {what}"


def _shown(file: Path, path: Path) -> str:
    """A file of the user as the user would write it: the given path, or the path of a file beside it."""
    resolved = path.resolve()
    if file.resolve() == resolved:
        return str(path)
    with contextlib.suppress(ValueError):
        return str(path.parent / file.relative_to(resolved.parent))
    return str(file)


def _files(module: ModuleType) -> list[str]:
    with contextlib.suppress(Exception):
        file = getattr(module, "__file__", None)
        return [file] if file else [str(entry) for entry in getattr(module, "__path__", ())]
    return []


def _is_below(module: ModuleType, folders: list[Path]) -> bool:
    """Whether a module was imported from one of the folders, and is not an installed package (an environment may be below)."""
    return any(
        Path(file).is_relative_to(folder) and not {"site-packages", "dist-packages"} & set(Path(file).parts)
        for file in _files(module)
        for folder in folders
    )


def _is_foreign_copy(name: str, module: ModuleType, folders: list[Path]) -> bool:
    """Whether an imported module hides one of the same name in the folders: it is neither installed nor of the standard library."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top in {"__main__", "modelstat"} or name.startswith(_PREFIX):
        return False
    files = _files(module)
    if not files or any({"site-packages", "dist-packages"} & set(Path(file).parts) for file in files):
        return False
    return any((folder / f"{top}.py").is_file() or (folder / top).is_dir() for folder in folders)
