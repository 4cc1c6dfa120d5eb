"""One table from op name to formula, and the rules that all formulas share.

A formula is a function ``(Op) -> Work | None``: it returns the arithmetic, and bytes only where they differ from "read every input
once, write every output once". ``None`` means known and free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Literal, TypeVar

import msgspec

from modelstat.cost.operands import total_bytes
from modelstat.cost.record import FREE, Cost, Unit
from modelstat.errors import CostError
from modelstat.records import Op, Trace


class Work(msgspec.Struct, frozen=True):
    """The arithmetic of one op, before the shared rules turn it into a :class:`Cost`.

    ``macs``: MACs of a contraction; ``bias``: additions of a bias (or of ``beta * input``); ``flops``: operations outside the
    contraction. Total FLOPs are ``2 * macs + bias + flops`` (complex: ``8 * macs + 2 * (bias + flops)``).
    ``read`` and ``write`` (B) replace the defaults; ``outputs`` is the number of elements that the contraction yields
    (default: elements of the first output).
    """

    macs: int = 0
    bias: int = 0
    flops: int = 0
    outputs: int | None = None
    read: int | None = None
    write: int | None = None
    unit: Unit | None = None
    dtype: str | None = None


Formula = Callable[[Op], Work | None]
UserFormula = Callable[[Op], Work | int | None]
"""A user's formula: the op's MACs as an integer, or its Work, or None for "known and free"."""

FAMILIES = (
    "activation", "attention", "convolution", "copy", "elementwise", "embedding", "fft", "gather", "linalg", "loss", "matmul", "norm",
    "pooling", "quantized", "random", "reduction", "resample", "rnn", "softmax", "sort", "sparse", "ssm", "view", "vision",
)  # fmt: skip
"""The op families: each is a module of this package, which registers its formulas when it is imported."""

GRADIENTS = ("backward", "backward_elements")
"""The modules with the formulas of gradients, which belong to the families of what they are gradients of."""

FORMULAS: dict[str, tuple[str, Formula]] = {}
"""Op name -> (family, formula)."""

USER_FORMULAS: dict[str, UserFormula] = {}
"""Op name -> a user's formula, which goes before the built-in one. :mod:`modelstat.cost.user` fills it."""


F = TypeVar("F", bound=Formula)


def register(family: str, *names: str) -> Callable[[F], F]:
    """Decorator that registers a formula for op names such as ``aten::mm``. Raises CostError for a name that is taken."""

    def add(formula: F) -> F:
        for name in names:
            if name in FORMULAS:
                raise CostError(f"op {name} has a formula already ({FORMULAS[name][0]}): unregister it first")
            FORMULAS[name] = (family, formula)
        return formula

    return add


def unregister(name: str) -> None:
    """Forget the formula of an op, a user's first. Raises CostError for a name that has none."""
    load_families()
    if USER_FORMULAS.pop(name, None) is None and FORMULAS.pop(name, None) is None:
        raise CostError(f"op {name} has no formula to unregister")


@cache
def load_families() -> None:
    """Import every family, once: a program that counts nothing imports none."""
    for module in FAMILIES + GRADIENTS:
        import_module(f"modelstat.cost.{module}")


def find(name: str) -> tuple[str, UserFormula] | None:
    """Family and formula of an op, or None. An in-place op (``aten::add_``) has the formula of its functional twin."""
    load_families()
    if name in USER_FORMULAS:
        return "user", USER_FORMULAS[name]
    twin = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    return FORMULAS.get(name) or FORMULAS.get(twin)


def bytes_read(op: Op) -> int:
    """Bytes of all inputs, each window on a value once, but for the destination of an ``out=`` call, which is only written.

    Copies and fills do not read what they overwrite; formulas of such ops say so themselves.
    """
    if not op.mutates:
        return total_bytes(op.inputs)
    written = {spec.value for spec in op.outputs}
    in_place = op.name.endswith("_")
    return total_bytes(
        spec for name, spec in zip(op.names, op.inputs, strict=True) if in_place or name not in op.mutates or spec.value not in written
    )


def bytes_written(op: Op) -> int:
    """Bytes of all outputs that something uses, and of what is written in place, each window once.

    An in-place result is always used: its storage lives on under another name.
    """
    if not op.mutates and not op.unused_outputs:
        return total_bytes(op.outputs)
    mutated = [spec for name, spec in zip(op.names, op.inputs, strict=True) if name in op.mutates]
    values = {spec.value for spec in mutated}
    written = [spec for index, spec in enumerate(op.outputs) if index not in op.unused_outputs or spec.value in values]
    returned = {spec.value for spec in written}
    return total_bytes(written) + total_bytes(spec for spec in mutated if spec.value not in returned)


def arithmetic_dtype(op: Op, contraction: bool) -> str:
    """Dtype in which an op calculates.

    A contraction: the first floating-point input's (else the first input's). Anything else: the widest floating-point input's,
    scalars in tensor clothes aside (else the widest floating-point output's, else the first tensor's).
    """
    floating = [spec for spec in op.inputs if spec.is_floating]
    if contraction and op.inputs:
        return (floating or op.inputs)[0].dtype
    candidates = [spec for spec in floating if spec.shape] or floating or [spec for spec in op.outputs if spec.is_floating]
    if candidates:
        return max(candidates, key=lambda spec: spec.item_bytes).dtype
    tensors = op.inputs + op.outputs
    return tensors[0].dtype if tensors else "float32"


def cost_of(op: Op) -> Cost:
    """The cost of one op. An op without a formula is ``unknown``: its bytes are counted, its FLOPs are not.

    Raises CostError, naming the op, its shapes and the formula's file, if the formula fails.
    """
    if op.cost is not None:
        return _stored(op, op.cost)
    if op.view:
        return FREE
    entry = find(op.name)
    if entry is None:
        return Cost(read=_bytes(op, bytes_read), write=_bytes(op, bytes_written), unit="none", family="unknown", known="unknown")
    family, formula = entry
    try:
        work = formula(op)
        if work is None:
            return Cost(unit="none", dtype=FREE.dtype, family=family, known="free")
        if isinstance(work, int):  # a user's formula may return its MACs alone
            work = Work(macs=work)
        return _cost(op, family, work)
    except Exception as error:
        shapes = ", ".join(f"{name} {spec.shape} {spec.dtype}" for name, spec in zip(op.names, op.inputs, strict=False))
        code = getattr(formula, "__code__", None)
        where = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(formula)
        raise CostError(f"the formula of {op.name}.{op.overload} ({where}) failed on ({shapes}): {error!r}") from error


Causal = Literal["full", "half"]
"""How causal attention counts: as the full square of queries and keys, or as the pairs below the mask, which a flash kernel runs."""

CAUSAL_HALF = "causal_half"
"""The argument with which a causal op counts the pairs below its mask only."""


ARITHMETIC = "arithmetic_dtype"
"""The argument that says in which dtype an op of a precision plan calculates, whatever its operands are stored in."""


def costs(trace: Trace, *, causal: Causal = "full", alike: Sequence[int] | None = None) -> tuple[Cost, ...]:
    """The cost of every op of a trace, in order.

    ``alike`` names for each op the first one that costs the same, which alone is counted then.
    """
    ops = trace.ops if causal == "full" else tuple(halved(op) for op in trace.ops)
    if alike is None:
        return tuple(cost_of(op) for op in ops)
    counted = {first: cost_of(ops[first]) for first in dict.fromkeys(alike)}
    return tuple(counted[first] for first in alike)


def halved(op: Op) -> Op:
    """A causal op that counts the pairs below its mask only; any other op as it is."""
    return msgspec.structs.replace(op, arguments={**op.arguments, CAUSAL_HALF: True}) if op.argument("is_causal") else op


def _bytes(op: Op, rule: Callable[[Op], int]) -> int:
    try:
        return rule(op)
    except KeyError as error:
        raise CostError(f"{op.name}: dtype {error} has no known size, add it to modelstat.records.ITEM_BYTES") from error


def _stored(op: Op, fields: dict[str, int]) -> Cost:
    """The Cost that a user's formula gave while tracing."""
    if not any(fields.values()):
        return Cost(unit="none", family="user", known="free")
    contraction = fields.get("macs", 0) > 0
    unit: Unit = "matmul" if contraction else "vector"
    cost = Cost(unit=unit, dtype=arithmetic_dtype(op, contraction), family="user")
    return msgspec.structs.replace(cost, **fields)


def _cost(op: Op, family: str, work: Work) -> Cost:
    """The shared rules: a MAC is 2 FLOPs, a complex one 8; integer arithmetic is none, but integer contractions count as OPs."""
    contraction = work.macs > 0
    dtype = work.dtype or op.argument(ARITHMETIC) or arithmetic_dtype(op, contraction)
    outputs = 0
    if contraction:
        outputs = work.outputs if work.outputs is not None else op.outputs[0].elements
    mac, add = (8, 2) if dtype.startswith("complex") else (2, 1)
    other = work.bias + work.flops
    if not contraction and work.dtype is None and not any(spec.is_floating for spec in op.inputs + op.outputs):
        other = 0
    flops = mac * work.macs + add * other
    return Cost(
        macs=work.macs,
        flops=flops,
        madd=flops - add * outputs,  # n products are summed with n - 1 additions
        activations=outputs,
        read=bytes_read(op) if work.read is None else work.read,
        write=bytes_written(op) if work.write is None else work.write,
        unit=work.unit or ("matmul" if contraction else "vector"),
        dtype=dtype,
        family=family,
    )
