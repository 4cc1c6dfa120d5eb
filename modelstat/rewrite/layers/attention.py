"""Attention that always runs as one fused op."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class FusedMultiheadAttention(nn.MultiheadAttention):
    """torch's attention, which never returns its weights: asking for them keeps it from running fused."""

    def forward(self, *args: Any, need_weights: bool = False, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        """As :meth:`torch.nn.MultiheadAttention.forward`; the second output is None."""
        del need_weights
        # (query, key, value, key_padding_mask) come before need_weights, attn_mask and two more after it.
        names = ("attn_mask", "average_attn_weights", "is_causal")
        attend: Any = super().forward
        mixed: tuple[Tensor, Tensor | None] = attend(*args[:4], need_weights=False, **dict(zip(names, args[5:], strict=False)), **kwargs)
        return mixed
