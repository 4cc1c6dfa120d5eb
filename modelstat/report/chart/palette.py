"""Colours that people with any kind of colour vision tell apart, and a second sign beside each: a symbol.

The colours are those of Okabe and Ito, "Color Universal Design" (2008).
"""

from __future__ import annotations

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILLION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip

BOUND_COLOURS = {"compute": GREEN, "memory": ORANGE, "overhead": PURPLE, "transfer": SKY, "none": "#888888"}
"""What limits a point -> its colour, the same in every chart. ``none``: nothing that is known."""

BOUND_SYMBOLS = {"compute": "circle", "memory": "diamond", "overhead": "triangle-up", "transfer": "square", "none": "x"}
"""What limits a point -> its symbol, by plotly's names."""

SERIES = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, "#888888", YELLOW)
"""Colours of things without an order, such as GPUs or families of ops."""
