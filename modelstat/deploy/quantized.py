"""The same trace under a precision plan: weights in fewer bits, and where asked activations too.

Only what contractions alone read is narrowed. A table that an embedding looks up and that is tied to the last layer stays as it is; so does
a residual, which is quantised on its way into the contraction. Weights are widened in the product's kernel, which costs no bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from modelstat import units
from modelstat.cost.record import Cost
from modelstat.cost.registry import ARITHMETIC, arithmetic_dtype
from modelstat.cost.registry import costs as costs_of
from modelstat.deploy.plan import ACTIVATIONS, WEIGHTS, Plan, Rule
from modelstat.deploy.weights import weight_of
from modelstat.errors import UsageError
from modelstat.records import ITEM_BYTES, Op, Parameter, TensorSpec, Trace, Value


class Narrowed(NamedTuple):
    """One quantised weight: its rule, the number of its scales, how many weights share one, and its bytes with them."""

    rule: Rule
    scales: int
    group: int
    bytes: int


class Versions(NamedTuple):
    """For each input and each output of an op, which version of its value it is, see :func:`_versions`."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]


def planned(trace: Trace, plan: Plan) -> Trace:
    """The trace under a plan.

    Raises UsageError for a pattern that matches no layer with weights, a plan that changes nothing, weights that autocast keeps in fp32,
    and a group that does not divide the inputs of an output.
    """
    if trace.precision.startswith("amp-"):
        raise UsageError(f"{plan.name}: autocast keeps weights in fp32: use --precision {trace.precision.removeprefix('amp-')} with it")
    costs = costs_of(trace)
    rules = _rules(trace, costs, plan)
    weights = _weights(trace, costs, rules)
    if not weights:
        raise UsageError(f"{plan.name}: {trace.model} has no weight that convolutions or matrix products alone read: none is quantised")
    values = [*trace.values, *(Value(0, "parameter", -1, len(trace.ops)) for _ in weights)]
    scale_of = {value: len(trace.values) + index for index, value in enumerate(weights)}
    versions = _versions(trace)
    narrow = _narrow_activations(trace, rules, weights, versions)
    ops = tuple(
        _op(op, cost, rule, weights, scale_of, narrow, mine)
        for op, cost, rule, mine in zip(trace.ops, costs, rules, versions, strict=True)
    )
    parameters = tuple(_parameter(one, weights) for one in trace.parameters)
    changed = {one.value: one.bytes for one in parameters if one.value in weights}
    for value, size in changed.items():
        assert value is not None
        values[value] = msgspec.structs.replace(values[value], bytes=size)
    rewritten: set[int] = set()
    for op, mine in zip(trace.ops, versions, strict=True):
        rewritten.update(spec.value for spec, times in zip(op.outputs, mine.writes, strict=True) if times)
    item = {spec.value: spec.item_bytes for op in trace.ops for spec in op.outputs}
    for (value, _), dtype in narrow.items():
        if value not in rewritten:  # one that is also there in place keeps the room of its widest version
            values[value] = msgspec.structs.replace(values[value], bytes=round(values[value].bytes * ITEM_BYTES[dtype] / item[value]))
    note = _note(trace, parameters, weights, plan)
    return msgspec.structs.replace(trace, ops=ops, parameters=parameters, values=tuple(values), notes=(*trace.notes, note))


def _rules(trace: Trace, costs: Sequence[Cost], plan: Plan) -> list[Rule | None]:
    """The rule of each op that is a contraction with a weight, None for all others."""
    owner = {one.value: trace.modules[one.module].path for one in trace.parameters if one.kind == "parameter"}
    rules: list[Rule | None] = [None] * len(trace.ops)
    paths: dict[str, None] = {}
    for index, (op, cost) in enumerate(zip(trace.ops, costs, strict=True)):
        weight = weight_of(op, cost, trace)
        if weight is not None and weight.is_floating:
            path = owner.get(weight.value, trace.modules[op.module].path)
            paths[path] = None
            rule = plan.of(path)
            rules[index] = rule if rule.weights else None
    for pattern, _ in plan.layers:
        if not any(fnmatchcase(path, pattern) for path in paths):
            some = ", ".join(list(paths)[:3])
            raise UsageError(f"{plan.name}: {pattern!r} matches no layer of {trace.model} with a weight: they are called {some}, ...")
    return rules


def _weights(trace: Trace, costs: Sequence[Cost], rules: Sequence[Rule | None]) -> dict[int, Narrowed]:
    """The values that are narrowed: weights all of whose readers have the same rule."""
    wanted: dict[int, tuple[Rule, int]] = {}
    others: set[int] = set()
    for op, cost, rule in zip(trace.ops, costs, rules, strict=True):
        if op.view:
            continue
        weight = weight_of(op, cost, trace) if rule else None
        for spec in op.inputs:
            mine = weight is not None and spec.value == weight.value
            if weight is None or rule is None or not mine or wanted.setdefault(spec.value, (rule, _inner(op, cost, weight)))[0] != rule:
                others.add(spec.value)
    by_value = {one.value: one for one in trace.parameters}
    found: dict[int, Narrowed] = {}
    for value, (rule, inner) in wanted.items():
        parameter = by_value.get(value)
        if value in others or parameter is None:
            continue
        form = WEIGHTS[rule.weights or ""]
        group = rule.group or form.group or inner
        if inner % group:
            path = trace.modules[parameter.module].path or parameter.name
            divisors = [str(size) for size in (256, 128, 64, 32, 16) if inner % size == 0]
            way = f"give --group {divisors[0]}" if divisors else "leave the layer out by a pattern of a --plan file"
            raise UsageError(
                f"{rule.weights} in groups of {group}: {path} sums {inner} products an output, which {group} does not divide: {way}"
            )
        scales = parameter.elements // group
        found[value] = Narrowed(rule, scales, group, round(parameter.elements * ITEM_BYTES[form.dtype]) + scales * form.scale_bytes)
    return found


def _inner(op: Op, cost: Cost, weight: TensorSpec) -> int:
    """Products that are summed to one output."""
    if op.argument("transposed"):
        # (in, out / groups, *kernel): an output channel sums over the inputs of its group and all taps.
        outputs = max(weight.shape[1] * int(op.argument("groups", 1)), 1)
        return weight.elements // outputs
    return cost.macs // max(cost.activations, 1)


def _narrow_activations(
    trace: Trace, rules: Sequence[Rule | None], weights: dict[int, Narrowed], versions: Sequence[Versions]
) -> dict[tuple[int, int], str]:
    """(value, version) -> dtype of the activations that quantised contractions alone read."""
    wanted: dict[tuple[int, int], str] = {}
    others: set[tuple[int, int]] = set()
    for op, rule, (reads, _) in zip(trace.ops, rules, versions, strict=True):
        if op.view:
            continue
        quantised = rule is not None and rule.activations is not None and any(spec.value in weights for spec in op.inputs)
        for name, spec, version in zip(op.names, op.inputs, reads, strict=True):
            value = trace.values[spec.value]
            added = name == "bias" or (name == "self" and op.name == "aten::addmm")
            if quantised and rule is not None and value.kind == "activation" and not value.output and spec.is_floating and not added:
                dtype = ACTIVATIONS[rule.activations or ""]
                if wanted.setdefault((spec.value, version), dtype) == dtype:
                    continue
            others.add((spec.value, version))
    return {key: dtype for key, dtype in wanted.items() if key not in others}


def _versions(trace: Trace) -> list[Versions]:
    """How often each input's and output's value had been written in place when the op read or wrote it.

    What an op in place leaves is another version of its value: relu in place reads a wide one and may leave a narrow one.
    """
    written: dict[int, int] = {}
    found: list[Versions] = []
    for op in trace.ops:
        reads = tuple(written.get(spec.value, 0) for spec in op.inputs)
        if not op.view:
            read = {spec.value for spec in op.inputs}
            for value in {spec.value for spec in op.outputs if spec.value in read}:
                written[value] = written.get(value, 0) + 1
        found.append(Versions(reads, tuple(written.get(spec.value, 0) for spec in op.outputs)))
    return found


def _op(op: Op, cost: Cost, rule: Rule | None, weights: dict[int, Narrowed], scale_of: dict[int, int],
        narrow: dict[tuple[int, int], str], versions: Versions) -> Op:  # fmt: skip
    def spec(one: TensorSpec, version: int) -> TensorSpec:
        weight = weights.get(one.value)
        dtype = WEIGHTS[weight.rule.weights or ""].dtype if weight else narrow.get((one.value, version), one.dtype)
        return one if dtype == one.dtype else TensorSpec(one.shape, dtype, one.strides, one.value, one.offset)

    inputs = tuple(spec(one, version) for one, version in zip(op.inputs, versions.reads, strict=True))
    outputs = tuple(spec(one, version) for one, version in zip(op.outputs, versions.writes, strict=True))
    mine = next((one for one in op.inputs if one.value in weights), None)
    if mine is None or op.view or rule is None:
        return op if (inputs, outputs) == (op.inputs, op.outputs) else msgspec.structs.replace(op, inputs=inputs, outputs=outputs)
    weight = weights[mine.value]
    size = WEIGHTS[rule.weights or ""].scale_bytes
    # A slice of a weight comes with the scales of its groups alone: of each output's products, those that the slice has.
    inner = _inner(op, cost, mine)
    scales = TensorSpec((mine.elements // inner * -(-inner // weight.group), size), "int8", (size, 1), scale_of[mine.value])
    dtype = ACTIVATIONS[rule.activations] if rule.activations else arithmetic_dtype(op, contraction=True)
    return msgspec.structs.replace(
        op,
        inputs=(*inputs, scales),
        names=(*op.names, "scales"),
        outputs=outputs,
        arguments={**op.arguments, ARITHMETIC: dtype},
    )


def _parameter(one: Parameter, weights: dict[int, Narrowed]) -> Parameter:
    weight = None if one.value is None else weights.get(one.value)
    if weight is None:
        return one
    return msgspec.structs.replace(one, dtype=WEIGHTS[weight.rule.weights or ""].dtype, bytes=weight.bytes)


def _note(trace: Trace, parameters: Sequence[Parameter], weights: dict[int, Narrowed], plan: Plan) -> str:
    """What the plan did, for the reader of a report."""
    before, after = (sum(one.bytes for one in some) for some in (trace.parameters, parameters))
    scales = sum(one.scales * WEIGHTS[one.rule.weights or ""].scale_bytes for one in weights.values())
    kinds: dict[str, int] = {}
    for one in weights.values():
        text = f"{one.rule.weights} weights" + (f" and {one.rule.activations} activations" if one.rule.activations else "")
        kinds[text] = kinds.get(text, 0) + 1
    what = ", ".join(f"{text} in {count} layers" for text, count in kinds.items())
    return (
        f"{plan.name}: {what}; weights take {units.bytes_(after)} instead of {units.bytes_(before)}, {units.bytes_(scales)} of it scales; "
        "predicted times know the bytes and the arithmetic, not how well a library's quantised kernels run"
    )
