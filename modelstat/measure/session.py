"""A model made ready to run on a device at a precision, and everything as it was afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from modelstat.errors import InputError, TraceError, UsageError
from modelstat.trace.copies import own_copy
from modelstat.trace.fakes import laid_out, materialize
from modelstat.trace.modules import unwrapped
from modelstat.trace.nested import map_tensors
from modelstat.trace.precision import precision as precision_of
from modelstat.trace.state import preserved

DEVICES = ("cpu", "cuda", "mps")


def check_device(device: str) -> None:
    """Raises UsageError for a device that is not one, or is not there."""
    if device not in DEVICES:
        raise UsageError(f"--device {device!r}: choose from {', '.join(DEVICES)}")
    if device == "cuda" and not torch.cuda.is_available():
        built = "finds no GPU" if torch.backends.cuda.is_built() else "was built without CUDA"
        raise UsageError(f"--device cuda: this torch ({torch.__version__}) {built}; measure on --device cpu, or where a GPU is")
    if device == "mps" and not torch.backends.mps.is_available():
        raise UsageError("--device mps: this machine has no Metal device; measure on --device cpu")


@contextmanager
def running(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], device: str, *, precision: str | None, channels_last: bool = False
) -> Iterator[Callable[[], Any]]:
    """Gives a call that runs a copy of the model once, without gradients.

    The model, the random state, threads and torch's switches are as before when the block is left, also when it raises. ``precision`` None
    keeps the model's own. Raises InputError for a model without weights; the call raises TraceError if the forward does.
    """
    model = unwrapped(model)
    if any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
        raise InputError(f"{type(model).__name__}: a timed run needs weights, and this model is on the meta device")
    chosen = precision_of(precision) if precision else None
    tf32 = torch.backends.cudnn.allow_tf32
    if device == "cuda":
        torch.cuda.init()  # so that its random state is there to be put back
    with preserved(model), torch.no_grad():
        try:
            torch.backends.cudnn.allow_tf32 = precision == "tf32"
            torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
            torch.default_generator.manual_seed(0)
            dtype = chosen.dtype if chosen else None

            def ready(tensor: Tensor) -> Tensor:
                made = materialize(tensor, dtype).to(device)
                return laid_out(made) if channels_last else made

            given, named = map_tensors((tuple(args), dict(kwargs)), ready)
            copied = own_copy(model).to(device)
            if dtype is not None:
                copied = copied.to(dtype)
            if channels_last:
                copied = copied.to(memory_format=torch.channels_last)
            autocast = torch.autocast(device, dtype=chosen.autocast) if chosen and chosen.autocast else nullcontext()

            def call() -> Any:
                try:
                    with autocast:
                        return copied(*given, **named)
                except Exception as error:
                    text = " ".join(str(error).split())
                    raise TraceError(f"{type(model).__name__} raised in the timed run: {type(error).__name__}: {text}") from error

            yield call
        finally:
            torch.backends.cudnn.allow_tf32 = tf32
