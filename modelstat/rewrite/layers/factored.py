"""Layers that are two factors in place of one weight. They are sequences under a name that a report can show."""

from __future__ import annotations

from torch import nn


class SeparableConv(nn.Sequential):
    """A depthwise convolution, then a pointwise one that mixes the channels."""


class LowRankConv(nn.Sequential):
    """A convolution to a few channels, then a pointwise one to all of them."""


class LowRankLinear(nn.Sequential):
    """A linear layer to a few features, then one to all of them."""
