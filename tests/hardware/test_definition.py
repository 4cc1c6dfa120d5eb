"""GPUs from keys and values: what is derived, by which product, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.errors import GpuDefinitionError, MissingPeakError, UnknownGpuError
from modelstat.hardware.database import all_gpus, find
from modelstat.hardware.gpu import Gpu


def test_an_override_of_the_clock() -> None:
    gpu = find("2070 super,clock=1815MHz")
    peak = gpu.peak("float32")
    assert peak.flops == 9_292.8e9 == 2 * 2560 * 1815e6
    assert gpu.bandwidth_bytes == 448e9
    assert round(gpu.ridge("float32"), 2) == 20.74 == round(9_292.8 / 448, 2)
    assert gpu.fp16_tensor == pytest.approx(36.25 * 1815 / 1770)
    assert gpu.int8_tensor == pytest.approx(145 * 1815 / 1770)
    assert gpu.memory_gb == 8
    assert "fp32 9.293 TFLOP/s = 2 x 2560 cores x 1815 MHz" in gpu.derived
    assert peak.source.startswith("derived: fp32 9.293 TFLOP/s = 2 x 2560 cores x 1815 MHz")
    assert "2070 SUPER" in gpu.name
    assert find("2070 super").boost_mhz == 1770


def test_an_override_of_the_clock_moves_the_tensor_clock_too() -> None:
    gpu = find("h100,clock=990MHz")
    assert gpu.tensor_mhz == pytest.approx(1830 / 2)
    assert gpu.peak("bfloat16").flops == pytest.approx(989.4e12 / 2)
    assert gpu.peak("float64").flops == pytest.approx(66.9e12 / 2)


def test_an_override_keeps_the_rule_of_the_row() -> None:
    assert find("mi300x,clock=1050MHz").fp32 == pytest.approx(163.4 / 2)  # twice the cores formula, before and after
    assert find("h100,sms=66").peak("float16").flops == pytest.approx(989.4e12 / 2)
    assert find("h100,sms=66").cores == 66 * 128
    assert find("v100,data_rate=2Gbps").bandwidth_gbs == 2 * 4096 / 8
    assert find("4090,bus=256").bandwidth_gbs == 21 * 256 / 8


def test_what_an_override_leaves_alone_keeps_its_source() -> None:
    gpu = find("v100,bandwidth=1000GB/s,fp32=15TFLOP/s,memory=16GB,name=mine")
    assert gpu.name == "mine"
    assert gpu.memory_bytes == 16 * 2**30
    assert gpu.peak("float32").source == "given by the definition; dense, fp32 accumulate"
    assert gpu.peak("float16").source == find("v100").peak("float16").source
    assert gpu.memory_data_rate_gbps is None
    assert gpu.derived == ()


def test_a_figure_given_takes_the_place_of_one_not_published() -> None:
    assert find("5090 d v2,fp16_tensor=150").peak("float16").flops == 150e12


@pytest.mark.parametrize(
    ("text", "fp32", "bandwidth"),
    [
        ("cores=2560,clock=1815MHz,bandwidth=448GB/s", 2 * 2560 * 1815e6, 448e9),
        ("cores=2560, clock = 1.815 GHz, data_rate=14Gbps, bus=256bit", 2 * 2560 * 1815e6, 14e9 * 256 / 8),
        ("sms=40,cores_per_sm=64,clock=1815,bandwidth=448", 2 * 40 * 64 * 1815e6, 448e9),
        ("sms=40,fma_per_sm=64,clock=1815MHz,bandwidth=448GB/s", 2 * 40 * 64 * 1815e6, 448e9),
        ("sms=40,arch=turing,clock=1815MHz,bandwidth=448GB/s", 40 * 128 * 1815e6, 448e9),
        ("sms=304,arch=cdna3,clock=2100MHz,bandwidth=5325GB/s", 304 * 256 * 2100e6, 5325e9),
        ("fp32=14,bandwidth=900GB/s", 14e12, 900e9),
        ("FP32=14000GFLOP/s,Bandwidth=0.9TB/s", 14e12, 900e9),
    ],
)
def test_a_definition_derives_what_is_not_given(text: str, fp32: float, bandwidth: float) -> None:
    gpu = find(text)
    assert gpu.peak("float32").flops == pytest.approx(fp32, rel=1e-12)
    assert gpu.bandwidth_bytes == pytest.approx(bandwidth, rel=1e-12)
    assert gpu.confidence == "definition"


def test_the_architecture_gives_the_tensor_peaks() -> None:
    gpu = find("arch=turing,tensor_class=geforce,sms=40,clock=1815MHz,data_rate=14Gbps,bus=256")
    assert gpu.peak("float16").flops == pytest.approx(40 * 512 * 1815e6)
    assert gpu.peak("int8").flops == pytest.approx(40 * 2048 * 1815e6)
    assert gpu.cores == 2560
    assert "architecture Turing TU10x (tu10x), tensor class geforce" in gpu.derived
    assert "bandwidth 448 GB/s = 14 Gbit/s x 256 bit / 8" in gpu.derived
    assert "fp16_tensor 37.17 TFLOP/s = 512 x 40 SMs x 1815 MHz" in gpu.derived


@pytest.mark.parametrize("arch", ["tu10x", "Turing TU10x", "TURING", "turing"])
def test_an_architecture_may_be_a_family_a_name_or_a_generation(arch: str) -> None:
    assert find(f"arch={arch},cores=2560,clock=1815MHz,bandwidth=448GB/s").sms == 40


def test_without_an_architecture_only_fp32_is_known() -> None:
    gpu = find("cores=2560,clock=1815MHz,bandwidth=448GB/s")
    assert gpu.precisions == ("fp32",)
    with pytest.raises(MissingPeakError, match="it has fp32"):
        gpu.peak("float16")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bandwith=448GB/s,fp32=9", "unknown key 'bandwith', the nearest is 'bandwidth'"),
        ("cores=2560,clock=1815MHz", "no bandwidth: give bandwidth=448GB/s, or data_rate=14Gbps and bus=256"),
        ("bandwidth=448GB/s", "no peak: give cores and clock"),
        ("cores=2560,clock=1815XHz,bandwidth=448GB/s", "clock: '1815XHz' is not a clock"),
        ("cores=many,clock=1815MHz,bandwidth=448GB/s", "cores: 'many' is not a count"),
        ("fp32=9,bandwidth=448Gb/s", "bandwidth: '448Gb/s' is not a bandwidth"),
        ("fp32=9,bandwidth=0GB/s", "bandwidth is '0GB/s'"),
        ("fp32=9,bandwidth=448,bandwidth=449", "bandwidth is given twice"),
        ("fp32=9,bandwidth=448,Bandwidth=449", "Bandwidth is given twice"),
        ("fp32=9,bandwidth=448,data_rate=14,bus=128", "bandwidth_gbs is 448, but 14 Gbit/s x 128 bit / 8 = 224 GB/s"),
        ("sms=40,cores=100,cores_per_sm=64,clock=1,bandwidth=1", "cores is 100, but 40 SMs x 64 cores = 2560"),
        ("cores=100,cores_per_sm=64,clock=1,bandwidth=1", "100 cores are no whole number of SMs"),
        ("arch=foo,sms=3,clock=3,bandwidth=3", "no architecture is called 'foo'"),
        ("arch=hopper,tensor_class=geforce,sms=3,clock=3,bandwidth=3", "Hopper GH100 has no tensor class 'geforce'; it has full"),
        ("tensor_class=geforce,sms=3,clock=3,bandwidth=3", "tensor_class needs arch"),
        ("tpu-v4,clock=900MHz", "TPU v4 chip has no boost_mhz for its peaks to scale with"),
        ("v100,4090,clock=1MHz", "'4090' is not key=value"),
        ("clock=1815MHz,2070 super", "'2070 super' is not key=value"),
        ("=3", "unknown key ''"),
    ],
)
def test_a_bad_definition_is_named(text: str, message: str) -> None:
    with pytest.raises(GpuDefinitionError, match=message) as caught:
        find(text)
    assert "\n" not in str(caught.value)


def test_an_override_of_an_unknown_row() -> None:
    with pytest.raises(UnknownGpuError, match="'2070 sper'"):
        find("2070 sper,clock=1815MHz")


def test_a_file_defines_or_overrides(tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    path.write_text('name = "my board"\ncores = 2560\nclock = "1815MHz"\ndata_rate = 14\nbus = 256\nmemory = "8GB"\n', encoding="utf-8")
    gpu = find(str(path))
    assert (gpu.name, gpu.key) == ("my board", "my board")
    assert gpu.peak("float32").flops == 9_292.8e9
    assert gpu.bandwidth_gbs == 448
    path.write_text('base = "2070 super"\nclock = 1815.0\n', encoding="utf-8")
    assert find(str(path)).peak("float16").flops == find("2070 super,clock=1815MHz").peak("float16").flops


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("cores = ", "is not TOML"),
        ("cores = [1]\n", "cores must be a number or a text"),
        ("base = 3\n", "base must be the name of a GPU"),
        ("core = 3\n", "unknown key 'core', the nearest is 'cores'"),
        ("[gpu]\ncores = 3\n", "unknown key 'gpu'"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "board.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(GpuDefinitionError, match=message) as caught:
        find(str(path))
    assert "board.toml" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(GpuDefinitionError, match="cannot be read: No such file"):
        find(str(tmp_path / "none.toml"))


@given(st.sampled_from([gpu for gpu in all_gpus() if gpu.boost_mhz and gpu.precisions]), st.floats(0.2, 4.0))
def test_all_peaks_scale_with_the_clock(gpu: Gpu, factor: float) -> None:
    assert gpu.boost_mhz is not None
    faster = find(f"{gpu.key},clock={gpu.boost_mhz * factor!r}MHz")
    assert faster.bandwidth_gbs == gpu.bandwidth_gbs
    assert faster.precisions == gpu.precisions
    for precision in gpu.precisions:
        assert faster.peak(precision).flops == pytest.approx(gpu.peak(precision).flops * factor, rel=0.02)


@given(st.integers(1, 500), st.integers(100, 4000), st.integers(10, 9000))
def test_a_definition_is_its_product(sms: int, clock: int, bandwidth: int) -> None:
    gpu = find(f"sms={sms},cores_per_sm=64,clock={clock}MHz,bandwidth={bandwidth}GB/s")
    assert gpu.peak("float32").flops == pytest.approx(2 * 64 * sms * clock * 1e6)
    assert gpu.ridge("float32") == pytest.approx(2 * 64 * sms * clock * 1e6 / (bandwidth * 1e9))
