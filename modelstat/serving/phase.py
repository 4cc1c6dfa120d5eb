"""What a language model does: read a prompt, or write one token against what it has read."""

from __future__ import annotations

from typing import Literal

import msgspec

from modelstat.errors import InputError

Kind = Literal["prefill", "decode"]

PROMPT, CONTEXT, GENERATE = 2048, 2048, 256
"""Tokens of a prompt, tokens in the cache, and tokens to write, where none are given."""


class Phase(msgspec.Struct, frozen=True):
    """One forward pass of each sequence of a batch.

    prefill: ``tokens`` tokens at once, the cache empty but allocated. decode: one token, ``tokens`` positions in the cache before it.
    """

    kind: Kind
    tokens: int
    request: tuple[int, int] | None = None
    """Tokens of the prompt and of the answer that the pass is one of, None where it was asked for by itself."""

    @property
    def new(self) -> int:
        """Tokens of each sequence that go through the model."""
        return self.tokens if self.kind == "prefill" else 1

    @property
    def past(self) -> int:
        """Positions of each sequence that are in the cache before the pass."""
        return 0 if self.kind == "prefill" else self.tokens

    @property
    def option(self) -> str:
        """The options that give the number: ``--prompt 2048``."""
        if self.request is not None:
            return "--prompt {} and --generate {}".format(*self.request)
        return f"--{'prompt' if self.kind == 'prefill' else 'context'} {self.tokens}"

    def __str__(self) -> str:
        return f"{self.kind} {self.tokens}"


def prefill(prompt: int | None = None) -> Phase:
    """Reading a prompt. Raises InputError for less than one token."""
    return Phase("prefill", checked("--prompt", PROMPT if prompt is None else prompt))


def decode(context: int | None = None, *, request: tuple[int, int] | None = None) -> Phase:
    """Writing one token against a cache. Raises InputError for an empty one: reading the first token is a prefill."""
    return Phase("decode", checked("--context", CONTEXT if context is None else context), request)


def checked(option: str, tokens: int) -> int:
    """A number of tokens. Raises InputError for less than one."""
    if tokens < 1:
        raise InputError(f"{option} {tokens}: give a number of tokens, at least 1")
    return tokens
