"""``--sweep seq=128..32768``: a length by name, which stands in the inputs or in the model."""

from __future__ import annotations

import re

import msgspec

from modelstat.errors import UsageError


class Sweep(msgspec.Struct, frozen=True):
    """A name, and the sizes that it takes one after another, ascending."""

    name: str
    sizes: tuple[int, ...]

    def put(self, text: str, size: int) -> str:
        """A text with the name replaced where it stands for a size.

        >>> Sweep("seq", ()).put("ids=seq:int64,mask=1xseqxseq", 128)
        'ids=128:int64,mask=1x128x128'
        """
        return self._pattern.sub(str(size), text)

    def occurs(self, text: str | None) -> bool:
        """Whether the name stands for a size there."""
        return text is not None and self._pattern.search(text) is not None

    @property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(rf"(?:(?<=[=,xX×(\s])|^){re.escape(self.name)}(?=$|[,xX×:)\s])")


def parse_sweep(text: str, model: str, inputs: str | None) -> Sweep:
    """The sweep that a text describes. Raises UsageError where it cannot be read, or its name stands nowhere."""
    name, equals, given = text.partition("=")
    name = name.strip()
    if not equals or not name.isidentifier():
        raise UsageError(f"--sweep {text!r}: write it like seq=128..32768 or seq=128,512,2048")
    found = Sweep(name, tuple(sorted(set(sizes(given.split(","), f"--sweep {name}")))))
    if not found.occurs(inputs) and not found.occurs(model):
        examples = f"--input ids={name}:int64 or --input 3x{name}x{name}"
        raise UsageError(f"--sweep {name}: {name} stands in no size: write it there, such as {examples}")
    return found


def sizes(texts: list[str], what: str, kind: str = "size", example: str = "128..4096") -> list[int]:
    """Whole numbers of at least 1 in order, without repetitions; ``LOW..HIGH`` doubles from LOW on and ends with HIGH.

    >>> sizes(["1", "2", "4..48"], "--batch")
    [1, 2, 4, 8, 16, 32, 48]

    Raises UsageError, which starts with ``what``.
    """
    found: dict[int, None] = {}
    for text in texts:
        ends = [end.strip() for end in text.split("..")]
        if len(ends) > 2 or not all(end.isdecimal() and 0 < int(end[:20]) < 2**40 for end in ends):
            raise UsageError(f"{what} {text.strip()!r} is not a {kind}: give whole numbers of at least 1, such as {example}")
        low, high = int(ends[0]), int(ends[-1])
        if low > high:
            raise UsageError(f"{what} {text.strip()}: the first size is above the last: write {high}..{low}")
        while low < high:
            found[low] = None
            low *= 2
        found[high] = None
    return list(found)

