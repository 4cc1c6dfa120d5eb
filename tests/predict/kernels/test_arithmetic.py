from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from modelstat.predict.kernels import arithmetic


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("maximum", (1.5, 2.0), 2.0),
        ("minimum", (1.5, 2.0), 1.5),
        ("where", (True, 1.0, 2.0), 1.0),
        ("where", (False, 1.0, 2.0), 2.0),
        ("ceil", (2.1,), 3.0),
        ("floor", (2.9,), 2.0),
        ("exp", (1.0,), math.e),
        ("log2", (8.0,), 3.0),
        ("overlapped", (3.0, 4.0, 2.0), 5.0),
        ("overlapped", (3.0, 4.0, 1.0), 7.0),
        ("overlapped", (0.0, 4.0, 2.0), 4.0),
        ("overlapped", (0.0, 0.0, 2.0), 0.0),
    ],
)
def test_a_float_and_an_array_get_the_same_answer(name: str, arguments: tuple[Any, ...], expected: float) -> None:
    function = getattr(arithmetic, name)
    assert function(*arguments) == pytest.approx(expected)
    vectors = [np.array([argument, argument]) for argument in arguments[:2]] + list(arguments[2:])
    np.testing.assert_allclose(function(*vectors), [expected, expected])


def test_anywhere() -> None:
    assert arithmetic.anywhere(True)
    assert arithmetic.anywhere(np.array([False, True]))
    assert not arithmetic.anywhere(np.array([False, False]))


def test_overlapped_neither_underflows_nor_overflows() -> None:
    assert arithmetic.overlapped(1e-9, 1e-12, 80.0) == pytest.approx(1e-9)
