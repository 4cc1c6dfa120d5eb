"""FLOPs, bytes and cache of a decoder with gated feed-forward layers and grouped queries, written down from its published numbers.

Per token and layer, in elements of width ``h``, queries ``a = heads x d``, keys ``b = key heads x d`` and inner width ``f``, at 2 bytes
each (4 inside a norm), with every tensor read once and written once by each op:

==================  =============================================================================  ================
op                  what it moves                                                                   bytes
==================  =============================================================================  ================
two RMSNorms        cast to fp32 6, square 8, mean 4, scale 8, cast back 6, weight 4                2 x 36 h
rotary q and k      times cos 4, minus half 2, halves swapped 4, times sin 4, sum 6; cos and sin    20 (a + b) + 8 d
into the cache      k and v read and written                                                        8 b
attention           q and the result (keys and values: see below)                                   4 a
two residuals       two read, one written                                                           2 x 6 h
SiLU, product       4 and 6                                                                         10 f
seven products      inputs h h h a h h f, outputs a b b h f f h                                     14 h + 4 a + 4 b + 6 f
==================  =============================================================================  ================

So 98 h + 28 a + 32 b + 16 f + 8 d. Softmax and scale are 6 FLOPs a score. All else of the FLOPs outside of products is below 0.06 %.
"""

from __future__ import annotations

from typing import NamedTuple


class Decoder(NamedTuple):
    """Published numbers. ``window``: how many positions attention sees; ``bias``: of queries, keys and values."""

    layers: int
    width: int
    heads: int
    key_heads: int
    channels: int
    inner: int
    vocabulary: int
    window: int | None = None
    bias: bool = False

    @property
    def queries(self) -> int:
        return self.heads * self.channels

    @property
    def keys(self) -> int:
        return self.key_heads * self.channels

    @property
    def layer_matrices(self) -> int:
        """Elements of the seven matrices of a layer."""
        return self.width * (2 * self.queries + 2 * self.keys) + 3 * self.width * self.inner

    def seen(self, past: int) -> int:
        """Keys that one more token sees, itself included."""
        return past + 1 if self.window is None else min(past + 1, self.window)

    def kv_bytes(self, positions: int) -> int:
        """Keys and values in every layer, 2 bytes an element."""
        return 2 * 2 * self.layers * self.keys * (positions if self.window is None else min(positions, self.window))

    def prefill_flops(self, prompt: int) -> int:
        """All pairs of positions, as causal attention is counted; logits of the last position."""
        products = 2 * prompt * self.layers * self.layer_matrices + 2 * self.vocabulary * self.width
        return products + self.layers * self.heads * prompt**2 * (2 * 2 * self.channels + 6)

    def decode_flops(self, past: int) -> int:
        products = 2 * (self.layers * self.layer_matrices + self.vocabulary * self.width)
        return products + self.layers * self.heads * self.seen(past) * (2 * 2 * self.channels + 6)

    def weights_read(self) -> int:
        """Every matrix once; of the embedding only rows are read."""
        bias = self.layers * (self.queries + 2 * self.keys) if self.bias else 0
        return 2 * (self.layers * self.layer_matrices + self.vocabulary * self.width + bias)

    def activation_bytes(self) -> int:
        """Of one token: the table above, in and out of the embedding, the last norm."""
        layer = 98 * self.width + 28 * self.queries + 32 * self.keys + 16 * self.inner + 8 * self.channels
        return self.layers * layer + 4 * self.width + 36 * self.width

    def prefill_bytes(self, prompt: int) -> int:
        """Keys and values are read once by attention, as they were just made."""
        logits = 2 * (self.width + self.vocabulary)
        return self.weights_read() + prompt * (self.activation_bytes() + self.layers * 2 * 2 * self.keys) + logits

    def decode_bytes(self, past: int) -> int:
        logits = 2 * (self.width + self.vocabulary)
        return self.weights_read() + self.activation_bytes() + self.kv_bytes(self.seen(past)) + logits


MODELS = {
    "llama2_7b": Decoder(32, 4096, 32, 32, 128, 11008, 32000),
    "llama3.1_8b": Decoder(32, 4096, 32, 8, 128, 14336, 128256),
    "mistral_7b": Decoder(32, 4096, 32, 8, 128, 14336, 32000, window=4096),
    "qwen2.5_72b": Decoder(80, 8192, 64, 8, 128, 29568, 152064, bias=True),
    "llama3.1_405b": Decoder(126, 16384, 128, 8, 128, 53248, 128256),
}

PROMPT = 2048
CONTEXT = {"llama2_7b": 2048, "llama3.1_8b": 8192, "mistral_7b": 8192, "qwen2.5_72b": 8192, "llama3.1_405b": 8192}
