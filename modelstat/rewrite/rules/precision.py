"""``precision=NAME``: single layers in another precision than the model."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING

from modelstat.rewrite.registry import SkipError, register

if TYPE_CHECKING:
    from torch import nn

    from modelstat.rewrite.site import Site

DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
"""Precision -> torch's name of the dtype."""


def at_precision(name: str, site: Site) -> nn.Module:
    """The layer with its weights in that dtype; its input is cast to it, and its output back. Same parameters and MACs."""
    import torch

    from modelstat.rewrite.layers.precision import AtPrecision

    dtype = getattr(torch, DTYPES[name])
    if next(site.layer.parameters()).dtype == dtype:
        raise SkipError(f"it is {name} already")
    return AtPrecision(copy.deepcopy(site.layer), dtype)


for _name in DTYPES:
    register("precision", _name, partial(at_precision, _name), {}, f"convolutions and linear layers in {_name}, with casts around them")
