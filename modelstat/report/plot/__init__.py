"""Figures for papers and slides, drawn with matplotlib."""

from __future__ import annotations

from typing import Literal

Kind = Literal["roofline", "batch", "gpus"]
"""roofline: layers of one model, or whole models. batch: throughput and intensity against the batch. gpus: one model over GPUs."""
