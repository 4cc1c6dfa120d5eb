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
import importlib.util
import inspect
import io
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

CASES = Path(__file__).parents[1] / "tests" / "cases"
TORCHVISION = (
    "resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "vgg11", "densenet121", "vit_b_16", "swin_t",
    "convnext_tiny", "regnet_y_400mf", "shufflenet_v2_x1_0",
)  # fmt: skip
TIMM = ("vit_tiny_patch16_224", "ghostnet_100", "mixer_s32_224", "levit_128s", "coat_lite_tiny")
TOO_FEW = 5e-3
"""Seconds below which a run is repeated more often."""


class Peer(NamedTuple):
    """A counter: what pip installs, and which of its distributions has its version."""

    requirements: tuple[str, ...]
    macs: Callable[[Any, tuple[Any, ...], dict[str, Any]], float]
    """Of ``model(*inputs, **kwargs)``."""


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

    names = list(inspect.signature(model.forward).parameters)
    given = {**dict(zip(names, inputs, strict=False)), **kwargs}
    return float(get_model_complexity_info(model, (1,), print_per_layer_stat=False, as_strings=False, input_constructor=lambda _: given)[0])


def by_calflops(model: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    from calflops import calculate_flops

    found = calculate_flops(model, args=list(inputs), kwargs=dict(kwargs), print_results=False, output_as_string=False)
    return float(found[1])


def by_torchinfo(model: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    import torchinfo

    return float(torchinfo.summary(model, input_data=list(inputs), verbose=0, **kwargs).total_mult_adds)


PEERS = {
    "modelstat": Peer((), by_modelstat),
    "FlopCounterMode": Peer((), by_flop_counter_mode),
    "ultralytics-thop": Peer(("ultralytics-thop",), by_thop),
    "fvcore": Peer(("fvcore",), by_fvcore),
    "thop": Peer(("thop",), by_thop),
    "ptflops": Peer(("ptflops",), by_ptflops),
    "calflops": Peer(("calflops", "accelerate"), by_calflops),
    "torchinfo": Peer(("torchinfo",), by_torchinfo),
}


def called_with(model: Any, kwargs: dict[str, Any]) -> Any:
    """The model, or one around it that adds keywords, for counters that take none."""
    if not kwargs:
        return model
    from torch import nn

    class Called(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            return self.model(*inputs, **kwargs)

    return Called()


class Subject(NamedTuple):
    """A model to count: how it is built, and the right MACs (None: by torch, without weights)."""

    name: str
    build: Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]
    macs: int | None


def subjects(real: bool) -> Iterator[Subject]:
    """The cases, or the real models."""
    import torch

    if real:
        for library, names in (("torchvision", TORCHVISION), ("timm", TIMM)):
            for name in names if importlib.util.find_spec(library) else ():

                def build(library: str = library, name: str = name) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
                    torch.manual_seed(0)
                    if library == "timm":
                        import timm

                        return timm.create_model(name).eval(), (torch.zeros(1, 3, 224, 224),), {}
                    import torchvision

                    return getattr(torchvision.models, name)().eval(), (torch.zeros(1, 3, 224, 224),), {}

                yield Subject(f"{library}:{name}", build, None)
        return
    for path in sorted(CASES.glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        case = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(case)

        def built(case: Any = case) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
            torch.manual_seed(0)
            model, inputs = case.build()
            return model, inputs, getattr(case, "KWARGS", {})

        yield Subject(path.stem, built, case.EXPECT["macs"])


def reference(subject: Subject) -> int:
    """The right MACs."""
    if subject.macs is not None:
        return subject.macs
    import torch

    model, inputs, kwargs = subject.build()
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        macs = by_flop_counter_mode(without_weights(model), tuple(tensor.to("meta") for tensor in inputs), kwargs)
    torch.backends.mha.set_fastpath_enabled(True)
    return round(macs)


def without_weights(model: Any) -> Any:
    """The model on the meta device, with tensors that are no parameters or buffers as well."""
    import torch

    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                setattr(module, name, value.to("meta"))
    return model.to("meta")


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
    count = PEERS[name].macs
    for subject in subjects(real):
        row: dict[str, Any] = {"subject": subject.name, "right": reference(subject)}
        try:
            with quiet():
                count(*subject.build())
                model, inputs, kwargs = subject.build()
                before = belongings(model)
                row["macs"] = count(model, inputs, kwargs)
            after = belongings(model)
            row["left"] = [kind for kind in before if before[kind] != after[kind]]
            best = math.inf
            repeats = float(runs)
            while repeats > 0:
                model, inputs, kwargs = subject.build()
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
    paths = [str(Path(__file__).parents[1]), *([str(directory / name)] if directory else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(reversed(paths)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", __file__, "--counter", name, "--runs", str(runs), *(["--real"] if real else [])]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode:
        return (finished.stderr.strip().splitlines() or ["no message"])[-1]
    rows: list[dict[str, Any]] = json.loads(finished.stdout.splitlines()[-1])
    return rows


def install(directory: Path) -> None:
    """Each peer into a directory of its own: thop and ultralytics-thop have one package name between them."""
    for name, peer in PEERS.items():
        if peer.requirements and not (directory / name).exists():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(directory / name)]
            if subprocess.run([*command, *peer.requirements], check=False, capture_output=True).returncode:
                print(f"{name} could not be installed")


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def release(name: str, directory: Path | None) -> str:
    """The version of a counter."""
    if name == "FlopCounterMode":
        name = "torch"
    for found in (directory / name).glob("*.dist-info") if directory and (directory / name).is_dir() else ():
        package, _, rest = found.name.removesuffix(".dist-info").rpartition("-")
        if package.replace("_", "-") == name:
            return rest
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


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
    directory = given.install or given.peers
    if given.install:
        install(given.install)
    chosen = dict.fromkeys((*given.only, "fvcore"))
    tables = {real: {name: run(name, directory, real, given.runs) for name in chosen} for real in (False, True)}
    for real, table in tables.items():
        report("real models" if real else "cases", table, directory)
    slowest(tables)


def report(title: str, table: dict[str, list[dict[str, Any]] | str], directory: Path | None) -> None:
    """One line a counter."""
    fvcore = table["fvcore"]
    base = {row["subject"]: row["seconds"] for row in fvcore if "seconds" in row} if isinstance(fvcore, list) else {}
    print(f"\n{title:<28} exact  other  crash    seconds  x fvcore (mean, most)  left behind")
    for name, rows in table.items():
        label = f"{name} {release(name, directory)}"
        if isinstance(rows, str):
            print(f"{label:<28} did not run: {rows}")
            continue
        exact = sum(row.get("macs") == row["right"] for row in rows)
        crashed = sum("crash" in row for row in rows)
        ratios = [row["seconds"] / base[row["subject"]] for row in rows if "seconds" in row and row["subject"] in base]
        seconds = sum(row.get("seconds", 0.0) for row in rows)
        left: dict[str, int] = {}
        for row in rows:
            for kind in row.get("left", ()):
                left[kind] = left.get(kind, 0) + 1
        texts = ", ".join(f"{kind} of {models}" for kind, models in left.items()) or "nothing"
        most = max(ratios, default=math.nan)
        counts = f"{exact:5}  {len(rows) - exact - crashed:5}  {crashed:5}"
        print(f"{label:<28} {counts}  {seconds:9.3f}  {geometric_mean(ratios):13.2f} {most:8.2f}  {texts}")


def slowest(tables: dict[bool, dict[str, list[dict[str, Any]] | str]]) -> None:
    """The models on which modelstat compares worst with fvcore, and those that it does not count exactly."""
    rows: list[tuple[float, str, float, float]] = []
    for table in tables.values():
        ours, theirs = table.get("modelstat"), table["fvcore"]
        if not isinstance(ours, list) or not isinstance(theirs, list):
            continue
        for one, other in zip(ours, theirs, strict=True):
            if one.get("macs") != one["right"]:
                print(f"modelstat is not exact on {one['subject']}: {one.get('macs', one.get('crash'))}, right is {one['right']}")
            if "seconds" in one and "seconds" in other:
                rows.append((one["seconds"] / other["seconds"], one["subject"], one["seconds"], other["seconds"]))
    print(f"\nmodelstat over fvcore, all models: geometric mean {geometric_mean([row[0] for row in rows]):.2f}")
    for ratio, name, ours_seconds, their_seconds in sorted(rows, reverse=True)[:10]:
        print(f"  {ratio:5.2f}  {name:<36} {ours_seconds * 1e3:9.2f} ms over {their_seconds * 1e3:9.2f} ms")


if __name__ == "__main__":
    main()
