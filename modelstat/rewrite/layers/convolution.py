"""Convolutions that are like another one but for some of their sizes."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.modules.conv import _ConvNd

from modelstat.rewrite.site import factory
from modelstat.rewrite.targets import CONVOLUTIONS


def like(
    conv: _ConvNd, *, into: int | None = None, out: int | None = None, groups: int | None = None, bias: bool | None = None
) -> nn.Module:
    """A convolution with the kernel, stride, padding and dilation of another; what is not given is as there."""
    return CONVOLUTIONS[axes(conv) - 1](
        in_channels=conv.in_channels if into is None else into,
        out_channels=conv.out_channels if out is None else out,
        kernel_size=conv.kernel_size,
        stride=conv.stride,
        padding=conv.padding,
        dilation=conv.dilation,
        groups=conv.groups if groups is None else groups,
        bias=(conv.bias is not None) if bias is None else bias,
        padding_mode=conv.padding_mode,
        **factory(conv),
    )


def plain(conv: _ConvNd, into: int, out: int, kernel: int = 1, *, groups: int = 1, bias: bool = False) -> nn.Module:
    """A convolution of stride 1 that keeps the size, with as many axes, the device and the dtype of another."""
    kind: Any = CONVOLUTIONS[axes(conv) - 1]
    made: nn.Module = kind(into, out, kernel, padding=kernel // 2, groups=groups, bias=bias, **factory(conv))
    return made


def axes(conv: _ConvNd) -> int:
    """Axes of the image that a convolution works on: 1, 2 or 3."""
    return len(conv.kernel_size)


def in_order(*modules: nn.Module | None) -> nn.Sequential:
    """The modules that are there, one after another."""
    return nn.Sequential(*(module for module in modules if module is not None))


def text(conv: Any) -> str:
    """A convolution for a reader: ``Conv2d(64, 64, 3x3)``."""
    from modelstat.rewrite.selection import kernel_text

    return f"{type(conv).__name__}({conv.in_channels}, {conv.out_channels}, {kernel_text(conv.kernel_size)})"
