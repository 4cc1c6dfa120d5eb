"""Every way to write a name leads to the same row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.errors import GpuDefinitionError, UnknownGpuError
from modelstat.hardware.database import all_gpus, find, resolve, siblings
from modelstat.hardware.gpu import Gpu


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("v100", "v100-pcie-32"),
        ("V100", "v100-pcie-32"),
        ("Tesla V100", "v100-pcie-32"),
        ("nvidia_v100", "v100-pcie-32"),
        ("v100 sxm2", "v100-sxm2-16"),
        ("RTX 2070 Super", "rtx-2070-super"),
        ("2070super", "rtx-2070-super"),
        ("geforce-rtx-2070-SUPER", "rtx-2070-super"),
        ("4090", "rtx-4090"),
        ("GeForce RTX 4090", "rtx-4090"),
        ("4090 laptop", "rtx-4090-laptop"),
        ("a100", "a100-sxm-40"),
        ("a100-80gb", "a100-sxm-80"),
        ("A100 PCIe 80GB", "a100-pcie-80"),
        ("2080ti", "rtx-2080-ti"),
        ("rtx2080ti", "rtx-2080-ti"),
        ("h100", "h100-sxm"),
        ("h100 pcie", "h100-pcie"),
        ("titan xp", "titan-xp"),
        ("NVIDIA TITAN Xp", "titan-xp"),
        ("gtx 1060", "gtx-1060-6gb"),
        ("Quadro RTX 6000", "quadro-rtx-6000"),
        ("rtx 6000 ada", "rtx-6000-ada"),
        ("6000 ada", "rtx-6000-ada"),
        ("rtx pro 6000", "rtx-pro-6000"),
        ("a6000", "rtx-a6000"),
        ("mi300x", "mi300x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("7900 xtx", "rx-7900-xtx"),
        ("Intel Arc A770", "arc-a770"),
        ("gaudi 2", "gaudi2"),
        ("Google TPU v4", "tpu-v4"),
        ("apple m1 max", "m1-max"),
        ("agx orin", "jetson-agx-orin-64"),
        # as the driver reports them
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
    ],
)
def test_names_are_forgiving(text: str, key: str) -> None:
    assert find(text).key == key


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("6000", ("quadro-rtx-6000", "rtx-6000-ada", "rtx-pro-6000")),
        ("rtx 6000", ("quadro-rtx-6000", "rtx-6000-ada", "rtx-pro-6000")),
        ("rtx 5000", ("quadro-rtx-5000", "rtx-5000-ada", "rtx-pro-5000")),
    ],
)
def test_an_ambiguous_name_lists_the_candidates(text: str, candidates: tuple[str, ...]) -> None:
    with pytest.raises(UnknownGpuError, match="ambiguous") as caught:
        find(text)
    assert all(candidate in str(caught.value) for candidate in candidates)


@pytest.mark.parametrize(
    ("text", "near"), [("vv100", "v100-pcie-32"), ("rtx 4091", "rtx-4090"), ("h1000", "h100-sxm"), ("2080 tie", "rtx-2080-ti")]
)
def test_an_unknown_name_lists_the_nearest_in_one_line(text: str, near: str) -> None:
    with pytest.raises(UnknownGpuError) as caught:
        find(text)
    message = str(caught.value)
    assert repr(text) in message
    assert near in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["", "  ", "--", "quadro rtx 4000", "rtx"])
def test_what_names_no_board_is_refused(text: str) -> None:
    with pytest.raises(UnknownGpuError):
        find(text)


def test_siblings_are_the_other_boards_of_the_chip() -> None:
    assert [gpu.key for gpu in siblings(find("v100"))] == ["v100-pcie-16", "v100-sxm2-16", "v100-sxm2-32"]
    assert [gpu.key for gpu in siblings(find("h100"))] == ["h100-pcie", "h100-nvl"]
    assert [gpu.key for gpu in siblings(find("4090"))] == ["rtx-4090-d", "rtx-4090-laptop"]
    assert siblings(find("2070 super")) == ()
    assert siblings(find("tpu-v4")) == ()


def test_resolve_takes_lists_and_single_definitions() -> None:
    assert [gpu.key for gpu in resolve(["v100, 4090", "a100"])] == ["v100-pcie-32", "rtx-4090", "a100-sxm-40"]
    assert [gpu.key for gpu in resolve(["v100", "Tesla V100"])] == ["v100-pcie-32"]
    assert [gpu.bandwidth_gbs for gpu in resolve(["v100,bandwidth=1000GB/s", "v100"])] == [1000, 900]
    assert resolve([]) == ()
    with pytest.raises(UnknownGpuError):
        resolve([","])
    with pytest.raises(GpuDefinitionError):
        resolve(["v100,4090,clock=1MHz"])


def test_keys_and_names_lead_to_their_own_row() -> None:
    for gpu in all_gpus():
        for name in (gpu.key, gpu.name, *gpu.aliases):
            assert find(name).key == gpu.key


@given(
    st.sampled_from(all_gpus()),
    st.sampled_from(["", " ", "-", "_"]),
    st.sampled_from([str.upper, str.lower, str.title]),
    st.sampled_from(["", "nvidia ", "NVIDIA GeForce ", "amd-"]),
)
def test_variants_of_a_key_lead_to_the_same_row(gpu: Gpu, separator: str, case: object, prefix: str) -> None:
    assert callable(case)
    text = prefix + str(case(gpu.key.replace("-", separator)))
    assert find(text).key == gpu.key
    assert find(find(text).key).key == gpu.key
