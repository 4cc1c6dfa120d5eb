"""``conv=lowrank`` and ``linear=lowrank``: two thin factors in place of one weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modelstat.rewrite.registry import SkipError, rule

if TYPE_CHECKING:
    from torch import Tensor, nn

    from modelstat.rewrite.site import Site


def _wrong(given: Mapping[str, Any]) -> str | None:
    if given["rank"] is not None and given["rank"] < 1:
        return f"rank is at least 1, not {given['rank']}"
    return None if given["ratio"] >= 2 else f"ratio is at least 2, not {given['ratio']}: the full rank over the one that is kept"


@rule("conv=lowrank", _wrong)
def conv_lowrank(site: Site, *, rank: int | None = None, ratio: int = 4) -> nn.Module:
    """The convolution to rank channels, then a pointwise one; rank is the full rank over ratio.

    Weights: rank x in x k**d + out x rank, where the full rank is min(in x k**d, out). A weight that is there is approximated as well as
    that rank can (its largest singular values); the bias is kept.
    """
    from torch.nn.modules.conv import _ConvNd

    from modelstat.rewrite.layers.convolution import like, plain
    from modelstat.rewrite.layers.factored import LowRankConv
    from modelstat.rewrite.site import skip_unless_plain

    conv = site.of(_ConvNd)
    skip_unless_plain(conv, "forward", "_conv_forward")
    if conv.groups > 1:
        raise SkipError(f"it has {conv.groups} groups")
    rows, columns = conv.out_channels, conv.weight[0].numel()
    kept = _rank(rows, columns, rank, ratio)
    first, second = like(conv, out=kept, bias=False), plain(conv, kept, rows, bias=conv.bias is not None)
    _fill(conv.weight.reshape(rows, columns), conv.bias, first, second)
    return LowRankConv(first, second)


@rule("linear=lowrank", _wrong)
def linear_lowrank(site: Site, *, rank: int | None = None, ratio: int = 4) -> nn.Module:
    """A linear layer to rank features, then one to all; rank is the full rank over ratio.

    Weights: rank x (in + out), where the full rank is min(in, out). A weight that is there is approximated as well as that rank can.
    """
    from torch import nn

    from modelstat.rewrite.layers.factored import LowRankLinear
    from modelstat.rewrite.site import factory, skip_unless_plain
    from modelstat.rewrite.targets import features_of

    linear = site.layer
    if isinstance(linear, nn.Linear):
        skip_unless_plain(linear, "forward")
    columns, rows = features_of(linear)
    kept = _rank(rows, columns, rank, ratio)
    bias: Any = linear.bias
    first = nn.Linear(columns, kept, bias=False, **factory(linear))
    second = nn.Linear(kept, rows, bias=bias is not None, **factory(linear))
    weight: Any = linear.weight
    _fill(weight if tuple(weight.shape) == (rows, columns) else weight.T, bias, first, second)
    return LowRankLinear(first, second)


def _rank(rows: int, columns: int, rank: int | None, ratio: int) -> int:
    kept = rank if rank is not None else max(1, min(rows, columns) // ratio)
    if kept * (rows + columns) >= rows * columns:
        raise SkipError(f"it would grow, from {rows * columns:,} weights to {kept * (rows + columns):,} at rank {kept}")
    return kept


def _fill(weight: Tensor, bias: Tensor | None, first: nn.Module, second: nn.Module) -> None:
    """The best two factors of a weight (rows, columns): its largest singular values, their roots on both sides."""
    import torch

    if weight.is_meta or type(weight.data) is not torch.Tensor:
        return
    small: Any = first.weight
    large: Any = second.weight
    with torch.no_grad():
        left, values, right = torch.linalg.svd(weight.detach().float(), full_matrices=False)
        kept = small.shape[0]
        roots = values[:kept].sqrt()
        large.copy_((left[:, :kept] * roots).reshape(large.shape))
        small.copy_((roots[:, None] * right[:kept]).reshape(small.shape))
        if bias is not None:
            second.bias.copy_(bias)  # type: ignore[operator]
