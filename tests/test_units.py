from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat import quantities, units
from modelstat.errors import ModelstatError, UsageError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (224, "224"),
        (999, "999"),
        (1000, "1.00 k"),
        (884_736, "884.74 k"),
        (25_557_032, "25.56 M"),
        (999_999, "1.00 M"),
        (4.089184256e9, "4.09 G"),
    ],
)
def test_count(value: float, text: str) -> None:
    assert units.count(value) == text


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (units.bytes_, 50_048, "50.05 kB"),
        (units.bytes_, 131_072, "131.07 kB"),
        (units.bytes_, 0, "0 B"),
        (units.mebibytes, 131_072, "0.12 MiB"),
        (units.flops_rate, 14e12, "14.0 TFLOP/s"),
        (units.flops_rate, 9_292.8e9, "9.29 TFLOP/s"),
        (units.flops_rate, 999.7e9, "1.00 TFLOP/s"),
        (units.bandwidth, 900e9, "900 GB/s"),
        (units.bandwidth, 3352e9, "3352 GB/s"),
        (units.bandwidth, 68.25e9, "68.25 GB/s"),
        (units.hertz, 1815e6, "1815 MHz"),
        (units.seconds, 1.05e-3, "1.05 ms"),
        (units.seconds, 0, "0 s"),
        (units.seconds, 2.5e-12, "0.0025 ns"),
        (units.seconds, 999.9e-6, "1.00 ms"),
        (units.seconds, 61.0, "61.0 s"),
        (units.ratio, 14_000 / 900, "15.56"),
        (units.percent, 1 / 3, "33.3 %"),
        (units.integer, 4_089_184_256, "4,089,184,256"),
    ],
)
def test_format(function: object, value: float, text: str) -> None:
    assert callable(function)
    assert function(value) == text


@pytest.mark.parametrize("text", ["1815MHz", "1.815 GHz", "1815 mhz", "1815000000Hz", "1815000kHz", " 1.815e3 MHz "])
def test_hertz_in_any_spelling(text: str) -> None:
    assert quantities.parse_hertz(text) == 1_815_000_000


@pytest.mark.parametrize(
    ("function", "text", "value"),
    [
        (quantities.parse_bandwidth, "448GB/s", 448e9),
        (quantities.parse_bandwidth, "448 gb/s", 448e9),
        (quantities.parse_bandwidth, "0.448TB/s", 448e9),
        (quantities.parse_bandwidth, "1 GiB/s", 2**30),
        (quantities.parse_data_rate, "14Gbps", 14e9),
        (quantities.parse_data_rate, "14 GT/s", 14e9),
        (quantities.parse_count, "5M", 5_000_000),
        (quantities.parse_count, "7B", 7_000_000_000),
        (quantities.parse_count, "2560", 2560),
        (quantities.parse_bytes, "16GB", 16e9),
        (quantities.parse_bytes, "16GiB", 16 * 2**30),
        (quantities.parse_bytes, "12 B", 12),
        (quantities.parse_seconds, "3ms", 0.003),
        (quantities.parse_seconds, "250 us", 250e-6),
        (quantities.parse_flops_rate, "125TFLOP/s", 125e12),
        (quantities.parse_flops_rate, "260 TOPS", 260e12),
        (quantities.parse_watts, "250 W", 250),
    ],
)
def test_parse(function: object, text: str, value: float) -> None:
    assert callable(function)
    assert function(text) == value


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (quantities.parse_hertz, "1815"),
        (quantities.parse_hertz, "fast"),
        (quantities.parse_hertz, "-1MHz"),
        (quantities.parse_hertz, "1e400GHz"),
        (quantities.parse_hertz, ""),
        (quantities.parse_bandwidth, "448GB"),
        (quantities.parse_bandwidth, "448Gb/s"),
        (quantities.parse_bandwidth, "448Gbps"),
        (quantities.parse_data_rate, "14GB/s"),
        (quantities.parse_bytes, "16Gb"),
        (quantities.parse_count, "1.5"),
        (quantities.parse_count, "5X"),
        (quantities.parse_seconds, "3"),
    ],
)
def test_a_bad_quantity_is_named(function: object, text: str) -> None:
    assert callable(function)
    with pytest.raises(UsageError, match=r".") as caught:
        function(text)
    assert repr(text) in str(caught.value)
    assert isinstance(caught.value, ModelstatError)


@given(st.integers(min_value=1, max_value=10**15))
def test_a_printed_count_reads_back_within_its_rounding(value: int) -> None:
    number, _, prefix = units.count(value).partition(" ")
    factor = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[prefix]
    assert float(number) * factor == pytest.approx(value, rel=0.005)


@given(st.floats(min_value=1e-9, max_value=1e4))
def test_a_printed_time_reads_back_within_three_digits(value: float) -> None:
    assert quantities.parse_seconds(units.seconds(value)) == pytest.approx(value, rel=0.0051)


@given(st.floats(min_value=1, max_value=1e6), st.sampled_from(["kHz", "MHz", "GHz"]))
def test_clocks_scale_with_their_unit(value: float, unit: str) -> None:
    factor = {"kHz": 1e3, "MHz": 1e6, "GHz": 1e9}[unit]
    assert quantities.parse_hertz(f"{value!r}{unit}") == pytest.approx(value * factor)
