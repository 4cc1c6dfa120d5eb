"""Small traces written op by op, with the costs that the registry counts."""

from __future__ import annotations

from modelstat.cost.record import Cost
from modelstat.cost.registry import costs
from modelstat.records import TRACE_SCHEMA, Input, Module, Op, TensorSpec, Trace, Value


class Writer:
    """Collects ops: each method runs one on values by their number, and gives the number of its result."""

    def __init__(self, *shape: int, dtype: str = "float32") -> None:
        self.dtype = dtype
        self.specs: list[TensorSpec] = []
        self.kinds: list[str] = []
        self.ops: list[Op] = []
        self.input = self.value("input", *shape)
        self.batch = shape[0]

    def value(self, kind: str, *shape: int) -> int:
        """A contiguous tensor in a storage of its own."""
        strides, step = [], 1
        for size in reversed(shape):
            strides.append(step)
            step *= size
        self.specs.append(TensorSpec(shape, self.dtype, tuple(reversed(strides)), len(self.specs)))
        self.kinds.append(kind)
        return len(self.specs) - 1

    def op(
        self, name: str, *inputs: int, names: tuple[str, ...] = ("self", "other"), shape: tuple[int, ...] = (), **arguments: object
    ) -> int:
        """An op whose result has the shape of its first input, or ``shape``."""
        made = self.value("activation", *(shape or self.specs[inputs[0]].shape))
        given = tuple(self.specs[index] for index in inputs)
        self.ops.append(Op(f"aten::{name}", "default", given, names[: len(inputs)], (self.specs[made],), dict(arguments)))
        return made

    def view(self, source: int, *shape: int) -> int:
        """A window on the same storage."""
        made = self.value("view", *shape)
        self.specs[made] = TensorSpec(shape, self.dtype, self.specs[made].strides, self.specs[source].value)
        self.ops.append(Op("aten::view", "default", (self.specs[source],), ("self",), (self.specs[made],), view=True))
        return made

    def convolution(self, source: int, channels: int, kernel: int = 3) -> int:
        """A dense convolution with stride 1 that keeps the image's size."""
        batch, inner, height, width = self.specs[source].shape
        weight = self.value("parameter", channels, inner, kernel, kernel)
        return self.op(
            "convolution", source, weight, names=("input", "weight"), shape=(batch, channels, height, width),
            stride=[1, 1], padding=[kernel // 2] * 2, dilation=[1, 1], transposed=False, groups=1,
        )  # fmt: skip

    def batch_norm(self, source: int) -> int:
        """BatchNorm at inference, with its four vectors."""
        vectors = tuple(self.value("parameter", self.specs[source].shape[1]) for _ in range(4))
        names = ("input", "weight", "bias", "running_mean", "running_var")
        return self.op("native_batch_norm", source, *vectors, names=names, training=False)

    def linear(self, source: int, features: int) -> int:
        """A product with a weight, without bias."""
        rows, inner = self.specs[source].shape
        weight = self.value("parameter", inner, features)
        return self.op("mm", source, weight, names=("self", "mat2"), shape=(rows, features))

    def trace(self, *outputs: int, precision: str = "fp32") -> tuple[Trace, tuple[Cost, ...]]:
        """The trace, whose model is one module, and its costs."""
        end = len(self.ops)
        values = tuple(
            Value(spec.bytes, "activation" if kind == "view" else kind, 0, end, output=index in outputs)  # type: ignore[arg-type]
            for index, (spec, kind) in enumerate(zip(self.specs, self.kinds, strict=True))
        )
        first = self.specs[self.input]
        trace = Trace(
            schema=TRACE_SCHEMA, model="hand", inputs=(Input("x", first.shape, self.dtype),), outputs=(), batch=self.batch,
            precision=precision, run="fake", training=False, modules=(Module("", "Net", 0, calls=1),), parameters=(), values=values,
            ops=tuple(self.ops),
        )  # fmt: skip
        return trace, costs(trace)


def block(batch: int = 1, channels: int = 64, side: int = 56, precision: str = "fp32") -> tuple[Trace, tuple[Cost, ...]]:
    """Convolution, BatchNorm, ReLU and the sum with the input."""
    net = Writer(batch, channels, side, side, dtype="float16" if precision == "fp16" else "float32")
    made = net.op("add", net.op("relu", net.batch_norm(net.convolution(net.input, channels))), net.input)
    return net.trace(made, precision=precision)
