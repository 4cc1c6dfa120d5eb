"""A model is rewritten layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import nn

from modelstat.errors import SwapError
from modelstat.records import Swap
from modelstat.rewrite.flow import Flow
from modelstat.rewrite.plan import Plan
from modelstat.rewrite.registry import TARGETS as WORDS
from modelstat.rewrite.registry import SkipError
from modelstat.rewrite.selection import nothing_matches
from modelstat.rewrite.shapes import check_shapes
from modelstat.rewrite.site import Site
from modelstat.rewrite.targets import TARGETS, channels_of, kernel_of

WEIGHTED = ("conv", "linear", "precision")
"""Targets whose weights might be used by others."""


def rewrite(model: nn.Module, plan: Plan, flow: Callable[[], Flow]) -> tuple[nn.Module, tuple[Swap, ...]]:
    """Apply one rule to all layers that it selects, in place.

    Returns the model (a new one where the model is itself the layer), and what was done to which layer.

    ``flow`` tells what runs before and after a layer of the model as it is given; it is asked only where that matters.
    Raises SwapError for a selection that matches nothing, and where no selected layer takes the swap.
    """
    modules = dict(model.named_modules(remove_duplicate=False))
    chosen = _chosen(plan, modules, flow)
    swaps: list[Swap] = []
    places: dict[int, list[str]] = {}
    for path, module in modules.items():
        places.setdefault(id(module), []).append(path)
    stem = _stem(plan, modules, flow) if plan.selection.skip_stem else None
    replaced: dict[str, nn.Module] = {}
    for path, layer in chosen:
        site = Site(path, layer, modules, flow)
        try:
            _refuse(plan, site, modules, stem)
            new = plan.asked(site)
        except SkipError as why:
            swaps.append(Swap(plan.asked.text, path, type(layer).__name__, reason=str(why)))
            continue
        for where, module in {**site.replaced, path: new}.items():
            check_shapes(plan.asked.text, where, modules[where], module)
        replaced |= {**site.replaced, path: new, **{each: nn.Identity() for each in site.absorbed}}
        also = (*site.absorbed, *site.replaced)
        swaps.append(Swap(plan.asked.text, path, type(layer).__name__, type(new).__name__, absorbed=also, note=site.note))
    if not any(swap.after for swap in swaps):
        raise SwapError(f"{plan.text}: no {WORDS[plan.asked.rule.target]} takes this swap: {summed(swaps)}")
    functions = _functions(plan, flow)
    # All at once at the end: until then the flow is that of the model as it was.
    for where, module in replaced.items():
        module.train(modules[where].training)
        for each in places[id(modules[where])]:
            model = _put(model, each, module)
    return model, (*swaps, *functions)


def summed(swaps: Iterable[Swap]) -> str:
    """Why layers were left as they were, each reason with the first path and how many there are."""
    reasons: dict[str, list[str]] = {}
    for swap in swaps:
        if swap.reason:
            reasons.setdefault(swap.reason, []).append(swap.path or swap.before)
    return "; ".join(f"{paths[0]}{f' and {len(paths) - 1} more' if paths[1:] else ''}: {reason}" for reason, paths in reasons.items())


def _chosen(plan: Plan, modules: Mapping[str, nn.Module], flow: Callable[[], Flow]) -> list[tuple[str, nn.Module]]:
    """The layers of the rule's kind at selected paths, each once."""
    target = plan.asked.rule.target
    possible = {path: module for path, module in modules.items() if TARGETS[target](module)}
    seen: dict[int, tuple[str, nn.Module]] = {}
    for path, module in possible.items():
        if plan.selection.takes(path):
            seen.setdefault(id(module), (path, module))
    if not seen:
        functions = _functions(plan, flow)
        also = f" ({functions[0].before}s in forward are no modules)" if functions else ""
        raise SwapError(f"{plan.asked.text}: {nothing_matches(plan.selection.where, WORDS[target], list(possible))}{also}")
    return list(seen.values())


def _stem(plan: Plan, modules: Mapping[str, nn.Module], flow: Callable[[], Flow]) -> nn.Module | None:
    """The layer of the rule's kind that runs first."""
    kind = TARGETS[plan.asked.rule.target]
    return next((modules[path] for path in (*flow().order(), *modules) if path in modules and kind(modules[path])), None)


def _refuse(plan: Plan, site: Site, modules: Mapping[str, nn.Module], stem: nn.Module | None) -> None:
    """Raises SkipError for a layer that the selection or the model rules out, whatever the rule."""
    layer = site.layer
    if layer is stem:
        raise SkipError("it is the stem")
    reason = plan.selection.refuses(kernel_of(layer), channels_of(layer))
    if reason:
        raise SkipError(reason)
    if any(isinstance(modules[above], torch.jit.ScriptModule) for above in _above(site.path)):
        raise SkipError("it is inside TorchScript")
    if plan.asked.rule.target in WEIGHTED:
        tied = site.tied()
        if tied is not None:
            raise SkipError(f"its weight is also that of {tied or 'the model itself'}")
        if isinstance(modules.get(site.path.rpartition(".")[0]), nn.MultiheadAttention) or site.used_uncalled():
            raise SkipError("it is never called, at most its weight is used")


def _functions(plan: Plan, flow: Callable[[], Flow]) -> tuple[Swap, ...]:
    """The activations that are no modules, where activations are swapped: they are left as they were."""
    if plan.asked.rule.target != "act":
        return ()
    try:
        found: Sequence[tuple[str, str]] = flow().functions()
    except SwapError:
        return ()
    return tuple(
        Swap(plan.asked.text, path, f"{name} function", reason="it runs as a function in a forward: only modules can be swapped")
        for name, path in dict.fromkeys(found)
        if plan.selection.takes(path)
    )


def _above(path: str) -> list[str]:
    parts = path.split(".")
    return ["", *(".".join(parts[:end]) for end in range(1, len(parts)))] if path else []


def _put(model: nn.Module, path: str, module: nn.Module) -> nn.Module:
    """Set the module at a path; the root is the module itself."""
    if not path:
        return module
    above, _, name = path.rpartition(".")
    parent = model.get_submodule(above) if above else model
    parent._modules[name] = module
    return model
