"""The few functions that kernel formulas need, for plain floats and for numpy arrays alike.

A formula is written once: a prediction calls it with floats, a fit with one array entry a measurement. numpy is imported only where an
argument is not a plain number, so predicting needs none.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

Quantity = Any
"""A float, or a numpy array with one float a measurement."""

_PLAIN = frozenset((int, float, bool))


def _numpy() -> Any:
    return import_module("numpy")


def maximum(a: Quantity, b: Quantity) -> Quantity:
    """The larger one.

    >>> maximum(1.0, 2)
    2
    """
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return a if a > b else b
    return _numpy().maximum(a, b)


def minimum(a: Quantity, b: Quantity) -> Quantity:
    """The smaller one."""
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return a if a < b else b
    return _numpy().minimum(a, b)


def where(condition: Quantity, yes: Quantity, no: Quantity) -> Quantity:
    """``yes`` where the condition holds, else ``no``; both are evaluated.

    >>> where(3 < 2, 1.0, 0.5)
    0.5
    """
    if type(condition) in _PLAIN:
        return yes if condition else no
    return _numpy().where(condition, yes, no)


def anywhere(condition: Quantity) -> bool:
    """Whether the condition holds at all: a formula skips a branch that no row takes.

    >>> anywhere(3 < 2)
    False
    """
    return bool(condition if type(condition) in _PLAIN else condition.any())


def ceil(a: Quantity) -> Quantity:
    """The next integer above."""
    return math.ceil(a) if type(a) in _PLAIN else _numpy().ceil(a)


def floor(a: Quantity) -> Quantity:
    """The next integer below."""
    return math.floor(a) if type(a) in _PLAIN else _numpy().floor(a)


def exp(a: Quantity) -> Quantity:
    """e to the power of a."""
    return math.exp(a) if type(a) in _PLAIN else _numpy().exp(a)


def log2(a: Quantity) -> Quantity:
    """Logarithm to base 2 of a positive number."""
    return math.log2(a) if type(a) in _PLAIN else _numpy().log2(a)


def overlapped(a: Quantity, b: Quantity, power: float) -> Quantity:
    """(a^p + b^p)^(1/p): two activities that overlap in part. p = 1 adds them, a large p takes the larger one.

    Scaled by the larger one, so that neither underflows.

    >>> overlapped(3.0, 4.0, 2.0)
    5.0
    """
    larger, smaller = maximum(a, b), minimum(a, b)
    share = smaller / maximum(larger, 1e-30)
    return larger * (1.0 + share**power) ** (1.0 / power)
