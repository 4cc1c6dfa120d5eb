from __future__ import annotations

from pathlib import Path

import pytest

from modelstat.errors import ModelFileError
from modelstat.sources import parse

NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self, width=1):
        super().__init__()
        self.fc = nn.Linear(4, width)

    def forward(self, x):
        return self.fc(x)
"""


def written(folder: Path, text: str) -> str:
    path = folder / "model.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    "text",
    [
        "model: net.py:Net(width=3)\ninputs: 5x4\nprecision: fp16\nsource: measured\n",
        "model: net.py:Net\narguments:\n  width: 3\ninputs: [5x4]\nprecision: fp16\nswap: []\n",
        "origin: file\nname: net.py:Net\narguments: {width: 3}\ninputs:\n  - 5x4\nprecision: fp16\nsource:\n  - a paper\n  - its table 2\n",
        "# comment\nprecision: fp16\ninputs: 5x4\narguments: &a {width: 3}\nmodel: ./net.py:Net\n",
    ],
)
def test_forms_of_a_model_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "net.py").write_text(NET)
    source = parse(written(tmp_path, text))
    assert source.precision == "fp16"
    assert source.spec == str(tmp_path / "model.yaml")
    built = source.build()
    assert tuple(built.args[0].shape) == (1, 5, 4)
    assert sum(p.numel() for p in built.model.parameters()) == 4 * 3 + 3


def test_inputs_may_be_named_and_are_replaced_by_an_option(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    source = parse(written(tmp_path, "model: net.py:Net\ninputs:\n  x: 7x4:fp32\n"))
    assert {name: tuple(t.shape) for name, t in source.build(batch=2).kwargs.items()} == {"x": (2, 7, 4)}
    assert tuple(source.build("9x4", 3).args[0].shape) == (3, 9, 4)


def test_a_library_model_is_in_eval_mode_at_its_default_input(tmp_path: Path) -> None:
    pytest.importorskip("torchvision", reason="the extra `zoo` is not installed")
    source = parse(written(tmp_path, "model: torchvision:squeezenet1_1\n"))
    built = source.build()
    assert source.precision is None
    assert not built.model.training
    assert tuple(built.args[0].shape) == (1, 3, 224, 224)


def test_the_example_of_the_repository() -> None:
    pytest.importorskip("torchvision", reason="the extra `zoo` is not installed")
    source = parse(str(Path(__file__).parents[2] / "zoo_configs" / "resnet50.yaml"))
    assert source.precision == "fp32"
    assert sum(p.numel() for p in source.build().model.parameters()) == 25_557_032


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "a model file is a mapping, as in `model: resnet50`"),
        ("- resnet50\n", 1, "a model file is a mapping"),
        ("inputs: 3x4\n", 1, "`model` is missing"),
        ("\n\norigin: timm\n", 3, "`model` is missing"),
        ("model: resnet50\ninput: 3x4\n", 2, "unknown key 'input', did you mean inputs?"),
        (
            "model: resnet50\nzzzz: 3x4\n",
            2,
            "unknown key 'zzzz', the keys are model, origin, name, arguments, inputs, precision, swap, source",
        ),
        ("model: resnet50\n[a, b]: 1\n", 2, "unknown key None"),
        ("model: resnet50\n\nmodel: resnet18\n", 3, "'model' is there twice, first in line 1"),
        ("model: resnet50\narguments:\n  a: 1\n  a: 2\n", 4, "'a' is there twice"),
        ("model: 50\n", 1, "model must be text, not 50"),
        ("model: resnet50\nname: resnet18\n", 2, "name and model exclude each other"),
        ("name: resnet18\norigin: hub\n", 2, "no origin is called 'hub', there are diffusers, file, hf, timm, torchvision, yaml"),
        ("model: resnet50\narguments: 3\n", 2, "arguments must be a mapping of names to values"),
        ("model: resnet50\narguments: {1: 2}\n", 2, "arguments must be a mapping of names to values"),
        ("model: resnet50(a=1)\narguments: {a: 2}\n", 1, "a is given in the parentheses and under `arguments`"),
        ("# first\nmodel: resnet50(1)\n", 2, "'resnet50(1)', position 10: constructor arguments are given by name"),
        ("model: absent.py\n", 1, "absent.py does not exist"),
        ("model: model.yaml\n", 1, "a model file names a model, not another model file"),
        ("model: resnet50\ninputs: 3xx4\n", 2, "'3xx4', position 1: '' in '3xx4' is not a size"),
        ("model: resnet50\ninputs:\n  x: 3y\n", 2, "'x=3y', position 3: '3y' in '3y' is not a size"),
        ("model: resnet50\ninputs: 1.5\n", 2, "inputs must be shapes, as in `inputs: 3x224x224`, not 1.5"),
        ("model: resnet50\ninputs:\n", 2, "inputs must be shapes, as in `inputs: 3x224x224`, not None"),
        ("model: resnet50\nprecision: fp8\n", 2, "precision 'fp8' is not one of fp32, tf32, fp16, bf16, amp-fp16, amp-bf16"),
        ("model: resnet50\nswap: conv\n", 2, "swap must be a list, as in `swap: [conv=ghost]`"),
        ("model: resnet50\nswap: ['conv=gost']\n", 2, "no swap is called 'conv=gost': did you mean conv=ghost"),
        ("model: resnet50\nprecision: fp16\nswap: ['precision=bf16']\n", 2, "a precision of the model would undo that of the swapped"),
        ("model: resnet50\nswap: [{where: layer1}]\n", 2, "a swap is a text such as conv=ghost, or a mapping with a rule"),
        ("model: resnet50\nswap:\n  - rule: conv=ghost\n    kernel: big\n", 2, "kernel 'big': write a size such as 3, or 1x7"),
        ("model: resnet50\nsource: {a: 1}\n", 2, "source must be text"),
        ("model: resnet50\n  bad: [1\n", 2, "mapping values are not allowed here"),
        ("model: 'resnet50\n", 2, "found unexpected end of stream"),
        ("model: resnet50\narguments: !!python/object/apply:os.system ['true']\n", 2, "could not determine a constructor for the tag"),
        ("model: *nothing\n", 1, "found undefined alias 'nothing'"),
    ],
)
def test_mistakes_name_their_line(tmp_path: Path, text: str, line: int, reason: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        parse(written(tmp_path, text))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'model.yaml'}, line {line}: ")
    assert reason in message
    assert "\n" not in message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"absent\.yaml cannot be read: No such file or directory"):
        parse(str(tmp_path / "absent.yaml"))
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\xd8model")
    with pytest.raises(ModelFileError, match=r"binary\.yaml"):
        parse(str(tmp_path / "binary.yaml"))
    with pytest.raises(ModelFileError, match="a model file takes no arguments, write them in the file under `arguments`"):
        parse(written(tmp_path, "model: resnet50\n") + "(a=1)")


def test_the_key_changes_with_the_file_and_with_the_model_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    text = "model: net.py:Net\ninputs: 5x4\n"
    first = parse(written(tmp_path, text)).key()
    assert parse(written(tmp_path, text)).key() == first
    assert parse(written(tmp_path, text.replace("5x4", "6x4"))).key() != first
    (tmp_path / "net.py").write_text(NET.replace("width=1", "width=2"))
    assert parse(written(tmp_path, text)).key() != first


def test_swaps_of_a_file_are_applied_in_order(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    text = "model: net.py:Net(width=8)\ninputs: 5x4\nswap:\n  - rule: linear=lowrank(rank=2)\n    where: fc\n  - precision=fp16\n"
    source = parse(written(tmp_path, text))
    built = source.build()
    assert [(swap.rule, swap.path, swap.after) for swap in built.swaps] == [
        ("linear=lowrank(rank=2)", "fc", "LowRankLinear"),
        ("precision=fp16", "fc.0", "AtPrecision"),
        ("precision=fp16", "fc.1", "AtPrecision"),
    ]
    assert source.key() != parse(written(tmp_path, text.replace("rank=2", "rank=1"))).key()
    assert built.swaps == source.build(weights=True).swaps
