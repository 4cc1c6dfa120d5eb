"""What a PyTorch profiler trace takes to read: `python benchmarks/trace_memory.py --megabytes 300 [--cpu] [--stepless]`.

Writes a made-up trace of that size in the order in which the profiler writes (ops of the host by time, then calls of the driver, then
kernels), reads it in a process of its own, lays it over the model that it is of, and prints the peak of the resident memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LAYERS = 50
"""Pairs of a convolution and a ReLU in a step of the made-up model."""
SHAPES = [[8, 64, 56, 56], [64, 64, 3, 3], [64], [], [], [], [], [], []]
STEP_US = LAYERS * 100.0


def event(category: str, name: str, start: float, duration: float, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7, "ts": start, "dur": duration, "args": args}


def op(name: str, start: float, duration: float, external: int, dims: list[list[int]]) -> dict[str, Any]:
    types = ["float"] * len(dims)
    args = {"External id": external, "Record function id": 0, "Concrete Inputs": [""] * len(dims), "Input type": types, "Input Dims": dims}
    return event("cpu_op", name, start, duration, args)


def host(step: int, *, marked: bool) -> Iterator[dict[str, Any]]:
    """The ops of one step, with those inside them, and frames of Python, which nobody asked for."""
    base = step * STEP_US
    if marked:
        yield event("user_annotation", f"ProfilerStep#{step}", base, STEP_US - 1, {})
    for layer in range(LAYERS):
        first, at = (step * LAYERS + layer) * 5, base + layer * 100.0
        frame = {"Python id": first, "Python parent id": None}
        yield event("python_function", f"Conv2d_{layer}", at, 60.0, frame)
        yield op("aten::conv2d", at + 1, 50.0, first, SHAPES)
        yield op("aten::convolution", at + 2, 48.0, first + 1, SHAPES)
        yield op("aten::cudnn_convolution", at + 3, 40.0, first + 2, SHAPES)
        yield op("aten::relu", at + 60, 20.0, first + 3, SHAPES[:1])
        yield op("aten::clamp_min", at + 61, 15.0, first + 4, SHAPES[:1])


def device(step: int) -> Iterator[dict[str, Any]]:
    """The launches and kernels of one step."""
    for layer in range(LAYERS):
        first, at = (step * LAYERS + layer) * 5, step * STEP_US + layer * 100.0
        for external, name, start, duration in ((first + 2, "implicit_gemm", 30.0, 45.0), (first + 4, "elementwise", 78.0, 12.0)):
            launch = {"External id": external, "correlation": external, "cbid": 211}
            grid = {**launch, "device": 0, "stream": 7, "grid": [64, 1, 1], "block": [128, 1, 1], "registers per thread": 32}
            yield event("cuda_runtime", "cudaLaunchKernel", at + start - 5, 4.0, launch)
            yield event("kernel", name, at + start, duration, grid)


def write(path: Path, megabytes: int, *, cpu: bool, marked: bool) -> int:
    """Writes the trace; gives its number of steps."""
    size = sum(len(json.dumps(each)) + 2 for each in (*host(0, marked=marked), *(() if cpu else device(0))))
    steps = max(2, megabytes * 1_000_000 // size)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [{"ph": "M"}')
        for step in range(steps):
            for event in host(step, marked=marked):
                file.write(",\n" + json.dumps(event))
        for step in () if cpu else range(steps):
            for event in device(step):
                file.write(",\n" + json.dumps(event))
        file.write("]}\n")
    return steps


def read(path: Path) -> None:
    """Reads, then lays over; prints what it took. Reading comes first: it needs no torch, which alone takes hundreds of MB."""
    from modelstat.measure.imports.read import read_profile

    before, started = peak(), time.perf_counter()
    profile = read_profile(path)
    print(f"to read: {time.perf_counter() - started:.0f} s, {peak() - before:.0f} MB more than the {before:.0f} MB before")
    import torch
    from torch import nn

    from modelstat.analysis import Analysis
    from modelstat.hardware.database import find
    from modelstat.measure.overlay import overlay
    from modelstat.trace.capture import capture

    layers = [each for _ in range(LAYERS) for each in (nn.Conv2d(64, 64, 3, padding=1), nn.ReLU())]
    analysis = Analysis(capture(nn.Sequential(*layers).eval(), (torch.empty((8, 64, 56, 56), device="meta"),), {}), [find("a100")])
    before, started = peak(), time.perf_counter()
    found = overlay(analysis.trace, analysis.costs, analysis.rooflines[0], analysis.predictions[0], profile)
    print(f"to lay over: {time.perf_counter() - started:.0f} s, {peak() - before:.0f} MB more than with torch")
    print(f"{len(profile.kernels):,} kernels, {len(found.steps):,} steps, {found.op_share:.0%} of the ops matched")
    for note in found.notes:
        print(f"note: {note[:160]}")


def peak() -> float:
    """The peak of the resident memory (MB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 * 1.048576


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--cpu", action="store_true", help="no kernels: ops of the host alone")
    parser.add_argument("--stepless", action="store_true", help="without prof.step()")
    parser.add_argument("--read", type=Path, help="read this file and write none")
    given = parser.parse_args()
    if given.read:
        read(given.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        steps = write(path, given.megabytes, cpu=given.cpu, marked=not given.stepless)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {steps:,} steps of {2 * LAYERS} ops")
        subprocess.run([sys.executable, __file__, "--read", str(path)], check=True)


if __name__ == "__main__":
    main()
