"""The main job's time, cold and warm, beside three other counters: `python benchmarks/main_job.py`.

Every line of the first table is a fresh interpreter from its start to its exit, imports included, for torchvision's
resnet50 on one 3x224x224 image; the best of several runs. The second table is what remains in a process that has torch and
the model already: the analysis itself. All ratios are of this one run, on this one machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time

MODEL = "import torch, torchvision; model = torchvision.models.resnet50().eval(); image = torch.zeros(1, 3, 224, 224)\n"
PEERS = {
    "fvcore": (
        "fvcore",
        "from fvcore.nn import FlopCountAnalysis\nFlopCountAnalysis(model, image).unsupported_ops_warnings(False).total()",
    ),
    "ultralytics-thop": ("thop", "import thop\nthop.profile(model, (image,), verbose=False)"),
    "torchinfo": ("torchinfo", "import torchinfo\ntorchinfo.summary(model, input_data=image, verbose=0)"),
}
COMMAND = ["-m", "modelstat", "resnet50", "--input", "3x224x224"]
TIMED = """
import time
times = []
for _ in range(3):
    start = time.perf_counter()
    {}
    times.append(time.perf_counter() - start)
print(min(times))
"""


def wall(arguments: list[str], environment: dict[str, str], runs: int) -> float:
    """Best wall time of a fresh interpreter (s)."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        best = min(best, time.perf_counter() - start)
    return best


def imports_torch(arguments: list[str], environment: dict[str, str]) -> bool:
    """True if that command imports torch."""
    finished = subprocess.run([sys.executable, "-X", "importtime", *arguments], check=True, capture_output=True, text=True, env=environment)
    return any(line.rpartition("|")[2].strip() == "torch" for line in finished.stderr.splitlines())


def in_process(code: str) -> float:
    """Best time of ``code`` in a process that has imported torch and built the model (s)."""
    *setup, last = code.splitlines()
    program = MODEL + "\n".join(setup) + TIMED.format(last)
    finished = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, capture_output=True, text=True)
    return float(finished.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each line, of which the best counts")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "MODELSTAT_CACHE_DIR": cache}
        cold = wall([*COMMAND, "--gpu", "v100", "--no-cache"], environment, runs)
        wall([*COMMAND, "--gpu", "v100"], environment, 1)
        warm = wall([*COMMAND, "--gpu", "t4"], environment, max(runs, 5))
        torch_loaded = imports_torch([*COMMAND, "--gpu", "t4"], environment)
    missing = [name for name, (module, _) in PEERS.items() if importlib.util.find_spec(module) is None]
    present = {name: code for name, (module, code) in PEERS.items() if name not in missing}
    whole = {name: wall(["-W", "ignore", "-c", MODEL + code], dict(os.environ), runs) for name, code in present.items()}

    print("fresh process, imports included          seconds   x modelstat warm")
    print(f"  modelstat, traced before, other GPU   {warm:8.3f}   {1:8.2f}   torch imported: {'yes' if torch_loaded else 'no'}")
    print(f"  modelstat, cold                       {cold:8.3f}   {cold / warm:8.2f}")
    for name, seconds in whole.items():
        print(f"  {name:<36}  {seconds:8.3f}   {seconds / warm:8.2f}")

    own = in_process("import modelstat\nmodelstat.analyze(model, (image,), gpu='v100')")
    print("\nanalysis alone, model in memory          seconds   x modelstat")
    print(f"  {'modelstat':<36}  {own:8.3f}   {1:8.2f}")
    for name, code in present.items():
        seconds = in_process(code)
        print(f"  {name:<36}  {seconds:8.3f}   {seconds / own:8.2f}")
    for name in missing:
        print(f"\n{name} is not installed and not in the tables: pip install {name}")


if __name__ == "__main__":
    main()
