"""The names of all models of an origin, found in a process of its own: the sweep itself never imports torch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from modelstat.errors import ModelstatError, SourceError, UsageError
from modelstat.sweeping.processes import command


def names(origins: Iterable[str]) -> dict[str, list[str]]:
    """All model names of each origin, sorted. Raises SourceError for an origin that cannot list them, or that is not installed."""
    wanted = list(dict.fromkeys(origins))
    if not wanted:
        return {}
    arguments = [*command("modelstat.sweeping.names"), *wanted]
    finished = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if finished.returncode:
        lines = finished.stderr.strip().splitlines() or ["no message"]
        raise SourceError(f"the models of {' and '.join(wanted)} cannot be listed: {lines[-1]}")
    found: dict[str, list[str]] = json.loads(finished.stdout.splitlines()[-1])
    return found


def list_names(origin: str) -> list[str]:
    """All model names of one origin, sorted. Imports its package. Raises UsageError or MissingExtraError."""
    from modelstat.sources.library import Library
    from modelstat.sources.registry import make_source
    from modelstat.sources.spec import Spec

    source = make_source(Spec(origin, "any"), Path())
    if not isinstance(source, Library):
        raise UsageError(f"origin {origin} cannot list its models: name them one by one")
    source.require()
    return sorted(source.names())


def main() -> int:
    """Print the names of each origin that the command line names, as one JSON object on the last line."""
    try:
        found = {origin: list_names(origin) for origin in sys.argv[1:]}
    except ModelstatError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(found))
    return 0
