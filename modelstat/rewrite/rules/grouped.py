"""``conv=grouped``: groups of channels that do not see each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modelstat.rewrite.registry import SkipError, rule

if TYPE_CHECKING:
    from torch import nn

    from modelstat.rewrite.site import Site


def _wrong(given: Mapping[str, Any]) -> str | None:
    return None if given["groups"] >= 2 else f"groups is at least 2, not {given['groups']}"


@rule("conv=grouped", _wrong)
def grouped(site: Site, *, groups: int = 4) -> nn.Module:
    """The same convolution in groups: one share of the weights and MACs. No channels are shuffled between layers.

    Weights: in / groups x out x k**d.
    """
    from torch.nn.modules.conv import _ConvNd

    from modelstat.rewrite.layers.convolution import like
    from modelstat.rewrite.site import skip_unless_plain

    conv = site.of(_ConvNd)
    skip_unless_plain(conv, "forward", "_conv_forward")
    if conv.groups >= groups:
        raise SkipError(f"it has {conv.groups} groups already")
    if conv.in_channels % groups or conv.out_channels % groups:
        raise SkipError(f"{groups} groups do not divide {conv.in_channels} and {conv.out_channels} channels")
    return like(conv, groups=groups)
