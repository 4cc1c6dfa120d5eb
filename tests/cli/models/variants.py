"""Variants of one small network, whose counts are products: P pixels of 3x8x8 images."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn


def net(width: int = 8, norm: bool = False) -> nn.Module:
    """stem: 28 x width params, 27 x width MACs a pixel; head: 10 x width + 10 params, 10 x width MACs a pixel."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(stem=nn.Conv2d(3, width, 3, padding=1))
    if norm:
        layers["norm"] = nn.BatchNorm2d(width)
    layers["act"] = nn.ReLU()
    layers["head"] = nn.Conv2d(width, 10, 1)
    return nn.Sequential(layers).eval()


def hostile() -> nn.Module:
    model = nn.Module()
    name = "<img src=x onerror=alert(1)>"
    model.add_module(name, nn.Conv2d(3, 8, 1))
    model.forward = lambda image: getattr(model, name)(image)
    return model


def broken() -> nn.Module:
    raise ValueError("on purpose")
