"""What a range around a kernel says: an op, a step, or a place in the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from modelstat.measure.imports.record import OpCall, Shapes

_OP = re.compile(r"([A-Za-z_]\w*::\w+)(?:$|,|\W)")
_SIZES = re.compile(r"sizes = (\[[\[\]\d, ]*\])")
_STEP = re.compile(r"(?:ProfilerStep#|[Ss]tep[ _#:]?|[Ii]ter(?:ation)?[ _#:]?)(\d+)$")


def op_of(text: str, index: int) -> OpCall | None:
    """The op of a range such as torch's emit_nvtx pushes, with its shapes where it has some.

    >>> op_of("aten::relu, seq = 3, sizes = [[2, 8]]", 5)
    OpCall(name='aten::relu', index=5, shapes=((2, 8),))
    """
    match = _OP.match(text)
    if match is None:
        return None
    sizes = _SIZES.search(text)
    return OpCall(match[1], index, shapes_of(msgspec.json.decode(sizes[1])) if sizes else None)


def step_of(text: str) -> int | None:
    """The number of a step that a range marks.

    >>> step_of("ProfilerStep#3"), step_of("iteration 2"), step_of("layer1")
    (3, 2, None)
    """
    match = _STEP.match(text)
    return int(match[1]) if match else None


def shapes_of(dims: object) -> Shapes | None:
    """The shapes of the tensors among an op's arguments: lists of integers. A list of tensors counts with all of them.

    >>> shapes_of([[2, 3], [], [[4], [5]]])
    ((2, 3), (4,), (5,))
    """
    if not isinstance(dims, Sequence) or isinstance(dims, str):
        return None
    found: list[tuple[int, ...]] = []
    for each in dims:
        if isinstance(each, list) and each and all(type(size) is int for size in each):
            found.append(tuple(each))
        elif isinstance(each, list):
            found.extend(shapes_of(each) or ())
    return tuple(found)


def read_ranges(texts: Iterable[tuple[int, str]]) -> tuple[tuple[OpCall, ...], str, int | None]:
    """Ops, path and step of the ranges around a kernel, given outermost first with their indices."""
    calls: list[OpCall] = []
    places: list[str] = []
    step: int | None = None
    for index, text in texts:
        call, number = op_of(text, index), step_of(text)
        if call is not None:
            calls.append(call)
        elif number is not None:
            step = number
        else:
            places.append(text)
    return tuple(calls), "/".join(places), step
