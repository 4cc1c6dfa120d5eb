"""From what people call an architecture to its rates."""

from __future__ import annotations

from modelstat.errors import GpuDefinitionError
from modelstat.hardware.names import compact
from modelstat.hardware.rates import ArchitectureRates
from modelstat.hardware.table import load_rates

GENERATIONS = {
    "pascal": "gp10x", "volta": "gv100", "turing": "tu10x", "ampere": "ga10x", "ada": "ad10x", "lovelace": "ad10x",
    "hopper": "gh100", "blackwell": "gb20x", "cdna1": "gfx908", "cdna2": "gfx90a", "cdna3": "gfx942", "cdna4": "gfx950",
    "rdna3": "gfx1100",
}  # fmt: skip
"""Generation -> the chip family that most boards of it have; the data-centre chips are named by themselves (ga100, gb100)."""


def architecture(text: str, tensor_class: str | None = None) -> ArchitectureRates:
    """The rates of a chip family (``tu10x``), its full name (``Turing TU10x``) or a generation (``turing``).

    Without ``tensor_class`` the full one. Raises GpuDefinitionError naming what there is.
    """
    wanted = compact(text)
    wanted = GENERATIONS.get(wanted, wanted)
    rows = [rates for rates in load_rates().values() if wanted in (compact(rates.arch), compact(rates.name))]
    if not rows:
        known = dict.fromkeys([*GENERATIONS, *(rates.arch for rates in load_rates().values())])
        raise GpuDefinitionError(f"no architecture is called {text!r}; there are {', '.join(known)}")
    for rates in rows:
        if rates.tensor_class == (tensor_class or "full"):
            return rates
    classes = ", ".join(rates.tensor_class for rates in rows)
    raise GpuDefinitionError(f"{rows[0].name} has no tensor class {tensor_class!r}; it has {classes}")
