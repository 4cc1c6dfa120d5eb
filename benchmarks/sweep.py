"""What a sweep costs beside its models: `python benchmarks/sweep.py [efficiency|scheduler|memory|timm ...]`, all without arguments.

efficiency: busy seconds / (workers x wall seconds) of 2 workers, with the models' times taken in the same run and, as the sum of
single times, in a run of one worker. scheduler: 64 workers whose tasks sleep, through the same dispatch. memory: of this process, as
rows arrive by the ten thousands. timm: all its architectures at their default inputs, cold and warm.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

import modelstat
from modelstat.sweeping.cluster import connected
from modelstat.sweeping.dispatch import Situation, Task, dispatched
from modelstat.sweeping.grid import Grid
from modelstat.sweeping.results import Results
from modelstat.sweeping.row import Outcome, Row
from modelstat.sweeping.sweep import Sweep

SLEEP_SECONDS = 1.0


def efficiency(models: str = "timm:resn*") -> None:
    """Cold sweeps of the same models by one worker and by two."""
    one = swept(models, workers=1, cache=False)
    two = swept(models, workers=2, cache=False)
    print(f"efficiency, {two.grid.size} models ({models}), cold, cluster and imports included")
    for sweep in (one, two):
        line(sweep, f"{sweep.statistics.threads} worker{'s' * (sweep.statistics.threads > 1)}")
    singles = one.statistics.busy_seconds / (2 * two.statistics.wall_seconds)
    print(f"  sum of single times / (2 x wall)         {singles:8.2f}   (the machine had load {os.getloadavg()[0]:.1f} at the end)")


def swept(models: str, *, workers: int, cache: bool) -> Sweep:
    return modelstat.sweep(models, workers=workers, cache=cache, progress=True).run()


def line(sweep: Sweep, what: str) -> None:
    statistics = sweep.statistics
    print(
        f"  {what:<24} wall {statistics.wall_seconds:8.1f} s, {statistics.jobs / statistics.wall_seconds:6.2f} models/s, "
        f"busy {statistics.efficiency or 0:.2f}, {statistics.processor_seconds:.0f} s of processor time, rows {dict(sweep.tally)}"
    )


def sleep(payload: bytes) -> bytes:
    time.sleep(SLEEP_SECONDS)
    return payload


def answer(payload: bytes) -> bytes:
    return payload


def idle(situation: Situation) -> None:
    del situation


def scheduler(workers: int = 64, rounds: int = 10) -> None:
    """Workers that are threads of this process: scheduler, client and all workers share one interpreter, the hardest case."""
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        list(dispatched(client, answer, (Task(-index, "warm", b"") for index in range(1, workers)), idle))
        start = time.perf_counter()
        done = list(dispatched(client, sleep, (Task(index, "sleep", b"") for index in range(workers * rounds)), idle))
        wall = time.perf_counter() - start
    share = len(done) * SLEEP_SECONDS / (workers * wall)
    print(f"scheduler, {workers} workers that sleep {SLEEP_SECONDS:g} s per task")
    print(f"  {len(done)} tasks in {wall:.2f} s, {len(done) / wall:.0f} tasks/s, efficiency {share:.2f}")


def memory(jobs: int = 20_000, rows: int = 10) -> None:
    """Outcomes of ten rows each through the dispatch into a results file."""
    row = Row(job=0, spec="m", origin="bare", name="m", modelstat="1", notes="a note of the usual length, which a reader must know")
    tasks = (Task(job, "m", msgspec.msgpack.encode(Outcome(job, (msgspec.structs.replace(row, job=job),) * rows))) for job in range(jobs))
    print(f"memory of this process, {jobs * rows} rows")
    with (
        tempfile.TemporaryDirectory() as folder,
        connected(workers=2) as client,
    ):
        results = Results.open(Path(folder) / "r.parquet", Grid(tuple(map(str, range(jobs)))))
        start = time.perf_counter()
        for number, each in enumerate(dispatched(client, answer, tasks, idle), 1):
            results.add(msgspec.msgpack.decode(each.result or b"", type=Outcome))
            if number % (jobs // 10) == 0:
                file, rate = results.files.results.stat().st_size / 1e6, number / (time.perf_counter() - start)
                print(f"  {number * rows:8d} rows {resident():7.0f} MB, file {file:6.2f} MB, {rate:5.0f} jobs/s")
        results.close()


def resident() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


def timm(models: str = "timm:*") -> None:
    """Every architecture: with an empty cache, then with the cache that this filled."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MODELSTAT_CACHE_DIR"] = cache
        print(f"whole timm ({models}), 2 workers")
        for what in ("cold", "warm"):
            before = resident()
            start, processor = time.perf_counter(), time.process_time()
            sweep = swept(models, workers=2, cache=True)
            line(sweep, what)
            wall = time.perf_counter() - start
            print(f"    with the expansion of the glob {wall:.1f} s; here {time.process_time() - processor:.0f} s of processor time")
            print(f"    and had {before:.0f} MB before and {resident():.0f} MB after; load {os.getloadavg()[0]:.1f}")
        size = sum(file.stat().st_size for file in Path(cache).rglob("*") if file.is_file())
        print(f"  cache {size / 1e6:.0f} MB")


def main() -> None:
    parts: dict[str, Callable[[], None]] = {"scheduler": scheduler, "memory": memory, "efficiency": efficiency, "timm": timm}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="what to measure")
    for name in parser.parse_args().parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
