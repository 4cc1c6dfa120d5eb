"""The random numbers of Python and numpy, which go on after a walk where they were before it.

Asking either for its state takes as long as recording two ops, so the memory that it lies in is looked at instead: by the address that
numpy gives, and at places inside objects that are found once, on generators of our own. Where these are not found, and for a generator
of another kind, the state is asked for.
"""

from __future__ import annotations

import ctypes
import random
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

WORDS = 624
"""Of 32 bits, in the state of a Mersenne twister (Matsumoto and Nishimura, 1998)."""
PYTHON = struct.Struct(f"i{WORDS}I")
"""The position in them, and the words."""
NUMPY = struct.Struct(f"{WORDS}Ii")
"""The words, and the position in them."""
NORMAL = struct.Struct("i4xd")
"""Whether a second number is left of the last pair of normal ones, and which."""


def python_kept() -> Callable[[], None]:
    """Remembers the state of the module :mod:`random`, and returns what puts it back."""
    generator: Any = getattr(random, "_inst", None)  # whose methods the module's functions are, unless a test has put others there
    place = _python_place() if type(generator) is random.Random else None
    if place is None:
        state, put = random.getstate(), random.setstate
        return lambda: put(state)
    address = id(generator) + place
    before, normal = ctypes.string_at(address, PYTHON.size), generator.gauss_next

    def restore() -> None:
        if generator.gauss_next is not normal or ctypes.string_at(address, PYTHON.size) != before:
            position, *words = PYTHON.unpack(before)
            generator.setstate((generator.VERSION, (*words, position), normal))

    return restore


def numpy_kept() -> Callable[[], None]:
    """Remembers the state of :mod:`numpy.random`, if that is loaded, and returns what puts it back."""
    numpy = sys.modules.get("numpy.random")  # numpy itself loads it when it is first asked for
    if numpy is None:
        return lambda: None
    owner: Any = getattr(getattr(numpy, "mtrand", None), "_rand", None)
    if type(owner) is not numpy.RandomState or not hasattr(numpy, "set_bit_generator"):
        state, put = numpy.get_state(), numpy.set_state
        return lambda: put(state)
    generator = numpy.get_bit_generator()
    place = _numpy_place() if type(generator) is numpy.MT19937 else None
    if place is None:
        kept = owner.get_state(legacy=False)
        return lambda: _set_numpy(numpy, owner, generator, kept)
    address, normal_address = generator.ctypes.state_address, id(owner) + place
    before, normal = ctypes.string_at(address, NUMPY.size), ctypes.string_at(normal_address, NORMAL.size)

    def restore() -> None:
        same = ctypes.string_at(address, NUMPY.size) == before and ctypes.string_at(normal_address, NORMAL.size) == normal
        if not same or numpy.get_bit_generator() is not generator:
            *words, position = NUMPY.unpack(before)
            _set_numpy(numpy, owner, generator, ("MT19937", words, position, *NORMAL.unpack(normal)))

    return restore


def _set_numpy(numpy: Any, owner: Any, generator: Any, state: Any) -> None:
    if numpy.get_bit_generator() is not generator:
        numpy.set_bit_generator(generator)
    owner.set_state(state)


@cache
def _python_place() -> int | None:
    """Where in a ``random.Random`` its position and words lie, None if they are not to be found."""
    if sys.implementation.name != "cpython":
        return None  # an id is an address in CPython alone
    own = random.Random(1)
    *words, position = own.getstate()[1]
    found = _memory(own).find(PYTHON.pack(position, *words))
    return found if found > 0 else None


@cache
def _numpy_place() -> int | None:
    """Where in a ``numpy.random.RandomState`` the number that is left of a pair lies, None if it is not to be found."""
    if sys.implementation.name != "cpython":
        return None
    own, left = sys.modules["numpy.random"].RandomState(1), 0.8414709848078965  # (any number)
    places = []
    for there in (1, 0, 1):
        own.set_state((*own.get_state()[:3], there, left))
        memory = _memory(own)
        place = memory.find(struct.pack("d", left)) - struct.calcsize("i4x")
        if place < 0 or NORMAL.unpack_from(memory, place) != (there, left):
            return None
        places.append(place)
    return places[0] if len(set(places)) == 1 else None


def _memory(thing: Any) -> bytes:
    return ctypes.string_at(id(thing), type(thing).__basicsize__)
