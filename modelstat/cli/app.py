"""The application: one default command (analyze) and the subcommands beside it.

A new subcommand is one file with one function, and one entry in :data:`COMMANDS`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from cyclopts import App, Group, Parameter

from modelstat import __version__
from modelstat.cli.analyze import analyze
from modelstat.cli.cache import cache
from modelstat.cli.calibrate import calibrate
from modelstat.cli.check import check
from modelstat.cli.compare import compare
from modelstat.cli.gpus import gpus
from modelstat.cli.measure import measure
from modelstat.cli.options import whole
from modelstat.cli.overlay import overlay
from modelstat.cli.query import query
from modelstat.cli.size import size
from modelstat.cli.swap import swap
from modelstat.cli.sweep import sweep
from modelstat.report.width import width_of

if TYPE_CHECKING:
    from rich.console import Console

COMMANDS: dict[str, Callable[..., object]] = {
    "gpus": gpus,
    "cache": cache,
    "sweep": sweep,
    "query": query,
    "compare": compare,
    "check": check,
    "swap": swap,
    "overlay": overlay,
    "measure": measure,
    "calibrate": calibrate,
    "size": size,
}
"""What is a command, not a model: a model of that name is written with its origin (``timm:gpus``)."""

HELP = "What every layer of a PyTorch model costs, and what sets its time on a GPU, without weights and without a GPU."


def build_app() -> App:
    """A new application. Parsing errors are raised, not printed: :func:`modelstat.cli.entry.main` answers for all of them."""
    app = App(
        name="modelstat",
        help=HELP,
        usage="Usage: modelstat MODEL [OPTIONS]\n       modelstat COMMAND [OPTIONS]",
        version=__version__,
        help_format="plaintext",
        default_parameter=Parameter(negative=(), show_default=False, show_choices=False, converter=whole),
        group_commands=Group("Commands", sort_key=6),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        console=_console() if "COLUMNS" in os.environ else None,
    )
    app.default(analyze)
    for name, command in COMMANDS.items():
        app.command(command, name=name)
    return app


def _console() -> Console:
    """What the help is printed to: COLUMNS may say that there are none."""
    from rich.console import Console

    return Console(width=width_of(sys.stdout, 80))
