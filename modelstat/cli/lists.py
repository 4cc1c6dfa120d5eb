"""Values of options that several commands have, checked before anything is traced; of many, repeated or separated by commas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from modelstat.errors import UsageError

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "amp-fp16", "amp-bf16")


def words(values: Iterable[str]) -> list[str]:
    """The values of a list option, in order, without repetitions.

    >>> words(["path,params", " bound", "path"])
    ['path', 'params', 'bound']
    """
    parts = (part.strip() for value in values for part in value.split(","))
    return list(dict.fromkeys(part for part in parts if part))


def batches(values: Iterable[str]) -> list[int | None]:
    """The batch sizes to run, [None] where none was given. Raises UsageError for one that is not a whole number of at least 1.

    >>> batches(["1,8", "64"]), batches(["1,2,4..32"])
    ([1, 8, 64], [1, 2, 4, 8, 16, 32])
    """
    from modelstat.deploy.sweep import sizes

    return list(sizes(words(values), "--batch", "batch size", "--batch 1,8,64 or 1..512")) or [None]


def precisions(values: Iterable[str]) -> list[str | None]:
    """The precisions to run, [None] (the model's own) where none was given. Raises UsageError for one that does not exist.

    >>> precisions(["FP16,amp-bf16"])
    ['fp16', 'amp-bf16']
    """
    given = [text.lower().replace("_", "-") for text in words(values)]
    for text in given:
        if text not in PRECISIONS:
            raise UsageError(f"--precision {text!r} is not a precision: choose from {', '.join(PRECISIONS)}")
    return list(given) or [None]


def one_of_each(what: str, batch: str | None, precision: str | None) -> tuple[int | None, str | None]:
    """The batch and the precision of ``what`` has one of each, None where none was given. Raises UsageError for several."""
    sizes, names = batches([batch] if batch else ()), precisions([precision] if precision else ())
    if len(sizes) > 1 or len(names) > 1:
        raise UsageError(f"{what} is of one batch and one precision: give one of each")
    return sizes[0], names[0]


def check_input(text: str | None, sizes: Sequence[int | None]) -> None:
    """Raises InputError for an ``--input`` that cannot be read, and UsageError for one that takes none of the batch sizes."""
    from modelstat.sources.inputs import parse_inputs

    if text is not None:
        plan = parse_inputs(text)
        for size in sizes:
            plan.check(size)


def check_top(top: int | None, form: str) -> None:
    """Raises UsageError for a ``--top`` that shows nothing, and with JSON, which holds everything."""
    if top is not None and top < 1:
        raise UsageError(f"--top {top} shows nothing: give at least 1")
    if top is not None and form == "json":
        raise UsageError("--format json is the whole report, in which --top changes nothing: leave it out, or choose --format csv")


def seconds(option: str, text: str, default: str) -> float:
    """The time (s) of an option; ``default`` is the unit of a bare number. Raises UsageError, which names the option.

    >>> seconds("--latency", "20", "ms")
    0.02
    """
    from modelstat.quantities import parse_seconds

    try:
        return parse_seconds(text, default=default)
    except UsageError as error:
        raise UsageError(f"{option} {error}") from error
