"""Every test runs with a trace cache of its own, never with the user's, and without a width of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

collect_ignore_glob = ["cases/*", "cli/models/*"]
"""Models that tests load by path: the doctest collector must not import them a second time."""


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty cache directory for the session; subprocesses inherit it."""
    directory = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODELSTAT_CACHE_DIR", str(directory))
        patch.delenv("COLUMNS", raising=False)
        yield directory
