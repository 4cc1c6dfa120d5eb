"""What a user writes, and the models that it names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from modelstat.errors import ModelFileError, SourceError, UnknownModelError, UsageError
from modelstat.sweeping import patterns
from modelstat.sweeping.patterns import expand, located, parts, read_lines

KNOWN = {"torchvision": ["alexnet", "resnet18", "resnet50"], "timm": ["alexnet_tiny", "resnet50", "resnet50d", "vit_tiny"]}


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two small libraries; the list tells which were asked for their names."""
    asked: list[str] = []

    def names(origins: object) -> dict[str, list[str]]:
        asked.extend(dict.fromkeys(origins))  # type: ignore[call-overload]
        return {origin: KNOWN[origin] for origin in asked}

    monkeypatch.setattr(patterns, "names", names)
    return asked


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize(
    ("texts", "specs"),
    [
        (["timm:*"], ["timm:alexnet_tiny", "timm:resnet50", "timm:resnet50d", "timm:vit_tiny"]),
        (["torchvision:resnet*"], ["torchvision:resnet18", "torchvision:resnet50"]),
        (["timm:resnet50?"], ["timm:resnet50d"]),
        (["timm:[rv]*"], ["timm:resnet50", "timm:resnet50d", "timm:vit_tiny"]),
        (["timm:vit*(img_size=384)"], ["timm:vit_tiny(img_size=384)"]),
        (["resnet50*"], ["torchvision:resnet50", "timm:resnet50d"]),  # a bare name is torchvision's, else timm's
        (["timm:resnet50", "timm:resnet50*", "resnet50"], ["timm:resnet50", "timm:resnet50d", "resnet50"]),
        (["timm:no_such_model"], ["timm:no_such_model"]),  # the worker finds out, and the row says so
        ([" timm:vit_tiny( img_size = 384 ) "], ["timm:vit_tiny(img_size=384)"]),
    ],
)
def test_specs(texts: list[str], specs: list[str]) -> None:
    assert list(expand(texts)) == specs


def test_only_globs_ask_a_library_for_its_names(libraries: list[str]) -> None:
    expand(["timm:resnet50", "resnet18", "timm:vit*"])
    assert libraries == ["timm"]


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.py", "a.py", "c.yaml", "deep/d.py", "odd[1].py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert expand(["*.py:Net"]) == ("a.py:Net", "b.py:Net", "odd[1].py:Net")
    assert expand(["**/d.py"]) == ("deep/d.py",)
    assert expand(["c.yaml", "[ab].py(width=2)"]) == ("c.yaml", "a.py(width=2)", "b.py(width=2)")
    assert expand(["odd[1].py"]) == ("odd[1].py",)  # it exists by that name
    assert expand([f"{tmp_path}/a.py:build"]) == (f"{tmp_path}/a.py:build",)
    assert located("a.py:build", Path.cwd()) == f"{tmp_path}/a.py:build"
    (tmp_path / "deep" / "config.json").touch()
    assert expand(["hf:deep/*.json", "hf:deep"]) == ("hf:deep/config.json", "hf:deep")  # the latter is an architecture
    assert located("hf:deep/config.json", Path.cwd()) == f"hf:{tmp_path}/deep/config.json"
    assert located("timm:resnet50", Path.cwd()) == "timm:resnet50"


@pytest.mark.usefixtures("libraries")
def test_what_matches_nothing_names_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "network.py").touch()
    with pytest.raises(UnknownModelError, match=r"'timm:resnets50\*' matches no model: the nearest are resnet50, resnet50d"):
        expand(["timm:resnets50*"])
    with pytest.raises(ModelFileError, match=r"'netwerk\.py:build' matches no file: the nearest are network\.py"):
        expand(["netwerk.py:build"])
    with pytest.raises(ModelFileError, match=r"matches no file: nothing there is called anything like it"):
        expand(["no/such/*.yaml"])
    with pytest.raises(SourceError, match="position 1: no origin is called 'tim'"):
        expand(["tim:resnet50"])
    with pytest.raises(UsageError, match="no model is named"):
        expand([])


def test_a_list_has_comments() -> None:
    text = "# my zoo\n\n timm:*   # all of it\nnet.py:build(name='a#b')\n"
    assert list(read_lines(text.splitlines())) == ["timm:*", "net.py:build(name='a#b')"]


@pytest.mark.parametrize(
    ("spec", "origin", "name"),
    [("timm:vit", "timm", "vit"), ("resnet50", "bare", "resnet50"), ("a/b.py:build", "file", "a/b.py:build"), ("c.yaml", "yaml", "c.yaml")],
)
def test_parts(spec: str, origin: str, name: str) -> None:
    assert parts(spec) == (origin, name)


def test_real_names_come_from_a_process_of_their_own() -> None:
    """Of torchvision, whose list is short; this process does not import it for that."""
    program = (
        "import sys\nfrom modelstat.sweeping.patterns import expand\n"
        "found = expand(['torchvision:resnet1*'])\n"
        "assert found == ('torchvision:resnet101', 'torchvision:resnet152', 'torchvision:resnet18'), found\n"
        "assert not {'torch', 'torchvision', 'distributed', 'pyarrow', 'duckdb'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_origin_without_a_list() -> None:
    from modelstat.sweeping.names import names

    with pytest.raises(SourceError, match=r"the models of yaml cannot be listed"):
        names(["yaml"])
