"""``act=NAME``: any activation module to any other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from modelstat.rewrite.registry import SkipError, register

if TYPE_CHECKING:
    from torch import nn

    from modelstat.rewrite.site import Site

ACTIVATIONS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "celu": ("CELU", {"alpha": 1.0}),
    "elu": ("ELU", {"alpha": 1.0}),
    "gelu": ("GELU", {"approximate": "none"}),
    "hardsigmoid": ("Hardsigmoid", {}),
    "hardswish": ("Hardswish", {}),
    "hardtanh": ("Hardtanh", {"min_val": -1.0, "max_val": 1.0}),
    "identity": ("Identity", {}),
    "leaky_relu": ("LeakyReLU", {"negative_slope": 0.01}),
    "mish": ("Mish", {}),
    "prelu": ("PReLU", {"num_parameters": 1, "init": 0.25}),
    "relu": ("ReLU", {}),
    "relu6": ("ReLU6", {}),
    "selu": ("SELU", {}),
    "sigmoid": ("Sigmoid", {}),
    "silu": ("SiLU", {}),
    "softplus": ("Softplus", {"beta": 1.0, "threshold": 20.0}),
    "tanh": ("Tanh", {}),
}
"""Name -> torch's class and the parameters of its constructor with their defaults."""


def make_activation(name: str, **parameters: Any) -> nn.Module:
    """An activation by its name."""
    from torch import nn

    kind, _ = ACTIVATIONS[name]
    made: nn.Module = getattr(nn, kind)(**parameters)
    return made


def activation(name: str, site: Site, **parameters: Any) -> nn.Module:
    """The activation of that name, in place where the old one was and the new one can be."""
    new = make_activation(name, **parameters)
    if type(new) is type(site.layer) and all(getattr(new, each) == getattr(site.layer, each, None) for each in ACTIVATIONS[name][1]):
        raise SkipError(f"it is {name} already")
    if getattr(site.layer, "inplace", False) and hasattr(new, "inplace"):
        new.inplace = True  # type: ignore[assignment]
    return new.to(site.device)


def _wrong(given: Mapping[str, Any]) -> str | None:
    if given.get("approximate", "none") not in ("none", "tanh"):
        return f"approximate is none or tanh, not {given['approximate']}"
    return None


for _name, (_kind, _parameters) in ACTIVATIONS.items():
    register("act", _name, partial(activation, _name), _parameters, f"any activation module to torch's {_kind}", _wrong)
