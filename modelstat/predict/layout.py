"""The same trace on images whose channels are innermost."""

from __future__ import annotations

import msgspec

from modelstat.records import Op, TensorSpec, Trace, natural_strides

KEEPS = frozenset(("elementwise", "activation", "norm", "pooling", "copy", "resample", "random"))
"""Op families whose result has the layout of what they read."""


def channels_last(trace: Trace, families: tuple[str, ...]) -> Trace:
    """The trace as it runs after ``model.to(memory_format=torch.channels_last)`` on channels-last images.

    ``families`` are the ops' families. Images (N, C, H, W) come in with their channels innermost, a convolution gives such an image, and
    point-wise ops, norms, pooling and copies pass the layout on. What a matrix product, a reshape or attention made keeps its own.
    """
    last = {spec.value for op in trace.ops for spec in op.inputs if len(spec.shape) in (4, 5) and trace.values[spec.value].kind == "input"}
    ops: list[Op] = []
    for op, family in zip(trace.ops, families, strict=True):
        images = [spec for spec in op.inputs if len(spec.shape) in (4, 5)]
        main = max(images, key=lambda spec: spec.bytes, default=None)
        passes = family in KEEPS and main is not None and main.value in last
        convolution = family == "convolution"
        if convolution or passes:
            last.update(spec.value for spec in op.outputs if len(spec.shape) in (4, 5))
        if not op.view and (convolution or any(spec.value in last for spec in (*op.inputs, *op.outputs))):
            # A convolution's weight and data are laid out like the images: what made them is taken to have written them so.
            inputs = tuple(_last(spec, convolution) if spec.value in last or convolution else spec for spec in op.inputs)
            outputs = tuple(_last(spec) if spec.value in last else spec for spec in op.outputs)
            op = msgspec.structs.replace(op, inputs=inputs, outputs=outputs)
        ops.append(op)
    return msgspec.structs.replace(trace, ops=tuple(ops))


def _last(spec: TensorSpec, whatever: bool = False) -> TensorSpec:
    """A dense image in its natural order, or ``whatever`` order it has, gets the strides of channels-last; all else stays."""
    if len(spec.shape) not in (4, 5) or 0 in spec.shape:
        return spec
    natural = natural_strides(spec.shape)
    if spec.strides != natural and not whatever:
        return spec
    channels, pixels = spec.shape[1], natural[1]
    inner = tuple(stride * channels for stride in natural[2:])
    return TensorSpec(spec.shape, spec.dtype, (channels * pixels, 1, *inner), spec.value, spec.offset)
