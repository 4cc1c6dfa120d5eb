"""The same op on images whose channels are innermost."""

from __future__ import annotations

import msgspec

from modelstat.records import Op, TensorSpec


def channels_last(op: Op) -> Op:
    """The op as it runs after ``model.to(memory_format=torch.channels_last)``: its image tensors (N, C, H, W) hold channels together."""
    inputs, outputs = tuple(map(_last, op.inputs)), tuple(map(_last, op.outputs))
    if inputs == op.inputs and outputs == op.outputs:
        return op
    return msgspec.structs.replace(op, inputs=inputs, outputs=outputs)


def _last(spec: TensorSpec) -> TensorSpec:
    """A dense image in its natural order gets the strides of channels-last; all else stays."""
    if len(spec.shape) not in (4, 5) or 0 in spec.shape:
        return spec
    natural: list[int] = []
    step = 1
    for size in reversed(spec.shape):
        natural.insert(0, step)
        step *= size
    if spec.strides != tuple(natural):
        return spec
    channels, pixels = spec.shape[1], step // (spec.shape[0] * spec.shape[1])
    inner = tuple(stride * channels for stride in natural[2:])
    return TensorSpec(spec.shape, spec.dtype, (channels * pixels, 1, *inner), spec.value, spec.offset)
