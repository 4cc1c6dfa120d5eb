"""``modelstat calibrate``: this machine as a device profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from modelstat.cli.options import RUN, SHOW, option


def calibrate(
    *,
    device: Annotated[Literal["cpu", "cuda", "mps"], option(RUN, "DEVICE")] = "cpu",
    seconds: Annotated[float, option(RUN, "S")] = 0.2,
    output: Annotated[Path | None, option(SHOW, "FILE")] = None,
) -> None:
    """Measure this machine: a TOML that --gpu my-machine.toml takes.

    Args:
        device: cpu (the default), cuda or mps.
        seconds: Time of one of some forty benchmarks; 0.2 by default.
        output: Write to a file, whole or not at all.
    """
    from modelstat.cli.output import Output
    from modelstat.errors import UsageError

    if not 0 < seconds <= 60:
        raise UsageError(f"--seconds {seconds:g}: give a time above 0 and of at most a minute")
    with Output(output) as out:
        from modelstat.measure.calibrate import calibrate as measured
        from modelstat.measure.session import check_device

        check_device(device)
        out.stream.write(measured(device, budget=seconds))
