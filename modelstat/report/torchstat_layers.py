"""torchstat 0.0.7's counts of one layer: formulas of its own per layer type, which are not those of the rest of modelstat.

Checked against its output for eight models. Where it knows a layer for one count only (LeakyReLU has Flops but no MAdd), the
others are None here, and zero in its totals.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import msgspec

from modelstat.records import Module

Shape = tuple[int, ...]


class Counts(msgspec.Struct, frozen=True):
    """One call of one layer. ``read`` and ``write`` are elements, not bytes. None: torchstat does not know it."""

    madd: int | None = None
    flops: int | None = None
    read: int | None = None
    write: int | None = None


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def weights(module: Module) -> int:
    """Weights and biases that a convolution or linear layer reads; a tied weight is read at both places."""
    at = module.attributes
    if module.type == "Linear":
        return int(at["in_features"] * at["out_features"] + at["bias"] * at["out_features"])
    kernel = prod(_pair(at["kernel_size"])) * at["in_channels"] // at["groups"]
    return int(kernel * at["out_channels"] + at["bias"] * at["out_channels"])


def conv2d(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """K multiplies, K - 1 additions and the bias per output; Flops: a MAC is 1, and the bias."""
    at = module.attributes
    kernel = prod(_pair(at["kernel_size"])) * (at["in_channels"] // at["groups"])
    bias = int(at["bias"])
    made = prod(outputs)
    return Counts(made * (2 * kernel - 1 + bias), made * (kernel + bias), prod(inputs) + weights(module), made)


def conv_transpose2d(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """As a convolution, but per input position; MAdd only."""
    at = module.attributes
    kernel = prod(_pair(at["kernel_size"])) * (at["in_channels"] // at["groups"])
    positions = prod(inputs) // at["in_channels"] * at["out_channels"]
    return Counts(madd=positions * (2 * kernel - 1 + int(at["bias"])))


def linear(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """K multiplies and K - 1 additions per output, Flops K; neither counts the bias, but it is read."""
    kernel, made = module.attributes["in_features"], prod(outputs)
    return Counts(made * (2 * kernel - 1), made * kernel, prod(inputs) + weights(module), made)


def bilinear(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """Both products and their sums per output; MAdd only."""
    at = module.attributes
    terms = at["in1_features"] * at["in2_features"] + at["in2_features"]
    return Counts(madd=prod(outputs) * (2 * terms - 1))


def batch_norm2d(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """MAdd 4 per element; Flops 2, or 1 without affine; reads scale and shift, never the running statistics."""
    elements = prod(inputs)
    flops = elements * (2 if module.attributes.get("affine", True) else 1)
    return Counts(4 * elements, flops, elements + 2 * inputs[1], elements)


def relu(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """One per element."""
    elements = prod(inputs)
    return Counts(elements, elements, elements, elements)


def activation(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """One per element, but no MAdd."""
    elements = prod(inputs)
    return Counts(None, elements, elements, elements)


def prelu(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """As the other activations; its slopes are read too."""
    elements = prod(inputs)
    return Counts(None, elements, elements + int(module.attributes.get("num_parameters", 1)), elements)


def softmax(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """For n elements: n exponentials, n - 1 additions and n divisions over all of a sample at once; MAdd only."""
    samples = inputs[0] if inputs else 1
    return Counts(madd=3 * prod(inputs) - samples)


def max_pool2d(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """Per output k x k - 1 comparisons; Flops are the input's elements."""
    window = prod(_pair(module.attributes["kernel_size"]))
    return Counts((window - 1) * prod(outputs), prod(inputs), prod(inputs), prod(outputs))


def avg_pool2d(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """Per output k x k - 1 additions and a division; Flops are the input's elements."""
    window = prod(_pair(module.attributes["kernel_size"]))
    return Counts(window * prod(outputs), prod(inputs), prod(inputs), prod(outputs))


def upsample(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """Flops of one output channel of each sample, as torchstat has it; nothing else."""
    return Counts(flops=prod(outputs) // outputs[1])


Formula = Callable[[Module, Shape, Shape], Counts]

LAYERS: dict[str, Formula] = {
    "Conv2d": conv2d,
    "ConvTranspose2d": conv_transpose2d,
    "Linear": linear,
    "Bilinear": bilinear,
    "BatchNorm2d": batch_norm2d,
    "ReLU": relu,
    "ReLU6": relu,
    "ELU": activation,
    "LeakyReLU": activation,
    "PReLU": prelu,
    "Softmax": softmax,
    "MaxPool2d": max_pool2d,
    "AvgPool2d": avg_pool2d,
    "Upsample": upsample,
}
"""Layer type -> formula; every other layer is zero for torchstat."""


def counts(module: Module, inputs: Shape, outputs: Shape) -> Counts:
    """What torchstat counts for one call; all None for a layer that it does not know, or whose configuration is not on record."""
    formula = LAYERS.get(module.type)
    if formula is None or not module.attributes:
        return Counts()
    return formula(module, inputs, outputs)
