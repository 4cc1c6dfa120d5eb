"""Everything that a first walk loads, loaded once: a process that is forked afterwards walks its model at full speed."""

from __future__ import annotations

import torch
from torch import nn

from modelstat.trace.capture import capture


def warm_up() -> None:
    """Walk a tiny model plainly and under autocast, which imports about 900 modules (1.5 s). No thread is left behind."""
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 4), nn.LayerNorm(4)).eval()
    for precision in ("fp32", "amp-fp16"):
        capture(model, (torch.empty(1, 3, 4, 4, device="meta"),), precision_name=precision)
