"""Ops that only look at a tensor in another way, or only ask about it: known, and free.

A view whose outputs are windows on its input never gets here (:attr:`Op.view`). This table is for the rest: views that a schema
does not announce, metadata, and bookkeeping.
"""

from __future__ import annotations

from modelstat.cost.registry import Work, register
from modelstat.records import Op

VIEWS = (
    "_autocast_to_full_precision", "_autocast_to_reduced_precision", "_conj", "_fw_primal", "_indices", "_make_dual", "_mkldnn_reshape",
    "_mkldnn_transpose", "_neg_view", "_nested_get_values", "_nested_view_from_buffer", "_nested_view_from_jagged", "_reshape_alias",
    "_reshape_from_tensor", "_sparse_broadcast_to", "_test_autograd_multiple_dispatch_view", "_unpack_dual", "_unsafe_view", "_values",
    "adjoint", "alias", "as_strided", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "broadcast_to", "ccol_indices",
    "chunk", "col_indices", "conj", "crow_indices", "data", "detach", "diagonal", "dsplit", "expand", "expand_as", "hsplit", "imag",
    "indices", "lift", "lift_fresh", "linalg_diagonal", "mH", "mT", "matrix_H", "moveaxis", "movedim", "narrow", "numpy_T", "permute",
    "positive", "real", "row_indices", "select", "set", "slice", "slice_inverse", "split", "split_with_sizes", "squeeze", "swapaxes",
    "swapdims", "t", "tensor_split", "transpose", "unbind", "unflatten", "unfold", "unsafe_chunk", "unsafe_split",
    "unsafe_split_with_sizes", "unsqueeze", "values", "view", "view_as", "view_as_complex", "view_as_real", "vsplit",
)  # fmt: skip

METADATA = (
    "_add_batch_dim", "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_coalesced", "_debug_has_internal_overlap", "_dimI",
    "_dimV", "_functional_assert_async", "_functional_assert_scalar", "_functional_sym_constrain_range",
    "_functional_sym_constrain_range_for_size", "_fused_sdp_choice", "_has_compatible_shallow_copy_type", "_has_same_storage_numel",
    "_is_zerotensor", "_make_dep_token", "_nested_get_jagged_dummy", "_nested_get_lengths", "_nested_get_max_seqlen",
    "_nested_get_min_seqlen", "_nested_get_offsets", "_nested_get_ragged_idx", "_nested_tensor_size", "_nested_tensor_storage_offsets",
    "_nested_tensor_strides", "_nnpack_available", "_nnz", "_print", "_remove_batch_dim", "_resize_output", "_shape_as_tensor",
    "_use_cudnn_ctc_loss", "_use_cudnn_rnn_flatten_weight", "_use_miopen_ctc_loss", "_validate_compressed_sparse_indices",
    "_validate_sparse_bsc_tensor_args", "_validate_sparse_bsr_tensor_args", "_validate_sparse_compressed_tensor_args",
    "_validate_sparse_coo_tensor_args", "_validate_sparse_csc_tensor_args", "_validate_sparse_csr_tensor_args", "_version", "can_cast",
    "cudnn_is_acceptable", "dense_dim", "dim", "get_device", "is_coalesced", "is_complex", "is_conj", "is_contiguous", "is_distributed",
    "is_floating_point", "is_inference", "is_leaf", "is_neg", "is_pinned", "is_same_size", "is_set_to", "is_signed", "is_vulkan_available",
    "numel", "output_nr", "promote_types", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "q_scale",
    "q_zero_point", "qscheme", "record_stream", "requires_grad_", "resize", "resize_as", "result_type", "retain_grad", "retains_grad",
    "set_data", "size", "sparse_dim", "sparse_resize", "sparse_resize_and_clear", "storage_offset", "stride", "sym_constrain_range",
    "sym_constrain_range_for_size", "sym_is_contiguous", "sym_numel", "sym_size", "sym_storage_offset", "sym_stride",
)  # fmt: skip

BOOKKEEPING = (
    "profiler::_record_function_enter", "profiler::_record_function_enter_new", "profiler::_record_function_exit",
    "prims::device_put_view", "prims::view_of", "prims::alias",
)  # fmt: skip


@register("view", *(f"aten::{name}" for name in VIEWS + METADATA), *BOOKKEEPING)
def free(op: Op) -> Work | None:
    """Nothing is computed and nothing moves."""
    return None


@register("view", "aten::_local_scalar_dense", "aten::item", "aten::is_nonzero")
def read_scalar(op: Op) -> Work | None:
    """One element goes to the host: its bytes, no arithmetic."""
    return Work()
