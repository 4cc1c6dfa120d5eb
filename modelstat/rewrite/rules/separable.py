"""``conv=separable``: a depthwise and a pointwise convolution in place of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelstat.rewrite.registry import SkipError, rule
from modelstat.rewrite.rules.ghost import wrong_tail

if TYPE_CHECKING:
    from torch import nn

    from modelstat.rewrite.site import Site


def _wrong(given: dict[str, str]) -> str | None:
    if "auto" in (given["norm"], given["act"]):
        return "norm is none or batch, and act none or a name: what follows the convolution stays after both"
    return wrong_tail(given)


@rule("conv=separable", _wrong)  # type: ignore[arg-type]
def separable(site: Site, *, norm: str = "none", act: str = "none") -> nn.Module:
    """A depthwise kernel, then a pointwise convolution; norm and act between them as MobileNet has them, or none.

    Weights: in x k**d + in / groups x out. MACs: each times its output positions, which are the same for both.
    """
    from torch.nn.modules.conv import _ConvNd

    from modelstat.rewrite.layers.convolution import in_order, like, plain
    from modelstat.rewrite.layers.factored import SeparableConv
    from modelstat.rewrite.rules.activation import make_activation
    from modelstat.rewrite.site import skip_unless_plain
    from modelstat.rewrite.tail import batch_norm

    conv = site.of(_ConvNd)
    skip_unless_plain(conv, "forward", "_conv_forward")
    if conv.groups == conv.in_channels > 1:
        raise SkipError("it is depthwise already")
    if all(size == 1 for size in conv.kernel_size):
        raise SkipError("a 1x1 kernel is pointwise already")
    into, out = conv.in_channels, conv.out_channels
    depthwise = like(conv, out=into, groups=into, bias=False)
    pointwise = plain(conv, into, out, groups=conv.groups, bias=conv.bias is not None)
    weights = into * conv.weight[0, 0].numel() + into // conv.groups * out
    if weights >= conv.weight.numel():
        raise SkipError(f"it would grow, from {conv.weight.numel():,} weights to {weights:,}")
    between = in_order(None if norm == "none" else batch_norm(conv)(into), None if act == "none" else make_activation(act))
    return SeparableConv(depthwise, *between, pointwise)
