"""Which layers the left side of a rule selects, and what a layer is: its kernel and its channels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

CONVOLUTIONS: tuple[type[_ConvNd], ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""By the number of their axes, less one."""

ACTIVATIONS = (
    nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh, nn.LeakyReLU, nn.LogSigmoid, nn.Mish, nn.PReLU,
    nn.ReLU, nn.ReLU6, nn.RReLU, nn.SELU, nn.SiLU, nn.Sigmoid, nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanh, nn.Tanhshrink,
)  # fmt: skip
"""torch's own, one element at a time: a softmax or a gate is none of them."""

ACTIVATION_HOMES = ("timm.layers.activations", "timm.layers.activations_me", "transformers.activations")
"""Modules of other packages whose layers are activations."""

NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm, nn.LocalResponseNorm)

IDEMPOTENT = frozenset({"aten::relu", "aten::relu_", "aten::relu6", "aten::relu6_", "aten::hardtanh", "aten::hardtanh_"})
"""Functions that change nothing when they run a second time: one inside a swapped layer may stay after it as well."""


def is_conv(layer: nn.Module) -> bool:
    """A convolution, not a transposed one."""
    return isinstance(layer, CONVOLUTIONS) and not isinstance(layer, _ConvTransposeNd)


def is_linear(layer: nn.Module) -> bool:
    """torch's Linear, or transformers' Conv1D, which is a linear layer with its weight the other way round."""
    return isinstance(layer, nn.Linear) or _is_conv1d(layer)


def _is_conv1d(layer: nn.Module) -> bool:
    return type(layer).__name__ == "Conv1D" and type(layer).__module__ == "transformers.pytorch_utils"


def is_activation(layer: nn.Module) -> bool:
    """A module that is an element-wise activation and nothing else."""
    return isinstance(layer, ACTIVATIONS) or type(layer).__module__ in ACTIVATION_HOMES


def is_norm(layer: nn.Module) -> bool:
    """A normalisation, torch's own or of a class that is named like one."""
    return isinstance(layer, NORMS) or ("Norm" in type(layer).__name__ and not any(True for _ in layer.children()))


def is_attention(layer: nn.Module) -> bool:
    """Attention that may run fused or not: torch's, timm's (it has ``fused_attn``), transformers' (its configuration decides)."""
    if isinstance(layer, nn.MultiheadAttention) or isinstance(getattr(layer, "fused_attn", None), bool):
        return True
    return "Attention" in type(layer).__name__ and hasattr(getattr(layer, "config", None), "_attn_implementation")


TARGETS: dict[str, Callable[[nn.Module], bool]] = {
    "conv": is_conv,
    "linear": is_linear,
    "act": is_activation,
    "norm": is_norm,
    "attention": is_attention,
    "precision": lambda layer: isinstance(layer, _ConvNd) or is_linear(layer),
}
"""Left side of a rule -> whether it selects a layer."""


def kernel_of(layer: nn.Module) -> tuple[int, ...] | None:
    """The kernel of a convolution, None for another layer."""
    return tuple(layer.kernel_size) if isinstance(layer, _ConvNd) else None


def channels_of(layer: nn.Module) -> int | None:
    """The smaller of a layer's input and output channels (of a linear layer: features), None for one that has neither."""
    if isinstance(layer, _ConvNd):
        return min(layer.in_channels, layer.out_channels)
    return min(features_of(layer)) if is_linear(layer) else None


def features_of(layer: nn.Module) -> tuple[int, int]:
    """Input and output features of a linear layer."""
    rows, columns = layer.weight.shape  # type: ignore[misc]
    return (int(rows), int(columns)) if _is_conv1d(layer) else (int(columns), int(rows))


def own_tensors(layer: nn.Module) -> list[torch.Tensor]:
    """Parameters and buffers of a layer and of all below it."""
    return [*layer.parameters(), *layer.buffers()]


def overrides(layer: nn.Module, *names: str) -> bool:
    """Whether a layer of a class derived from torch's does something of its own where torch's method of one of these names would run."""
    base = next(each for each in type(layer).__mro__ if each.__module__.startswith("torch.nn.modules"))
    return any(getattr(type(layer), name) is not getattr(base, name) for name in names)
