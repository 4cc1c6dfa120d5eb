"""One layer that a rule looks at: what it is, what runs around it, and what else the rule wants changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn

from modelstat.errors import SwapError
from modelstat.rewrite.flow import Flow
from modelstat.rewrite.registry import SkipError

Module = TypeVar("Module", bound=nn.Module)


class Neighbour(NamedTuple):
    """Who reads a layer's output first: a module of the kind that was looked for, or a function.

    ``why`` says why the layer cannot absorb it; None where it can.
    """

    op: str
    path: str
    module: nn.Module | None
    why: str | None


class Site:
    """What a rule is given. ``layer`` is at ``path`` of the model; a rule reads it and changes nothing in place."""

    def __init__(self, path: str, layer: nn.Module, modules: Mapping[str, nn.Module], flow: Callable[[], Flow]) -> None:
        self.path, self.layer = path, layer
        self._modules = modules
        self._flow = flow
        self.absorbed: list[str] = []
        self.replaced: dict[str, nn.Module] = {}
        self.note: str | None = None

    def of(self, kind: type[Module]) -> Module:
        """The layer as one of a class that the rule's target made sure of."""
        assert isinstance(self.layer, kind)
        return self.layer

    @property
    def flow(self) -> Flow:
        """What runs before and after the layer. Raises SwapError where that cannot be told without inputs."""
        return self._flow()

    @property
    def device(self) -> torch.device:
        """Where the model's weights are; the CPU for a model without any."""
        return next((parameter.device for parameter in self._modules[""].parameters()), torch.device("cpu"))

    def after(self, path: str, kind: Callable[[nn.Module], bool]) -> Neighbour | None:
        """Who reads the output of the module at ``path`` first, and whether it can be absorbed. ``kind`` is what is looked for.

        A module is found by the op that it runs, so it may be the parent of the one that runs it. None where nobody reads the output.
        """
        found = self.flow.after(path)
        if found is None:
            return None
        above = _paths_above(found.path)
        home = next((each for each in above if not path.startswith(f"{each}.") and each and kind(self._modules[each])), None)
        if home is None:
            return Neighbour(found.op, found.path, None, "runs as a function" if self._has_children(found.path) else "is of another kind")
        calls, own = self.flow.calls(home), self.flow.calls(path)
        why = None if found.alone else "is not the only one that reads this output"
        if calls != own:
            why = f"is called {calls} times"
        return Neighbour(found.op, home, self._modules[home], why)

    def absorb(self, path: str) -> None:
        """Have the module at ``path``, which runs right after the layer, replaced by nothing: the new layer does what it did."""
        self.absorbed.append(path)

    def before(self) -> tuple[str, nn.Module] | None:
        """The module whose output the layer reads, if it is read by nobody else; None where there is none."""
        path = self.flow.before(self.path)
        if path is None or path not in self._modules:
            return None
        found = self.flow.after(path)
        own = found is not None and found.alone and self._modules[found.path] is self.layer
        return (path, self._modules[path]) if own and self.flow.calls(path) == self.flow.calls(self.path) else None

    def replace(self, path: str, module: nn.Module) -> None:
        """Have another module than the layer replaced too."""
        self.replaced[path] = module

    def tied(self) -> str | None:
        """Path of another module that holds one of the layer's own parameters, None if nobody does."""
        own = {id(parameter) for parameter in self.layer.parameters(recurse=False)}
        inside = {id(each) for each in self.layer.modules()}
        for path, module in self._modules.items():
            if id(module) not in inside and any(id(parameter) in own for parameter in module.parameters(recurse=False)):
                return path
        return None

    def used_uncalled(self) -> bool:
        """Whether the layer is never called; False where that cannot be told without inputs."""
        try:
            return self.flow.calls(self.path) == 0
        except SwapError:
            return False

    def _has_children(self, path: str) -> bool:
        return any(True for _ in self._modules[path].children()) if path in self._modules else True


def skip_unless_plain(layer: nn.Module, *methods: str) -> None:
    """Raises SkipError for a layer whose class or parametrisation does more than torch's own."""
    from modelstat.rewrite.targets import overrides

    if overrides(layer, *methods):
        raise SkipError(f"{type(layer).__name__} has a forward of its own")
    if hasattr(layer, "parametrizations") or layer._forward_hooks or layer._forward_pre_hooks:
        raise SkipError("its weight is parametrised, or hooks run around it")


def factory(layer: nn.Module) -> dict[str, Any]:
    """Device and dtype of a layer's weights, for the constructors of what takes its place."""
    weight = next(layer.parameters())
    return {"device": weight.device, "dtype": weight.dtype}


def _paths_above(path: str) -> list[str]:
    """A path and those above it, the outermost first."""
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
