"""``norm=rms``: root mean square in place of a layer normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelstat.rewrite.registry import SkipError, rule

if TYPE_CHECKING:
    from torch import nn

    from modelstat.rewrite.site import Site


@rule("norm=rms")
def rms(site: Site) -> nn.Module:
    """RMSNorm in place of LayerNorm: the scale is kept, the shift goes. Parameters: the size of the normalised axes, not twice that."""
    import torch
    from torch import nn

    norm = site.layer
    if not isinstance(norm, nn.LayerNorm):
        raise SkipError(f"{type(norm).__name__} is no layer normalisation over the last axes")
    if type(norm) is not nn.LayerNorm and not type(norm).__name__ == "LayerNorm":
        raise SkipError(f"{type(norm).__name__} has a forward of its own")
    weight = norm.weight
    made = nn.RMSNorm(list(norm.normalized_shape), eps=norm.eps, elementwise_affine=norm.elementwise_affine)
    if norm.elementwise_affine:
        with torch.no_grad():
            made.weight = nn.Parameter(weight.detach().clone(), weight.requires_grad)
    return made
