"""What it means that a model raised while it was walked."""

from __future__ import annotations

from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)

from modelstat.trace.modules import ModuleTree

NEEDS_VALUES = (
    DataDependentOutputException, DynamicOutputShapeException, UnsupportedFakeTensorException, UnsupportedOperatorException,
    NotImplementedError,
)  # fmt: skip
HINTS = (
    "fake", "meta", "data pointer", "data_ptr", "numpy", "data-dependent", "data dependent", "storage", "symbolic", "symint", "symbool",
    "unbacked", "cuda", "driver", "scriptobject", "torchbind", "sparse", "quantized", "no shape-only", "not allocated", "shape_env",
    "nested", "torchscript interpreter", "cond must be a bool",
)  # fmt: skip
"""Words in the messages of a run that fails for want of values. (A wrong shape has none of them.)"""


CUDA = ("cuda", "nvidia", "triton", "active drivers")
"""Words in the messages of a forward that asks for a GPU: nothing else speaks of them where everything is on the CPU."""


class CudaAskedError(Exception):
    """A forward makes a tensor on a GPU, in a run where everything is on the CPU."""


def needs_values(error: BaseException) -> bool:
    """Whether a real run may get further than the fake one did."""
    seen: BaseException | None = error
    while seen is not None:
        text = f"{type(seen).__name__} {seen}".lower()
        if isinstance(seen, NEEDS_VALUES) or any(hint in text for hint in HINTS):
            return True
        seen = seen.__cause__
    return False


def described(model: str, error: BaseException, tree: ModuleTree) -> str:
    """One line: which model, in which module, what it raised, and the way out."""
    where = tree.failed_in
    place = f" in {where}" if where else ""
    text = " ".join(str(error).split()) or "no message"
    if len(text) > 300:
        text = text[:297] + "..."
    if any(word in text.lower() for word in CUDA):
        way_out = "make it use the device of its input, without .cuda(), device='cuda' and torch.cuda"
        return f"{model} needs CUDA{place}, and a forward that runs on the CPU is needed: {way_out} ({type(error).__name__}: {text})"
    return f"{model} raised{place}: {type(error).__name__}: {text} (does the input fit the model? give another with --input)"
