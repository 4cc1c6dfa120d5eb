"""A layer and what takes its place must give outputs of the same shape: both run on small inputs without values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from modelstat.errors import SwapError
from modelstat.rewrite.targets import features_of, is_activation, is_linear


def check_shapes(rule: str, path: str, old: nn.Module, new: nn.Module) -> None:
    """Raises SwapError that names the rule and the layer if their outputs differ in shape or dtype, or if the new layer cannot run."""
    for example in examples(old, new):
        before = _output(old, example)
        try:
            after = _output(new, example)
        except Exception as error:
            reason = f"does not take {tuple(example.shape)}: {type(error).__name__}: {error}"
            raise SwapError(f"{rule}: the new {path or 'model'} {reason}") from error
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            shapes = f"{tuple(before.shape)} {before.dtype} becomes {tuple(after.shape)} {after.dtype}"
            raise SwapError(f"{rule}: a swap keeps the shape of the output, but at {path or 'the model'} {shapes}")


def examples(layer: nn.Module, new: nn.Module) -> list[Tensor]:
    """Small inputs of a layer, of two sizes where it has axes that may be odd; none for a layer whose inputs cannot be told from it.

    A slope for each channel in the new one (PReLU) says how many channels there are.
    """
    if isinstance(layer, _ConvNd):
        sides = [(k - 1) * d + 1 + s for k, d, s in zip(layer.kernel_size, layer.dilation, layer.stride, strict=True)]
        return [_empty(layer, 1, layer.in_channels, *(side + more for side in sides)) for more in (0, 1)]
    if is_linear(layer):
        return [_empty(layer, 2, features_of(layer)[0])]
    if isinstance(layer, nn.LayerNorm):
        return [_empty(layer, 2, *layer.normalized_shape)]
    if isinstance(layer, _NormBase):
        axes = int(type(layer).__name__[-2]) if type(layer).__name__[-2:-1].isdigit() else 2
        return [_empty(layer, 2, layer.num_features, *(3,) * axes)]
    slopes = [each.num_parameters for each in (layer, new) if isinstance(each, nn.PReLU) and each.num_parameters > 1]
    return [_empty(layer, 2, *(slopes[:1] or [3]), 3)] if is_activation(layer) else []


def _empty(layer: nn.Module, *shape: int) -> Tensor:
    dtype = next((parameter.dtype for parameter in layer.parameters() if parameter.is_floating_point()), torch.float32)
    return torch.empty(shape, dtype=dtype, device="meta")


def _output(layer: nn.Module, example: Tensor) -> Tensor:
    """The output of a layer on the meta device; its own weights are not touched."""
    tensors: dict[str, Any] = {name: tensor.to("meta") for name, tensor in (*layer.named_parameters(), *layer.named_buffers())}
    with torch.no_grad():
        output: Tensor = functional_call(layer, tensors, (example,))
    return output
