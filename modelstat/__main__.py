"""``python -m modelstat`` is the command ``modelstat``."""

from __future__ import annotations

import sys

from modelstat.cli import main

if __name__ == "__main__":
    sys.exit(main())
