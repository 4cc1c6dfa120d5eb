"""One walk over a trace, in which every value is whole, split, or a part of a sum that is still to be added up."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from modelstat.cost.record import Cost
from modelstat.deploy.axes import along_others, indexed, reduction, spatial
from modelstat.deploy.collectives import Collective
from modelstat.deploy.contraction import convolution, lookup, product
from modelstat.deploy.cut import Cut, Split, fitted, merged, part, refined, serves, split_of
from modelstat.deploy.elements import copies, gated, lends, pointwise
from modelstat.deploy.heads import attention, norm
from modelstat.deploy.placement import Cuts, Operands, Placement, Rule
from modelstat.deploy.wishes import Wishes
from modelstat.records import Op, TensorSpec, Trace

RULES: dict[str, Rule] = {
    "matmul": product, "convolution": convolution, "embedding": lookup, "attention": attention, "norm": norm, "softmax": along_others,
    "sort": along_others, "reduction": reduction, "elementwise": pointwise, "activation": pointwise, "random": pointwise, "copy": copies,
    "pooling": spatial, "resample": spatial, "gather": indexed, "view": pointwise,
}  # fmt: skip
"""Family of ops -> its rule. What has none runs whole on every GPU."""
ALIKE = frozenset(("elementwise", "activation", "random", "copy", "pooling", "softmax", "norm", "view"))
"""Families whose result has its elements where its input has them, so that what is wished of the one is wished of the other."""

LINEAR = frozenset((
    "add", "sub", "mul", "div", "neg", "clone", "contiguous", "index", "index_select", "sum", "_to_copy", "cat", "mul_", "div_", "neg_",
))  # fmt: skip
"""Ops that parts of a sum may go through before they are added up."""


class Splitter:
    """Follows the data. ``splits`` and ``partial`` say what the values are: whole on every GPU where they are in neither.

    A value that is there before the first op (a weight, an input, a cache of keys and values) may be shared out as its readers need it.
    """

    def __init__(self, trace: Trace, costs: Sequence[Cost], gpus: int, wishes: Wishes) -> None:
        self.trace, self.costs, self.gpus, self.wishes = trace, costs, gpus, wishes
        self.splits: dict[int, Split] = {}
        self.partial: dict[int, tuple[int, int]] = {}
        """Value -> the op that made it, and among how many GPUs it is to be summed."""
        self.held: dict[int, Split] = {}
        """Values that are there from the start of which a GPU needs a part."""
        self.needed: set[int] = set()
        """Those that some op needs whole."""
        self.layouts: dict[int, Split] = {}
        self.unsplit: set[int] = set()
        """What is wished of the next walk, see :class:`Wishes`."""
        self.taken: dict[int, Split | None] = {}
        """Of whole results, the part that every reader takes: what made them need make no more. None where some reader takes all."""
        self.collectives: list[Collective] = []
        self.once: set[int] = set()
        """Values that were split when they were made."""
        self.passed: list[int] = []
        """Ops, other than contractions of them, that were given split values and left split ones."""
        self.derived: set[int] = set()
        """Casts and the like of parameters."""
        self.readers = [0] * len(trace.values)
        for op in trace.ops:
            for spec in () if op.view else op.inputs:
                self.readers[spec.value] += 1

    def walk(self) -> tuple[Op, ...]:
        """The ops as one GPU runs them, in order."""
        local = tuple(self._op(index, op, cost) for index, (op, cost) in enumerate(zip(self.trace.ops, self.costs, strict=True)))
        for index, value in enumerate(self.trace.values):
            if value.output and index in self.partial:
                self._add_up(index)
            if value.output:
                self._gather(index, len(local) - 1)
        return local

    def wished(self) -> Wishes:
        """What the next walk should do otherwise: the same wishes if nothing."""
        for index in reversed(self.passed):
            # What had better be whole is made of what had better be whole.
            op = self.trace.ops[index]
            if any(spec.value in self.unsplit for spec in op.outputs):
                self.unsplit.update(spec.value for spec in op.inputs if spec.value in self.once)
        parts = {value: split for value, split in self.taken.items() if split is not None}
        found = self.wishes.and_also({**parts, **self.layouts}, self.unsplit, set())
        # Readers may differ about a value only until the others' layouts are settled.
        return found if found != self.wishes else found.and_also({}, set(), self.needed & self.held.keys())

    def _given(self, value: int) -> bool:
        return self.trace.values[value].kind != "activation"

    def _op(self, index: int, op: Op, cost: Cost) -> Op:
        if op.view or not op.outputs:
            return op
        parts = {spec.value for spec in op.inputs if spec.value in self.partial}
        if parts and self._passes(op, parts):
            ways = self.partial[min(parts)][1]
            self.partial.update((spec.value, (index, ways)) for spec in op.outputs)
            self._use(op, (None,) * len(op.inputs))
            return op
        for value in parts:
            self._add_up(value)
        placed = self._placed(index, op, cost) or Placement((None,) * len(op.inputs), (None,) * len(op.outputs))
        if not lends(op):
            for spec, cut in zip(op.inputs, placed.inputs, strict=True):
                if spec.value in self.splits and spec.elements and not serves(fitted(spec, self.splits[spec.value]), cut):
                    self._gather(spec.value, index)
            self._use(op, placed.inputs)
        if cost.family not in ("matmul", "attention") and any(placed.inputs) and any(placed.outputs):
            self.passed.append(index)
        self._results(index, op, cost, placed)
        inputs = tuple(part(spec, cut) for spec, cut in zip(op.inputs, placed.inputs, strict=True))
        outputs = tuple(part(spec, cut) for spec, cut in zip(op.outputs, placed.outputs, strict=True))
        if (inputs, outputs) == (op.inputs, op.outputs):
            return op
        return msgspec.structs.replace(op, inputs=inputs, outputs=outputs, arguments={**op.arguments, **placed.arguments})

    def _gather(self, value: int, index: int) -> None:
        """Makes a split value whole on every GPU."""
        split = self.splits.pop(value, None)
        if split is not None:
            self.collectives.append(Collective("all-gather", self.trace.values[value].bytes, split.ways, index))
            self.unsplit.add(value)

    def _add_up(self, value: int) -> None:
        """Sums the parts of a value, where they were made."""
        index, ways = self.partial.pop(value)
        self.collectives.append(Collective("all-reduce", self.trace.values[value].bytes, ways, index))

    def _passes(self, op: Op, parts: set[int]) -> bool:
        """Whether parts of a sum go through an op as they are: it is linear in them, and nothing else reads them."""
        name = op.name.removeprefix("aten::")
        if name not in LINEAR or any(self.readers[value] > 1 or self.trace.values[value].output for value in parts):
            return False
        others = [spec for spec in op.inputs if spec.value not in parts]
        if any(spec.value in self.splits for spec in others) or len({self.partial[value][1] for value in parts}) > 1:
            return False
        if name in ("add", "sub", "cat"):
            return not others and (len(op.inputs) > 1 or name == "cat")
        if name == "_to_copy":
            return op.outputs[0].bytes <= op.inputs[0].bytes
        return sum(spec.value in parts for spec in op.inputs) == 1 and (name.startswith("mul") or op.inputs[0].value in parts)

    def _placed(self, index: int, op: Op, cost: Cost) -> Placement | None:
        """How the op runs; None: whole on every GPU."""
        rule = gated if op.name == "aten::glu" else RULES.get(cost.family)
        if rule is None or op.cost is not None or cost.known == "unknown":
            return None
        for spec in op.inputs:
            if spec.value in self.splits and spec.elements and self._fitted(spec) is None and not lends(op):
                self._gather(spec.value, index)
        wanted = self._wanted(op, cost.family)
        placed = self._ruled(rule, op, wanted, index)
        differs = wanted is not None and placed is not None and wanted != placed.outputs[0]
        if differs and cost.family in ALIKE and self._handed_on(op, wanted):
            placed = self._ruled(rule, op, wanted, index)
        if placed is None or (all(cut is None for cut in (*placed.inputs, *placed.outputs)) and not placed.partial):
            return None
        for spec, cut in zip(op.outputs, placed.outputs, strict=True):
            if (cut is not None and fitted(spec, split_of(spec, cut)) != cut) or not self._writable(op, spec, cut):
                return None
        return placed

    def _ruled(self, rule: Rule, op: Op, wanted: Cut | None, index: int) -> Placement | None:
        """What the rule says, once more where it asks for other inputs."""
        weights = tuple(map(self._weight, op.inputs))
        placed = None
        for _ in range(2):
            cuts = tuple(self._fitted(spec) if spec.value in self.splits else None for spec in op.inputs)
            placed = rule(Operands(op, cuts, weights, wanted, op.outputs[0].value in self.wishes.whole, self.gpus))
            for number, cut in placed.asks if placed is not None else ():
                spec = op.inputs[number]
                if cut.ways == 1 or not self._laid_out(spec.value, split_of(spec, cut, firm=rule is attention)):
                    self._gather(spec.value, index)
            if placed is None or not placed.asks:
                break
        return placed

    def _fitted(self, spec: TensorSpec) -> Cut | None:
        """The axis that carries the split of a value; where none does, in a layout that the window would carry."""
        found = fitted(spec, self.splits[spec.value])
        if found is None and spec.elements:
            better = refined(spec, self.splits[spec.value], self.gpus)
            if better is not None and self._laid_out(spec.value, better):
                return fitted(spec, self.splits[spec.value])
        return found

    def _laid_out(self, value: int, split: Split) -> bool:
        """Lays a value out otherwise, as if it had been so from the start, which the next walk will see to.

        False where an earlier walk wished for that already: it could not be had.
        """
        before = self.wishes.layouts.get(value)
        wished = split if before is None else merged(before, split)
        if before == wished:
            return False
        self.layouts[value] = merged(self.layouts[value], split) if value in self.layouts else split
        self.splits[value] = merged(self.splits[value], wished) if value in self.splits else wished
        return True

    def _wanted(self, op: Op, family: str) -> Cut | None:
        value = op.outputs[0].value
        wish = self.wishes.layouts.get(value)
        needless = value in self.wishes.whole and family in ALIKE and not any(spec.value in self.splits for spec in op.inputs)
        if wish is None or needless:
            return None
        return fitted(op.outputs[0], wish)

    def _casts(self, op: Op) -> bool:
        """Whether an op reads parameters alone, or casts of them."""
        return bool(op.inputs) and all(map(self._weight, op.inputs))

    def _weight(self, spec: TensorSpec) -> bool:
        return spec.value in self.derived or self.trace.values[spec.value].kind == "parameter"

    def _handed_on(self, op: Op, wanted: Cut | None) -> bool:
        """What is wished of a result is wished of the inputs that have its elements at the same places. True where one could be had."""
        out, had = op.outputs[0], False
        if wanted is None:
            return False
        firm = self.wishes.layouts[out.value].firm
        for spec in op.inputs:
            axis = wanted.axis - len(out.shape) + len(spec.shape)
            if spec.value in self.splits and axis >= 0 and spec.shape[axis] == out.shape[wanted.axis]:
                had = self._laid_out(spec.value, split_of(spec, wanted.on(axis), firm=firm)) or had
        return had

    def _writable(self, op: Op, spec: TensorSpec, cut: Cut | None) -> bool:
        """Whether a result can be so: one that is written in place is laid out already, unless all of it is written."""
        if not any(one.value == spec.value for one in op.inputs):
            return True
        if self._given(spec.value):
            return cut is None or spec.value not in self.wishes.shared
        split = self.splits.get(spec.value)
        if split is None and cut is not None and spec.bytes < self.trace.values[spec.value].bytes:
            return self._laid_out(spec.value, split_of(spec, cut))
        return split is None or cut is not None

    def _use(self, op: Op, cuts: Cuts) -> None:
        """Notes what a GPU needs of values that are there from the start, and of whole results."""
        for spec, taken in zip(op.inputs, cuts, strict=True):
            # An axis that is expanded is no part of the storage.
            cut = None if taken is None or not spec.strides[taken.axis] else taken
            if cut is None and self._given(spec.value):
                self.needed.add(spec.value)
            elif cut is not None and self._given(spec.value):
                split = split_of(spec, cut)
                if self.held.setdefault(spec.value, split) != split:
                    self.needed.add(spec.value)
                if op.name.endswith("attention"):
                    self.layouts[spec.value] = split_of(spec, cut, firm=True)
            elif spec.value not in self.splits:
                self.taken[spec.value] = None if cut is None else self._agreed(spec, cut)

    def _agreed(self, spec: TensorSpec, cut: Cut) -> Split | None:
        """The layout of a whole value of which this reader takes a part, as those before it did; None where they took other ones."""
        split = split_of(spec, cut)
        return split if self.taken.get(spec.value, split) == split else None

    def _results(self, index: int, op: Op, cost: Cost, placed: Placement) -> None:
        cast = self._casts(op)
        for spec, cut in zip(op.outputs, placed.outputs, strict=True):
            if self._given(spec.value):
                continue
            if cut is not None:
                wish = self.wishes.layouts.get(spec.value)
                self.splits[spec.value] = wish if wish is not None and fitted(spec, wish) == cut else split_of(spec, cut)
                self.once.add(spec.value)
            elif not any(one.value == spec.value for one in op.inputs):
                self.splits.pop(spec.value, None)
            if cast:
                self.derived.add(spec.value)
            if placed.partial:
                self.partial[spec.value] = index, placed.partial
                if cost.family == "reduction":
                    self._add_up(spec.value)
                    self.unsplit.add(op.inputs[0].value)
