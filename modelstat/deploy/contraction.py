"""Tensor parallelism of contractions: letters name their axes, and an axis that is split is split wherever its letter stands.

Where nothing is split yet the columns of the weight are, whose letter no other factor has: the result is split, nothing is exchanged. A
split letter that the result has splits the result. One that it lacks is summed over: each GPU has a part of every sum.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from modelstat.deploy.cut import Cut, cut_of, even
from modelstat.deploy.placement import Operands, Placement, data_alone
from modelstat.records import TensorSpec

SMALL = 2**24
"""Weights of fewer elements are whole on every GPU where their columns would only be gathered again (a router, a patch embedding, a head of
a thousand classes): 2-byte weights of this size are read in 10 us at 3.35 TB/s, about what a collective of 8 GPUs takes to start."""
SMALL_TABLE = 2**22
"""An embedding's table of fewer elements (positions, types) is whole on every GPU."""

LETTERS: dict[str, tuple[dict[str, str], str]] = {
    "aten::mm": ({"self": "mk", "mat2": "kn"}, "mn"),
    "aten::_int_mm": ({"self": "mk", "mat2": "kn"}, "mn"),
    "aten::_scaled_mm": ({"self": "mk", "mat2": "kn", "bias": "n"}, "mn"),
    "aten::addmm": ({"self": "mn", "mat1": "mk", "mat2": "kn"}, "mn"),
    "aten::bmm": ({"self": "bmk", "mat2": "bkn"}, "bmn"),
    "aten::baddbmm": ({"self": "bmn", "batch1": "bmk", "batch2": "bkn"}, "bmn"),
    "aten::mv": ({"self": "mk", "vec": "k"}, "m"),
    "aten::addmv": ({"self": "m", "mat": "mk", "vec": "k"}, "m"),
    "aten::dot": ({"self": "k", "tensor": "k"}, ""),
    "aten::_grouped_mm": ({"self": "tk", "mat2": "gkn"}, "tn"),
    "transformers::grouped_mm_fallback": ({"input": "tk", "weight": "gkn"}, "tn"),
    "aten::_weight_int8pack_mm": ({"self": "mk", "mat2": "nk", "scales": "n"}, "mn"),
}
"""Op -> the letters of its inputs' axes by name, and those of its result. An addend's are counted from the last."""
ADDENDS = frozenset(("bias", "scales"))


def product(known: Operands) -> Placement | None:
    """Matrix products, of data with a weight or of two activations."""
    op = known.op
    rank = len(op.inputs[0].shape)
    if op.name == "aten::linear":
        rows = "abcdefgh"[: rank - 1]
        return contraction(known, [{"input": f"{rows}k", "weight": "nk"}.get(name, "n") for name in op.names], f"{rows}n")
    given, result = LETTERS.get(op.name, ({}, ""))
    found = [given.get(name, "") for name in op.names]
    if not given or len(op.outputs) != 1 or len(op.outputs[0].shape) != len(result):
        return None
    for spec, letters in zip(op.inputs, found, strict=True):
        if len(spec.shape) > len(letters) and letters:
            return None
    return contraction(known, found, result)


def contraction(known: Operands, letters: list[str], result: str) -> Placement | None:
    """The placement of a contraction whose inputs' axes have these letters, aligned at the last axis; without letters: whole."""
    op = known.op
    axes = [_axes(spec, text) for spec, text in zip(op.inputs, letters, strict=True)]
    # Data lead; a cast of a weight follows, in whatever way it was split before.
    lead = known.largest(data=True)
    weight = next((index for index in reversed(range(len(axes))) if known.weights[index] and len(axes[index]) > 1), None)
    if lead is None:
        if weight is None:
            return None
        others = {letter for index, text in enumerate(axes) if index != weight and known.op.names[index] not in _addends(letters, result)
                  for letter in text}  # fmt: skip
        column = next((letter for letter in reversed(result) if letter in axes[weight] and letter not in others), None)
        if column is None:
            return None
        cut = columns(known, result.index(column), op.inputs[weight])
        if cut is None:
            return None
        letter = column
    else:
        found = known.cuts[lead]
        assert found is not None
        letter = next((one for one, axis in axes[lead].items() if axis == found.axis), "")
        if not letter:
            return None
        same = [one for text, one in zip(axes, known.cuts, strict=True) if one is not None and text.get(letter) == one.axis]
        cut = found.on(found.axis, max(one.ways for one in same if one.like(found)))
    inputs = [None if (axis := text.get(letter)) is None else cut.on(axis) for text in axes]
    scales = known.named("scales")
    if scales is not None and weight is not None and not letters[scales] and inputs[weight] is not None:
        outputs = prod(op.inputs[weight].shape[axis] for one, axis in axes[weight].items() if one in result)
        inputs[scales] = _scales(op.inputs[scales], outputs, cut, column=letter in result)
    if letter in result:
        return Placement(tuple(inputs), (cut.on(result.index(letter)),))
    return Placement(tuple(inputs), (None,), partial=cut.ways)


def _addends(letters: list[str], result: str) -> frozenset[str]:
    """Names of inputs that are added to the result: they have its columns, and say nothing about which factor brings them."""
    return ADDENDS | ({"self"} if len(letters) > 2 and set(letters[0]) <= set(result) else frozenset())


def _axes(spec: TensorSpec, letters: str) -> dict[str, int]:
    """Letter -> axis of this tensor. An axis of one element that is broadcast has none."""
    shift = len(letters) - len(spec.shape)
    return {letter: axis - shift for axis, letter in enumerate(letters) if axis >= shift and spec.shape[axis - shift] > 1}


def columns(known: Operands, axis: int, weight: TensorSpec) -> Cut | None:
    """How the columns of a weight are split, which are an axis of the result: as what reads them had better have them."""
    size = known.op.outputs[0].shape[axis]
    wanted = known.wanted
    if known.whole and weight.elements < SMALL:
        return None
    if wanted is not None and wanted.axis == axis:
        return wanted
    return even(axis, size, known.gpus) if size % known.gpus == 0 else None


def _scales(spec: TensorSpec, outputs: int, cut: Cut, *, column: bool) -> Cut | None:
    """Scales of a quantised weight go with its groups; those of whole outputs are needed wherever a part of the output's sum is."""
    size = spec.shape[0]
    return even(0, size, cut.ways) if size % cut.ways == 0 and (column or size > outputs) else None


def convolution(known: Operands) -> Placement | None:
    """Channels are split like columns and rows; with groups, whole groups of channels on both sides."""
    op = known.op
    data, weight, bias = known.named("input", "self", "X"), known.named("weight", "W"), known.named("bias", "B")
    if data is None or weight is None or "causal" in op.name or "tbc" in op.name:
        return None
    groups = int(op.argument("groups", 1))
    transposed = bool(op.argument("transposed")) or "transpose" in op.name
    cut, shape = known.cuts[data], op.inputs[data].shape
    lanes = "n" + ("io" if transposed else "oi")
    if cut is not None and cut.axis == 0:
        return data_alone(known, cut) if data == 0 and not any(known.cuts[1:]) else None
    if any(one is not None for index, one in enumerate(known.cuts) if index != data) or (cut is not None and cut.axis != 1):
        return None
    if groups > 1:
        return _grouped(known, data, weight, bias, groups, transposed)
    inputs: list[Cut | None] = [None] * len(op.inputs)
    scales, outputs = known.named("scales"), op.outputs[0].shape[1]
    if cut is not None:
        inputs[data], inputs[weight] = cut, cut.on(lanes.index("i") - 1)
        if scales is not None:
            inputs[scales] = _scales(op.inputs[scales], outputs, cut, column=False)
        return Placement(tuple(inputs), (None,) * len(op.outputs), partial=cut.ways)
    made = columns(known, 1, op.inputs[weight])
    if made is None or len(shape) < 3:
        return None
    inputs[weight] = made.on(lanes.index("o") - 1)
    if scales is not None:
        inputs[scales] = _scales(op.inputs[scales], outputs, made, column=True)
    if bias is not None:
        inputs[bias] = made.on(0)
    return Placement(tuple(inputs), (made, *(None,) * (len(op.outputs) - 1)))


def _grouped(known: Operands, data: int, weight: int, bias: int | None, groups: int, transposed: bool) -> Placement | None:
    op, cut = known.op, known.cuts[data]
    taken, given = op.inputs[data].shape[1], op.outputs[0].shape[1]
    if cut is None:
        made = columns(known, 1, op.inputs[weight])
        if made is None:
            return None
        cut = cut_of(1, (bound * taken // given for bound in made.sections(given)), made.ways)
        if cut is None:
            return None
    widths = [(high - low) // cut.ways for low, high in pairwise(cut.bounds)]
    if any(width % (taken // groups) for width in widths):
        return None
    made = cut_of(1, (bound * given // taken for bound in cut.sections(taken)), cut.ways)
    if made is None:
        return None
    inputs: list[Cut | None] = [None] * len(op.inputs)
    inputs[data], inputs[weight] = cut, (cut if transposed else made).on(0)
    scales = known.named("scales")
    if scales is not None:
        inputs[scales] = _scales(op.inputs[scales], given, made, column=True)
    if bias is not None:
        inputs[bias] = made.on(0)
    return Placement(tuple(inputs), (made, *(None,) * (len(op.outputs) - 1)), arguments={"groups": groups // cut.ways})


def lookup(known: Operands) -> Placement | None:
    """A large table by rows: a GPU looks up those that it has, and the sum is what all have found."""
    op, table = known.op, known.named("weight")
    indices = known.named("indices")
    if table is None or indices is None or op.name != "aten::embedding" or known.cuts[table] is not None:
        return None
    spec, cut = op.inputs[table], known.cuts[indices]
    if cut is not None:
        return Placement(tuple(cut if index == indices else None for index in range(len(op.inputs))), (cut,))
    if prod(spec.shape) < SMALL_TABLE or spec.shape[0] % known.gpus:
        return None
    rows = even(0, spec.shape[0], known.gpus)
    return Placement(tuple(rows if index == table else None for index in range(len(op.inputs))), (None,), partial=known.gpus)
