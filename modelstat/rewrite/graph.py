"""The flow of a model without inputs: torch.fx follows its forward symbolically."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx, nn
from torch.nn.modules.dropout import _DropoutNd

from modelstat.errors import SwapError
from modelstat.rewrite.flow import FUNCTIONS, Flow, Next, activation_name
from modelstat.rewrite.targets import is_activation, is_norm


class GraphFlow(Flow):
    """The flow of torch.fx's graph of a model. Raises SwapError for a forward that fx cannot follow: inputs help there."""

    def __init__(self, model: nn.Module) -> None:
        tracer = _Tracer()
        try:
            self._nodes = list(tracer.trace(model).nodes)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise SwapError(
                f"{type(model).__name__}: which layer follows which cannot be told without a run ({reason}): "
                "give inputs, such as inputs='3x224x224'"
            ) from error
        self._homes = {node: _home(node) for node in self._nodes}
        self._modules = dict(model.named_modules(remove_duplicate=False))

    def after(self, path: str) -> Next | None:
        """See :meth:`Flow.after`."""
        found = [self._next(node) for node in self._calls(path)]
        if not found or any(each is None or each[:2] != (found[0] or each)[:2] for each in found):
            return None
        return None if found[0] is None else found[0]._replace(alone=all(each.alone for each in found if each))

    def before(self, path: str) -> str | None:
        """See :meth:`Flow.before`."""
        read = [node.args[0] for node in self._calls(path) if node.args and isinstance(node.args[0], fx.Node)]
        writers = {self._homes[self._origin(node)] for node in read}
        return writers.pop() if len(writers) == 1 else None

    def calls(self, path: str) -> int:
        """See :meth:`Flow.calls`."""
        return len(self._calls(path)) if path else 1

    def order(self) -> Sequence[str]:
        """See :meth:`Flow.order`."""
        return tuple(dict.fromkeys(str(node.target) for node in self._nodes if node.op == "call_module"))

    def functions(self) -> Sequence[tuple[str, str]]:
        """See :meth:`Flow.functions`."""
        called = [node for node in self._nodes if node.op in ("call_function", "call_method")]
        named = [(activation_name(self._op(node)), self._homes[node]) for node in called]
        return [each for each in named if each[0] in FUNCTIONS]

    def _calls(self, path: str) -> list[fx.Node]:
        wanted = self._modules.get(path)
        return [node for node in self._nodes if node.op == "call_module" and self._modules.get(str(node.target)) is wanted]

    def _next(self, node: fx.Node) -> Next | None:
        readers = self._readers(node)
        if not readers or readers[0].op == "output":
            return None
        return Next(self._op(readers[0]), self._homes[readers[0]], len(readers) == 1)

    def _origin(self, node: fx.Node) -> fx.Node:
        before = node.args[0] if node.args and self._passes(node) else None
        return self._origin(before) if isinstance(before, fx.Node) else node

    def _readers(self, node: fx.Node) -> list[fx.Node]:
        """Who uses a node; one that passes its input on is looked through."""
        return [reader for user in node.users for reader in (self._readers(user) if self._passes(user) else [user])]

    def _passes(self, node: fx.Node) -> bool:
        module = self._modules.get(str(node.target)) if node.op == "call_module" else None
        return isinstance(module, nn.Identity) or (isinstance(module, _DropoutNd) and not module.training)

    def _op(self, node: fx.Node) -> str:
        """What a trace would call it: ``aten::relu``."""
        if node.op == "call_module" and str(node.target) in self._modules:
            return f"aten::{type(self._modules[str(node.target)]).__name__.lower()}"
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
        return f"aten::{name}"


class _Tracer(fx.Tracer):
    """Keeps what this package swaps or absorbs whole."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return super().is_leaf_module(m, module_qualified_name) or is_norm(m) or is_activation(m)


def _home(node: fx.Node) -> str:
    """Path of the module that a node is, or in whose forward it stands."""
    if node.op == "call_module":
        return str(node.target)
    stack: dict[str, Any] = node.meta.get("nn_module_stack") or {}
    return str(list(stack.values())[-1][0]) if stack else ""
