"""A second opinion: fvcore and torch's FlopCounterMode beside our count, module by module."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any, NamedTuple

import torch
from torch import nn

from modelstat.cost.record import Cost
from modelstat.errors import MissingExtraError
from modelstat.measure.counters import Ops, calls_noted, flop_counter_macs, fvcore_macs
from modelstat.measure.explanations import FVCORE, MISSING, OTHER, TORCH, extras
from modelstat.records import Module, Trace
from modelstat.report.crosscheck import Crosscheck, Difference
from modelstat.trace.copies import own_copy
from modelstat.trace.fakes import materialize
from modelstat.trace.modules import unwrapped
from modelstat.trace.nested import map_tensors
from modelstat.trace.state import preserved

LARGEST_WEIGHTS = 8_000_000_000
"""Bytes of weights up to which a model is run for real."""
LARGEST_WORK = 2_000_000_000_000
"""MACs up to which a model is run for real: some seconds a core."""

HELD = "the work with a parameter is counted where it is used, by us in the module that holds the parameter"
SHARED = "the work of a shared module is counted under one of its names and missing from its parents"


class Run(NamedTuple):
    """What one counter said: ``own`` MACs of each module, the ops that it does not know, and the modules that were called."""

    own: Ops
    unknown: Mapping[str, set[str]]
    called: set[str]


COUNTERS: dict[str, Callable[..., tuple[Ops, dict[str, set[str]]]]] = {FVCORE: fvcore_macs, TORCH: flop_counter_macs}


def too_large(trace: Trace, costs: Sequence[Cost]) -> str | None:
    """Why the other counters, which need a real run, are not run on a model; None if they are."""
    weights = sum(parameter.bytes for parameter in trace.parameters)
    macs = sum(cost.macs for cost in costs)
    if weights > LARGEST_WEIGHTS:
        return f"{weights / 1e9:.1f} GB of weights are too large for the real run that it needs (at most {LARGEST_WEIGHTS / 1e9:.0f} GB)"
    if macs > LARGEST_WORK:
        return f"{macs / 1e9:.0f} GMACs are too many for the real run that it needs (at most {LARGEST_WORK / 1e9:.0f})"
    return None


def crosscheck(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None, trace: Trace, costs: Sequence[Cost]) -> Crosscheck:
    """Counts a model by fvcore and by FlopCounterMode, and compares with ``costs``, those of its ``trace``.

    The model needs its weights, of whatever value, and comes back unchanged. A counter that cannot run the model is a failure of its
    own in the result, never an error.
    """
    model = unwrapped(model)
    reason = too_large(trace, costs)
    if reason is None and any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
        reason = "the model has no weights (it is on the meta device), and the counter needs a real run"
    if reason is not None:
        return compared(trace, costs, {}, dict.fromkeys(COUNTERS, reason))
    runs: dict[str, Run] = {}
    failures: dict[str, str] = {}
    for name, count in COUNTERS.items():
        with preserved(model):
            torch.backends.mha.set_fastpath_enabled(False)
            torch.default_generator.manual_seed(0)
            given = map_tensors((tuple(args), dict(kwargs or {})), lambda tensor: materialize(tensor, None))
            copied = own_copy(model)
            try:
                with calls_noted(copied) as called:
                    own, unknown = count(copied, *given)
            except MissingExtraError:
                raise
            except Exception as error:
                failures[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            else:
                runs[name] = Run(own, unknown, called)
    return compared(trace, costs, runs, failures)


def compared(trace: Trace, costs: Sequence[Cost], runs: Mapping[str, Run], failures: dict[str, str]) -> Crosscheck:
    """The differences between our costs and what other counters counted, with the explanations of each."""
    differences: dict[str, Difference] = {}
    rows = {module.path: module for module in trace.modules}
    shared = any(module.instance != index for index, module in enumerate(trace.modules))
    sums = {name: {path: sum(ops.values()) for path, ops in _by_first_path(run.own, rows, trace).items()} for name, run in runs.items()}
    for name, run in runs.items():
        counts, ours = _by_first_path(run.own, rows, trace), _ours(trace, costs, run.called)
        found = {path: _explained(name, counts[path], ours[path], run.unknown.get(path, set())) for path in counts.keys() | ours.keys()}
        moved = _moved({path: residue for path, (residue, _) in found.items()}, shared)
        for path, (residue, texts) in found.items():
            if path in moved:
                texts = (*texts, f"{name}: {moved[path]}")
            elif not residue and sums[name].get(path, 0) == sum(ours[path].values()):
                continue
            before, macs = differences.get(path), sum(ours[path].values())
            counted = {each: sums[each].get(path, 0) if each in sums else None for each in COUNTERS}
            differences[path] = Difference(
                path=path,
                type=rows[path].type if path in rows else "?",
                macs=macs,
                counted=counted,
                difference={each: None if theirs is None else theirs - macs for each, theirs in counted.items()},
                explanations=(*(before.explanations if before else ()), *texts),
                unexplained=(*(before.unexplained if before else ()), *((name,) if residue and path not in moved else ())),
            )
    order = {path: index for index, path in enumerate(rows)}
    return Crosscheck(
        model=trace.model,
        batch=trace.batch,
        macs=sum(cost.macs for cost in costs),
        counted={name: sum(sums[name].values()) if name in sums else None for name in COUNTERS},
        modules=len({op.module for op in trace.ops if not op.view}),
        differences=tuple(sorted(differences.values(), key=lambda each: order.get(each.path, len(order)))),
        unexplained=sum(bool(each.unexplained) for each in differences.values()),
        failures=failures,
    )


def _by_first_path(own: Ops, rows: Mapping[str, Module], trace: Trace) -> defaultdict[str, Counter[str]]:
    """The same, with a shared module at its first path, where every counter sums up its calls."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path, ops in own.items():
        row = rows.get(path)
        found[trace.modules[row.instance].path if row is not None else path].update(ops)
    return found


def _ours(trace: Trace, costs: Sequence[Cost], called: Container[str]) -> defaultdict[str, Counter[str]]:
    """Module path -> our MACs of each of its own ops.

    A module that is never called but whose weights are used has none: a counter sees its work in the module that is running.
    """
    own: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for op, cost in zip(trace.ops, costs, strict=True):
        if cost.macs:
            index = trace.modules[op.module].instance
            while trace.modules[index].path not in called and trace.modules[index].parent >= 0:
                index = trace.modules[trace.modules[index].parent].instance
            own[trace.modules[index].path][op.name + (" (sparse)" if "nnz" in op.arguments else "")] += cost.macs
    return own


def _explained(name: str, theirs: Counter[str], ours: Counter[str], unknown: set[str]) -> tuple[int, tuple[str, ...]]:
    """What is left of a difference in one module once the table has had its say, and what it said."""
    texts: list[str] = []
    residue = sum(theirs.values()) - sum(ours.values())
    for op, macs in theirs.items():
        text = extras(name, op)
        if text is not None:
            residue -= macs
            texts.append(text)
    amounts: dict[tuple[str, int], None] = {}
    for row in MISSING:
        if row.counter != name or (row.sign and not any(fnmatchcase(op, row.sign) for op in unknown)):
            continue
        matching = [op for op in ours if fnmatchcase(op, row.ours)]
        for size in range(1, len(matching) + 1):
            for chosen in combinations(matching, size):
                amounts.setdefault((row.text, sum(ours[op] for op in chosen)))
    for size in range(len(amounts) + 1 if residue else 0):
        for several in combinations(amounts, size):
            if residue + sum(macs for _, macs in several) == 0:
                return 0, (*texts, *dict.fromkeys(text for text, _ in several))
    for other in OTHER if residue else ():
        known = any(fnmatchcase(op, other.ours) for op in ours) if other.ours else not ours
        if other.counter == name and other.op in theirs and known and other.more == (residue > 0):
            return 0, (*texts, other.text)
    return residue, tuple(texts)


def _moved(residues: Mapping[str, int], shared: bool) -> dict[str, str]:
    """The modules whose residues cancel, with the reason: what we give to the one, a counter gives to the other.

    They are a module and modules that it lies in, or where modules are shared, any modules below one.
    """
    left = {path: residue for path, residue in residues.items() if residue}
    moved: dict[str, str] = {}
    for above in sorted({"", *residues} if shared else left, key=len, reverse=True):
        below = [path for path in left if path not in moved and path != above and (not above or path.startswith(f"{above}."))]
        if below and sum(left[path] for path in below) + (left.get(above, 0) if above not in moved else 0) == 0:
            held = above in left and above not in moved
            moved.update(dict.fromkeys([*below, *([above] if held else [])], HELD if held else SHARED))
    return moved
