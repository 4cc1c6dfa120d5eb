"""A build leaves the process as it found it: random states, global defaults, warning filters, standard output."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SEED = 0
"""Random weights and inputs are drawn from this seed, so that two builds are equal."""


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Seed all random generators, and restore them and torch's global defaults afterwards, also when the build raises.

    What the build prints goes to stderr, since stdout carries the report. GPUs that nothing uses yet stay untouched.
    """
    import torch

    numpy = sys.modules.get("numpy")
    python_state, numpy_state = random.getstate(), numpy.random.get_state() if numpy else None
    dtype, device, grad = torch.get_default_dtype(), _default_device(), torch.is_grad_enabled()
    precision, folder = torch.get_float32_matmul_precision(), os.getcwd()
    gpus = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=gpus), warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        torch.default_generator.manual_seed(SEED)
        random.seed(SEED)
        if numpy:
            numpy.random.seed(SEED)
        try:
            yield
        finally:
            random.setstate(python_state)
            if numpy:
                numpy.random.set_state(numpy_state)
            torch.set_default_dtype(dtype)
            if _default_device() != device:
                torch.set_default_device(None if device.type == "cpu" else device)
            torch.set_grad_enabled(grad)
            if torch.get_float32_matmul_precision() != precision:
                torch.set_float32_matmul_precision(precision)
            os.chdir(folder)


def _default_device() -> torch.device:
    import torch

    try:
        return torch.get_default_device()
    except AttributeError:
        # Up to torch 2.6 it raises once the default was set to None, which means the CPU.
        return torch.device("cpu")
