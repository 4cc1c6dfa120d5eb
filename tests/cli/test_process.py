"""The command as a process: what only shows there."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "modelstat"]
RESNET50 = [*COMMAND, "resnet50", "--input", "3x224x224"]


def test_a_cached_model_answers_on_another_gpu_without_torch() -> None:
    subprocess.run([*RESNET50, "--gpu", "v100"], check=True, capture_output=True)
    imports = subprocess.run(
        [sys.executable, "-X", "importtime", *RESNET50[1:], "--gpu", "t4"], check=True, capture_output=True, text=True
    )
    assert "Tesla T4" in imports.stdout
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in imports.stderr.splitlines()}
    assert not {"torch", "torchvision", "timm", "numpy", "fvcore", "pandas"} & names


def test_a_cached_model_answers_in_half_a_second() -> None:
    """Processor time, which is wall time on an idle machine: the process has one thread and waits for nothing."""
    subprocess.run([*RESNET50, "--gpu", "v100"], check=True, capture_output=True)
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*RESNET50, "--gpu", "t4"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 0.5


def test_the_module_is_the_command() -> None:
    finished = subprocess.run([*COMMAND, "gpus", "v1000"], check=False, capture_output=True, text=True)
    assert finished.returncode == 2
    assert finished.stderr.startswith("modelstat: error: ")
    assert finished.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    finished = subprocess.run([*COMMAND, "gpus", "--format", "csv"], check=False, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert finished.returncode == 141
    assert finished.stderr == ""


def test_piped_output_is_only_the_report(tmp_path: Path) -> None:
    model = tmp_path / "slow.py"
    model.write_text("import time\nfrom torch import nn\n\ndef build():\n    time.sleep(2.5)\n    return nn.Linear(4, 4)\n")
    finished = subprocess.run(
        [*COMMAND, f"{model}:build", "--input", "4", "--format", "json"], check=True, capture_output=True, text=True
    )
    assert json.loads(finished.stdout)["totals"]["params"] == 4 * 4 + 4
    assert finished.stderr == ""
