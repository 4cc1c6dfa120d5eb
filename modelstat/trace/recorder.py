"""Records every op that reaches the dispatcher."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from modelstat.cost.user import evaluate
from modelstat.records import Op, TensorSpec
from modelstat.trace.again import Again
from modelstat.trace.arguments import mapped, named_tensors, plain_arguments, tensors_of
from modelstat.trace.facts import facts_of
from modelstat.trace.failures import CudaAskedError
from modelstat.trace.higher_order import is_higher_order, run_higher_order
from modelstat.trace.known import KnownValues
from modelstat.trace.memo import BELOW, Memo
from modelstat.trace.modules import ModuleTree
from modelstat.trace.uneven import PACKED, packed_pairs
from modelstat.trace.values import ValueTable

CASTS = frozenset({"aten::_to_copy"})
DEVICE = torch.ops.prim.device.default
"""The question that torch itself asks most."""


class Recorder(TorchDispatchMode):
    """A dispatch mode that writes down each op with the module that runs it and the values it touches.

    ``adopt`` turns a tensor that does not belong to the run (a constant that forward holds) into one that does; ``known`` follows the
    values of small tensors in a run without values, and ``memo`` what ops return there;
    ``progress`` is told the number of ops from time to time.
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing here is compiled while a trace runs: torch need not keep its compiler from every single op."""
        return False

    def __init__(
        self,
        tree: ModuleTree,
        *,
        real: bool,
        device: str = "cpu",
        adopt: Callable[[Tensor], Tensor] | None = None,
        known: KnownValues | None = None,
        memo: Memo | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tree, self.real, self.adopt, self.known, self.progress = tree, real, adopt, known, progress
        self.device = device
        self._scripted = bool(tree.in_torchscript())
        self.again = Again(self, memo, known) if memo is not None and known is not None else None
        self.values = ValueTable()
        self.ops: list[_Written] = []
        self._suspended = 0
        self._read: set[int] = set()
        self._casts: dict[int, tuple[weakref.ref[Tensor], list[Tensor]]] = {}

    @property
    def is_suspended(self) -> bool:
        """Whether ops are not written down now."""
        return self._suspended > 0

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Lets ops run without writing them down."""
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._suspended:
            return func(*args, **kwargs) if self.known is None else self.known.call(func, args, kwargs)
        if self.again is not None and type(func) is OpOverload and _len_torch_dispatch_stack() == BELOW:
            if func is DEVICE and type(args[0]) is FakeTensor:
                return args[0].fake_device
            outputs = self.again.op(facts_of(func), args, kwargs)
            if outputs is not None:
                return outputs
        for kind in types:
            if kind is not FakeTensor and _made_of_tensors(kind):
                return NotImplemented  # its own dispatch comes first, and calls ops on what it is made of
        if self.adopt is not None:
            args, kwargs = self._adopted(args, kwargs)
        if type(func) is not OpOverload and is_higher_order(func):
            return run_higher_order(self, func, args, kwargs)
        facts = facts_of(func)
        if kwargs and self.device == "cpu" and getattr(kwargs.get("device"), "type", "cpu") == "cuda":
            raise CudaAskedError(f"{facts.name} makes a tensor on cuda")
        if facts.silent:
            return func(*args, **kwargs)
        if facts.name == "aten::equal" and self._scripted:  # TorchScript's compiler compares the constants of its graph
            return func(*args, **kwargs) if self.known is None else self.known.run(func, args, kwargs)
        if facts.composite and not any(tensor.is_nested for tensor in tensors_of(args)):
            # Inference mode skips autograd's keys, and with them the place where composite ops fall apart.
            with self:
                return _decomposed(func, args, kwargs)
        outputs = func(*args, **kwargs) if self.known is None else self.known.run(func, args, kwargs)
        given = dict(zip(facts.arguments, args, strict=False))
        given.update(kwargs)
        written = tuple(name for name in facts.written if given.get(name) is not None)
        arguments = {**plain_arguments(given), **packed_pairs(self, facts.name, given)} if facts.name in PACKED else None
        self.record(facts.name, given, list(tensors_of(outputs)), arguments, overload=facts.overload, mutates=written)
        return outputs

    def record(
        self,
        name: str,
        given: Mapping[str, Any],
        outputs: Sequence[Tensor],
        arguments: dict[str, Any] | None,
        *,
        overload: str = "",
        mutates: tuple[str, ...] = (),
        owners: list[Tensor] | None = None,
    ) -> None:
        """Writes one op down.

        ``given`` are its arguments by name; ``arguments``, if not None, replaces the non-tensor ones; ``owners`` are the parameters
        whose module the op belongs to, where they are not among its inputs.
        """
        values = self.values
        pairs = list(named_tensors(given))
        read = [tensor for _, tensor in pairs]
        inputs = tuple(values.spec(tensor, "constant") for tensor in read)
        specs = tuple(values.spec(tensor) for tensor in outputs)
        plain = arguments if arguments is not None else plain_arguments(given)
        sources = {spec.value for spec in inputs}
        view = bool(specs) and not mutates and all(spec.value in sources for spec in specs)
        held = owners if owners is not None else self.parameters_behind(read)
        self.write(name, overload, tuple(name for name, _ in pairs), plain, mutates, view, inputs, specs, held, outputs)

    def write(
        self, name: str, overload: str, names: tuple[str, ...], arguments: dict[str, Any], mutates: tuple[str, ...], view: bool,
        inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], held: list[Tensor], made: Sequence[Tensor],
    ) -> None:  # fmt: skip
        """Appends an op that reads the parameters ``held`` and returns the tensors ``made``."""
        module, call = self.place(held, not view)
        if not view:
            self._read.update([spec.value for spec in inputs])
        if held and self.passes_on(name, view):
            for tensor in made:
                self.stands_for(tensor, held)
        self.ops.append(_Written(name, overload, inputs, names, outputs, arguments, module, call, view, mutates))
        clock = self.values.clock = len(self.ops)
        if self.progress is not None and clock % 50 == 0:
            with self.suspended(), _disable_current_modes():
                self.progress(clock)

    def passes_on(self, name: str, view: bool) -> bool:
        """Whether what an op makes of a parameter stands for it: a cast or transposed weight is still that module's weight."""
        return view or name in CASTS

    def stands_for(self, tensor: Tensor, held: list[Tensor]) -> None:
        """From here on, an op that reads the tensor reads the parameters ``held``."""
        if held:
            self._casts[id(tensor)] = (weakref.ref(tensor), held)

    def place(self, held: list[Tensor], computes: bool) -> tuple[int, int]:
        """Row and call index of the module that an op belongs to which reads the parameters ``held``."""
        return self.tree.owner_row(held, computes)

    def parameters_behind(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The parameters and buffers among the tensors, or of which they are casts and views."""
        held: list[Tensor] = []
        for tensor in tensors:
            if self.tree.holds(tensor):
                held.append(tensor)
            else:
                reference, owners = self._casts.get(id(tensor), (None, []))
                if reference is not None and reference() is tensor:
                    held.extend(owners)
        return held

    def _adopted(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        adopt = self.adopt
        assert adopt is not None
        if _all_fake(args) and _all_fake(kwargs.values()):
            return args, kwargs
        return mapped(args, adopt), {key: mapped(value, adopt) for key, value in kwargs.items()}

    def records(self) -> tuple[Op, ...]:
        """The finished ops."""
        return tuple([self._finished(Op(*op, self._unused(op.outputs, op.view))) for op in self.ops])

    def _finished(self, op: Op) -> Op:
        """With what a user's formula says, which another process could not ask again."""
        cost = evaluate(op)
        return op if cost is None else msgspec.structs.replace(op, cost=cost)

    def _unused(self, outputs: tuple[TensorSpec, ...], view: bool) -> tuple[int, ...]:
        """Of an op with several outputs, those that nothing reads and the model does not return; at least one is used."""
        if view or len(outputs) < 2:
            return ()
        unused = tuple(
            index for index, spec in enumerate(outputs) if spec.value not in self._read and not self.values.is_output(spec.value)
        )
        return unused if len(unused) < len(outputs) else unused[1:]


def _all_fake(values: Any) -> bool:
    """Whether every tensor among arguments is a fake one; a sequence with something else than fake tensors and numbers is looked into."""
    for value in values:
        kind = type(value)
        if kind is list or kind is tuple:
            if not _all_fake(value):
                return False
        elif kind is not FakeTensor and isinstance(value, (Tensor, list, tuple)):
            return False
    return True


@cache
def _made_of_tensors(kind: type) -> bool:
    """Whether a kind of tensor brings a dispatch of its own, which works on other tensors (a nested tensor on its values)."""
    return kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl and not issubclass(kind, FakeTensor)  # type: ignore[attr-defined]


class _Written(NamedTuple):
    """An :class:`~modelstat.records.Op` while the model runs: which outputs nothing reads is not known yet."""

    name: str
    overload: str
    inputs: tuple[TensorSpec, ...]
    names: tuple[str, ...]
    outputs: tuple[TensorSpec, ...]
    arguments: dict[str, Any]
    module: int
    call: int
    view: bool
    mutates: tuple[str, ...]


def _decomposed(func: Any, args: Any, kwargs: Any) -> Any:
    result = func.decompose(*args, **kwargs)
    return func(*args, **kwargs) if result is NotImplemented else result
