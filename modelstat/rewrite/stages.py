"""The stages of a model: what its author would call a part, found from the module tree. Nothing here imports torch."""

from __future__ import annotations

from typing import NamedTuple

from modelstat.cost.registry import costs
from modelstat.records import Trace
from modelstat.rewrite.selection import matches

DOMINANT = 0.7
"""A part that holds more than this share of the MACs is taken apart into its own parts."""
MOST = 12
"""A part with more children than this is cut into CHUNKS runs of them."""
CHUNKS = 6


class Stage(NamedTuple):
    """A part by name, and the paths that it is made of; none for the whole model."""

    name: str
    where: tuple[str, ...]


def stages(trace: Trace) -> tuple[Stage, ...]:
    """The whole model, and its parts in order: the children of the root, where one that does nearly all of the work is taken apart."""
    work = [0] * len(trace.modules)
    for op, cost in zip(trace.ops, costs(trace), strict=True):
        row = op.module
        while row >= 0:
            work[row] += cost.macs
            row = trace.modules[row].parent
    parts = _parts(trace, work, 0)
    return (Stage("whole model", ()), *(parts if len(parts) > 1 else ()))


def _parts(trace: Trace, work: list[int], row: int) -> list[Stage]:
    """The parts of one module."""
    children = [index for index, module in enumerate(trace.modules) if module.parent == row]
    paths = [trace.modules[index].path for index in children]
    if len(children) > MOST:
        size = -(-len(children) // CHUNKS)
        runs = [paths[start : start + size] for start in range(0, len(paths), size)]
        return [Stage(run[0] if len(run) == 1 else f"{run[0]} to {run[-1].rpartition('.')[2]}", tuple(run)) for run in runs]
    found: list[Stage] = []
    for index, path in zip(children, paths, strict=True):
        inner = _parts(trace, work, index) if work[0] and work[index] > DOMINANT * work[0] else []
        found += inner if len(inner) > 1 else [Stage(path, (path,))]
    return found


WORDS = {
    "conv": ("Conv",),
    "linear": ("Linear", "Conv1D"),
    "act": ("LU", "GELU", "swish", "Swish", "Mish", "Sigmoid", "sigmoid", "Tanh", "tanh", "Softplus", "Activation"),
    "norm": ("Norm",),
    "attention": ("Attention", "Attn"),
    "precision": ("Conv", "Linear"),
}
"""What the type of a layer that a rule's target takes has in its name."""


def concerns(target: str, trace: Trace, stage: Stage) -> bool:
    """Whether a stage has a layer that could be a rule's target, judged by the names of types: a cheap no, and a yes to be found out."""
    return any(
        any(word in module.type for word in WORDS[target])
        for module in trace.modules
        if not stage.where or any(matches(module.path, pattern) for pattern in stage.where)
    )
