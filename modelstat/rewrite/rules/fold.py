"""``norm=fold``: a batch normalisation goes into the convolution or linear layer before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelstat.rewrite.registry import SkipError, rule

if TYPE_CHECKING:
    from torch import nn

    from modelstat.rewrite.site import Site


@rule("norm=fold")
def fold(site: Site) -> nn.Module:
    """A batch normalisation into the convolution or linear layer before it, for inference: same outputs, less to move.

    Its 2 x channels parameters become one bias of the layer, unless that has one: w' = w gamma / sqrt(var + eps) per output channel,
    b' = (b - mean) gamma / sqrt(var + eps) + beta.
    """
    from torch import nn
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

    from modelstat.rewrite.site import skip_unless_plain

    norm = site.layer
    if not isinstance(norm, _BatchNorm):
        raise SkipError(f"{type(norm).__name__} depends on its input: only a batch normalisation can be folded")
    skip_unless_plain(norm, "forward")
    if norm.running_mean is None:
        raise SkipError("it keeps no running statistics")
    found = site.before()
    if found is None or not isinstance(found[1], (_ConvNd, nn.Linear)):
        raise SkipError("no convolution or linear layer runs right before it, which nothing else reads")
    path, layer = found
    skip_unless_plain(layer, "forward")
    if isinstance(layer, nn.Linear) and (site.flow.axes(site.path) not in (None, 2) or norm.num_features != layer.out_features):
        raise SkipError("it normalises another axis than the features of the linear layer")
    if isinstance(layer, _ConvTransposeNd) and layer.groups > 1:
        raise SkipError("a transposed convolution in groups is not folded")
    fused: Any = _fused(layer, norm)
    fused.bias.requires_grad_(fused.weight.requires_grad)
    site.replace(path, fused.train(layer.training))
    return nn.Identity()


def _fused(layer: nn.Module, norm: nn.Module) -> Any:
    """The layer with the norm in it, as torch computes it; without values where one of both has none."""
    import copy

    from torch import nn
    from torch.nn.modules.conv import _ConvTransposeNd
    from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

    from modelstat.rewrite.targets import own_tensors

    pair: list[Any] = [copy.deepcopy(each).eval() for each in (layer, norm)]
    if any(tensor.is_meta for each in pair for tensor in own_tensors(each)):
        pair = [each.to("meta") for each in pair]
    one, other = pair
    if isinstance(layer, nn.Linear):
        return fuse_linear_bn_eval(one, other)
    return fuse_conv_bn_eval(one, other, transpose=isinstance(layer, _ConvTransposeNd))
