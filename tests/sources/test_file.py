from __future__ import annotations

import os
import random
import sys
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from modelstat.errors import BuildError, InputError, ModelFileError, UsageError
from modelstat.sources import Built, parse

LINEAR = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width=3):
            super().__init__()
            self.fc = nn.Linear(4, width)

        def forward(self, x, mask=None, *, flag=False):
            return self.fc(x)
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def build(folder: Path, body: str, member: str = "build", **options: Any) -> Built:
    path = write(folder, "net.py", textwrap.dedent(LINEAR) + textwrap.dedent(body))
    return parse(f"{path}:{member}").build(**options)


def params(built: Built) -> int:
    return sum(parameter.numel() for parameter in built.model.parameters())


@pytest.mark.parametrize(
    ("returned", "args", "kwargs"),
    [
        ("Net(), torch.zeros(2, 4)", [(2, 4)], {}),
        ("Net(), (torch.zeros(2, 4),)", [(2, 4)], {}),
        ("Net(), [torch.zeros(2, 4)]", [(2, 4)], {}),
        ("Net(), (torch.zeros(2, 4), None)", [(2, 4), None], {}),
        ("[Net(), (torch.zeros(2, 4),), {'flag': True}]", [(2, 4)], {"flag": True}),
        ("Net(), (), {'x': torch.zeros(2, 4)}", [], {"x": (2, 4)}),
        ("Net(), None, {'x': torch.zeros(2, 4)}", [], {"x": (2, 4)}),
        ("Net(), nn.utils.rnn.pack_sequence([torch.zeros(4)])", ["PackedSequence"], {}),
    ],
)
def test_what_a_build_may_return(tmp_path: Path, returned: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    built = build(tmp_path, f"def build():\n    return {returned}\n")

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return tuple(value.shape)
        return "PackedSequence" if isinstance(value, torch.nn.utils.rnn.PackedSequence) else value

    assert [plain(value) for value in built.args] == args
    assert {name: plain(value) for name, value in built.kwargs.items()} == kwargs
    assert built.batch is None
    assert built.notes == ()


def test_forms_of_a_member(tmp_path: Path) -> None:
    body = """
        from functools import partial
        build = partial(Net, width=7)
        model = Net(width=9)
        def make(width): return Net(width)
    """
    for member, width in (("build", 7), ("Net", 3), ("Net(width=5)", 5), ("model", 9), ("make(width=2)", 2)):
        assert params(build(tmp_path, body, member, inputs="4")) == 4 * width + width
    path = tmp_path / "net.py"
    assert parse(str(path)).spec == f"{path}:build"
    assert parse(f"{path}(width=2)").spec == f"{path}:build(width=2)"


def test_a_model_stays_in_the_mode_that_it_is_returned_in(tmp_path: Path) -> None:
    assert build(tmp_path, "", "Net", inputs="4").model.training
    assert not build(tmp_path, "def build(): return Net().eval()", inputs="4").model.training


def test_inputs_by_option_replace_tensors_and_keep_the_rest(tmp_path: Path) -> None:
    body = "def build():\n    return Net(), (torch.zeros(2, 4),), {'mask': torch.ones(2), 'flag': True}\n"
    built = build(tmp_path, body, inputs="5x4", batch=3)
    assert [tuple(t.shape) for t in built.args] == [(3, 5, 4)]
    assert built.args[0].is_meta
    assert built.kwargs == {"flag": True}
    assert built.batch == 3
    assert set(build(tmp_path, body, inputs="x=4,flag=1").kwargs) == {"x", "flag"}


def test_inputs_are_in_the_models_dtype(tmp_path: Path) -> None:
    built = build(tmp_path, "def build(): return Net().half()", inputs="4,4:int64")
    assert [t.dtype for t in built.args] == [torch.float16, torch.int64]


def test_a_batch_needs_shapes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--batch 8 needs --input: the inputs that .*net\.py:build returns are used as they are"):
        build(tmp_path, "def build(): return Net(), torch.zeros(2, 4)", batch=8)


def test_missing_inputs_show_what_the_forward_takes(tmp_path: Path) -> None:
    expected = (
        r"net\.py:Net returns a model without inputs: give --input for its forward\(x, mask=None, \*, flag=False\), as in --input 3x224x224"
    )
    with pytest.raises(InputError, match=expected):
        build(tmp_path, "", "Net")
    built = build(tmp_path, "class Constant(nn.Module):\n    def forward(self): return torch.ones(3)\n", "Constant")
    assert (built.args, built.kwargs) == ((), {})


@pytest.mark.parametrize(
    ("body", "member", "error", "message"),
    [
        ("", "build", ModelFileError, "{path} has no 'build': it has Net, as in `modelstat {path}:Net`"),
        ("", "torch", ModelFileError, "{path}:torch: torch is of type module, not a function or an nn.Module class"),
        (
            "def build():\n    return 3",
            "build",
            BuildError,
            "{path}:build returns (int): it must return a model, (model, args) or (model, args, kwargs)",
        ),
        ("def build():\n    return ()", "build", BuildError, "{path}:build returns (tuple): it must return"),
        ("def build():\n    return Net(), 1, 2, 3", "build", BuildError, "{path}:build returns (Net, int, int, int): it must return"),
        ("def build():\n    return Net(), 'x'", "build", BuildError, "{path}:build returns inputs of type str and dict"),
        ("def build():\n    return Net(), (), 5", "build", BuildError, "{path}:build returns inputs of type tuple and int"),
        ("def build():\n    raise ValueError('no\\nway')", "build", BuildError, "{path}, line 13: ValueError: no"),
        ("def build():\n    return nn.Linear('a', 2)", "build", BuildError, "{path}, line 13: TypeError: "),
        ("def build():\n    import sys\n    sys.exit(3)", "build", BuildError, "{path}, line 14: exit(3) was called"),
        (
            "def build(width):\n    return Net(width)",
            "build",
            BuildError,
            "{path}: TypeError: build() missing 1 required positional argument: 'width'",
        ),
        (
            "def build():\n    return Net()",
            "build(widht=2)",
            BuildError,
            "{path}: TypeError: build() got an unexpected keyword argument 'widht'",
        ),
        ("model = Net()", "model(width=2)", UsageError, "{path}:model(width=2): model is a model already, it takes no arguments"),
        (
            "import nothing_by_this_name",
            "build",
            ModelFileError,
            "{path}, line 12: ModuleNotFoundError: No module named 'nothing_by_this_name'",
        ),
        ("def build(:\n    pass", "build", ModelFileError, "{path}, line 12: SyntaxError: invalid syntax"),
        ("raise SystemExit", "build", ModelFileError, "{path}, line 12: exit(None) was called"),
        ("1 / 0", "build", ModelFileError, "{path}, line 12: ZeroDivisionError: division by zero"),
    ],
)
def test_what_goes_wrong_in_a_file_is_said_in_one_line(
    tmp_path: Path, body: str, member: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        build(tmp_path, body, member)
    assert type(caught.value) is error
    assert str(caught.value).startswith(message.format(path=tmp_path / "net.py"))
    assert "\n" not in str(caught.value)


def test_a_mistake_in_a_file_beside_it_names_that_file(tmp_path: Path) -> None:
    write(tmp_path, "layers.py", "\n\ndef width():\n    return {}['none']\n")
    with pytest.raises(BuildError) as caught:
        build(tmp_path, "from layers import width\ndef build(): return Net(width())")
    assert str(caught.value) == f"{tmp_path / 'layers.py'}, line 4: KeyError: 'none'"
    write(tmp_path, "layers.py", "def width(:\n")
    with pytest.raises(ModelFileError, match=r"layers\.py, line 1: SyntaxError"):
        parse(f"{tmp_path / 'net.py'}:build").build()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"absent\.py does not exist: a model of your own is named as path/file\.py:build"):
        parse(f"{tmp_path}/absent.py:build")
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(ModelFileError, match=r"folder\.py is a folder, not a file"):
        parse(f"{tmp_path}/folder.py:build")


def test_files_of_the_same_name_in_two_folders_do_not_mix(tmp_path: Path) -> None:
    for folder, width in (("one", 2), ("two", 5)):
        write(tmp_path / folder, "layers.py", f"WIDTH = {width}\n")
        write(tmp_path / folder, "net.py", textwrap.dedent(LINEAR) + "import layers\ndef build(): return Net(layers.WIDTH)\n")
    before, path = set(sys.modules), list(sys.path)
    widths = [params(parse(f"{tmp_path / folder / 'net.py'}:build").build("4")) // 5 for folder in ("one", "two", "one")]
    assert widths == [2, 5, 2]
    assert sys.path == path
    assert "layers" not in sys.modules
    assert all(name.startswith("_modelstat_") for name in set(sys.modules) - before)
    assert [file.name for file in sorted((tmp_path / "one").iterdir())] == ["layers.py", "net.py"]


def test_a_module_of_the_caller_steps_aside_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "mine", "layers.py", "WIDTH = 11\n")
    monkeypatch.syspath_prepend(tmp_path / "mine")
    import layers  # type: ignore[import-not-found]

    monkeypatch.setitem(sys.modules, "layers", layers)
    write(tmp_path, "layers.py", "WIDTH = 2\n")
    assert params(build(tmp_path, "import layers\ndef build(): return Net(layers.WIDTH)", inputs="4")) == 2 * 5
    assert sys.modules["layers"] is layers


@pytest.mark.parametrize(
    "statement", ["from .layers import WIDTH", "from . import WIDTH", "from ..base import WIDTH", "from package.inner.layers import WIDTH"]
)
def test_imports_within_a_package(tmp_path: Path, statement: str) -> None:
    write(tmp_path, "package/__init__.py", "")
    write(tmp_path, "package/base.py", "WIDTH = 6\n")
    write(tmp_path, "package/inner/__init__.py", "from ..base import WIDTH\n")
    write(tmp_path, "package/inner/layers.py", "from package.base import WIDTH\n")
    built = build(tmp_path / "package" / "inner", f"{statement}\ndef build(): return Net(WIDTH)", inputs="4")
    assert params(built) == 6 * 5


def test_packages_around_a_file_do_not_run_unless_it_needs_them(tmp_path: Path) -> None:
    write(tmp_path, "package/__init__.py", "raise RuntimeError('must not run')\n")
    assert params(build(tmp_path / "package", "", "Net", inputs="4")) == 3 * 5


def test_a_build_leaves_the_process_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = """
        import os, random, sys, warnings
        def build():
            torch.manual_seed(7); random.seed(7); torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)
            torch.set_default_device("meta"); os.chdir("/"); sys.argv.append("x"); sys.path.append("/nowhere")
            warnings.simplefilter("ignore")
            print("building")
            model = Net()
            if FAIL:
                raise ValueError("late")
            return model, torch.zeros(2, 4)
    """

    def state() -> list[Any]:
        return [
            torch.get_rng_state().tolist(), random.getstate(), torch.get_default_dtype(), torch.get_default_device(),
            torch.is_grad_enabled(), os.getcwd(), list(sys.argv), list(sys.path), sys.dont_write_bytecode,
        ]  # fmt: skip

    before = state()
    build(tmp_path, body.replace("FAIL", "False"))
    assert state() == before
    with pytest.raises(BuildError, match="ValueError: late"):
        build(tmp_path, body.replace("FAIL", "True"))
    assert state() == before
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "building" in captured.err


def test_two_builds_are_equal(tmp_path: Path) -> None:
    body = "import random\ndef build(): return Net(random.randint(2, 99)), torch.randn(2, 4)"
    one, other = build(tmp_path, body), build(tmp_path, body)
    assert torch.equal(one.args[0], other.args[0])
    assert params(one) == params(other)


def test_the_key_follows_the_contents(tmp_path: Path) -> None:
    write(tmp_path, "layers.py", "from package import size\n")
    write(tmp_path, "package/__init__.py", "from .size import size\n")
    write(tmp_path, "package/size.py", "size = 3\n")
    write(tmp_path, "other.py", "unused = 1\n")
    source = parse(f"{write(tmp_path, 'net.py', 'import torch, layers')}:build")
    keys = [source.key()]
    for name in ("other.py", "package/size.py", "package/__init__.py", "layers.py", "net.py"):
        with (tmp_path / name).open("a") as file:
            file.write("# changed\n")
        keys.append(source.key())
    same = [one == other for one, other in pairwise(keys)]
    assert same == [True, False, False, False, False]
    assert "version:torch" in keys[0]
    assert not any(name.endswith(":layers") for name in keys[0])


def test_the_key_tells_members_and_arguments_apart(tmp_path: Path) -> None:
    path = write(tmp_path, "net.py", LINEAR)
    keys = [tuple(sorted(parse(f"{path}{rest}").key().items())) for rest in ("", ":Net", ":Net(width=1)", ":Net(width=2)")]
    assert len(set(keys)) == 4
