"""Eight counters over the cases of public bug reports and a dozen real models: `python benchmarks/counters.py --install DIR`.

For each: how many counts of MACs are exact, other or a crash, how long it takes, and what it leaves on the model. The right MACs of a
case are those of its file; of a real model, what torch's FlopCounterMode counts without weights, where attention falls apart into
products that it knows. Times are CPU seconds of one thread, the best of several runs on a model in memory, after one that nobody
times.

Each counter runs in a process of its own, since two of them bring a package of the same name. ``--install DIR`` puts those that
are missing there with pip, without their dependencies; ``--peers DIR`` uses what is there.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import math
import os
import runpy
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

CASES = Path(__file__).parents[1] / "tests" / "cases"
MODELS = (
    "resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "vgg11", "densenet121", "vit_b_16", "swin_t",
    "convnext_tiny", "regnet_y_400mf", "shufflenet_v2_x1_0", "timm:vit_tiny_patch16_224", "timm:ghostnet_100", "timm:mixer_s32_224",
    "timm:levit_128s", "timm:coat_lite_tiny",
)  # fmt: skip
TOO_FEW = 5e-3  # seconds below which a run is repeated more often


def by_modelstat(model: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    from modelstat.cost.registry import costs
    from modelstat.trace.capture import capture

    return sum(cost.macs for cost in costs(capture(model, inputs, kwargs)))


def by_flop_counter_mode(model: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        model(*inputs, **kwargs)
    return float(counter.get_total_flops()) / 2


def by_fvcore(model: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    from fvcore.nn import FlopCountAnalysis

    analysis = FlopCountAnalysis(called_with(model, kwargs), inputs)
    analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
    return float(analysis.total())


def by_thop(model: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    import thop

    return float(thop.profile(called_with(model, kwargs), inputs, verbose=False)[0])


def by_ptflops(model: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    from ptflops import get_model_complexity_info

    given = {**dict(zip(inspect.signature(model.forward).parameters, inputs, strict=False)), **kwargs}
    return float(get_model_complexity_info(model, (1,), print_per_layer_stat=False, as_strings=False, input_constructor=lambda _: given)[0])


def by_calflops(model: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    from calflops import calculate_flops

    found = calculate_flops(model, args=list(inputs), kwargs=dict(kwargs), print_results=False, output_as_string=False)
    return float(found[1])


def by_torchinfo(model: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    import torchinfo

    return float(torchinfo.summary(model, input_data=list(inputs), verbose=0, **kwargs).total_mult_adds)


PEERS: dict[str, tuple[tuple[str, ...], Callable[[Any, tuple[Any, ...], dict[str, Any]], float]]] = {
    "modelstat": ((), by_modelstat),
    "FlopCounterMode": ((), by_flop_counter_mode),
    "ultralytics-thop": (("ultralytics-thop",), by_thop),
    "fvcore": (("fvcore",), by_fvcore),
    "thop": (("thop",), by_thop),
    "ptflops": (("ptflops",), by_ptflops),
    "calflops": (("calflops", "accelerate"), by_calflops),
    "torchinfo": (("torchinfo",), by_torchinfo),
}
"""Counter -> what pip installs for it, and its MACs of ``model(*inputs, **kwargs)``."""


def called_with(model: Any, kwargs: dict[str, Any]) -> Any:
    """The model, or one around it that adds keywords, for counters that take none."""
    if not kwargs:
        return model
    from torch import nn

    class Called(nn.Module):
        model: Any

        def forward(self, *inputs: Any) -> Any:
            return self.model(*inputs, **kwargs)

    around = Called()
    around.model = model
    return around


class Subject(NamedTuple):
    """A model to count: how it is built, with or without weights, and the right MACs (None: by torch, without weights)."""

    name: str
    build: Callable[[bool], tuple[Any, tuple[Any, ...], dict[str, Any]]]
    macs: int | None


def subjects(real: bool) -> Iterator[Subject]:
    """The cases, or the real models."""
    import torch

    from modelstat.sources import parse

    for name in MODELS if real else ():

        def build(weights: bool, name: str = name) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
            made = parse(name).build(None, 1, weights=weights)
            return made.model, tuple(torch.zeros(given.shape, device="cpu" if weights else "meta") for given in made.args), {}

        yield Subject(name, build, None)
    for path in () if real else sorted(CASES.glob("*.py")):
        case = runpy.run_path(str(path))

        def built(weights: bool, case: dict[str, Any] = case) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
            torch.manual_seed(0)
            return *case["build"](), case.get("KWARGS", {})

        yield Subject(path.stem, built, case["EXPECT"]["macs"])


def reference(subject: Subject) -> int:
    """The right MACs."""
    if subject.macs is not None:
        return subject.macs
    import torch

    model, inputs, kwargs = subject.build(False)
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        macs = by_flop_counter_mode(model.to("meta"), inputs, kwargs)
    torch.backends.mha.set_fastpath_enabled(True)
    return round(macs)


def belongings(model: Any) -> dict[str, Any]:
    """What a counter may leave something on: by kind, everything that is there."""
    from torch.nn.modules import module as torch_module

    modules = list(model.modules())
    tensors = [(id(tensor), tensor.requires_grad) for tensor in (*model.parameters(), *model.buffers())]
    return {
        "hooks": [len(table) for each in modules for name, table in vars(each).items() if "hooks" in name and hasattr(table, "__len__")],
        "global hooks": [
            len(table) for name, table in vars(torch_module).items() if name.startswith("_global_") and isinstance(table, dict)
        ],
        "attributes": [sorted(vars(each)) for each in modules],
        "modes": [each.training for each in modules],
        "parameters and buffers": tensors,
        "names of the state": list(model.state_dict()),
        "values": [tensor.sum().item() for tensor in (*model.parameters(), *model.buffers()) if not tensor.is_sparse],
    }


def measure(name: str, real: bool, runs: int) -> Iterator[dict[str, Any]]:
    """One row for each subject: what was counted, in how many seconds, and what was left; or how it crashed."""
    import torch

    torch.set_num_threads(1)
    count = PEERS[name][1]
    for subject in subjects(real):
        row: dict[str, Any] = {"subject": subject.name, "right": reference(subject)}
        try:
            with quiet():
                count(*subject.build(True))
                model, inputs, kwargs = subject.build(True)
                before = belongings(model)
                row["macs"] = count(model, inputs, kwargs)
            after = belongings(model)
            row["left"] = [kind for kind in before if before[kind] != after[kind]]
            best = math.inf
            repeats = float(runs)
            while repeats > 0:
                model, inputs, kwargs = subject.build(True)
                with quiet():
                    start = time.process_time()
                    count(model, inputs, kwargs)
                    best = min(best, time.process_time() - start)
                repeats -= 0.2 if best < TOO_FEW else 1
            row["seconds"] = best
        except Exception as error:
            row["crash"] = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        yield row


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing that a counter prints."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def run(name: str, directory: Path | None, real: bool, runs: int) -> list[dict[str, Any]] | str:
    """The rows of one counter, from a process of its own; or why there are none."""
    paths = [*([str(directory / name)] if directory else []), str(Path(__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", __file__, "--counter", name, "--runs", str(runs), *(["--real"] if real else [])]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode:
        return (finished.stderr.strip().splitlines() or ["no message"])[-1]
    return list(json.loads(finished.stdout.splitlines()[-1]))


def install(directory: Path) -> None:
    """Each peer into a directory of its own: thop and ultralytics-thop have one package name between them."""
    for name, (requirements, _) in PEERS.items():
        if requirements and not (directory / name).exists():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(directory / name)]
            if subprocess.run([*command, *requirements], check=False, capture_output=True).returncode:
                print(f"{name} could not be installed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--install", type=Path, metavar="DIR", help="install the missing counters there")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="the directory with one counter in each directory")
    parser.add_argument("--only", nargs="*", default=list(PEERS), choices=list(PEERS), help="these counters (and fvcore, for the times)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each model, of which the best counts")
    parser.add_argument("--counter", choices=list(PEERS), help=argparse.SUPPRESS)
    parser.add_argument("--real", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.counter:
        print(json.dumps(list(measure(given.counter, given.real, given.runs))))
        return
    if given.install:
        install(given.install)
    chosen = dict.fromkeys((*given.only, "fvcore"))
    tables = {real: {name: run(name, given.install or given.peers, real, given.runs) for name in chosen} for real in (False, True)}
    for real, table in tables.items():
        report("real models" if real else "cases", table)
    slowest(tables)


def report(title: str, table: dict[str, list[dict[str, Any]] | str]) -> None:
    """One line a counter."""
    fvcore = table["fvcore"]
    base = {row["subject"]: row["seconds"] for row in fvcore if "seconds" in row} if isinstance(fvcore, list) else {}
    print(f"\n{title:<18} exact  other  crash    seconds  x fvcore (mean, most)  left behind")
    for name, rows in table.items():
        if isinstance(rows, str):
            print(f"{name:<18} did not run: {rows}")
            continue
        exact = sum(row.get("macs") == row["right"] for row in rows)
        crashed = sum("crash" in row for row in rows)
        ratios = [row["seconds"] / base[row["subject"]] for row in rows if "seconds" in row and row["subject"] in base]
        seconds = sum(row.get("seconds", 0.0) for row in rows)
        left = Counter(kind for row in rows for kind in row.get("left", ()))
        texts = ", ".join(f"{kind} of {models}" for kind, models in left.items()) or "nothing"
        times = f"{seconds:9.3f}  {geometric_mean(ratios or [math.nan]):13.2f} {max(ratios, default=math.nan):8.2f}"
        print(f"{name:<18} {exact:5}  {len(rows) - exact - crashed:5}  {crashed:5}  {times}  {texts}")


def slowest(tables: dict[bool, dict[str, list[dict[str, Any]] | str]]) -> None:
    """The models on which modelstat compares worst with fvcore."""
    rows: list[tuple[float, str, float, float]] = []
    for table in tables.values():
        ours, theirs = table.get("modelstat"), table["fvcore"]
        if not isinstance(ours, list) or not isinstance(theirs, list):
            continue
        for one, other in zip(ours, theirs, strict=True):
            if "seconds" in one and "seconds" in other:
                rows.append((one["seconds"] / other["seconds"], one["subject"], one["seconds"], other["seconds"]))
    if rows:
        print(f"\nmodelstat over fvcore, all models: geometric mean {geometric_mean([row[0] for row in rows]):.2f}")
    for ratio, name, ours_seconds, their_seconds in sorted(rows, reverse=True)[:10]:
        print(f"  {ratio:5.2f}  {name:<36} {ours_seconds * 1e3:9.2f} ms over {their_seconds * 1e3:9.2f} ms")


if __name__ == "__main__":
    main()
