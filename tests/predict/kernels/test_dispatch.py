from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from modelstat.cost.record import FREE, Cost
from modelstat.cost.registry import FAMILIES as COST_FAMILIES
from modelstat.cost.registry import cost_of
from modelstat.errors import MissingPeakError
from modelstat.hardware.database import all_gpus, find
from modelstat.predict.kernels import gemm
from modelstat.predict.kernels.constants import constants
from modelstat.predict.kernels.dispatch import GROUPED_GEMM, family_of, kernel_time
from modelstat.predict.kernels.rates import rates
from modelstat.predict.kernels.timing import NOTHING
from modelstat.records import Op, TensorSpec


def tensor(*shape: int, dtype: str = "float32", value: int = 0) -> TensorSpec:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return TensorSpec(shape, dtype, tuple(reversed(strides)), value)


def product(dtype: str = "float32", name: str = "aten::mm") -> Op:
    return Op(name, "default", (tensor(512, 1024, dtype=dtype), tensor(1024, 4096, dtype=dtype, value=1)), ("self", "mat2"),
              (tensor(512, 4096, dtype=dtype, value=2),))  # fmt: skip


ADD = Op("aten::add", "Tensor", (tensor(64, 1024), tensor(64, 1024, value=1)), ("self", "other"), (tensor(64, 1024, value=2),))
BATCH = Op("aten::bmm", "default", (tensor(8, 64, 32), tensor(8, 32, 64, value=1)), ("self", "mat2"), (tensor(8, 64, 64, value=2),))


@pytest.mark.parametrize(
    ("op", "family"),
    [(product(), "gemm"), (BATCH, "batched_gemm"), (ADD, "elementwise"), (product(name="aten::outer"), "generic")],
)
def test_family(op: Op, family: str) -> None:
    assert family_of(op, cost_of(op)).name == family


def test_products_of_experts_have_the_constants_of_single_ones() -> None:
    """Two experts, a row each: what is read of their weights sets the time, as it does for one row times one matrix."""
    half = "bfloat16"
    experts = Op(
        "aten::_grouped_mm", "default", (tensor(2, 4096, dtype=half), tensor(2, 4096, 28672, dtype=half, value=1)), ("self", "mat2"),
        (tensor(2, 28672, dtype=half, value=2),),
    )  # fmt: skip
    single = Op(
        "aten::mm", "default", (tensor(1, 4096, dtype=half), tensor(4096, 57344, dtype=half, value=1)), ("self", "mat2"),
        (tensor(1, 57344, dtype=half, value=2),),
    )  # fmt: skip
    assert family_of(experts, cost_of(experts)) is GROUPED_GEMM
    h100 = find("h100-sxm")
    grouped, one = (kernel_time(op, cost_of(op), h100).total for op in (experts, single))
    assert grouped == pytest.approx(one, rel=0.25)


def test_every_family_of_costs_finds_a_kernel() -> None:
    for family in (*COST_FAMILIES, "user", "unknown"):
        for unit in ("matmul", "vector", "none"):
            assert family_of(ADD, Cost(unit=unit, family=family)).name


def test_a_view_takes_no_time() -> None:
    assert kernel_time(ADD, FREE, find("v100")) == NOTHING
    assert kernel_time(ADD, Cost(unit="none", family="copy"), find("v100")) == NOTHING


def test_an_op_without_a_formula_moves_its_bytes() -> None:
    gpu = find("v100")
    time = kernel_time(ADD, Cost(read=1 << 30, write=1 << 30, unit="none", family="unknown", known="unknown"), gpu)
    assert (1 << 31) / gpu.bandwidth_bytes < time.total < 1.5 * (1 << 31) / gpu.bandwidth_bytes
    assert time.compute == 0


def test_half_precision_runs_on_tensor_cores() -> None:
    a100 = find("a100")
    single, half = (kernel_time(product(dtype), cost_of(product(dtype)), a100).total for dtype in ("float32", "float16"))
    assert 3 < single / half < 16  # the peaks are 16 apart
    tf32 = kernel_time(product(), cost_of(product()), a100, tf32=True).total
    assert half < tf32 < single


def test_half_precision_without_tensor_cores_runs_on_the_fp32_lanes() -> None:
    # The database's fp16 rate of a GTX 1080 Ti is 1/64 of its fp32 rate; products do not run there.
    pascal = find("gtx-1080-ti")
    single, half = (kernel_time(product(dtype), cost_of(product(dtype)), pascal).total for dtype in ("float32", "float16"))
    assert half <= single / constants("rates", "values")["half_on_fp32_lanes"]


def test_a_missing_precision_is_said() -> None:
    with pytest.raises(MissingPeakError, match="V100"):
        kernel_time(product("bfloat16"), cost_of(product("bfloat16")), find("v100"))


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_one_row_times_a_matrix_is_a_stream_where_a_compiler_writes_it(share: float) -> None:
    gpu = find("a100-sxm-80")
    found = rates(gpu, "bfloat16")
    size = 2 * (4096 + share * 4096 * 11008 + 11008)
    time = gemm.generated_seconds(gemm.Features(1.0, 11008.0, 4096.0, 2.0, 0.0, share), found, constants("gemm", "half"))
    assert time.memory == pytest.approx(size / found.memory)
    assert time.total == pytest.approx(size / found.memory + constants("gemm", "half")["generated_latency_s"])


def test_vector_work_needs_no_vector_peak() -> None:
    for gpu in all_gpus():
        if gpu.precisions:
            assert kernel_time(ADD, cost_of(ADD), gpu).total > 0


def test_a_user_formula_is_generic() -> None:
    op = msgspec.structs.replace(ADD, name="mylib::gate", cost={"macs": 10, "flops": 20, "read": 64, "write": 64})
    assert family_of(op, cost_of(op)).name == "generic"


def test_predicting_imports_neither_torch_nor_numpy() -> None:
    script = (
        "import sys; from modelstat.predict.kernels.dispatch import kernel_time; from modelstat.cost.record import Cost;"
        "from modelstat.records import Op; from modelstat.hardware.database import find;"
        "kernel_time(Op('aten::relu', 'default', (), (), ()), Cost(flops=8, read=32, write=32), find('v100'));"
        "assert not {'torch', 'numpy'} & set(sys.modules), sorted({'torch', 'numpy'} & set(sys.modules))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
