"""Which layers a swap may take: by path, kernel, channels, and whether the first one stays. Nothing here imports torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from modelstat.errors import SwapError

SHOWN = 6
"""Paths that an error spells out."""


class Selection(msgspec.Struct, frozen=True):
    """``where`` are globs on module paths, each of which also takes what is below; ``kernels`` and ``min_channels`` are of convolutions.

    ``skip_stem`` leaves out the first layer that runs. ``min_channels`` is held against the smaller of input and output channels (of a
    linear layer: features).
    """

    where: tuple[str, ...] = ()
    skip_stem: bool = False
    kernels: tuple[tuple[int, ...], ...] = ()
    min_channels: int | None = None

    def takes(self, path: str) -> bool:
        """Whether a path is selected."""
        return not self.where or any(matches(path, pattern) for pattern in self.where)

    def refuses(self, kernel: Sequence[int] | None, channels: int | None) -> str | None:
        """Why a selected layer of this kernel (None: it has none) and this many channels is left out; None if it is not."""
        if self.kernels and kernel is not None and not any(_same(kernel, wanted) for wanted in self.kernels):
            return f"its kernel is {kernel_text(kernel)}, not {' or '.join(map(kernel_text, self.kernels))}"
        if self.min_channels is not None and channels is not None and channels < self.min_channels:
            return f"fewer than {self.min_channels} channels"
        return None

    @property
    def text(self) -> str:
        """For a caption: empty where everything is selected."""
        parts = [f"where {' or '.join(self.where)}"] if self.where else []
        parts += ["without the stem"] if self.skip_stem else []
        parts += [f"kernel {' or '.join(map(kernel_text, self.kernels))}"] if self.kernels else []
        parts += [f"at least {self.min_channels} channels"] if self.min_channels is not None else []
        return ", ".join(parts)


def matches(path: str, pattern: str) -> bool:
    """Whether a glob takes a module's path, or that of a module above it.

    >>> matches("layer3.0.conv1", "layer3.*"), matches("layer3.0.conv1", "layer3"), matches("layer30.conv1", "layer3")
    (True, True, False)
    """
    parts = path.split(".")
    return any(fnmatchcase(".".join(parts[:end]), pattern) for end in range(1, len(parts) + 1))


def _same(kernel: Sequence[int], wanted: Sequence[int]) -> bool:
    return tuple(wanted) == tuple(kernel) or (len(wanted) == 1 and len(set(kernel)) == 1 and kernel[0] == wanted[0])


def kernel_text(kernel: Sequence[int]) -> str:
    """``3x3``; a single number stands for all axes."""
    return "x".join(map(str, kernel))


def parse_kernels(texts: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """Kernel sizes from texts. Raises SwapError.

    >>> parse_kernels(["3", "1x7"])
    ((3,), (1, 7))
    """
    found = []
    for text in texts:
        if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text):
            raise SwapError(f"kernel {text!r}: write a size such as 3, or 1x7")
        found.append(tuple(map(int, text.split("x"))))
    return tuple(found)


def from_mapping(fields: Mapping[str, Any]) -> Selection:
    """A selection from plain data, as a model file has it: where, skip_stem, kernel and min_channels. Raises SwapError."""
    unknown = sorted(set(fields) - {"where", "skip_stem", "kernel", "min_channels"})
    if unknown:
        raise SwapError(f"a swap has no {unknown[0]!r}: it has rule, where, skip_stem, kernel, min_channels")
    where, kernel = (_texts(name, fields.get(name)) for name in ("where", "kernel"))
    stem, channels = fields.get("skip_stem", False), fields.get("min_channels")
    if not isinstance(stem, bool):
        raise SwapError(f"skip_stem is true or false, not {stem!r}")
    if channels is not None and (type(channels) is not int or channels < 1):
        raise SwapError(f"min_channels is a whole number of at least 1, not {channels!r}")
    return Selection(where, stem, parse_kernels(kernel), channels)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    several = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(each, str) or type(each) is int for each in several):
        raise SwapError(f"{name} is a text or a list of texts, not {value!r}")
    return tuple(map(str, several))


def nothing_matches(where: Sequence[str], what: str, paths: Sequence[str]) -> str:
    """The end of an error: which paths could have been meant."""
    if not paths:
        return f"the model has no {what}"
    close = [near for pattern in where for near in get_close_matches(pattern.replace("*", ""), paths, n=2)]
    shown = list(dict.fromkeys([*close, *paths]))[:SHOWN]
    more = f", ... ({len(paths)} in all)" if len(paths) > len(shown) else ""
    patterns = " or ".join(map(repr, where)) or "the selection"
    return f"{patterns} matches no {what}: paths of such layers are {', '.join(shown)}{more}"
