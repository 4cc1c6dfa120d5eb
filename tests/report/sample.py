"""Small traces written by hand, whose every number is a product in this file."""

from __future__ import annotations

from modelstat.cost.record import FREE, Cost
from modelstat.records import TRACE_SCHEMA, Input, Module, Op, Parameter, TensorSpec, Trace, Value


def spec(*shape: int, value: int, dtype: str = "float32") -> TensorSpec:
    """A contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return TensorSpec(shape, dtype, tuple(reversed(strides)), value)


def trace(modules: tuple[Module, ...], ops: tuple[Op, ...], parameters: tuple[Parameter, ...] = (), **changes: object) -> Trace:
    """A trace around modules and ops."""
    fields: dict[str, object] = {
        "schema": TRACE_SCHEMA,
        "model": "net",
        "inputs": (Input("x", (1, 3, 32, 128), "float32"),),
        "outputs": ((1, 8, 32, 128),),
        "batch": 1,
        "precision": "fp32",
        "run": "fake",
        "training": False,
        "modules": modules,
        "parameters": parameters,
        "values": tuple(Value(0, "activation", 0, 0) for _ in range(32)),
        "ops": ops,
        "versions": {"torch": "2.14.1"},
    }
    return Trace(**{**fields, **changes})  # type: ignore[arg-type]


PIXELS = 32 * 128
CONV = Cost(
    macs=3 * 3 * 3 * 8 * PIXELS,
    flops=2 * 3 * 3 * 3 * 8 * PIXELS + 8 * PIXELS,
    madd=2 * 3 * 3 * 3 * 8 * PIXELS - 8 * PIXELS + 8 * PIXELS,
    activations=8 * PIXELS,
    read=4 * (3 * PIXELS + 8 * 3 * 3 * 3 + 8),
    write=4 * 8 * PIXELS,
    unit="matmul",
    family="convolution",
)
CONV_ATTRIBUTES = {"in_channels": 3, "out_channels": 8, "kernel_size": [3, 3], "groups": 1, "bias": True}


def conv_op(module: int) -> Op:
    """Conv2d(3, 8, 3, padding=1) on 1x3x32x128."""
    inputs = (spec(1, 3, 32, 128, value=0), spec(8, 3, 3, 3, value=1), spec(8, value=2))
    return Op("aten::convolution", "default", inputs, ("input", "weight", "bias"), (spec(1, 8, 32, 128, value=3),), module=module)


def conv_parameters(module: int, prefix: str = "") -> tuple[Parameter, ...]:
    """Its weight and bias."""
    weight = Parameter(f"{prefix}weight", module, (8, 3, 3, 3), "float32", bytes=4 * 216)
    return weight, Parameter(f"{prefix}bias", module, (8,), "float32", bytes=4 * 8)


def conv_trace() -> tuple[Trace, tuple[Cost, ...]]:
    """The layer alone: the root is the only module."""
    root = Module("", "Conv2d", 0, calls=1, input_shapes=((1, 3, 32, 128),), output_shapes=((1, 8, 32, 128),), attributes=CONV_ATTRIBUTES)
    return trace((root,), (conv_op(0),), conv_parameters(0), model="conv"), (CONV,)


RELU = Cost(flops=8 * PIXELS, madd=8 * PIXELS, read=4 * 8 * PIXELS, write=4 * 8 * PIXELS, family="activation")
ODD = Cost(read=4 * 8 * PIXELS, write=4 * 8, family="unknown", known="unknown", unit="none")


def net_trace(names: tuple[str, str, str] = ("conv", "act", "spare"), **changes: object) -> tuple[Trace, tuple[Cost, ...]]:
    """A block of a convolution and a ReLU; the root then flattens (a view) and runs an op without a formula; ``spare`` is idle.

    ::

        "" Net                 flatten, odd_sum
        ├── block Block
        │   ├── conv Conv2d    convolution
        │   └── act ReLU       relu
        └── spare Linear       never called, 4 x 2 weights that do not train
    """
    conv, act, spare = names
    image = ((1, 8, 32, 128),)
    modules = (
        Module("", "Net", 0, leaf=False, calls=1, input_shapes=((1, 3, 32, 128),), output_shapes=((8,),)),
        Module("block", "Block", 1, parent=0, leaf=False, instance=1, calls=1, input_shapes=((1, 3, 32, 128),), output_shapes=image),
        Module(
            f"block.{conv}", "Conv2d", 2, parent=1, instance=2, calls=1,
            input_shapes=((1, 3, 32, 128),), output_shapes=image, attributes=CONV_ATTRIBUTES,
        ),
        Module(
            f"block.{act}", "ReLU", 2, parent=1, instance=3, calls=1,
            input_shapes=image, output_shapes=image, attributes={"inplace": False},
        ),
        Module(spare, "Linear", 1, parent=0, instance=4, attributes={"in_features": 4, "out_features": 2, "bias": False}),
    )  # fmt: skip
    ops = (
        conv_op(2),
        Op("aten::relu", "default", (spec(1, 8, 32, 128, value=3),), ("self",), (spec(1, 8, 32, 128, value=4),), module=3),
        Op("aten::view", "default", (spec(1, 8, 32, 128, value=4),), ("self",), (spec(8, PIXELS, value=4),), module=0, view=True),
        Op("odd::sum", "default", (spec(8, PIXELS, value=4),), ("self",), (spec(8, value=5),), module=0),
    )
    idle = Parameter(f"{spare}.weight", 4, (2, 4), "float32", trainable=False, bytes=4 * 8)
    running = Parameter("mean", 0, (5,), "float32", kind="buffer", bytes=4 * 5)
    parameters = (*conv_parameters(2, f"block.{conv}."), idle, running)
    return trace(modules, ops, parameters, **changes), (CONV, RELU, FREE, ODD)
