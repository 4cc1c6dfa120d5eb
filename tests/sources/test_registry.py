from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from modelstat.errors import UsageError
from modelstat.sources import ORIGINS, Origin, Source, parse, register
from modelstat.sources.source import Built
from modelstat.sources.spec import Spec


class Constant(Source):
    def __init__(self, spec: Spec, folder: Path) -> None:
        self.spec = spec.text
        self.folder = folder

    def key(self) -> dict[str, str]:
        return {"origin": "constant"}

    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        raise NotImplementedError


def test_an_origin_is_added_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(ORIGINS):
        monkeypatch.setitem(ORIGINS, name, ORIGINS[name])
    monkeypatch.setitem(ORIGINS, "constant", Origin(Constant))
    del ORIGINS["constant"]
    register("constant", Origin(Constant, (".const",)))
    by_prefix, by_suffix = parse("constant:x"), parse("a/x.const", tmp_path)
    assert isinstance(by_prefix, Constant)
    assert by_prefix.spec == "constant:x"
    assert isinstance(by_suffix, Constant)
    assert by_suffix.folder == tmp_path
    with pytest.raises(UsageError, match="origin 'constant': constant is taken already"):
        register("constant", Origin(Constant))
    with pytest.raises(UsageError, match=r"origin 'other': \.py is taken already"):
        register("other", Origin(Constant, (".py",)))


@pytest.mark.parametrize("spec", ["resnet50", "torchvision:resnet50", "timm:vit_base_patch16_224(img_size=384)", "net.py:Net", "net.yaml"])
def test_a_key_is_made_without_importing_torch(tmp_path: Path, spec: str) -> None:
    (tmp_path / "net.py").write_text("import torch\nfrom torch import nn\nNet = nn.Identity\n")
    (tmp_path / "net.yaml").write_text("model: net.py:Net\n")
    code = (
        f"import sys; from modelstat.sources import parse; key = parse({spec!r}).key();"
        "assert all(isinstance(value, str) for value in key.values()), key;"
        "print(*({'torch', 'torchvision', 'timm', 'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("resnet50", "resnet18"),
        ("resnet50", "torchvision:resnet50"),
        ("resnet50", "resnet50(num_classes=10)"),
        ("resnet50(num_classes=10)", "resnet50(num_classes=11)"),
        ("timm:resnet50", "torchvision:resnet50"),
        ("timm:resnet50", "timm:resnet50.a1_in1k"),
    ],
)
def test_keys_tell_models_apart(one: str, other: str) -> None:
    assert parse(one).key() != parse(other).key()


def test_keys_do_not_depend_on_spelling() -> None:
    assert parse("timm:vit(img_size=384,drop=1)").key() == parse(" timm:vit( drop = 1, img_size = 384 ) ").key()


def test_a_bare_name_depends_on_both_libraries() -> None:
    assert {"version:torchvision", "version:timm"} <= set(parse("resnet50").key())
