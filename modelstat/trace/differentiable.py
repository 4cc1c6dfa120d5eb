"""Autograd's view of the ops that are kept whole: one node each, whose backward records one op (attention) or one per RNN layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

Tensors = Mapping[str, Tensor]
"""Tensors by the name of their argument."""


class Gradients(Protocol):
    """Records a backward op and makes its results."""

    def __call__(self, saved: Sequence[Tensors], grads: Sequence[Tensor | None], /) -> tuple[Tensor | None, ...]:
        """``grads`` are the gradients of the outputs, None where nothing flows back; so are the results."""


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Whether autograd follows an op that reads these tensors."""
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


class Whole(torch.autograd.Function):
    """An op that runs below autograd and has a backward of its own.

    ``run`` does the op and returns its outputs, and what it keeps for the backward, in groups. What is kept lives as long as autograd
    keeps it, as it does for torch's own ops.
    """

    @staticmethod
    def forward(
        ctx: Any, run: Callable[[], tuple[tuple[Tensor, ...], Sequence[Tensors]]], backward: Gradients, *tensors: Tensor | None
    ) -> tuple[Tensor, ...]:
        """``tensors`` are all that a gradient may be asked for, in the order in which ``backward`` returns gradients."""
        outputs, kept = run()
        ctx.gradients = backward
        ctx.names = [tuple(group) for group in kept]
        ctx.save_for_backward(*(tensor for group in kept for tensor in group.values()))
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """None for ``run`` and ``backward``, then one gradient for each of the tensors."""
        saved = iter(ctx.saved_tensors)
        groups = [{name: next(saved) for name in names} for names in ctx.names]
        return (None, None, *ctx.gradients(groups, grads))
