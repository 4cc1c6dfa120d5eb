"""How a figure looks: its colours, fonts and size."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Theme = Literal["light", "dark", "paper"]


class Look(msgspec.Struct, frozen=True):
    """Settings of matplotlib (rcParams), and the colours that they do not name."""

    settings: dict[str, Any]
    ink: str
    """Roofs, arrows and labels."""
    faint: str
    """Ceilings that nothing runs on, and other grids."""


SHARED: dict[str, Any] = {
    "text.parse_math": False,  # a module's name is no formula
    "text.usetex": False,
    "svg.hashsalt": "modelstat",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
}


def _colours(background: str, ink: str, grid: str) -> dict[str, Any]:
    names = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color", "axes.edgecolor")
    backs = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    return {**dict.fromkeys(names, ink), **dict.fromkeys(backs, background), "grid.color": grid}


SCREEN: dict[str, Any] = {"font.family": "DejaVu Sans", "font.size": 9, "figure.figsize": (7.5, 4.8)}

THEMES: dict[Theme, Look] = {
    "light": Look({**SHARED, **SCREEN, **_colours("white", "#222222", "#e4e4e4")}, "#222222", "#999999"),
    "dark": Look({**SHARED, **SCREEN, **_colours("#15181d", "#e6e6e6", "#333940")}, "#e6e6e6", "#7d858f"),
    # One column of a two-column page, in a serif face.
    "paper": Look(
        {
            **SHARED, **_colours("white", "black", "#e8e8e8"),
            "font.family": "DejaVu Serif", "font.size": 7, "figure.figsize": (3.5, 2.9), "savefig.dpi": 300,
        },
        "black",
        "#999999",
    ),
}  # fmt: skip
"""light and dark are for screens and slides, paper is one column of a paper."""
