"""The text of ``--input``, read once into an immutable plan that makes tensors on the meta device.

::

    inputs  = input *("," input)
    input   = [name "="] ["="] shape [":" dtype]
    shape   = size *("x" size) / "scalar"

A shape is one sample, and the batch is prepended to it. A second ``=`` (the first one, where there is no name) makes it
literal: ``=35x20x512`` and ``x==35x20x512`` are used as they are. ``scalar`` is one number per sample, shape ``(batch,)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modelstat.errors import InputError, UsageError

if TYPE_CHECKING:
    import torch

DTYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "double": "float64", "float": "float32",
    "half": "float16", "long": "int64", "int": "int32", "short": "int16", "i64": "int64", "i32": "int32", "i16": "int16",
    "i8": "int8", "u8": "uint8", "complex": "complex64", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
"""Short words for dtypes, beside torch's own names."""

TORCH_DTYPES = frozenset({
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool", "complex32", "complex64", "complex128",
})  # fmt: skip


@dataclass(frozen=True)
class TensorPlan:
    """One input: its name (None: positional), shape, dtype (None: the model's own), and whether the shape is literal."""

    shape: tuple[int, ...]
    dtype: str | None = None
    name: str | None = None
    literal: bool = False

    def __str__(self) -> str:
        name = f"{self.name}=" if self.name else ""
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"{name}{'=' if self.literal else ''}{shape}{f':{self.dtype}' if self.dtype else ''}"

    def sizes(self, batch: int) -> tuple[int, ...]:
        """The shape with the batch.

        >>> TensorPlan((3, 224, 224)).sizes(8), TensorPlan((35, 20), literal=True).sizes(8)
        ((8, 3, 224, 224), (35, 20))
        """
        return self.shape if self.literal else (batch, *self.shape)


@dataclass(frozen=True)
class InputPlan:
    """All inputs of a call, positional ones first."""

    tensors: tuple[TensorPlan, ...]

    def __str__(self) -> str:
        return ",".join(map(str, self.tensors))

    def check(self, batch: int | None) -> None:
        """Raises UsageError for a batch that has nothing to be prepended to, InputError for one below 1."""
        if batch is not None and all(plan.literal for plan in self.tensors):
            raise UsageError(f"--batch {batch} has no effect on --input {self}: its shapes are literal (`=`), leave one of the two out")
        if batch is not None and batch < 1:
            raise InputError(f"--batch {batch}: a batch is at least 1")

    def build(self, batch: int | None = None, dtype: torch.dtype | None = None) -> tuple[tuple[Any, ...], dict[str, Any], int | None]:
        """Positional and named tensors on the meta device, and the batch that was prepended (default 1, None if all are literal).

        ``dtype`` is for inputs that name none (default float32). Raises UsageError for a batch that has nothing to be
        prepended to, InputError for a batch below 1 or a tensor beyond what a size can count.
        """
        import torch

        self.check(batch)
        used = None if all(plan.literal for plan in self.tensors) else 1 if batch is None else batch
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for plan in self.tensors:
            kind = getattr(torch, plan.dtype) if plan.dtype else dtype or torch.float32
            try:
                tensor = torch.empty(plan.sizes(used or 1), dtype=kind, device="meta")
            except RuntimeError:
                raise InputError(f"--input {self}: {plan} has more bytes than a tensor can") from None
            if plan.name:
                kwargs[plan.name] = tensor
            else:
                args.append(tensor)
        return tuple(args), kwargs, used


def parse_inputs(text: str) -> InputPlan:
    """Read ``--input``. Raises InputError that names the text and the position of the mistake.

    >>> parse_inputs("3x224x224").tensors
    (TensorPlan(shape=(3, 224, 224), dtype=None, name=None, literal=False),)
    >>> str(parse_inputs("ids=128:long, mask=128:bool"))
    'ids=128:int64,mask=128:bool'
    """
    tensors: list[TensorPlan] = []
    position = 1
    for item in text.split(","):
        plan = _parse_tensor(text, item, position)
        if plan.name is None and any(other.name for other in tensors):
            raise _error(text, position, f"{item.strip()!r} has no name, but follows an input that has one")
        if plan.name is not None and any(other.name == plan.name for other in tensors):
            raise _error(text, position, f"{plan.name!r} is given twice")
        tensors.append(plan)
        position += len(item) + 1
    return InputPlan(tuple(tensors))


def _parse_tensor(text: str, item: str, position: int) -> TensorPlan:
    found = re.fullmatch(r"(?P<before>\s*)(?:(?P<name>[^\W\d]\w*)\s*=)?(?P<literal>=?)(?P<shape>[^:=]*)(?::(?P<dtype>[^:=]*))?", item)
    if not found:
        raise _error(text, position, f"{item.strip()!r} is not [name=]SHAPE[:dtype], as in 3x224x224 or ids=128:int64")

    def at(group: str) -> int:
        value = found[group] or ""
        return position + found.start(group) + len(value) - len(value.lstrip())

    shape = found["shape"].strip()
    if not shape:
        raise _error(text, at("shape"), "a shape is missing, as in 3x224x224")
    sizes = [] if shape == "scalar" else re.split("[xX×]", shape)
    for size in sizes:
        if not (size.isascii() and size.isdigit() and 0 < int(size[:20]) < 2**63):
            raise _error(text, at("shape"), f"{size!r} in {shape!r} is not a size of at least 1: shapes are written as in 3x224x224")
    dtype = found["dtype"]
    if dtype is not None:
        word = dtype.strip().removeprefix("torch.")
        dtype = DTYPES.get(word, word)
        if dtype not in TORCH_DTYPES:
            raise _error(text, at("dtype"), f"no dtype is called {word!r}, write fp32, fp16, bf16, int64, bool or another of torch's names")
    return TensorPlan(tuple(map(int, sizes)), dtype, found["name"], bool(found["literal"]))


def _error(text: str, position: int, reason: str) -> InputError:
    return InputError(f"--input {text!r}, position {position}: {reason}")
