"""The cache of keys and values that a language model of transformers is given, laid out as serving engines keep it.

Room for the next token is there, so a new key is written where it belongs and nothing is copied (transformers' own growing cache copies
all of it for every token). What a layer keeps is known when its attention first hands over keys, so the room is made there, by an op
that no model calls: :mod:`modelstat.serving.cache` finds it in the trace and turns it into the input that it stands for.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

from modelstat.errors import UsageError
from modelstat.serving.phase import Phase

ATTENTION = ("full_attention", "sliding_attention", "chunked_attention", "dummy")
"""Kinds of layers whose state is keys and values, or none."""


class Room(DynamicLayer):
    """One layer's keys and values: ``past`` positions are there, the pass adds its own. A layer with a ``window`` keeps that many."""

    def __init__(self, past: int, window: int | None) -> None:
        super().__init__()
        self.past, self.window = past, window
        self.is_sliding = window is not None
        self.seen = past if window is None else min(past, window - 1)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """New keys and values (B, H, L, D) go in; what attention must see comes back, (B, H, seen + L, D)."""
        self.keys, keys = self._written(key_states)
        self.values, values = self._written(value_states)
        return keys, values

    def _written(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """What is kept, and what this pass attends to: a prompt attends to all of itself, whatever is kept of it."""
        batch, heads, new, channels = states.shape
        positions = self.seen + new if self.window is None else min(self.seen + new, self.window)
        room = torch.empty_permuted((batch, heads, positions, channels), (0, 1, 2, 3), dtype=states.dtype, device=states.device)
        written = min(new, positions)
        room[:, :, positions - written :].copy_(states[:, :, new - written :])
        return room, states if self.seen == 0 else room

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Number of keys that the pass sees, and the position of the first."""
        return self.seen + query_length, self.past - self.seen

    def get_seq_length(self) -> int:
        """Positions before this pass."""
        return self.past

    def get_max_length(self) -> int:
        """The window; -1 where there is none."""
        return -1 if self.window is None else self.window


def cache_for(config: Any, phase: Phase, spec: str) -> Any:
    """The cache of a configuration before a phase. Raises UsageError for layers that keep another state than keys and values."""
    from transformers.cache_utils import DummyLayer, get_layer_types_and_kwargs

    unused: Any = DummyLayer
    kinds, options = get_layer_types_and_kwargs(config.get_text_config(decoder=True))
    for kind in kinds:
        if kind not in ATTENTION:
            raise UsageError(f"{spec}: --phase is known for caches of keys and values, and this model has layers of the kind {kind}")
    return Cache(
        layers=[
            unused() if kind == "dummy" else Room(phase.past, given.get("sliding_window"))
            for kind, given in zip(kinds, options, strict=True)
        ]
    )
