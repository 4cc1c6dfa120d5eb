"""Traces for charts: deep ones, one that computes nothing, and one whose names are an attack."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from modelstat.analysis import Analysis
from modelstat.hardware.database import find
from modelstat.predict.execution import Execution
from modelstat.records import Input, Module, Op, Trace, Value
from tests.report.sample import conv_op, conv_parameters, net_trace, spec, trace

HOSTILE = "<img src=x onerror=alert(1)>"
MORE_HOSTILE = "</script><script>alert(2)</script>"


def analysis(model: Trace, *gpus: str, execution: Execution = Execution()) -> Analysis:  # noqa: B008
    """The analysis of a trace on GPUs by name, the V100 where none is named."""
    return Analysis.from_trace(model, [find(gpu) for gpu in gpus or ("v100",)], execution=execution)


def net(**changes: object) -> Analysis:
    """A convolution, a ReLU, and an op without a formula, on a V100."""
    return analysis(net_trace(**changes)[0])  # type: ignore[arg-type]


def deep(blocks: int) -> Trace:
    """``blocks`` pairs of a convolution and a ReLU, each in a module of its own, ten blocks a stage."""
    modules = [Module("", "Deep", 0, leaf=False, calls=1)]
    ops: list[Op] = []
    stage = 0
    for block in range(blocks):
        if block % 10 == 0:
            stage = len(modules)
            modules.append(Module(f"stage{block // 10}", "Stage", 1, parent=0, leaf=False, instance=stage, calls=1))
        for name, kind in (("conv", "Conv2d"), ("act", "ReLU")):
            index = len(modules)
            modules.append(Module(f"stage{block // 10}.{name}{block % 10}", kind, 2, parent=stage, instance=index, calls=1))
            relu = Op("aten::relu", "default", (spec(1, 8, 32, 128, value=3),), ("self",), (spec(1, 8, 32, 128, value=4),), module=index)
            ops.append(conv_op(index) if kind == "Conv2d" else relu)
    image = 4 * 8 * 32 * 128
    values = (
        Value(4 * 3 * 32 * 128, "input", -1, len(ops)),
        Value(4 * 216, "parameter", -1, len(ops)),
        Value(4 * 8, "parameter", -1, len(ops)),
        Value(image, "activation", 0, len(ops) - 1),
        Value(image, "activation", 1, len(ops), output=True),
    )
    return trace(tuple(modules), tuple(ops), conv_parameters(2, "stage0.conv0."), model="deep", values=values)


def copies() -> Trace:
    """Two copies: bytes and no FLOPs."""
    root = Module("", "Copies", 0, calls=1)
    images = [spec(1, 8, 32, 128, value=each) for each in range(3)]
    ops = tuple(Op("aten::clone", "default", (one,), ("self",), (other,)) for one, other in pairwise(images))
    return trace((root,), ops, model="copies", inputs=(Input("x", (1, 8, 32, 128), "float32"),))


def empty() -> Trace:
    """Nothing runs."""
    return msgspec.structs.replace(copies(), ops=())


def hostile() -> Trace:
    """Every name that a user can give is an attack on the page."""
    found, _ = net_trace((HOSTILE, "$x_{\\frac", MORE_HOSTILE))
    modules = tuple(msgspec.structs.replace(each, type=each.type + "<b>") for each in found.modules)
    return msgspec.structs.replace(found, model=HOSTILE + MORE_HOSTILE, modules=modules, notes=(HOSTILE,))
