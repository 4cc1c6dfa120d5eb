"""Small models in a file, from a good one to one that crashes its process, and rows without a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from modelstat.sweeping.grid import Grid
from modelstat.sweeping.row import Layer, Outcome, Row

MODELS = '''
import ctypes, os, sys, time

from torch import nn


def good(width=8, wait=0.0):
    """Conv2d(3, width, 3) with bias and padding: 27 x width MACs per pixel. Says in $BUILD_LOG that it was built, and by whom."""
    if "BUILD_LOG" in os.environ:
        with open(os.environ["BUILD_LOG"], "a") as file:
            file.write(f"{width} {os.getpid()} {os.getppid()}\\n")
    time.sleep(wait)
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU())


def raises():
    raise ValueError("on purpose")


def hangs():
    while True:
        time.sleep(1)


def eats():
    kept = []
    while True:
        kept.append(bytearray(b"x") * 20_000_000)


def refused():
    return bytearray(2**50)


def crashes():
    ctypes.string_at(0)


def exits():
    sys.exit(3)


def leaves():
    os._exit(4)


def killed():
    os.kill(os.getpid(), 9)


def closes():
    os.closerange(3, 100)
    time.sleep(100)


def leaves_a_child():
    import subprocess

    child = subprocess.Popen(["sleep", "1000"])
    with open(os.environ["BUILD_LOG"], "a") as file:
        file.write(f"{child.pid}\\n")
    return good()


def patches():
    """What it does to torch must not reach the next model."""
    nn.Conv2d.forward = lambda self, x: x
    return good()


class Exits(nn.Module):
    def forward(self, x):
        sys.exit("bye")


class Loops(nn.Module):
    """As many additions as the batch: no sizes of two batches tell those of a third."""

    def forward(self, x):
        for _ in range(x.shape[0]):
            x = x + 1
        return x


class OnlyFour(nn.Module):
    def forward(self, x):
        if x.shape[0] not in (4, 5, 6, 7):
            raise ValueError(f"batch {x.shape[0]}")
        return x + 1
'''


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the file; ``f"{models}:good(width=4)"`` is a spec."""
    path = tmp_path_factory.mktemp("models") / "models.py"
    path.write_text(MODELS)
    return str(path)


@pytest.fixture
def build_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the models write that they were built."""
    path = tmp_path / "builds.log"
    path.touch()
    monkeypatch.setenv("BUILD_LOG", str(path))
    return path


MakeOutcome = Callable[..., Outcome]


@pytest.fixture
def outcome() -> MakeOutcome:
    """``outcome(7, rows=2, layers=3)``: what job 7 gives, without a model."""

    def make(job: int, rows: int = 1, layers: int = 0) -> Outcome:
        spec = f"model{job}"
        row = Row(job=job, spec=spec, origin="bare", name=spec, modelstat="1", macs=job * 10, fits=None, notes="é")
        layer = Layer(
            job=job, spec=spec, path="", type="Conv2d", depth=0, calls=1, input_shapes="1x3", output_shapes="1x8", params=0,
            trainable_params=0, macs=job, flops=0, madd=0, mem_read_bytes=0, mem_write_bytes=0, own_macs=0, own_flops=0, own_madd=0,
            own_mem_read_bytes=0, own_mem_write_bytes=0,
        )  # fmt: skip
        return Outcome(job, (row,) * rows, (layer,) * layers, 0.5)

    return make


@pytest.fixture
def grid() -> Grid:
    """100 jobs of one row."""
    return Grid(tuple(f"model{index}" for index in range(100)))
