"""Random numbers go on after a walk where they were before it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from modelstat.trace import randomness
from modelstat.trace.randomness import numpy_kept, python_kept

np: Any = numpy.random
DRAWS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "one": lambda: (random.random(), np.rand()),
    "many": lambda: ([random.random() for _ in range(2000)], np.rand(2000)),
    "a normal": lambda: (random.gauss(0, 1), np.normal()),
    "normals": lambda: ([random.gauss(0, 1) for _ in range(3)], np.normal(size=3)),
    "seeds": lambda: (random.seed(7), np.seed(7)),
}


@pytest.fixture(autouse=True)
def _own_state() -> Any:
    states = random.getstate(), np.get_bit_generator(), np.get_state()
    yield
    random.setstate(states[0])
    np.set_bit_generator(states[1])
    np.set_state(states[2])


def drawn() -> tuple[Any, ...]:
    """Of both kinds from both generators, in an order that uses what is left of a pair of normal numbers first."""
    return random.gauss(0, 1), random.random(), np.normal(), np.rand(), np.normal()


@pytest.mark.parametrize("way", ["by memory", "asked"])
@pytest.mark.parametrize("before", DRAWS)
@pytest.mark.parametrize("between", DRAWS)
def test_what_comes_next_is_the_same(before: str, between: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "asked":
        monkeypatch.setattr(randomness, "_python_place", lambda: None)
        monkeypatch.setattr(randomness, "_numpy_place", lambda: None)

    def draws(interrupted: bool) -> tuple[Any, ...]:
        random.seed(3)
        np.seed(3)
        DRAWS[before]()
        if interrupted:
            restores = python_kept(), numpy_kept()
            DRAWS[between]()
            for restore in restores:
                restore()
        return drawn()

    assert draws(True) == draws(False)


def test_the_places_are_found_on_this_python() -> None:
    """A new layout would go unnoticed otherwise: states would be asked for, which is right and slow."""
    assert randomness._python_place() is not None
    assert randomness._numpy_place() is not None


def test_another_generator_of_numpys() -> None:
    np.set_bit_generator(np.PCG64(1))
    restore = numpy_kept()
    np.rand(5)
    np.set_bit_generator(np.MT19937(2))
    restore()
    assert isinstance(np.get_bit_generator(), np.PCG64)
    assert np.rand() == np.Generator(np.PCG64(1)).random()


def test_a_generator_that_is_exchanged_comes_back() -> None:
    np.seed(5)
    first = np.get_bit_generator()
    restore = numpy_kept()
    np.set_bit_generator(np.PCG64(1))
    np.rand(5)
    restore()
    assert np.get_bit_generator() is first
    assert np.rand() == np.RandomState(5).rand()


@pytest.mark.parametrize("own", [lambda: 0.5, random.Random(9).random])
def test_functions_that_a_test_has_replaced(own: Callable[[], float], monkeypatch: pytest.MonkeyPatch) -> None:
    random.seed(3)
    np.seed(3)
    expected = random.getstate(), np.rand()
    random.seed(3)
    np.seed(3)
    monkeypatch.setattr(random, "random", own)
    monkeypatch.setattr(np, "get_state", lambda *given, **named: None)
    restores = python_kept(), numpy_kept()
    random.getrandbits(32)
    np.rand(5)
    for restore in restores:
        restore()
    assert (random.getstate(), np.rand()) == expected


def test_a_numpy_without_exchangeable_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    np.seed(3)
    expected = np.rand()
    np.seed(3)
    monkeypatch.delattr(np, "set_bit_generator")
    restore = numpy_kept()
    np.rand(5)
    restore()
    assert np.rand() == expected
