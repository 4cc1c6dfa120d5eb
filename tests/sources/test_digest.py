from __future__ import annotations

from pathlib import Path

import pytest

from modelstat.sources.digest import digest, imports, package_root

FILES = {
    "a.py": "import os, torch\nimport b\nfrom pkg import c\ndef f():\n    import lazy\n",
    "b.py": "from pkg.sub.d import x\nimport b\n",
    "lazy.py": "import importlib\nimportlib.import_module('named')\n",
    "named.py": "import numpy.linalg\n",
    "unused.py": "",
    "pkg/__init__.py": "",
    "pkg/c.py": "from . import e\nfrom .sub import d\n",
    "pkg/e.py": "def broken(:\n",
    "pkg/f.py": "",
    "pkg/sub/__init__.py": "",
    "pkg/sub/d.py": "from ..f import y\n",
    "loose/plain.py": "import other\n",
    "loose/other.py": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "files", "packages"),
    [
        (
            "a.py",
            [
                "a.py",
                "b.py",
                "lazy.py",
                "named.py",
                "pkg/__init__.py",
                "pkg/c.py",
                "pkg/e.py",
                "pkg/f.py",
                "pkg/sub/__init__.py",
                "pkg/sub/d.py",
            ],
            ["numpy", "torch"],
        ),
        ("unused.py", ["unused.py"], []),
        ("pkg/e.py", ["pkg/e.py"], []),
        ("pkg/sub/d.py", ["pkg/__init__.py", "pkg/f.py", "pkg/sub/__init__.py", "pkg/sub/d.py"], []),
        ("loose/plain.py", ["loose/other.py", "loose/plain.py"], []),
    ],
)
def test_imports_are_followed_through_the_files_beside(folder: Path, name: str, files: list[str], packages: list[str]) -> None:
    found = imports(folder / name)
    assert [file.relative_to(folder).as_posix() for file in found.files] == files
    assert list(found.packages) == packages


def test_the_root_of_a_package_is_above_it(folder: Path) -> None:
    assert package_root(folder / "pkg" / "sub" / "d.py") == folder
    assert package_root(folder / "loose" / "plain.py") == folder / "loose"


def test_a_digest_is_of_names_and_contents(folder: Path) -> None:
    one = digest((folder / "b.py",), folder)
    assert one == digest((folder / "b.py",), folder)
    (folder / "renamed.py").write_bytes((folder / "b.py").read_bytes())
    assert digest((folder / "renamed.py",), folder) != one
    with pytest.raises(OSError, match="absent"):
        digest((folder / "absent.py",), folder)
