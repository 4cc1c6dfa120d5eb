"""Runs a trace on N make-believe GPUs, each of which has only the parts that it was given: what it does not have is nan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from modelstat.cost.record import Cost
from modelstat.cost.registry import costs as costs_of
from modelstat.deploy.cut import Cut, Split, unit_of
from modelstat.deploy.placement import Placement
from modelstat.deploy.shards import WALKS
from modelstat.deploy.splitter import Splitter
from modelstat.deploy.wishes import Wishes
from modelstat.records import Op, TensorSpec, Trace

Step = tuple[str, int, Placement | None]


class Script(Splitter):
    """A walk that writes down in which order ops run and values are exchanged."""

    def __init__(self, trace: Trace, costs: Sequence[Cost], gpus: int, wishes: Wishes) -> None:
        super().__init__(trace, costs, gpus, wishes)
        self.steps: list[Step] = []

    def _gather(self, value: int, index: int) -> None:
        if value in self.splits:
            self.steps.append(("gather", value, None))
        super()._gather(value, index)

    def _add_up(self, value: int) -> None:
        self.steps.append(("sum", value, None))
        super()._add_up(value)

    def _results(self, index: int, op: Op, cost: Cost, placed: Placement) -> None:
        self.steps.append(("op", index, placed))
        super()._results(index, op, cost, placed)

    def _op(self, index: int, op: Op, cost: Cost) -> Op:
        done = len(self.steps)
        local = super()._op(index, op, cost)
        if not op.view and ("op", index) not in [step[:2] for step in self.steps[done:]]:
            self.steps.append(("op", index, None))
        return local


class Replay:
    """A model on ``gpus`` GPUs. ``storages`` has what each of them holds in the end, by value."""

    def __init__(self, trace: Trace, model: nn.Module, args: tuple[Tensor, ...], gpus: int) -> None:
        self.trace, self.gpus = trace, gpus
        costs = costs_of(self.trace)
        wishes = Wishes()
        for _ in range(WALKS):
            self.script = Script(self.trace, costs, gpus, wishes)
            self.local = self.script.walk()
            if self.script.wished() == wishes:
                break
            wishes = self.script.wished()
        self.storages: list[dict[int, Tensor]] = [{} for _ in range(gpus)]
        self.ways: dict[int, int] = {}
        """Value -> among how many GPUs it is, or was, to be summed."""
        inputs = iter(args)
        named = dict((*model.named_parameters(), *model.named_buffers()))
        given = {one.value: named[one.name].detach() for one in self.trace.parameters if one.value is not None}
        for index, value in enumerate(self.trace.values):
            if value.kind == "input":
                given[index] = next(inputs)
        for index, tensor in given.items():
            held = self.script.held.get(index) if index not in self.script.needed else None
            for rank, storage in enumerate(self.storages):
                flat = tensor.contiguous().flatten().clone()
                if held is not None:
                    flat[~self._own(held, rank, flat.numel(), tensor.element_size() * 8)] = torch.nan
                storage[index] = flat
        for kind, number, placed in self.script.steps:
            if kind == "op":
                self._run(self.trace.ops[number], self.local[number], placed)
            else:
                self._exchange(kind, number)

    def output(self, rank: int) -> list[Tensor]:
        """What the model returns, in the order in which it was made."""
        made = {spec.value: spec for op in self.trace.ops for spec in op.outputs if self.trace.values[spec.value].output}
        return [_window(self.storages[rank], spec) for spec in made.values()]

    def _own(self, split: Split, rank: int, elements: int, unit: int) -> Tensor:
        """Mask of the places that a GPU has."""
        places = torch.arange(elements) * unit % split.period
        mine = rank * split.ways // self.gpus
        mask = torch.zeros(elements, dtype=torch.bool)
        for low, high in pairwise(split.bounds):
            width = (high - low) // split.ways
            mask |= (places >= low + mine * width) & (places < low + (mine + 1) * width)
        return mask

    def _exchange(self, kind: str, value: int) -> None:
        held = [storage[value] for storage in self.storages]
        if kind == "sum":
            ways = self.ways[value]
            total = sum(held[rank] for rank in range(0, self.gpus, self.gpus // ways))
            assert isinstance(total, Tensor)
            for storage in self.storages:
                storage[value] = total.clone()
            return
        whole = held[0].clone()
        for one in held[1:]:
            whole = torch.where(whole.isnan(), one, whole)
        for storage in self.storages:
            storage[value] = whole.clone()

    def _run(self, op: Op, local: Op, placed: Placement | None) -> None:
        placed = placed or Placement((None,) * len(op.inputs), (None,) * len(op.outputs))
        for rank, storage in enumerate(self.storages):
            tensors = [
                self._part(_window(storage, spec), cut, rank) if spec.value in storage else torch.empty(spec.shape)
                for spec, cut in zip(op.inputs, placed.inputs, strict=True)
            ]
            for tensor, spec in zip(tensors, local.inputs, strict=True):
                assert tuple(tensor.shape) == spec.shape, (op.name, tensor.shape, spec.shape)
            made = call(local, tensors, rank, placed)
            for tensor, spec, cut, mine in zip(made, op.outputs, placed.outputs, local.outputs, strict=True):
                assert tuple(tensor.shape) == mine.shape, (op.name, tensor.shape, mine.shape)
                if spec.value not in storage:
                    size = self.trace.values[spec.value].bytes * 8 // unit_of(spec)
                    empty = torch.nan if tensor.is_floating_point() else 0
                    storage[spec.value] = torch.full((size,), empty, dtype=tensor.dtype)
                window = _window(storage, spec)
                if cut is None:
                    window.copy_(tensor)
                else:
                    window.index_copy_(cut.axis, self._indices(cut, spec.shape[cut.axis], rank), tensor)
        if placed.partial:
            self.ways.update((spec.value, placed.partial) for spec in op.outputs)
        else:
            summed = [self.ways[spec.value] for spec in op.inputs if spec.value in self.ways]
            self.ways.update((spec.value, summed[0]) for spec in op.outputs if summed)

    def _indices(self, cut: Cut, size: int, rank: int) -> Tensor:
        split = Split(cut.period, cut.bounds, cut.ways)
        return self._own(split, rank, size, 1).nonzero().flatten()

    def _part(self, window: Tensor, cut: Cut | None, rank: int) -> Tensor:
        return window if cut is None else window.index_select(cut.axis, self._indices(cut, window.shape[cut.axis], rank))


def _window(storage: dict[int, Tensor], spec: TensorSpec) -> Tensor:
    return storage[spec.value].as_strided(spec.shape, spec.strides, spec.offset)


def call(op: Op, tensors: list[Tensor], rank: int, placed: Placement) -> list[Tensor]:
    """Runs one op on one GPU's part. Of a sum in parts, the first GPU adds what is added to it."""
    given: dict[str, Any] = {name: value for name, value in op.arguments.items() if name not in ("device", "memory_format", "layout")}
    for name, tensor in zip(op.names, tensors, strict=True):
        given[name] = [*given[name], tensor] if name in given and isinstance(given[name], list) else tensor
    later = placed.partial and rank > 0
    if later and op.name == "aten::addmm":
        given["self"] = torch.zeros_like(given["self"])
    if later and given.get("bias") is not None:
        given["bias"] = torch.zeros_like(given["bias"])
    if op.name == "modelstat::attention":
        names = ("attn_mask", "is_causal", "enable_gqa", "scale", "dropout_p")
        options = {name: given[name] for name in names if name in given}
        return [functional.scaled_dot_product_attention(given["query"], given["key"], given["value"], **options)]
    if op.name == "aten::embedding" and placed.partial:
        rows = given["weight"].shape[0]
        shifted = given["indices"] - rank * rows
        here = (shifted >= 0) & (shifted < rows)
        return [given["weight"][shifted.clamp(0, rows - 1)] * here.unsqueeze(-1)]
    if op.name in ("aten::cat", "aten::stack"):
        given = {"tensors": tensors, "dim": given.get("dim", 0)}
    if op.name == "aten::native_group_norm":
        given["C"] = given["input"].shape[1]
    function = getattr(getattr(torch.ops.aten, op.name.removeprefix("aten::")), op.overload or "default")
    for argument in function._schema.arguments:
        value = given.get(argument.name)
        if isinstance(value, str) and argument.name == "dtype":
            given[argument.name] = getattr(torch, value)
        if argument.name == "indices" and isinstance(value, Tensor):
            given[argument.name] = [value]
    made = function(**{argument.name: given[argument.name] for argument in function._schema.arguments if argument.name in given})
    found = list(made) if isinstance(made, (list, tuple)) else [made]
    return [one / placed.partial for one in found] if op.name == "aten::mean" and placed.partial else found
