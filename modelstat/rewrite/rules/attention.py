"""``attention=fused``: scores, softmax and their product with the values as one op."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from modelstat.rewrite.registry import SkipError, rule

if TYPE_CHECKING:
    from torch import nn

    from modelstat.rewrite.site import Site


@rule("attention=fused")
def fused(site: Site) -> nn.Module:
    """One fused op (scaled_dot_product_attention) that never writes the scores; same parameters and MACs.

    torch's MultiheadAttention, timm's attention (``fused_attn``) and transformers' (``attn_implementation``) are known.
    """
    from torch import nn

    layer = site.layer
    if isinstance(layer, nn.MultiheadAttention):
        return _multihead(site, layer)
    if isinstance(getattr(layer, "fused_attn", None), bool):
        if layer.fused_attn:
            raise SkipError("it is fused already")
        made = copy.deepcopy(layer)
        made.fused_attn = True  # type: ignore[assignment]
        return made
    config: Any = layer.config
    if config._attn_implementation != "eager":
        raise SkipError(f"it is fused already ({config._attn_implementation})")
    made = copy.deepcopy(layer)
    made.config._attn_implementation = "sdpa"  # type: ignore[union-attr]
    return made


def _multihead(site: Site, layer: nn.MultiheadAttention) -> nn.Module:
    from modelstat.rewrite.layers.attention import FusedMultiheadAttention

    if type(layer) is FusedMultiheadAttention:
        raise SkipError("it is fused already")
    if site.flow.returns_more(site.path):
        raise SkipError("something reads its attention weights, which a fused op never has")
    made = copy.deepcopy(layer)
    made.__class__ = FusedMultiheadAttention
    return made
