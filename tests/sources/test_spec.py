from __future__ import annotations

from keyword import iskeyword
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.errors import SourceError
from modelstat.sources.spec import Spec, parse_spec

SUFFIXES = {".py": "file", ".yaml": "yaml", ".yml": "yaml"}
ORIGINS = {"torchvision", "timm", "file", "yaml"}


def parse(text: str) -> Spec:
    return parse_spec(text, SUFFIXES, ORIGINS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resnet50", Spec(None, "resnet50")),
        (" resnet50 ", Spec(None, "resnet50")),
        ("resnet50()", Spec(None, "resnet50")),
        ("resnet50(num_classes=10)", Spec(None, "resnet50", None, {"num_classes": 10})),
        ("torchvision:resnet50", Spec("torchvision", "resnet50")),
        ("timm:resnet50.a1_in1k", Spec("timm", "resnet50.a1_in1k")),
        (
            "timm:vit(img_size=(224, 384), drop=-0.5, act='gelu', norm=None, flag=True)",
            Spec("timm", "vit", None, {"img_size": (224, 384), "drop": -0.5, "act": "gelu", "norm": None, "flag": True}),
        ),
        ("timm:vit(where='a.py:b')", Spec("timm", "vit", None, {"where": "a.py:b"})),
        ("net.py", Spec("file", "net.py")),
        ("net.py:Net", Spec("file", "net.py", "Net")),
        ("/a b/net.v2.py:Net(width=2)", Spec("file", "/a b/net.v2.py", "Net", {"width": 2})),
        ("net.py(width=2)", Spec("file", "net.py", None, {"width": 2})),
        ("copy (2)/net.py:build", Spec("file", "copy (2)/net.py", "build")),
        ("C:/models/net.py:build", Spec("file", "C:/models/net.py", "build")),
        ("file:net.py:Net", Spec("file", "net.py", "Net")),
        ("model.yaml", Spec("yaml", "model.yaml")),
        ("models/model.yml", Spec("yaml", "models/model.yml")),
    ],
)
def test_forms_of_a_spec(text: str, expected: Spec) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' names no model: give a name such as resnet50, or path/file.py:build"),
        ("timm:", "'timm:' names no model: give a name such as resnet50, or path/file.py:build"),
        ("(x=1)", "'(x=1)', position 1: a model name is missing before the parentheses"),
        ("hub:resnet50", "'hub:resnet50', position 1: no origin is called 'hub', there are file, timm, torchvision, yaml"),
        ("resnet50(10)", "'resnet50(10)', position 10: constructor arguments are given by name, as in (img_size=384)"),
        ("timm:vit(a=1, **b)", "'timm:vit(a=1, **b)', position 15: ** is not possible here, write name=value"),
        (
            "timm:vit(act=nn.GELU)",
            "'timm:vit(act=nn.GELU)', position 14: the value of act must be a Python literal"
            " (a number, string, tuple, list, dict, True, False or None), not nn.GELU",
        ),
        ("timm:vit(a=1)(b=2)", "'timm:vit(a=1)(b=2)', position 9: constructor arguments are written once, in one pair of parentheses"),
        ("net.py:a.b", "'net.py:a.b', position 8: 'a.b' is not the name of a function or class"),
    ],
)
def test_mistakes_name_their_position(text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(("text", "position"), [("vit(a=1", 4), ("vit(a=)", 7), ("vit(a=1, a=2)", 10), ("timm:vit(a b=1)", 10)])
def test_syntax_errors_name_their_position(text: str, position: int) -> None:
    with pytest.raises(SourceError, match=rf", position {position}: ") as caught:
        parse(text)
    assert "\n" not in str(caught.value)


names = st.from_regex(r"[a-z_][a-z0-9_.]{0,20}", fullmatch=True).filter(lambda name: not name.endswith(tuple(SUFFIXES)))
identifiers = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True).filter(lambda name: not iskeyword(name))
literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([None, "torchvision", "timm"]), names, st.dictionaries(identifiers, literals, max_size=3))
def test_the_canonical_text_is_read_back(origin: str | None, name: str, arguments: dict[str, Any]) -> None:
    spec = Spec(origin, name, None, arguments)
    assert parse(spec.text) == spec


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        parse(text)
    except SourceError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
