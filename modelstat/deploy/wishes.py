"""How values had better lie on the GPUs, as one walk over a trace finds out for the next."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from modelstat.deploy.cut import Split, merged


class Wishes(msgspec.Struct, frozen=True):
    """``layouts`` by value: what made it should share it out so. ``whole``: it would only be gathered, and is not worth splitting.

    ``shared`` are inputs, parameters and constants that some op needs whole: each GPU holds all of them.
    """

    layouts: Mapping[int, Split] = {}
    whole: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()

    def and_also(self, layouts: Mapping[int, Split], whole: set[int], shared: set[int]) -> Wishes:
        """These and others. Two layouts of one value become one that serves both, if there is one."""
        both = {value: merged(self.layouts[value], split) if value in self.layouts else split for value, split in layouts.items()}
        return Wishes({**self.layouts, **both}, self.whole | whole, self.shared | shared)
