"""Peak memory of a fake trace is that of a real run on the CPU, to the byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from modelstat.memory.peak import peak_memory, timeline
from modelstat.trace.capture import capture
from tests.memory.nets import TextReader, UNet, encoder
from tests.memory.observer import observed

models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "resnet18": (lambda: models.resnet18(), (1, 3, 64, 64)),
    "mobilenet_v3": (lambda: models.mobilenet_v3_small(), (2, 3, 64, 64)),
    "squeezenet": (lambda: models.squeezenet1_1(), (1, 3, 64, 64)),
    "densenet121": (lambda: models.densenet121(), (1, 3, 64, 64)),
    "unet": (UNet, (2, 3, 32, 32)),
    "text reader": (TextReader, (1, 3, 32, 128)),
    "shufflenet": (lambda: models.shufflenet_v2_x0_5(), (2, 3, 64, 64)),
    "convnext": (lambda: models.convnext.ConvNeXt([models.convnext.CNBlockConfig(16, 32, 2)]), (1, 3, 64, 64)),
    "swin": (lambda: models.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4]), (1, 3, 64, 64)),
}
FUSED: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], tuple[str, ...]]] = {
    "vit_b_16": (lambda: models.vit_b_16(image_size=64), (1, 3, 64, 64), ()),
    "transformer encoder": (encoder, (2, 10, 32), ()),
    "lstm": (lambda: nn.LSTM(16, 32, batch_first=True), (4, 10, 16), ("lstm.input",)),
}
"""Attention and RNNs, which the trace keeps whole: a real run has other ops there, and the RNN is watched from outside."""


@pytest.fixture(autouse=True)
def _no_fast_path() -> Iterator[None]:
    """The trace walks a transformer's own code, not the fused path that an encoder takes on the CPU."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(before)


@pytest.mark.parametrize("name", MODELS)
def test_live_bytes_are_those_of_a_real_run_after_every_op(name: str) -> None:
    build, shape = MODELS[name]
    model, x = build().eval(), torch.randn(shape)
    trace, real = capture(model, (x,)), observed(model, x)
    ours = [(op.name, size) for op, (_, size) in zip(trace.ops, timeline(trace), strict=True)]
    assert ours == [(op.partition(".")[0], size) for op, size in real.timeline]
    assert peak_memory(trace).peak_bytes == real.peak


@pytest.mark.parametrize("name", FUSED)
def test_the_peak_is_that_of_a_real_run(name: str) -> None:
    build, shape, opaque = FUSED[name]
    model, x = build().eval(), torch.randn(shape)
    assert peak_memory(capture(model, (x,))).peak_bytes == observed(model, x, opaque=opaque).peak
