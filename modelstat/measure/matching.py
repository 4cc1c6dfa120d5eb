"""Kernels of a profile and ops of a trace, brought together: by the ops around a launch, by ranges that name modules, by call order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import groupby

import msgspec

from modelstat.cost.record import Cost
from modelstat.measure.imports.record import MeasuredKernel, OpCall, Profile
from modelstat.measure.names import canonical
from modelstat.records import Op, Trace

ENOUGH = 0.5
"""Share of the ops that must be found with their shapes before what lies between them is matched by name alone."""
AGREEING = 0.9
"""Share of the kernels whose names must fit the ops in their place before call order alone is believed."""
_CONTRACTION = ("gemm", "conv", "cudnn", "cutlass", "wgrad", "dgrad", "winograd", "xmma", "mma", "gemv", "fft")

Unit = tuple[int, ...]
"""Indices of ops that one call of a profile stands for: one op, or the layers of a recurrent net."""


class Match(msgspec.Struct, frozen=True):
    """The kernels of one step that belong to ``ops``, by index in the trace."""

    ops: Unit
    kernels: tuple[MeasuredKernel, ...]
    step: int | None = None


class Matching(msgspec.Struct, frozen=True):
    """``how`` is by ops, modules or call order, or none; ``unknown`` are the kernels that belong to no op."""

    how: str
    matches: tuple[Match, ...]
    unknown: tuple[MeasuredKernel, ...]


def running(trace: Trace, costs: Sequence[Cost]) -> list[int]:
    """Indices of the ops that do something: no views, nothing free."""
    pairs = enumerate(zip(trace.ops, costs, strict=True))
    return [index for index, (op, cost) in pairs if not op.view and cost.known != "free" and (cost.bytes or cost.flops)]


def match(trace: Trace, costs: Sequence[Cost], profile: Profile) -> Matching:
    """The matching of one profile. What cannot be placed with reason stays unknown: nothing is guessed."""
    units = _units(trace, running(trace, costs))
    for attempt in (_by_ops, _by_modules, _by_order):
        found = attempt(trace, costs, units, profile)
        if found is not None:
            return found
    return Matching("none", (), profile.kernels)


def _units(trace: Trace, indices: Iterable[int]) -> list[Unit]:
    """Ops one by one; those of a recurrent net's layers, which are one call elsewhere, together."""

    def key(index: int) -> tuple[object, ...]:
        op = trace.ops[index]
        return (op.module, op.call) if canonical(op.name) == "rnn" else (index,)

    return [tuple(group) for _, group in groupby(indices, key)]


def _by_ops(trace: Trace, costs: Sequence[Cost], units: list[Unit], profile: Profile) -> Matching | None:
    """Each kernel belongs to the outermost op around it that the trace knows; calls and ops are aligned in their order."""
    known = {canonical(trace.ops[unit[0]].name) for unit in units}
    steps: dict[int | None, dict[int, tuple[OpCall, list[MeasuredKernel]]]] = {}
    unknown: list[MeasuredKernel] = []
    for kernel in profile.kernels:
        call = next((call for call in kernel.calls if canonical(call.name) in known), None)
        if call is None:
            unknown.append(kernel)
        else:
            steps.setdefault(kernel.step, {}).setdefault(call.index, (call, []))[1].append(kernel)
    if not steps:
        return None
    matches: list[Match] = []
    for step, by_call in steps.items():
        calls = [by_call[index] for index in sorted(by_call)]
        several = step is None and round(len(calls) / len(units)) > 1
        pairs = (align_passes if several else _align_one)([call for call, _ in calls], [trace.ops[unit[0]] for unit in units])
        for place, (_, kernels) in enumerate(calls):
            if place in pairs:
                number, at = pairs[place]
                matches.append(Match(units[at], tuple(kernels), number if several else step))
            else:
                unknown.extend(kernels)
    return Matching("ops", tuple(matches), tuple(unknown)) if matches else None


def align_passes(calls: Sequence[OpCall], ops: Sequence[Op]) -> dict[int, tuple[int, int]]:
    """The pass and the op of each call that has one, where the calls are of several passes without marks.

    Each pass is looked for in the next calls alone, half as many again as there are ops: comparing everything with everything would take
    hours for a long run.
    """
    found: dict[int, tuple[int, int]] = {}
    start = number = 0
    while start < len(calls):
        pairs = align(calls[start : start + len(ops)], ops)
        if len(pairs) < len(ops):
            pairs = align(calls[start : start + len(ops) + len(ops) // 2], ops)
        found |= {start + place: (number, at) for place, at in pairs}
        start += pairs[-1][0] + 1 if pairs else len(ops)
        number += bool(pairs)
    return found


def _align_one(calls: Sequence[OpCall], ops: Sequence[Op]) -> dict[int, tuple[int, int]]:
    return {place: (0, at) for place, at in align(calls, ops)}


def align(calls: Sequence[OpCall], ops: Sequence[Op]) -> list[tuple[int, int]]:
    """Pairs (call, op) in which both go forward: first those of equal name and shapes, then in the gaps those of equal name."""
    shaped = any(call.shapes is not None for call in calls)
    theirs = [_key(call.name, call.shapes or (), shaped) for call in calls]
    ours = [_key(op.name, [spec.shape for spec in op.inputs], shaped) for op in ops]
    pairs = _aligned(theirs, ours, 0, 0)
    if not shaped or len(pairs) < ENOUGH * len(ops):
        return pairs
    found: list[tuple[int, int]] = []
    before = (-1, -1)
    for here in [*pairs, (len(calls), len(ops))]:
        names = [key[0] for key in theirs[before[0] + 1 : here[0]]]
        found += _aligned(names, [key[0] for key in ours[before[1] + 1 : here[1]]], before[0] + 1, before[1] + 1)
        if here[0] < len(calls):
            found.append(here)
        before = here
    return found


def _aligned(one: Sequence[object], other: Sequence[object], first: int, second: int) -> list[tuple[int, int]]:
    if one == other:
        return [(first + place, second + place) for place in range(len(one))]
    if not one or not other:
        return []
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [(first + block.a + step, second + block.b + step) for block in blocks for step in range(block.size)]


def _key(name: str, shapes: Iterable[Sequence[int]], shaped: bool) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """What two calls of the same work have in common.

    Shapes are in no order (an op's names differ in the order of its arguments), scalars left out: a profile has none for them. A layer
    of a recurrent net is no call of its own, so its shapes are not those of one.
    """
    plain = canonical(name)
    return plain, tuple(sorted(tuple(shape) for shape in shapes if len(shape))) if shaped and plain != "rnn" else ()


def _by_modules(trace: Trace, costs: Sequence[Cost], units: list[Unit], profile: Profile) -> Matching | None:
    """Each kernel belongs to the innermost range around it that is the path of a module."""
    modules = {module.path: index for index, module in reversed(list(enumerate(trace.modules))) if module.path}
    placed: dict[tuple[int, int | None], list[MeasuredKernel]] = {}
    unknown: list[MeasuredKernel] = []
    for kernel in profile.kernels:
        module = next((modules[part] for part in reversed(kernel.path.split("/")) if part in modules), None)
        if module is None:
            unknown.append(kernel)
        else:
            placed.setdefault((module, kernel.step), []).append(kernel)
    owners = {module for module, _ in placed}
    ops: dict[int, list[int]] = {}
    for index in (each for unit in units for each in unit):
        above = trace.ops[index].module
        while above >= 0 and above not in owners:
            above = trace.modules[above].parent
        ops.setdefault(above, []).append(index)
    matches = [Match(tuple(ops[module]), tuple(kernels), step) for (module, step), kernels in placed.items() if module in ops]
    unknown += [kernel for (module, _), kernels in placed.items() if module not in ops for kernel in kernels]
    return Matching("modules", tuple(matches), tuple(unknown)) if matches else None


def _by_order(trace: Trace, costs: Sequence[Cost], units: list[Unit], profile: Profile) -> Matching | None:
    """One kernel an op, in passes of equal length: believed where contractions fall on kernels whose names say so."""
    kernels = profile.kernels
    if not profile.ordered or not units or not kernels or len(kernels) % len(units):
        return None
    agreeing = 0
    for place, kernel in enumerate(kernels):
        contraction = any(costs[index].unit == "matmul" for index in units[place % len(units)])
        agreeing += contraction == any(word in kernel.name.lower() for word in _CONTRACTION)
    if agreeing < AGREEING * len(kernels):
        return None
    passes = len(kernels) > len(units)
    pairs = enumerate(kernels)
    found = tuple(Match(units[at % len(units)], (kernel,), at // len(units) if passes else kernel.step) for at, kernel in pairs)
    return Matching("call order", found, ())
