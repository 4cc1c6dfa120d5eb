"""The command line: one command, one file. Nothing here imports torch."""

from __future__ import annotations

from modelstat.cli.entry import main

__all__ = ["main"]
