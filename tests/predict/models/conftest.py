"""scripts/model_fit is no part of the package: its modules are imported from the scripts' folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


@pytest.fixture(scope="session")
def script() -> Callable[[str], Any]:
    if str(SCRIPTS) not in sys.path:
        sys.path.append(str(SCRIPTS))
    return lambda name: import_module(f"model_fit.{name}")
