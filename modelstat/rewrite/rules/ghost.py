"""``conv=ghost``: GhostNet's module in place of a convolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modelstat.rewrite.registry import SkipError, rule
from modelstat.rewrite.rules.activation import ACTIVATIONS

if TYPE_CHECKING:
    from torch import nn

    from modelstat.rewrite.site import Site


def wrong_tail(given: Mapping[str, Any]) -> str | None:
    """What is wrong with the parameters norm and act."""
    if given["norm"] not in ("auto", "none", "batch"):
        return f"norm is auto, none or batch, not {given['norm']}"
    if given["act"] not in ("auto", "none", *ACTIVATIONS):
        return f"act is auto, none or one of {', '.join(ACTIVATIONS)}, not {given['act']}"
    return None


def _wrong(given: Mapping[str, Any]) -> str | None:
    if given["ratio"] < 2:
        return f"ratio is at least 2, not {given['ratio']}: one channel of so many comes from the convolution"
    if given["kernel"] < 1 or given["kernel"] % 2 == 0:
        return f"kernel is odd, so that the image keeps its size, not {given['kernel']}"
    return wrong_tail(given)


@rule("conv=ghost", _wrong)
def ghost(site: Site, *, ratio: int = 2, kernel: int = 3, norm: str = "auto", act: str = "auto") -> nn.Module:
    """GhostNet's module: out/ratio channels by the convolution, the others by a depthwise kernel on these.

    With p = ceil(out / ratio) primary channels, weights and MACs per position are p x in / groups x k**d + p (ratio - 1) kernel**d for
    d axes.
    GhostNet's convolutions have no bias; without a normalisation they have one where the convolution had.
    """
    from torch.nn.modules.conv import _ConvNd

    from modelstat.rewrite.layers.convolution import axes, in_order, like, plain
    from modelstat.rewrite.layers.ghost import GhostModule
    from modelstat.rewrite.site import skip_unless_plain
    from modelstat.rewrite.tail import tail

    conv = site.of(_ConvNd)
    skip_unless_plain(conv, "forward", "_conv_forward")
    if conv.groups == conv.in_channels > 1:
        raise SkipError("it is depthwise already")
    primary = -(-conv.out_channels // ratio)
    if primary % conv.groups:
        raise SkipError(f"its {conv.groups} groups do not divide {primary} primary channels")
    cheap = primary * (ratio - 1)
    weights = primary * conv.weight[0].numel() + cheap * kernel ** axes(conv)
    if weights >= conv.weight.numel():
        raise SkipError(f"it would grow, from {conv.weight.numel():,} weights to {weights:,}")
    made = tail(site, norm, act)
    bias = norm == "none" and conv.bias is not None
    return GhostModule(
        in_order(like(conv, out=primary, bias=bias), made.norm(primary), made.act()),
        in_order(plain(conv, primary, cheap, kernel, groups=primary, bias=bias), made.norm(cheap), made.act()),
        conv.out_channels,
        axes(conv),
    )
