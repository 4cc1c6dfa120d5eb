"""A configuration with fewer layers, for a model that must run for real and does not fit the machine."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from modelstat.sources.hf_config import PER_LAYER, configs_in

DEPTHS = (
    "num_hidden_layers", "num_layers", "n_layer", "n_layers", "depth", "encoder_layers", "decoder_layers", "num_encoder_layers",
    "num_decoder_layers", "num_mem_blocks",
)  # fmt: skip
"""Fields that say how often a layer is repeated."""


def depth(config: Any) -> int:
    """The most layers of any part."""
    return max((getattr(holder, name) for holder in configs_in(config) for name in DEPTHS if _is_depth(holder, name)), default=0)


def shrunk(config: Any, layers: int) -> Any:
    """A copy in which no part has more than so many layers."""
    smaller = copy.deepcopy(config)
    for holder in configs_in(smaller):
        for name in PER_LAYER:
            value = getattr(holder, name, None)
            if isinstance(value, (list, tuple)) and len(value) > layers:
                _set(holder, name, value[:layers])
        for name in DEPTHS:
            if _is_depth(holder, name):
                _set(holder, name, min(getattr(holder, name), layers))
    return smaller


def _is_depth(holder: Any, name: str) -> bool:
    return type(getattr(holder, name, None)) is int


def _set(holder: Any, name: str, value: Any) -> None:
    with contextlib.suppress(AttributeError, NotImplementedError):
        setattr(holder, name, value)
