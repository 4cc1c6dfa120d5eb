"""What stands behind a convolution inside of the layer that takes its place: a normalisation and an activation.

Those that ran right after the convolution are absorbed; where there were none, they are added as GhostNet has them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import gcd
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from modelstat.rewrite.flow import FUNCTIONS, activation_name
from modelstat.rewrite.registry import SkipError
from modelstat.rewrite.rules.activation import make_activation
from modelstat.rewrite.site import Neighbour, Site, factory
from modelstat.rewrite.targets import IDEMPOTENT, is_activation, is_norm

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class Tail(NamedTuple):
    """Makes the normalisation of so many channels and the activation of one branch; None where a branch has none."""

    norm: Callable[[int], nn.Module | None]
    act: Callable[[], nn.Module | None]


def tail(site: Site, norm: str = "auto", act: str = "auto") -> Tail:
    """The tail of the convolution of a site.

    ``norm`` is auto, none or batch, ``act`` auto, none or an activation's name. none leaves it out, and what ran after the convolution
    stays there. auto absorbs what ran after it, or adds a batch normalisation and a ReLU where nothing did; a convolution with a
    normalisation but no activation stays linear, as GhostNet has it before its additions. What cannot be absorbed (a function in a
    forward, a module that is called elsewhere too) stays after the new layer: a normalisation then stands for the one inside, and of
    activations only one that may run twice (a ReLU) is also put inside.
    """
    conv = site.of(_ConvNd)
    normed = site.after(site.path, is_norm)
    last = site.path
    own_norm: Callable[[int], nn.Module | None] = batch_norm(conv)
    follows = normed is not None and (normed.module is not None or "_norm" in normed.op)
    acts_itself = False
    if norm == "none":
        own_norm = _nothing
        if follows and act == "auto":
            act = "none"
    elif normed is not None and follows:
        if normed.module is None or normed.why is not None or not _can_be_resized(normed.module):
            _stays(site, normed, "stands for the one inside")
            return Tail(_nothing, _nothing)
        site.absorb(normed.path)
        last = normed.path
        acts_itself = not isinstance(getattr(normed.module, "act", nn.Identity()), nn.Identity)
        if norm == "auto":
            own_norm = _copies(normed.module, conv.out_channels)
    if acts_itself and act in ("auto", "none"):
        # The copies of such a normalisation act too; a plain one in its place needs the activation beside it.
        own: nn.Module = normed.module.act  # type: ignore[union-attr, assignment]
        return Tail(own_norm, _nothing if norm == "auto" or act == "none" else lambda: copy.deepcopy(own))
    return Tail(own_norm, _activation(site, last, act, linear=follows))


def _activation(site: Site, last: str, act: str, *, linear: bool) -> Callable[[], nn.Module | None]:
    if act == "none":
        return _nothing
    found = site.after(last, is_activation)
    if found is not None and found.module is not None and found.why is None:
        site.absorb(found.path)
        module = found.module
        return (lambda: copy.deepcopy(module)) if act == "auto" else (lambda: make_activation(act))
    if found is not None and (found.module is not None or activation_name(found.op) in FUNCTIONS):
        if found.op not in IDEMPOTENT:
            _stays(site, found, "stays after the layer")
            return _nothing if act == "auto" else lambda: make_activation(act)
        _stays(site, found, "stays after the layer, and is inside too")
        inside = act if act != "auto" else "relu" if activation_name(found.op) == "relu" else "relu6"
        return lambda: make_activation(inside)
    if act == "auto":
        return _nothing if linear else lambda: make_activation("relu")
    return lambda: make_activation(act)


def _stays(site: Site, found: Neighbour, what: str) -> None:
    """Notes it without the path of the layer, so that the same note of many layers is one."""
    name = found.path.rpartition(".")[2] if found.module is not None else activation_name(found.op)
    site.note = f"{name} {found.why or 'is of another kind'}: it {what}"


def _nothing(*_: int) -> None:
    return None


def batch_norm(conv: _ConvNd) -> Callable[[int], nn.Module]:
    """Makes a batch normalisation of so many channels, for as many axes, on the device and in the dtype of a convolution."""
    kind = BATCH_NORMS[len(conv.kernel_size) - 1]
    return lambda channels: kind(channels, **factory(conv))


def _can_be_resized(norm: nn.Module) -> bool:
    return isinstance(norm, (_NormBase, nn.GroupNorm))


def _copies(norm: nn.Module, channels: int) -> Callable[[int], nn.Module]:
    def resized(wanted: int) -> nn.Module:
        """A copy for another number of channels, with fresh values."""
        made = copy.deepcopy(norm)
        for table in (made._parameters, made._buffers):
            for name, tensor in table.items():
                if tensor is not None and tuple(tensor.shape) == (channels,):
                    fresh = torch.empty(wanted, dtype=tensor.dtype, device=tensor.device)
                    table[name] = nn.Parameter(fresh) if isinstance(tensor, nn.Parameter) else fresh  # type: ignore[assignment]
        if isinstance(made, nn.GroupNorm):
            made.num_channels, made.num_groups = wanted, gcd(made.num_groups, wanted)
        elif isinstance(made, _NormBase):
            made.num_features = wanted
        else:
            raise SkipError(f"{type(norm).__name__} cannot be made for {wanted} channels")
        made.reset_parameters()
        return made

    return resized
