"""All traces that rows need, made by a sweep: in parallel, each in a process of its own, kept in modelstat's cache."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from model_fit.rows import Row
from model_fit.traces import execution, spec_of, walked
from modelstat.sweeping.start import sweep


def prefetch(rows: Sequence[Row], configs: Path, workers: int | None = None) -> None:
    """Walks every model of ``rows`` that the cache does not hold; what fails is found again, and said, where it is needed."""
    from distributed import LocalCluster

    groups: dict[tuple[str, str, tuple[int, ...], bool], dict[str, None]] = {}
    for row in rows:
        key = (row.input, row.precision, walked(row.batch), execution(row).walks_channels_last)
        groups.setdefault(key, {})[spec_of(row.model, row.source, configs)] = None
    quiet = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=workers, **quiet) as cluster:
        for (inputs, precision, batches, last), specs in sorted(groups.items()):
            where = {"scheduler": cluster.scheduler_address, "channels_last": last}
            found = sweep(list(specs), inputs=inputs, batch=batches, precision=precision, **where).run()
            failed = found.tally.total() - found.tally["ok"]
            what = f"{len(specs)} models at {inputs}, {precision}{', channels-last' * last}"
            print(f"traced {what}" + (f", {failed} rows failed" * bool(failed)), file=sys.stderr, flush=True)
