"""The entry point: runs the application and turns every failure into one line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from modelstat.errors import ModelstatError, UnknownModelError

INTERRUPTED = 130
"""128 + SIGINT, as a shell reports a program that Control-C ended."""
BROKEN_PIPE = 141
"""128 + SIGPIPE, as a shell reports a program whose reader went away."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code.

    0: done. 1: a bug. 2: the input or the options are wrong. 3: ``--strict`` and an op without a formula.
    130: interrupted. 141: whoever read the output stopped reading. ``arguments`` defaults to ``sys.argv[1:]``.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    traceback = "--traceback" in given
    given = [argument for argument in given if argument != "--traceback"]
    try:
        return _run(given)
    except ModelstatError as error:
        return _fail(error, f"{error}{_meant_command(error, given)}", error.exit_code, traceback)
    except KeyboardInterrupt:
        print("modelstat: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more at exit, which would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        message = f"{type(error).__name__}: {error} (this is a bug in modelstat: --traceback shows where)"
        return _fail(error, message, 1, traceback)


def _run(arguments: list[str]) -> int:
    from cyclopts import CycloptsError

    from modelstat.cli.app import COMMANDS, build_app
    from modelstat.errors import UsageError

    app = build_app()
    try:
        result = app(arguments or ["--help"], exit_on_error=False, print_error=False)
    except CycloptsError as error:
        from modelstat.cli.analyze import analyze
        from modelstat.cli.misread import misread

        raise UsageError(misread(error, arguments, {"": analyze, **COMMANDS})) from error
    sys.stdout.flush()
    return result if isinstance(result, int) else 0


def _meant_command(error: ModelstatError, arguments: list[str]) -> str:
    """The command that a misspelt one (``modelstat gpu``) was meant to be: what is no command is taken for a model."""
    from modelstat.cli.app import COMMANDS
    from modelstat.cli.misread import EXAMPLES, meant_command

    meant = meant_command(arguments, COMMANDS) if isinstance(error, UnknownModelError) else None
    if meant is None:
        return ""
    if not meant:
        return f" (a model is analyzed by its name alone: `{EXAMPLES['']}`)"
    return f" (or was the command `modelstat {meant[0]}` meant?)"


def _fail(error: BaseException, message: str, exit_code: int, traceback: bool) -> int:
    if traceback:
        import traceback as tracebacks

        tracebacks.print_exception(error)
    line = " ".join(message.split())
    print(f"modelstat: error: {line}", file=sys.stderr)
    return exit_code
