"""The layers that are timed: shapes that networks have, and what each computes and moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import NamedTuple

import torch
from torch import Tensor, nn

CONVOLUTIONS = {
    "convolution": (
        (3, 64, 7, 2, 224), (3, 16, 3, 2, 224), (64, 64, 3, 1, 56), (128, 128, 3, 1, 28), (256, 256, 3, 1, 14), (512, 512, 3, 1, 7),
        (256, 512, 3, 2, 14), (16, 32, 3, 1, 32),
    ),
    "convolution-ragged": (
        (40, 16, 5, 1, 64), (16, 20, 3, 1, 64), (8, 40, 3, 1, 64), (20, 56, 3, 1, 32), (48, 20, 3, 1, 32), (100, 60, 3, 1, 14),
    ),
    "pointwise": (
        (16, 64, 1, 1, 112), (64, 256, 1, 1, 56), (48, 16, 1, 1, 56), (240, 80, 1, 1, 14), (96, 576, 1, 1, 7), (1024, 256, 1, 1, 14),
        (256, 512, 1, 2, 14), (96, 32, 1, 1, 1), (576, 144, 1, 1, 1),
    ),
    "pointwise-ragged": (
        (72, 24, 1, 1, 56), (20, 96, 1, 1, 64), (88, 24, 1, 1, 28), (24, 72, 1, 1, 28), (40, 240, 1, 1, 14), (20, 40, 1, 1, 64),
        (120, 40, 1, 1, 7), (240, 40, 1, 1, 14), (16, 72, 1, 1, 56), (40, 120, 1, 1, 14), (72, 24, 1, 1, 1), (240, 60, 1, 1, 1),
    ),
    "depthwise": ((16, 16, 3, 2, 112), (96, 96, 5, 1, 28), (240, 240, 5, 1, 14), (576, 576, 5, 1, 7), (144, 144, 3, 1, 56)),
    "depthwise-ragged": ((72, 72, 3, 2, 56), (8, 8, 3, 1, 64), (24, 24, 3, 1, 32), (88, 88, 3, 1, 28), (10, 10, 3, 1, 32),
                         (20, 20, 3, 1, 64)),
}  # fmt: skip
"""Kind -> input channels, output channels, kernel, stride, size of the image. Depthwise: one filter a channel.

Ragged: some number of channels, an image's three aside, is not a multiple of 16, for which libraries have slower ways.
"""
PRODUCTS = (
    (1, 512, 1000), (1, 1024, 1000), (1, 4096, 4096), (16, 1024, 1024), (128, 256, 256), (128, 256, 1024), (128, 1024, 256),
    (197, 768, 3072), (1024, 1024, 1024),
)  # fmt: skip
"""Rows, columns and features of linear layers."""
POOLINGS = ((64, 3, 2, 112), (96, 2, 2, 64), (56, 2, 2, 32), (256, 3, 1, 14), (128, 2, 2, 28))
"""Channels, window, stride and size of the image."""
NORMS = ((16, 112), (64, 56), (20, 64), (10, 32), (256, 14), (512, 7))
"""Channels and size of the image."""
REDUCTIONS = ((72, 28), (96, 14), (240, 14), (576, 7), (2048, 7))
"""Channels and size of the image that is averaged."""
SOFTMAXES = ((4, 64), (8, 128), (12, 197), (16, 512))
"""Heads and length of the sequence."""
BATCH = {"cpu": 1, "mps": 4, "cuda": 32}
"""Images at once: enough to fill a GPU."""
COPIES = {"cpu": 1, "mps": 1, "cuda": 8}
"""Copies of a layer that take turns on a GPU, where all calls are one graph, so that no weight waits in the L2 cache."""


class Layer(NamedTuple):
    """One layer with the FLOPs, bytes of weights and other bytes (B) of a call. ``modules`` are copies of it with weights of their own."""

    modules: list[nn.Module]
    image: Tensor
    flops: float
    weights: float
    others: float


def layers(kind: str, device: str) -> Iterator[Layer]:
    """The layers of a kind: those of CONVOLUTIONS, pooling, norm, reduction, softmax or ``matmul-DTYPE``."""
    batch = BATCH[device]
    if kind in CONVOLUTIONS:
        for inputs, outputs, kernel, stride, size in CONVOLUTIONS[kind]:
            groups = inputs if kind.startswith("depthwise") else 1
            image, made = (batch, inputs, size, size), ceil(size / stride)
            taps = inputs // groups * kernel**2
            yield _layer(
                lambda: nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), image, device,  # noqa: B023
                flops=2.0 * batch * outputs * made**2 * taps, weights=outputs * taps, outputs=batch * outputs * made**2,
            )  # fmt: skip
    elif kind == "pooling":
        for channels, window, stride, size in POOLINGS:
            padding = 1 if window == 3 else 0
            made = (size + 2 * padding - window) // stride + 1
            yield _layer(
                lambda: nn.MaxPool2d(window, stride, padding), (batch, channels, size, size), device,  # noqa: B023
                flops=float(batch * channels * made**2 * window**2), outputs=batch * channels * made**2,
            )  # fmt: skip
    elif kind == "norm":
        for channels, size in NORMS:
            shape = (batch, channels, size, size)
            yield _layer(lambda: nn.BatchNorm2d(channels).eval(), shape, device, outputs=batch * channels * size**2)  # noqa: B023
    elif kind == "reduction":
        for channels, size in REDUCTIONS:
            yield _layer(lambda: nn.AdaptiveAvgPool2d(1), (batch, channels, size, size), device, outputs=batch * channels)
    elif kind == "softmax":
        for heads, length in SOFTMAXES:
            yield _layer(lambda: nn.Softmax(-1), (batch, heads, length, length), device, outputs=batch * heads * length**2)
    else:
        dtype = getattr(torch, kind.removeprefix("matmul-"))
        for rows, columns, features in PRODUCTS:
            yield _layer(
                lambda: nn.Linear(columns, features, dtype=dtype), (rows * batch, columns), device, dtype=dtype,  # noqa: B023
                flops=2.0 * batch * rows * columns * features, weights=columns * features, outputs=batch * rows * features,
            )  # fmt: skip


def _layer(
    build: Callable[[], nn.Module], shape: tuple[int, ...], device: str, *, flops: float = 0.0, weights: int = 0, outputs: int,
    dtype: torch.dtype = torch.float32,
) -> Layer:  # fmt: skip
    image = torch.randn(shape, device=device).to(dtype)
    copies = [build().to(device) for _ in range(COPIES[device])]
    return Layer(copies, image, flops, float(dtype.itemsize * weights), float(dtype.itemsize * (image.numel() + outputs)))
