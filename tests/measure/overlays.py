"""Sample profiles laid over the model that they are of, on an A100."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch

from modelstat.analysis import Analysis
from modelstat.hardware.database import find
from modelstat.measure.imports.read import read_profile
from modelstat.measure.imports.record import Profile
from modelstat.measure.overlay import Overlay, overlay
from modelstat.trace.capture import capture
from tests.measure.models import small

DATA = Path(__file__).parent / "data"

OUTPUTS = 2 * 8 * 32 * 32
"""Elements that the model's convolution and its ReLU write."""
CONV_FLOPS, CONV_BYTES = OUTPUTS * (2 * 27 + 1), 4 * (2 * 3 * 32 * 32 + 8 * 27 + 8 + OUTPUTS)
RELU_FLOPS, RELU_BYTES = OUTPUTS, 2 * 4 * OUTPUTS


@cache
def analysis() -> Analysis:
    """The model of the sample traces, on an A100: 19.5 TFLOP/s in fp32, 1555 GB/s."""
    return Analysis(capture(small(), (torch.empty((2, 3, 32, 32), device="meta"),), {}), [find("a100")])


@cache
def laid(name: str) -> Overlay:
    """One of the sample files over it."""
    return laid_over(read_profile(DATA / name))


def laid_over(profile: Profile) -> Overlay:
    """A profile over it."""
    whole = analysis()
    return overlay(whole.trace, whole.costs, whole.rooflines[0], whole.predictions[0], profile)
