"""The frozen records that travel through the house: a model becomes a :class:`Trace`, and everything after it is arithmetic.

Nothing here knows torch. A trace is written to and read from JSON, so that a model traced once is evaluated on any GPU
without importing torch.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import msgspec

ITEM_BYTES: dict[str, float] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1, "complex128": 16, "complex64": 8, "complex32": 4,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1,
    "qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 0.5, "quint2x4": 0.25, "bits8": 1, "bits16": 2,
    "int4": 0.5, "nf4": 0.5,
}  # fmt: skip
"""Bytes of one element of each torch dtype, by the dtype's name without ``torch.``, and of the 4-bit weights of a precision plan."""


def natural_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides (elements) of a dense tensor whose last axis runs along memory; as in torch, an axis without elements counts as one.

    >>> natural_strides((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(prod(max(size, 1) for size in shape[axis + 1 :]) for axis in range(len(shape)))


class TensorSpec(msgspec.Struct, frozen=True, array_like=True):
    """How one op sees one tensor: a window on a value.

    ``value`` is the id of the storage behind the tensor (an index into :attr:`Trace.values`), so a view and its base
    share it. ``strides`` are in elements; a stride of 0 marks an expanded axis, whose bytes are not there.
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    value: int
    offset: int = 0

    @property
    def elements(self) -> int:
        """Number of elements, expanded axes included.

        >>> TensorSpec((2, 3), "float32", (3, 1), 0).elements
        6
        """
        return prod(self.shape)

    @property
    def item_bytes(self) -> float:
        """Bytes of one element. Raises KeyError for a dtype that has no entry in ITEM_BYTES."""
        return ITEM_BYTES[self.dtype]

    @property
    def bytes(self) -> int:
        """Bytes that an op must move for this tensor: item size x product of the sizes whose stride is not 0.

        >>> TensorSpec((2, 3), "float32", (0, 1), 0).bytes
        12
        """
        elements = 1
        for size, stride in zip(self.shape, self.strides, strict=False):
            if not size:
                return 0
            if stride:
                elements *= size
        return round(elements * ITEM_BYTES[self.dtype])

    @property
    def channels_last(self) -> bool:
        """Channels, the second of three axes or more, run along memory.

        >>> TensorSpec((2, 8, 5, 5), "float32", (200, 1, 40, 8), 0).channels_last
        True
        """
        return len(self.shape) > 2 and self.strides[1] == 1 and self.shape[1] > 1

    @property
    def is_floating(self) -> bool:
        """True for floating-point and complex dtypes: the ones whose arithmetic counts as FLOPs."""
        return self.dtype.startswith(("float", "bfloat", "complex"))

    @property
    def is_complex(self) -> bool:
        """True for complex dtypes, where one MAC is four real MACs."""
        return self.dtype.startswith("complex")


class Op(msgspec.Struct, frozen=True, omit_defaults=True):
    """One recorded operator call.

    ``name`` is the op without its overload (``aten::add``, or ``modelstat::attention`` for an op kept whole);
    ``inputs`` are the tensors read, flattened in the order of the schema, and ``names`` says which argument each belongs
    to (a list argument repeats its name). ``arguments`` holds the non-tensor arguments that were given, by name; one
    that equals its default may be missing. ``module`` and ``call`` say in which module's which call it ran.
    """

    name: str
    overload: str
    inputs: tuple[TensorSpec, ...]
    names: tuple[str, ...]
    outputs: tuple[TensorSpec, ...]
    arguments: dict[str, Any] = {}
    module: int = 0
    call: int = 0
    view: bool = False
    """The outputs are windows on an input: nothing is computed and nothing moves."""
    mutates: tuple[str, ...] = ()
    """Names of the arguments that are written in place (``out=`` and buffers included)."""
    unused_outputs: tuple[int, ...] = ()
    """Indices of outputs that nothing ever reads and the model does not return (max-pool indices, saved statistics)."""
    cost: dict[str, int] | None = None
    """A user's formula, evaluated while tracing: the fields of a Cost. None: the registry decides."""

    def tensor(self, argument: str) -> TensorSpec | None:
        """The tensor given as ``argument``, the first one if it was a list, or None."""
        for name, spec in zip(self.names, self.inputs, strict=True):
            if name == argument:
                return spec
        return None

    def tensors(self, argument: str) -> tuple[TensorSpec, ...]:
        """All tensors given as ``argument`` (a list argument has several)."""
        return tuple(spec for name, spec in zip(self.names, self.inputs, strict=True) if name == argument)

    def argument(self, name: str, default: Any = None) -> Any:
        """A non-tensor argument, or ``default`` where it was not given."""
        return self.arguments.get(name, default)


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """One storage: what views share and what memory holds.

    It is alive from op ``birth`` to op ``death``, both included; -1 is before the first op, and a death of
    ``len(trace.ops)`` is after the last one (the model returns it, or it was there from outside).
    """

    bytes: int
    kind: Literal["input", "parameter", "buffer", "constant", "activation"]
    birth: int
    death: int
    output: bool = False
    """The model returns it."""


class Parameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """One unique parameter, buffer or packed weight, at the module that registered it first."""

    name: str
    module: int
    shape: tuple[int, ...]
    dtype: str
    kind: Literal["parameter", "buffer", "packed"] = "parameter"
    trainable: bool = True
    value: int | None = None
    bytes: int = 0
    """Bytes of its storage at the traced precision (AMP keeps fp32)."""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)


class Module(msgspec.Struct, frozen=True, omit_defaults=True):
    """One module under one parent path; the root has the path ``""``. Modules are listed parents first, in order of registration."""

    path: str
    type: str
    depth: int
    parent: int = -1
    leaf: bool = True
    instance: int = 0
    """The same number for the rows of one shared module."""
    calls: int = 0
    training: bool = False
    input_shapes: tuple[tuple[int, ...], ...] = ()
    output_shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes of the first call under this path."""
    last_input_shapes: tuple[tuple[int, ...], ...] = ()
    last_output_shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes of the last call, empty where there was only one (torchstat shows the last)."""
    attributes: dict[str, Any] = {}
    """Configuration of torch.nn layers that is plain data: kernel_size, stride, groups, ..., and whether there is a bias."""


class Input(msgspec.Struct, frozen=True):
    """One tensor that the model was given. ``name`` is the forward's argument, or a path into a nested one."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Swap(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one rule of :mod:`modelstat.rewrite` did to one layer, or why it left the layer as it was."""

    rule: str
    """The rule with its parameters: ``conv=ghost(kernel=3)``."""
    path: str
    before: str
    """The layer's type."""
    after: str | None = None
    """The type of what stands in its place; None: nothing was swapped, and ``reason`` says why."""
    reason: str | None = None
    absorbed: tuple[str, ...] = ()
    """Paths of the modules that ran right after it and are now inside it."""
    note: str | None = None
    """What could not be absorbed, and how it is treated."""


class Trace(msgspec.Struct, frozen=True):
    """A model walked once: a graph of ops over values, not a list of totals."""

    schema: str
    model: str
    """The spec or the class name that the user knows it by."""
    inputs: tuple[Input, ...]
    outputs: tuple[tuple[int, ...], ...]
    batch: int | None
    """The batch that was prepended to the inputs' shapes; None where the inputs were taken as they are."""
    precision: str
    """fp32, tf32, fp16, bf16, amp-fp16, amp-bf16 or another dtype's short name."""
    run: Literal["fake", "real"]
    """real: control flow needed values, so the model ran with real (random) weights."""
    training: bool
    modules: tuple[Module, ...]
    parameters: tuple[Parameter, ...]
    values: tuple[Value, ...]
    ops: tuple[Op, ...]
    notes: tuple[str, ...] = ()
    """What the user must be told about this trace: a fall-back, a default input, a module never called."""
    versions: dict[str, str] = {}
    swaps: tuple[Swap, ...] = ()
    """What was swapped before the walk, and what was left as it was."""
    layout: Literal["natural", "channels-last"] = "natural"
    """channels-last: images and weights of convolutions had their channels innermost, so that the strides are those of such a run."""


TRACE_SCHEMA = "modelstat-trace/1"


def encode_trace(trace: Trace) -> bytes:
    """The trace as JSON."""
    return msgspec.json.encode(trace)


def decode_trace(data: bytes) -> Trace:
    """The trace from JSON. Raises msgspec.DecodeError (ValidationError for a foreign document)."""
    trace = msgspec.json.decode(data, type=Trace)
    if trace.schema != TRACE_SCHEMA:
        raise msgspec.ValidationError(f"trace schema {trace.schema!r}, expected {TRACE_SCHEMA!r}")
    return trace
