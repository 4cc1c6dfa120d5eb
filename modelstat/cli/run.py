"""How a model runs: the options behind a predicted time, checked before anything is traced."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from modelstat.errors import UsageError

if TYPE_CHECKING:
    from modelstat.predict.execution import Execution
    from modelstat.predict.measured import Correction
    from modelstat.records import Trace

Mode = Literal["eager", "compile"]


def execution(mode: Mode, host: str, measured: str | None, *, cuda_graph: bool, channels_last: bool, timed: bool, runs: int) -> Execution:
    """The execution that the options describe.

    Raises UsageError for an unknown host, for options that need a GPU where none is given, and for a measured time that would have to
    hold for several batches or precisions; InputError for a file that cannot be read.
    """
    from modelstat.predict import measured as measurements
    from modelstat.predict.execution import parse_execution

    found = parse_execution(mode, host, cuda_graph=cuda_graph, channels_last=channels_last)
    given = {
        "--mode": mode != "eager", "--host": host != "typical", "--cuda-graph": cuda_graph, "--channels-last": channels_last,
        "--measured": measured is not None,
    }  # fmt: skip
    if not timed and any(given.values()):
        raise UsageError(f"{next(name for name, here in given.items() if here)} changes a predicted time: add --gpu NAME")
    if measured is not None and measurements.is_file(measured):
        measurements.read(Path(measured))
    elif measured is not None:
        measurements.parse(measured)
        if runs > 1:
            raise UsageError(f"--measured {measured} is the time of one batch and precision: give one of each, or a CSV file of several")
    return found


def correction(measured: str, trace: Trace, execution: Execution, *, cache: bool) -> Correction:
    """The correction of a trace's predicted times. Raises ModelstatError."""
    from modelstat.api import trace_spec
    from modelstat.predict import measured as measurements

    def trace_of(row: measurements.Row) -> Trace:
        return trace_spec(row.model, row.input, row.batch, row.precision, channels_last=row.walks_channels_last, cache=cache)

    return measurements.correction(measured, trace, execution, trace_of)
