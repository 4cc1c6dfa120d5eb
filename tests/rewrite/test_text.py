from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from torch import nn

import modelstat
from modelstat.errors import SwapError
from modelstat.rewrite import registry
from modelstat.rewrite.registry import ask, register, rule, rules
from modelstat.rewrite.site import Site


@pytest.fixture(autouse=True)
def _table_as_it_was() -> Iterator[None]:
    rules()
    before = dict(registry._RULES)
    yield
    registry._RULES.clear()
    registry._RULES.update(before)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("conv=ghost", "conv=ghost"),
        (" conv = Ghost ( kernel = 5 , ratio=3 ) ", "conv=ghost(kernel=5,ratio=3)"),
        ("conv=ghost(ratio=2)", "conv=ghost"),  # its default
        ("conv=ghost(norm=none,act='silu')", "conv=ghost(act=silu,norm=none)"),
        ("act=leaky-relu(negative_slope=1)", "act=leaky_relu(negative_slope=1)"),
        ("linear=lowrank(rank=8)", "linear=lowrank(rank=8)"),
    ],
)
def test_a_rule_has_one_spelling(text: str, canonical: str) -> None:
    assert ask(text).text == canonical
    assert ask(ask(text).text) == ask(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ghost", "'ghost' is not a swap: write it like conv=ghost"),
        ("conv=ghost)", "is not a swap"),
        ("conv=gost", "no swap is called 'conv=gost': did you mean conv=ghost"),
        ("conv=zzz", "There are conv=ghost, conv=grouped, conv=lowrank, conv=separable, linear=lowrank, norm=fold, "),
        ("act=rellu", "did you mean act=relu"),
        ("norm=ghost", "did you mean "),
        ("conv=ghost(kernle=3)", "has no parameter 'kernle': did you mean kernel? It has ratio=2, kernel=3, norm=auto, act=auto"),
        ("act=relu(slope=3)", "act=relu has no parameter 'slope': It has no parameters"),
        ("conv=ghost(3)", "parameters are given by name"),
        ("conv=ghost(ratio=2)(kernel=3)", "parameters are given by name and once"),
        ("conv=ghost(ratio)", "parameters are given by name"),
        ("conv=ghost(ratio=2,ratio=3)", "ratio is given twice"),
        ("conv=ghost(ratio=)", "parameters are written name=value"),
        ("conv=ghost(**{'ratio': 2})", "** is not possible"),
        ("conv=ghost(ratio=f(2))", "the value of ratio must be a number, a word, True or False"),
        ("conv=ghost(ratio=2.5)", "ratio is a whole number, not 2.5"),
        ("conv=ghost(ratio=True)", "ratio is a whole number, not True"),
        ("conv=ghost(norm=3)", "norm is a word, not 3"),
        ("conv=ghost(ratio=1)", "ratio is at least 2, not 1"),
        ("conv=ghost(kernel=4)", "kernel is odd, so that the image keeps its size, not 4"),
        ("conv=ghost(norm=layer)", "norm is auto, none or batch, not layer"),
        ("conv=ghost(act=rellu)", "act is auto, none or one of celu, elu, "),
        ("conv=separable(norm=auto)", "norm is none or batch"),
        ("conv=grouped(groups=1)", "groups is at least 2, not 1"),
        ("conv=lowrank(rank=0)", "rank is at least 1, not 0"),
        ("linear=lowrank(ratio=1)", "ratio is at least 2, not 1"),
        ("act=gelu(approximate=erf)", "approximate is none or tanh, not erf"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(SwapError, match=re.escape(message)) as caught:
        ask(text)
    assert "\n" not in str(caught.value)


def test_a_new_rule_is_one_registered_function() -> None:
    @rule("linear=wide")
    def wide(site: Site, *, times: int = 2) -> nn.Module:
        """Two layers with more features between them."""
        linear = site.of(nn.Linear)
        inside = times * linear.out_features
        return nn.Sequential(nn.Linear(linear.in_features, inside), nn.Linear(inside, linear.out_features))

    model = modelstat.swap(nn.Sequential(nn.Linear(4, 3)), "linear=wide(times=5)")
    # 15 features in between
    assert sum(parameter.numel() for parameter in model.parameters()) == 15 * 4 + 15 + 3 * 15 + 3
    assert ask("linear=wide").rule.summary == "Two layers with more features between them."


def test_a_rule_that_changes_the_shape_is_caught() -> None:
    @rule("linear=wrong")
    def wrong(site: Site) -> nn.Module:
        """One feature too many."""
        linear = site.of(nn.Linear)
        return nn.Linear(linear.in_features, linear.out_features + 1)

    @rule("linear=deaf")
    def deaf(site: Site) -> nn.Module:
        """Takes another input."""
        return nn.Linear(site.of(nn.Linear).in_features + 1, 3)

    model = nn.Sequential(nn.Linear(4, 3))
    with pytest.raises(SwapError, match=re.escape("linear=wrong: a swap keeps the shape of the output, but at 0 (2, 3)")):
        modelstat.swap(model, "linear=wrong")
    with pytest.raises(SwapError, match=re.escape("linear=deaf: the new 0 does not take (2, 4)")):
        modelstat.swap(model, "linear=deaf")


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(SwapError, match="rule conv=ghost is taken already"):
        register("conv", "ghost", lambda site: site.layer, {}, "")
    with pytest.raises(SwapError, match="rule pool=ghost: 'pool' is none of conv, linear, act, norm, attention, precision"):
        register("pool", "ghost", lambda site: site.layer, {}, "")
