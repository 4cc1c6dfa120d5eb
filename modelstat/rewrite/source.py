"""A model of another source with some of its layers swapped. Nothing here imports torch before the model is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from modelstat.errors import SwapError
from modelstat.rewrite.plan import Plan
from modelstat.sources.source import Built, Source

if TYPE_CHECKING:
    from torch import nn

    from modelstat.records import Swap
    from modelstat.rewrite.flow import Flow


class SwappedSource(Source):
    """Another source, rewritten by one plan after another: each sees what the one before made."""

    def __init__(self, inner: Source, plans: Sequence[Plan]) -> None:
        self.inner, self.plans = inner, tuple(plans)
        self.spec = " ".join((inner.spec, *(plan.text for plan in plans)))
        # Single layers in another precision need the others in the model's own: to say fp32 of a model that is in fp32 changes nothing.
        self.precision = None if changes_precision(plans) and inner.precision == "fp32" else inner.precision

    def key(self) -> dict[str, str]:
        """That of the model, and the rules with where they are applied."""
        swaps = [(plan.asked.text, plan.selection) for plan in self.plans]
        before = self.inner.key()
        return {**before, "swap": before.get("swap", "") + msgspec.json.encode(swaps).decode()}

    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        """Build the model and swap its layers. Raises what the model's source raises, and SwapError."""
        from modelstat.sources.guard import guarded

        built = self.inner.build(inputs, batch, weights=weights)
        with guarded():
            model, swaps = apply(built.model, self.plans, lambda model: _traced(replace(built, model=model)))
        return replace(built, model=model, swaps=(*built.swaps, *swaps))


def changes_precision(plans: Sequence[Plan]) -> bool:
    """Whether some layers get a precision of their own, which a precision of the whole model would undo."""
    return any(plan.asked.rule.target == "precision" for plan in plans)


def apply(model: nn.Module, plans: Sequence[Plan], flow_of: Callable[[nn.Module], Flow]) -> tuple[nn.Module, tuple[Swap, ...]]:
    """Apply plans one after another, in place.

    ``flow_of`` tells the flow of the model at that point; it is asked once for each plan at most.
    """
    from modelstat.rewrite.rewriter import rewrite

    done: list[Swap] = []
    for plan in plans:
        model, swaps = rewrite(model, plan, _Once(flow_of, model))
        done += swaps
    return model, tuple(done)


class _Once:
    """The flow of a model, found when it is first asked for; so is the reason why there is none."""

    def __init__(self, flow_of: Callable[[nn.Module], Flow], model: nn.Module) -> None:
        self._make, self._model = flow_of, model
        self._found: Flow | SwapError | None = None

    def __call__(self) -> Flow:
        if self._found is None:
            try:
                self._found = self._make(self._model)
            except SwapError as error:
                self._found = error
        if isinstance(self._found, SwapError):
            raise self._found
        return self._found


def _traced(built: Built) -> Flow:
    from modelstat.rewrite.flow import TraceFlow
    from modelstat.trace.capture import capture

    return TraceFlow(capture(built.model, built.args, built.kwargs, batch=built.batch))
