"""What tests of walks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from modelstat.trace import memo, sequences

Forgetful = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Forgetful:
    """While it is entered no walk remembers an op: each one runs."""

    @contextmanager
    def entered() -> Iterator[None]:
        with monkeypatch.context() as without:
            for module in (memo, sequences):
                without.setattr(module, "key_of", lambda *_: None)
            yield

    return entered
