"""The tests here share traces: makes ``tests.predict.sample`` importable also where pytest is not started with ``python -m``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.append(ROOT)
