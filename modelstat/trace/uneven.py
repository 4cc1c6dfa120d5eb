"""Attention over sequences of different lengths, packed end to end: its work depends on the lengths, which are values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from modelstat.trace.differentiable import Tensors, Whole, needs_gradient

if TYPE_CHECKING:
    from modelstat.trace.recorder import Recorder

NAME = "modelstat::varlen_attention"

PACKED = {
    "torch_attn::_varlen_attn": ("cu_seq_q", "cu_seq_k"),
    "torch_attn::_varlen_attn_out": ("cu_seq_q", "cu_seq_k"),
    "aten::_flash_attention_forward": ("cum_seq_q", "cum_seq_k"),
    "aten::_efficient_attention_forward": ("cu_seqlens_q", "cu_seqlens_k"),
    "flash_attn::_flash_attn_varlen_forward": ("cu_seqlens_q", "cu_seqlens_k"),
    "torch_attn::_varlen_attn_backward": ("cu_seq_q", "cu_seq_k"),
    "aten::_flash_attention_backward": ("cum_seq_q", "cum_seq_k"),
    "aten::_efficient_attention_backward": ("cu_seqlens_q", "cu_seqlens_k"),
    "flash_attn::_flash_attn_varlen_backward": ("cu_seqlens_q", "cu_seqlens_k"),
}
"""Op -> the arguments that say where each sequence of queries and of keys begins and ends."""


def packed_pairs(recorder: Recorder, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """``pairs`` of queries and keys per head, and what a causal mask leaves of them, where the lengths are known; else nothing."""
    ends: list[Tensor] = []
    for argument in PACKED[name]:
        tensor = given.get(argument)
        tensor = given.get(PACKED[name][0]) if tensor is None else tensor
        value = tensor if recorder.known is None or tensor is None else recorder.known.value(tensor)
        if value is None:
            return {}
        ends.append(value)
    with recorder.suspended(), torch.utils._python_dispatch._disable_current_modes():
        queries, keys = (tensor.diff().tolist() for tensor in ends)
    return _pairs(queries, keys)


def _pairs(queries: list[int], keys: list[int]) -> dict[str, Any]:
    """A causal mask ends in the lower right corner: the last query sees every key.

    >>> _pairs([2, 3], [2, 4])
    {'pairs': 16, 'causal_pairs': 12}
    """
    full = sum(q * k for q, k in zip(queries, keys, strict=True))
    hidden = sum(min(q, k) * (min(q, k) - 1) // 2 + max(q - k, 0) * k for q, k in zip(queries, keys, strict=True))
    return {"pairs": full, "causal_pairs": full - hidden}


def _attention(query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, scale: float | None) -> Tensor:
    """Of one sequence: query (L, H, E), key (S, H, E), value (S, H, Ev) -> (L, H, Ev)."""
    heads_first = (tensor.transpose(0, 1) for tensor in (query, key, value))
    output: Tensor = torch.ops.aten._scaled_dot_product_attention_math(*heads_first, None, dropout_p, is_causal, scale=scale)[0]
    return output.transpose(0, 1)


@contextmanager
def jagged_attention_kept_whole(recorder: Recorder) -> Iterator[None]:
    """Records F.scaled_dot_product_attention of jagged nested tensors as one op on their values, for the time of one trace.

    Where autograd is on, it keeps the log-sum-exp of every row of scores, and its backward is one op too.
    """
    from torch.nested._internal import ops as jagged_ops
    from torch.nested._internal.nested_tensor import nested_view_from_values_offsets

    module: Any = jagged_ops
    original = module.jagged_scaled_dot_product_attention

    def attention(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, **rest: Any
    ) -> Any:
        if not all(tensor.is_nested for tensor in (query, key, value)):
            return original(query, key, value, attn_mask, dropout_p, is_causal, **rest)
        with recorder.suspended():
            lengths = [tensor.offsets().diff().tolist() for tensor in (query, key)]
            # (batch, heads, tokens, channels) -> (all tokens, heads, channels)
            packed = [tensor.transpose(1, 2).values() for tensor in (query, key, value)]
        inputs = dict(zip(("query", "key", "value"), packed, strict=True))
        arguments = {"is_causal": is_causal, "dropout_p": dropout_p, **_pairs(*lengths)}

        def run() -> Tensor:
            parts = [tensor.split(sizes) for tensor, sizes in zip(packed, (*lengths, lengths[1]), strict=True)]
            return torch.cat([_attention(q, k, v, dropout_p, is_causal, rest.get("scale")) for q, k, v in zip(*parts, strict=True)])

        def keep() -> tuple[tuple[Tensor, ...], Sequence[Tensors]]:
            with recorder.suspended():
                output = run()
                logsumexp = output.new_empty(output.shape[:-1], dtype=torch.float32)
            recorder.record(NAME, inputs, [output, logsumexp], arguments)
            return (output,), [{**inputs, "output": output, "logsumexp": logsumexp}]

        def backward(saved: Sequence[Tensors], grads: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
            (kept,) = saved
            with recorder.suspended():
                made = tuple(torch.zeros_like(kept[name]) for name in inputs)
            recorder.record(f"{NAME}_backward", {"grad_output": grads[0], **kept}, list(made), arguments)
            return made

        if needs_gradient(*packed):
            (output,) = Whole.apply(keep, backward, *packed)
        else:
            with recorder.suspended():
                output = run()
            recorder.record(NAME, inputs, [output], arguments)
        with recorder.suspended():
            result = nested_view_from_values_offsets(output, query.offsets())
        return result.transpose(1, 2)

    module.jagged_scaled_dot_product_attention = attention
    try:
        yield
    finally:
        module.jagged_scaled_dot_product_attention = original
