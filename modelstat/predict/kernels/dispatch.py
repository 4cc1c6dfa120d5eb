"""From an op to its kernel's time."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from modelstat.cost.operands import GROUPED
from modelstat.cost.record import Cost
from modelstat.errors import MissingPeakError
from modelstat.hardware.gpu import Gpu
from modelstat.predict.kernels import (
    attention,
    batched_gemm,
    calibrated,
    convolution,
    copy,
    elementwise,
    embedding,
    gather,
    gemm,
    generic,
    norm,
    pooling,
    reduction,
    resample,
    rnn,
    softmax,
)
from modelstat.predict.kernels.constants import constants, table_of
from modelstat.predict.kernels.rates import Rates, rates
from modelstat.predict.kernels.timing import NOTHING, Time
from modelstat.records import Op


class Family(NamedTuple):
    """How one family reads an op and what it makes of it; ``name`` is its file of constants."""

    name: str
    features: Callable[[Op, Cost], Any]
    seconds: Callable[[Any, Rates, Any], Time]


ELEMENTWISE = Family("elementwise", elementwise.features, elementwise.seconds)
GEMM = Family("gemm", gemm.features, gemm.seconds)
BATCHED_GEMM = Family("batched_gemm", batched_gemm.features, batched_gemm.seconds)
GROUPED_GEMM = Family("gemm", batched_gemm.features, batched_gemm.seconds)
"""Products of experts are written like single ones: one pipeline over all groups, and weights from memory meanwhile."""
COPY = Family("copy", copy.features, copy.seconds)
GENERIC = Family("generic", generic.features, generic.seconds)

FAMILIES: dict[str, Family] = {
    "activation": ELEMENTWISE,
    "attention": Family("attention", attention.features, attention.seconds),
    "convolution": Family("convolution", convolution.features, convolution.seconds),
    "copy": COPY,
    "elementwise": ELEMENTWISE,
    "embedding": Family("embedding", embedding.features, embedding.seconds),
    "gather": Family("gather", gather.features, gather.seconds),
    "matmul": GEMM,
    "norm": Family("norm", norm.features, norm.seconds),
    "pooling": Family("pooling", pooling.features, pooling.seconds),
    "random": COPY,
    "reduction": Family("reduction", reduction.features, reduction.seconds),
    "resample": Family("resample", resample.features, resample.seconds),
    "rnn": Family("rnn", rnn.features, rnn.seconds),
    "softmax": Family("softmax", softmax.features, softmax.seconds),
    "unknown": COPY,
    "view": COPY,
}
"""The families of :mod:`modelstat.cost` -> the kernels that they run on; those that are missing here are ``GENERIC``."""

FILES = tuple(sorted({family.name for family in (*FAMILIES.values(), BATCHED_GEMM, GENERIC)} | {"rates"}))
"""Names of the data files that kernels read."""

_BATCHED = frozenset(("aten::bmm", "aten::baddbmm", "aten::matmul", "aten::linalg_matmul"))
_PRODUCTS = frozenset(("aten::mm", "aten::addmm", "aten::linear", "aten::_addmm_activation", "aten::mv", "aten::addmv", "aten::_int_mm",
                       "aten::_scaled_mm", "aten::inner", "aten::mkldnn_linear"))  # fmt: skip
_LAYERS = frozenset(("aten::_native_multi_head_attention", "aten::_triton_multi_head_attention", "aten::_transformer_encoder_layer_fwd",
                     "aten::_transform_bias_rescale_qkv"))  # fmt: skip
"""Attention with its projections in one op: several kernels."""


def family_of(op: Op, cost: Cost) -> Family:
    """The kernel family that an op runs on."""
    if cost.family == "matmul":
        if op.name in GROUPED:
            return GROUPED_GEMM
        if op.name in _BATCHED and op.outputs and len(op.outputs[0].shape) > 2:
            return BATCHED_GEMM
        return GEMM if op.name in _PRODUCTS or op.name in _BATCHED else GENERIC
    if op.name in _LAYERS or (cost.unit == "none" and cost.family not in FAMILIES):
        return GENERIC if cost.unit != "none" else COPY
    return FAMILIES.get(cost.family, GENERIC)


GENERATED_VECTOR = Family("gemm", gemm.features, gemm.generated_seconds)
"""One row times a matrix where a compiler may write it."""


class Call(NamedTuple):
    """One kernel before a GPU is chosen: its family, what the family's formula reads, and the dtype (None: work for the vector lanes)."""

    family: Family
    features: Any
    dtype: str | None


def call(op: Op, cost: Cost, *, tf32: bool = False, compiled: bool = False) -> Call | None:
    """The kernel that an op runs, None for views and whatever moves nothing.

    ``tf32`` runs float32 contractions on tensor cores; ``compiled`` lets a compiler write the product of one row and a matrix itself.
    """
    if cost.known == "free" or (not cost.read and not cost.write and not cost.flops):
        return None
    family = family_of(op, cost)
    dtype = cost.dtype if cost.unit == "matmul" else None
    if compiled and dtype and family is GEMM and op.outputs and op.outputs[0].shape[-1:] == (op.outputs[0].elements,):
        family = GENERATED_VECTOR
    if tf32 and dtype in ("float32", "complex64"):
        dtype = "tf32"
    return Call(family, family.features(op, cost), dtype)


def call_time(given: Call, gpu: Gpu) -> Time:
    """Time of a kernel on a GPU, without the host. Raises MissingPeakError where a contraction has no peak on this GPU."""
    found = _vector_rates(gpu) if given.dtype is None else rates(gpu, given.dtype)
    return _timed(given.family.name, given.family.seconds, given.features, found)


def kernel_time(op: Op, cost: Cost, gpu: Gpu, *, tf32: bool = False, compiled: bool = False) -> Time:
    """Time of an op's kernel on a GPU, see :func:`call` and :func:`call_time`: zero for views and whatever moves nothing.

    On a calibrated machine, what was measured there decides.
    """
    given = call(op, cost, tf32=tf32, compiled=compiled)
    if given is not None and gpu.calibration is not None:
        return calibrated.seconds(op, cost, gpu.calibration)
    return NOTHING if given is None else call_time(given, gpu)


@lru_cache(maxsize=65536)
def _timed(name: str, seconds: Callable[[Any, Rates, Any], Time], features: Any, given: Rates) -> Time:
    """A formula's result, kept: layers repeat."""
    return seconds(features, given, constants(name, table_of(given.tensor)))


@lru_cache(maxsize=512)
def _vector_rates(gpu: Gpu) -> Rates:
    """Rates for work that is no contraction: they differ by no dtype. A GPU without fp32 contractions lends another precision's."""
    for dtype in ("float32", "tf32", "bfloat16", "float16", *gpu.precisions):
        try:
            return rates(gpu, dtype)._replace(tensor=False)
        except MissingPeakError as error:
            missing = error
    raise missing
