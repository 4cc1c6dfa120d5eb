"""Ops that move, fill or rearrange and calculate nothing: bytes only."""

from __future__ import annotations

from modelstat.cost.operands import operand, total_bytes
from modelstat.cost.registry import Work, bytes_read, register
from modelstat.records import Op

MOVES = (
    "_cast_Byte", "_cast_Char", "_cast_Double", "_cast_Float", "_cast_Half", "_cast_Int", "_cast_Long", "_cast_Short", "_chunk_cat",
    "_conj_copy", "_copy_from", "_fw_primal_copy", "_indices_copy", "_jagged_to_padded_dense_forward", "_lazy_clone", "_make_dual_copy",
    "_neg_view_copy", "_nested_from_padded", "_nested_from_padded_tensor", "_nested_get_values_copy", "_nested_tensor_from_mask",
    "_nested_tensor_from_tensor_list", "_nested_view_from_buffer_copy", "_nested_view_from_jagged_copy", "_pack_padded_sequence",
    "_pad_circular", "_pad_enum", "_pad_packed_sequence", "_padded_dense_to_jagged_forward", "_pin_memory", "_reshape_alias_copy",
    "_reshape_copy", "_saturate_weight_to_fp16", "_sparse_broadcast_to_copy", "_stack", "_to_copy", "_to_cpu", "_values_copy",
    "alias_copy", "as_strided_copy", "block_diag", "cartesian_prod", "cat", "ccol_indices_copy", "chalf", "channel_shuffle", "clone",
    "col_indices_copy", "column_stack", "combinations", "concat", "concatenate", "constant_pad_nd", "contiguous", "crow_indices_copy",
    "detach_copy", "diag", "diag_embed", "diagflat", "diagonal_copy", "dstack", "expand_copy", "flatten", "flip", "fliplr", "flipud",
    "hstack", "im2col", "indices_copy", "int_repr", "lift_fresh_copy", "meshgrid", "mkldnn_reorder_conv2d_weight",
    "mkldnn_reorder_conv3d_weight", "narrow_copy", "native_channel_shuffle", "nested_to_padded_tensor", "pad", "pad_sequence",
    "permute_copy", "pin_memory", "pixel_shuffle", "pixel_unshuffle", "ravel", "reflection_pad1d", "reflection_pad2d",
    "reflection_pad3d", "repeat", "replication_pad1d", "replication_pad2d", "replication_pad3d", "reshape", "reshape_as",
    "resolve_conj", "resolve_neg", "roll", "rot90", "row_indices_copy", "row_stack", "select_copy", "slice_copy", "split_copy",
    "split_with_sizes_copy", "squeeze_copy", "stack", "t_copy", "tile", "to", "to_mkldnn", "to_padded_tensor", "transpose_copy", "tril",
    "triu", "type_as", "unbind_copy", "unfold_copy", "unsqueeze_copy", "values_copy", "view_as_complex_copy", "view_as_real_copy",
    "view_copy", "vstack",
)  # fmt: skip
"""Every input is read once and every output written once: a concatenation, a padding, a change of dtype or layout."""

FILLS = (
    "_dim_arange", "arange", "bartlett_window", "blackman_window", "eye", "full", "full_like", "hamming_window", "hann_window",
    "kaiser_window", "linspace", "logspace", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "range", "scalar_tensor",
    "tril_indices", "triu_indices", "zeros", "zeros_like", "zero", "_efficientzerotensor", "_new_zeros_with_same_feature_meta", "vander",
    "fft_fftfreq", "fft_rfftfreq",
)  # fmt: skip
"""Only written. A tensor argument lends its shape and dtype."""

ALLOCATIONS = (
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "empty_quantized",
    "_empty_affine_quantized", "_empty_per_channel_affine_quantized",
)  # fmt: skip
"""Neither read nor written: whoever fills them counts."""


@register("copy", *(f"aten::{name}" for name in MOVES), "aten::_foreach_clone")
def move(op: Op) -> Work:
    """Reads its inputs, writes its outputs."""
    return Work()


@register("copy", *(f"aten::{name}" for name in FILLS))
def fill_new(op: Op) -> Work:
    """Writes its outputs."""
    return Work(read=0)


@register("copy", *(f"aten::{name}" for name in ALLOCATIONS))
def allocate(op: Op) -> Work:
    """Moves nothing."""
    return Work(read=0, write=0)


@register("copy", "aten::copy_", "aten::copy", "aten::_foreach_copy", "aten::_copy_from_and_resize")
def copy_into(op: Op) -> Work:
    """self.copy_(src): the destination is written, not read."""
    destination = op.tensors("self")
    return Work(read=total_bytes(op.tensors("src")), write=total_bytes(op.outputs or destination))


@register("copy", "aten::fill", "aten::fill_diagonal", "aten::_foreach_zero")
def fill(op: Op) -> Work:
    """self.fill_(value): the destination is written, not read; the value may be a tensor."""
    value = op.tensor("value")
    written = op.outputs or op.tensors("self")
    if op.name.startswith("aten::fill_diagonal"):
        matrix = operand(op, "self")
        return Work(read=0, write=round(min(matrix.shape) * matrix.item_bytes))
    return Work(read=value.bytes if value is not None else 0, write=total_bytes(written))


@register("copy", "aten::col2im")
def fold(op: Op) -> Work:
    """Sums overlapping patches: 1 per input element."""
    return Work(flops=op.inputs[0].elements, read=bytes_read(op))


@register("copy", "aten::repeat_interleave")
def repeat_interleave(op: Op) -> Work:
    """Reads the input and the repeats once, writes the repeated elements."""
    return Work()
