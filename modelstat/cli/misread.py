"""What a command line that cannot be read is told: which part of it, and a command line that can."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import CycloptsError

ANALYZE = "analyze"
"""What people write for the command that has no name."""

EXAMPLES = {
    "": "modelstat resnet50 --gpu v100",
    "gpus": "modelstat gpus 4090",
    "cache": "modelstat cache clear",
    "sweep": 'modelstat sweep "torchvision:resnet*" --gpu v100 --output results.parquet',
    "query": 'modelstat query "SELECT model, params FROM results" results.parquet',
    "compare": "modelstat compare resnet18 resnet34 --gpu v100",
    "check": "modelstat check modelstat.toml",
    "swap": "modelstat swap resnet50 conv=ghost --gpu v100",
    "overlay": "modelstat overlay resnet50 --gpu a100 trace.json.gz",
    "measure": "modelstat measure resnet50 --gpu my-machine.toml",
    "calibrate": "modelstat calibrate --output my-machine.toml",
    "size": "modelstat size resnet50 --qps 2000 --latency 20ms",
}
"""A command line of each command; "" is the analysis of a model."""

Commands = Mapping[str, Callable[..., object]]


def misread(error: CycloptsError, arguments: Sequence[str], commands: Commands) -> str:
    """The message for arguments that cannot be read as any of ``commands`` ("" is what no command is)."""
    from cyclopts import CoercionError, MissingArgumentError, UnknownOptionError, UnusedCliTokensError

    name = arguments[0] if arguments and arguments[0] in commands else ""
    command, meant = f"modelstat {name}".strip(), meant_command(arguments, commands)
    more = f"(`{command} --help` lists the options)"
    if not name and meant is not None:
        line = shlex.join(["modelstat", *meant, *arguments[1:]])
        return f"{arguments[0]!r} is no command: was `{line}` meant? (`modelstat --help` lists all)"
    if isinstance(error, UnknownOptionError):
        return f"{command} has no option {_unknown(error, name, commands)} {more}"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        asked = error.argument.name
        if any(given.partition("=")[0] == asked for given in arguments):
            return f"{asked} needs a value {more}"
        return f"{command} needs {asked}, as in `{EXAMPLES[name]}` {more}"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        extra = error.unused_tokens[0]
        if not name:
            return f"one model at a time, and {extra!r} is a second: `modelstat compare A B` sets models against each other {more}"
        return f"{command} has no place for {extra!r}, as in `{EXAMPLES[name]}` {more}"
    if isinstance(error, CoercionError) and error.token is not None and error.target_type in (int, float):
        number, example = ("a whole number", "3") if error.target_type is int else ("a number", "2.5")
        return f"{error.token.keyword or 'the argument'} {error.token.value!r} is not {number}: give one such as {example} {more}"
    return f"{' '.join(str(error).split())} {more}"


def meant_command(arguments: Sequence[str], commands: Commands) -> tuple[str, ...] | None:
    """The command that the first argument misspells: () for the analysis, which needs none; None where it is like no command."""
    first = arguments[0] if arguments else ""
    close = get_close_matches(first, [*filter(None, commands), ANALYZE], n=1, cutoff=0.75)
    if not close or first in commands:
        return None
    return () if close == [ANALYZE] else (close[0],)


def _unknown(error: object, name: str, commands: Commands) -> str:
    """The option that a command lacks, its nearest, or the commands that have it."""
    token = getattr(error, "token", None)
    given = str(getattr(token, "keyword", None) or getattr(token, "value", "")).partition("=")[0]
    own = _options(commands[name])
    close = get_close_matches(given, own, n=1, cutoff=0.75)
    if close:
        return f"{given}: did you mean {close[0]}?"
    others = [f"`modelstat {other or 'MODEL'}`" for other, function in commands.items() if given in _options(function)]
    return f"{given}: {', '.join(others)} {'has' if len(others) == 1 else 'have'} it" if others else given


def _options(function: Callable[..., object]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [f"--{each.name.strip('_').replace('_', '-')}" for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
