"""Two variants of one architecture, layer by layer: first by path, then what is left by its shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

import msgspec

from modelstat.report.document import Document
from modelstat.report.rows import LayerRow
from modelstat.report.timing import LayerTime

Status = Literal["same", "moved", "changed", "added", "removed"]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One layer of one variant. Counts are for the whole batch, bytes B, times ms (null without a GPU)."""

    path: str
    type: str
    params: int
    macs: int
    flops: int
    mem_bytes: int
    mem_write_bytes: int
    intensity: float | None
    ideal_ms: float | None = None
    predicted_ms: float | None = None
    bound: str | None = None


class Change(msgspec.Struct, frozen=True):
    """One layer, aligned: ``before`` is null where it was added, ``after`` where it was removed.

    A module that both variants divide further is a row for what runs in its own forward (``own``), and rows for what is below it;
    every other row includes everything below it. So the rows of a comparison sum to the totals.
    """

    status: Status
    before: Side | None
    after: Side | None
    own: bool = False


class _Node:
    """A module and the modules below it."""

    def __init__(self, index: int, row: LayerRow, time: LayerTime | None) -> None:
        self.index, self.row, self.time = index, row, time
        self.children: dict[str, _Node] = {}

    def below(self) -> Iterator[_Node]:
        for child in self.children.values():
            yield child
            yield from child.below()

    def leaves(self) -> list[_Node]:
        return [node for node in (self, *self.below()) if not node.children]

    def whole(self) -> Side:
        """The module with everything below it."""
        return self._side(1, ())

    def own(self) -> Side:
        """What runs in its own forward."""
        return self._side(0, list(self.children.values()))

    def _side(self, inclusive: int, children: Sequence[_Node]) -> Side:
        row, counts = self.row, self.row if inclusive else self.row.own
        moved = counts.mem_read_bytes + counts.mem_write_bytes
        return Side(
            path=row.path,
            type=row.type,
            params=row.params - sum(child.row.params for child in children),
            macs=counts.macs,
            flops=counts.flops,
            mem_bytes=moved,
            mem_write_bytes=counts.mem_write_bytes,
            intensity=counts.flops / moved if moved else None,
            ideal_ms=self._rest("ideal_ms", children),
            predicted_ms=self._rest("predicted_ms", children),
            bound=self.time.predicted_bound if self.time and not children else None,
        )

    def _rest(self, field: str, children: Sequence[_Node]) -> float | None:
        """A time of this module without that of its children."""
        times: list[float | None] = [getattr(node.time, field, None) for node in (self, *children)]
        known = [time for time in times if time is not None]
        return known[0] - sum(known[1:]) if len(known) == len(times) else None


Item = tuple[_Node | None, _Node | None]
Signature = Callable[[_Node], Any]


def align(before: Document, after: Document) -> tuple[Change, ...]:
    """Every layer of two documents, in the order of ``after``; times are those on the first GPU of each."""
    return tuple(change for change in _align(_tree(before), _tree(after)) if not (change.own and _empty(change)))


def _align(old: _Node, new: _Node) -> Iterator[Change]:
    """Two modules that stand for each other, and everything below them."""
    items = list(_walk(old, new))
    partners = _by_shape([one for one, other in items if one and not other], [other for one, other in items if other and not one])
    taken: dict[int, _Node | None] = dict.fromkeys(node.index for node in partners.values())
    for one, other in items:
        if one is not None and other is not None:
            yield _change(one, other)
        elif other is not None:
            yield from _rest(other, partners, "added")
        elif one is not None:
            yield from _rest(one, taken, "removed")


def _tree(document: Document) -> _Node:
    times: Sequence[LayerTime | None] = document.gpus[0].layers if document.gpus else (None,) * len(document.layers)
    nodes: dict[str, _Node] = {}
    for index, (row, time) in enumerate(zip(document.layers, times, strict=True)):
        node = nodes.setdefault(row.path, _Node(index, row, time))
        if index:
            parent, _, name = row.path.rpartition(".")
            nodes[parent].children[name] = node
    return nodes[""]


def _walk(old: _Node, new: _Node) -> Iterator[Item]:
    """Pairs of the two trees by path: down to where one of them has nothing below."""
    yield old, new
    if old.children and new.children:
        for one, other in _children(old, new):
            if one is not None and other is not None:
                yield from _walk(one, other)
            else:
                yield one, other


def _children(old: _Node, new: _Node) -> Iterator[Item]:
    """Children by name; those of a Sequential whose number differs by their order, since an inserted layer renames all behind it."""
    if len(old.children) != len(new.children) and all(name.isdecimal() for name in (*old.children, *new.children)):
        yield from _in_order(list(old.children.values()), list(new.children.values()), (_typed, lambda node: node.row.type))
        return
    gone = [name for name in old.children if name not in new.children]
    order = list(old.children)
    for name, node in new.children.items():
        while gone and (name in old.children and order.index(gone[0]) < order.index(name)):
            yield old.children[gone.pop(0)], None
        yield old.children.get(name), node
    for name in gone:
        yield old.children[name], None


def _in_order(old: Sequence[_Node], new: Sequence[_Node], signatures: Sequence[Signature]) -> Iterator[Item]:
    """The longest common run by the first signature, what lies between by the next; then nodes that stand at the same place."""
    if not signatures:
        if len(old) == len(new):
            yield from zip(old, new, strict=True)
        else:
            yield from ((node, None) for node in old)
            yield from ((None, node) for node in new)
        return
    first, *others = signatures
    matcher = SequenceMatcher(None, [first(node) for node in old], [first(node) for node in new], autojunk=False)
    for tag, start, end, begin, finish in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(old[start:end], new[begin:finish], strict=True)
        else:
            yield from _in_order(old[start:end], new[begin:finish], others)


def _typed(node: _Node) -> Any:
    return node.row.type, *_shaped(node)


def _shaped(node: _Node) -> Any:
    """Shapes in and out; a module that never ran has none, and is like no other."""
    return (node.row.input_shapes, node.row.output_shapes) if node.row.calls else (node.row.path, id(node))


def _by_shape(removed: Sequence[_Node], added: Sequence[_Node]) -> dict[int, _Node]:
    """Partners among what has none by path, by the index of the added one.

    Whole modules go first and then the layers inside the others, each first by type and shapes and then by shapes alone.
    """
    partners: dict[int, _Node] = {}
    taken: set[int] = set()

    def free(nodes: Sequence[_Node], used: set[int], *, inside: bool) -> list[_Node]:
        whole = [node for node in nodes if not used & {each.index for each in (node, *node.below())}]
        return [leaf for node in nodes if node.index not in used for leaf in node.leaves() if leaf.index not in used] if inside else whole

    for signature, inside in ((_typed, False), (_typed, True), (_shaped, False), (_shaped, True)):
        old, new = free(removed, taken, inside=inside), free(added, set(partners), inside=inside)
        matcher = SequenceMatcher(None, [signature(node) for node in old], [signature(node) for node in new], autojunk=False)
        for start, begin, size in matcher.get_matching_blocks():
            for one, other in zip(old[start : start + size], new[begin : begin + size], strict=True):
                partners[other.index] = one
                taken.add(one.index)
    return partners


def _change(old: _Node, new: _Node) -> Change:
    divided = bool(old.children and new.children)
    one, other = (old.own(), new.own()) if divided else (old.whole(), new.whole())
    equal = _counts(one) == _counts(other) and (divided or one.type == other.type)
    status: Status = "changed" if not equal else "same" if one.path == other.path else "moved"
    return Change(status, one, other, divided)


def _rest(node: _Node, partners: Mapping[int, _Node | None], status: Literal["added", "removed"]) -> Iterator[Change]:
    """A module that is on one side only; where layers inside it have partners, only what is left of it.

    Partners are shown on the side of ``after``.
    """

    def one_sided(side: Side, *, own: bool = False) -> Change:
        return Change(status, None, side, own) if status == "added" else Change(status, side, None, own)

    if node.index in partners:
        partner = partners[node.index]
        if partner is not None:
            yield from _moved(partner, node)
    elif any(each.index in partners for each in node.below()):
        yield one_sided(node.own(), own=True)
        for child in node.children.values():
            yield from _rest(child, partners, status)
    else:
        yield one_sided(node.whole())


def _moved(old: _Node, new: _Node) -> Iterator[Change]:
    """Partners of other paths: one row where they are equal or one of them is a layer, else what is inside of them."""
    one, other = old.whole(), new.whole()
    equal = _counts(one) == _counts(other) and one.type == other.type
    if old.children and new.children and not equal:
        yield from _align(old, new)
    else:
        yield Change("moved" if equal else "changed", one, other)


def _counts(side: Side) -> tuple[int, ...]:
    return side.params, side.macs, side.flops, side.mem_bytes, side.mem_write_bytes


def _empty(change: Change) -> bool:
    """Nothing ran in the module's own forward, before or after."""
    return not any(any(_counts(side)) for side in (change.before, change.after) if side is not None)
