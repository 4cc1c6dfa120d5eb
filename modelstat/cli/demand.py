"""What is asked of a fleet: requests of one pass, or prompts and answers of a language model."""

from __future__ import annotations

from collections.abc import Mapping

from modelstat.errors import UsageError

Given = Mapping[str, object]
"""Options and their values, None (or False) where one was not given."""


def check_one_pass(serving: Given, qps: float | None, latency: str | None) -> tuple[float, str]:
    """The demand of requests of one pass each.

    Raises UsageError for an option that is for language models, and without a rate and a limit.
    """
    for option, value in serving.items():
        if value is not None:
            raise UsageError(f"{option} {value} is for language models: add --phase serve, or leave it out")
    if qps is None:
        raise UsageError("a size needs a demand: add --qps N, the requests a second")
    if latency is None:
        raise UsageError("a size needs a limit: add --latency TIME such as 50ms, or --phase serve for a language model")
    return qps, latency


def check_serving(one_pass: Given) -> None:
    """Raises UsageError for an option that is for requests of one pass."""
    ways = {"--latency": "use --ttft TIME and --tpot TIME, to the first token and per token", "--input": "use --prompt N"}
    for option, value in one_pass.items():
        if value:
            way = ways.get(option, "leave it out")
            raise UsageError(f"{option} does not go with --phase serve: {way}")
