"""Which op of a trace a profiler's op is: the dispatcher calls the same work by several names on its way down."""

from __future__ import annotations

import re

_CANONICAL = {
    "conv1d": "convolution", "conv2d": "convolution", "conv3d": "convolution", "conv_transpose1d": "convolution",
    "conv_transpose2d": "convolution", "conv_transpose3d": "convolution", "conv_depthwise2d": "convolution",
    "batch_norm_legit_no_training": "batch_norm", "batch_norm_legit": "batch_norm", "batch_norm_with_update": "batch_norm",
    "scaled_dot_product_attention": "attention", "scaled_dot_product_flash_attention": "attention",
    "scaled_dot_product_flash_attention_for_cpu": "attention", "scaled_dot_product_efficient_attention": "attention",
    "scaled_dot_product_cudnn_attention": "attention", "scaled_dot_product_attention_math": "attention",
    "lstm": "rnn", "gru": "rnn", "rnn_tanh": "rnn", "rnn_relu": "rnn", "lstm_layer": "rnn", "gru_layer": "rnn", "rnn_layer": "rnn",
}  # fmt: skip

_PREFIX = re.compile(r"^(?:_|native_|cudnn_|miopen_|mkldnn_|mps_|thnn_)+")


def canonical(name: str) -> str:
    """One name for the ops that do the same work.

    >>> canonical("aten::_convolution"), canonical("aten::cudnn_batch_norm"), canonical("aten::relu_"), canonical("aten::_softmax")
    ('convolution', 'batch_norm', 'relu', 'softmax')
    >>> canonical("modelstat::attention") == canonical("aten::scaled_dot_product_attention")
    True
    """
    plain = _PREFIX.sub("", name.rpartition("::")[2]).rstrip("_").removesuffix("_with_indices")
    return _CANONICAL.get(plain, plain)
