"""The rules that all formulas share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from modelstat.cost import registry
from modelstat.cost.record import FREE, Cost
from modelstat.cost.registry import FAMILIES, FORMULAS, Work, bytes_read, bytes_written, cost_of, register, unregister
from modelstat.errors import CostError
from modelstat.records import Op, TensorSpec
from tests.cost.ops import op, tensor, unary


@pytest.fixture
def own() -> Iterator[str]:
    """A name that no op has, forgotten afterwards."""
    registry.load_families()
    yield "test::own"
    FORMULAS.pop("test::own", None)


def test_the_convolution_that_settles_conventions() -> None:
    cost = cost_of(
        op(
            "aten::convolution",
            {"input": (1, 3, 32, 128), "weight": (8, 3, 3, 3), "bias": (8,)},
            (1, 8, 32, 128),
            stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=False, output_padding=[0, 0], groups=1,
        )
    )  # fmt: skip
    outputs = 8 * 32 * 128
    assert cost == Cost(
        macs=outputs * 3 * 3 * 3,
        flops=2 * outputs * 27 + outputs,
        madd=2 * outputs * 27 - outputs + outputs,
        activations=outputs,
        read=4 * (3 * 32 * 128 + 8 * 27 + 8),
        write=4 * outputs,
        unit="matmul",
        dtype="float32",
        family="convolution",
    )
    assert (cost.macs, cost.flops, cost.madd, cost.read, cost.write) == (884_736, 1_802_240, 1_769_472, 50_048, 131_072)


def test_a_complex_mac_is_eight_flops(own: str) -> None:
    register("matmul", own)(lambda op: Work(macs=10, bias=3, flops=2, outputs=4))
    cost = cost_of(unary(own, (4,), dtype="complex64"))
    assert (cost.macs, cost.flops, cost.madd) == (10, 8 * 10 + 2 * (3 + 2), 8 * 10 + 2 * 5 - 2 * 4)
    assert (cost.read, cost.write) == (4 * 8, 4 * 8)


def test_integer_arithmetic_is_no_flop_but_integer_contractions_are_ops() -> None:
    assert cost_of(op("aten::add", {"self": (6,), "other": (6,)}, (6,), dtype="int64")).flops == 0
    product = cost_of(op("aten::_int_mm", {"self": tensor((3, 5), "int8"), "mat2": tensor((5, 7), "int8")}, tensor((3, 7), "int32")))
    assert (product.macs, product.flops, product.dtype, product.unit) == (3 * 5 * 7, 2 * 3 * 5 * 7, "int8", "matmul")
    division = op("aten::div", {"self": (6,), "other": (6,)}, tensor((6,), "float32"), dtype="int64")
    assert cost_of(division).flops == 6  # the result is a float


def test_unknown_is_not_zero() -> None:
    cost = cost_of(unary("nobody::knows", (10,)))
    assert (cost.known, cost.family, cost.flops, cost.read, cost.write, cost.unit) == ("unknown", "unknown", 0, 40, 40, "none")


def test_views_are_free_whatever_their_name() -> None:
    assert cost_of(op("nobody::knows", {"self": (10,)}, (10,), view=True)) is FREE


def test_free_keeps_its_family() -> None:
    cost = cost_of(unary("aten::detach", (10,)))
    assert (cost.known, cost.family, cost.bytes, cost.unit) == ("free", "view", 0, "none")


@pytest.mark.parametrize("name", ["aten::add", "aten::add_", "aten::__iand__", "aten::copy_", "aten::_foreach_add_", "aten::relu_"])
def test_in_place_twins_are_found(name: str) -> None:
    assert registry.find(name) is not None


def test_two_underscores_are_no_twin() -> None:
    assert registry.find("aten::__getitem__") is None


def test_a_name_is_taken_once(own: str) -> None:
    register("copy", own)(lambda op: None)
    with pytest.raises(CostError, match="test::own has a formula already \\(copy\\)"):
        register("copy", own)(lambda op: None)
    unregister(own)
    register("copy", own)(lambda op: None)
    with pytest.raises(CostError, match="nobody::knows has no formula"):
        unregister("nobody::knows")


def test_a_formula_that_fails_names_op_shapes_and_file(own: str) -> None:
    def broken(op: Op) -> Work:
        return Work(macs=op.inputs[7].elements)

    register("copy", own)(broken)
    with pytest.raises(CostError, match=r"test::own\.default \(.*test_registry\.py:\d+\) failed on \(self \(2, 3\) float32\)"):
        cost_of(unary(own, (2, 3)))


def test_an_unknown_dtype_is_an_error_that_says_where_to_add_it() -> None:
    with pytest.raises(CostError, match=r"float3.*ITEM_BYTES"):
        cost_of(unary("nobody::knows", (2,), dtype="float3"))


def test_bytes_read_once_per_window_and_not_where_expanded() -> None:
    same = tensor((4, 8))
    assert bytes_read(op("aten::mul", {"self": same, "other": same}, (4, 8))) == 4 * 4 * 8
    expanded = tensor((4, 8), strides=(0, 1))
    assert bytes_read(op("aten::mul", {"self": (4, 8), "other": expanded}, (4, 8))) == 4 * 4 * 8 + 4 * 8


def test_a_matrix_and_its_transpose_are_one_window() -> None:
    matrix = tensor((4, 8))
    transposed = tensor((8, 4), strides=(1, 8), value=matrix.value)
    assert bytes_read(op("aten::mm", {"self": matrix, "mat2": transposed}, (4, 4))) == 4 * 32


def test_slices_of_one_value_are_windows_of_their_own() -> None:
    first = tensor((4, 8), strides=(24, 1))
    second = TensorSpec((4, 8), "float32", (24, 1), first.value, offset=8)
    assert bytes_read(op("aten::add", {"self": first, "other": second}, (4, 8))) == 2 * 4 * 32


def test_in_place_reads_and_writes() -> None:
    target = tensor((5, 6))
    add = op("aten::add_", {"self": target, "other": (5, 6)}, target, mutates=("self",), unused=(0,))
    assert (bytes_read(add), bytes_written(add)) == (2 * 120, 120)


def test_out_is_written_and_not_read() -> None:
    target = tensor((5, 6))
    add = op("aten::add", {"self": (5, 6), "other": (5, 6), "out": target}, target, mutates=("out",))
    assert (bytes_read(add), bytes_written(add)) == (2 * 120, 120)


def test_a_buffer_changed_aside_is_read_and_written() -> None:
    custom = op("my::update", {"x": (10,), "buffer": (3,)}, (10,), mutates=("buffer",))
    assert (bytes_read(custom), bytes_written(custom)) == (40 + 12, 40 + 12)


def test_outputs_that_nothing_reads_are_not_written() -> None:
    pool = op(
        "aten::max_pool2d_with_indices",
        {"self": (1, 1, 4, 4)},
        (1, 1, 2, 2),
        tensor((1, 1, 2, 2), "int64"),
        unused=(1,),
        kernel_size=[2, 2],
    )
    assert cost_of(pool).write == 4 * 4


def test_vector_arithmetic_takes_the_widest_dtype_but_not_a_scalars() -> None:
    mixed = op("aten::mul", {"self": tensor((8,), "float16"), "other": tensor((8,), "float32")}, (8,))
    scalar = op("aten::mul", {"self": tensor((8,), "float16"), "other": tensor((), "float64")}, tensor((8,), "float16"))
    assert (cost_of(mixed).dtype, cost_of(scalar).dtype) == ("float32", "float16")


@pytest.mark.parametrize("shape", [(0, 5), (0,)])
def test_nothing_costs_nothing(shape: tuple[int, ...]) -> None:
    cost = cost_of(unary("aten::gelu", shape))
    assert (cost.flops, cost.read, cost.write, cost.known) == (0, 0, 0, "formula")


def test_importing_the_registry_imports_no_family_and_no_torch() -> None:
    code = (
        "import sys, modelstat.cost.registry as r\n"
        "assert 'modelstat.cost.matmul' not in sys.modules\n"
        "assert r.find('aten::mm') is not None\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_family_registers_something() -> None:
    registry.load_families()
    files = {formula.__module__.rpartition(".")[2] for _, formula in FORMULAS.values()}
    assert files >= set(FAMILIES) - {"activation"}
    assert {family for family, _ in FORMULAS.values()} == set(FAMILIES)
