from __future__ import annotations

import pytest

from modelstat.predict.kernels.constants import DIRECTORY, constants, document, table_of
from modelstat.predict.kernels.dispatch import FILES as FAMILIES


def test_every_kernel_family_has_its_file() -> None:
    assert FAMILIES == (
        "attention", "batched_gemm", "convolution", "copy", "elementwise", "embedding", "gather", "gemm", "generic", "norm", "pooling",
        "rates", "reduction", "resample", "rnn", "softmax",
    )  # fmt: skip
    assert {f"{family}.json" for family in FAMILIES} <= {path.name for path in DIRECTORY.iterdir()}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_says_where_its_numbers_come_from(family: str) -> None:
    fit = document(family)["fit"]
    assert fit["source"]
    assert fit["date"].count("-") == 2
    assert "error" in fit
    if not fit["source"].startswith("assumed"):
        assert fit["gpus"]
    for name, table in document(family).items():
        if name != "fit":
            for constant, entry in table.items():
                assert entry["unit"], (family, name, constant)
                assert entry["meaning"], (family, name, constant)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "rates"])
def test_a_family_has_constants_for_both_kinds_of_arithmetic(family: str) -> None:
    assert constants(family, table_of(tensor=False))
    assert constants(family, table_of(tensor=True))


def test_shared_constants_are_the_same() -> None:
    for family in FAMILIES:
        for table in document(family).values():
            for entry in table.values():
                if isinstance(entry, dict) and "same_as" in entry:
                    other, name, constant = entry["same_as"].split(".")
                    assert entry["value"] == document(other)[name][constant]["value"]


def test_no_constant_names_a_gpu() -> None:
    from modelstat.hardware.database import all_gpus

    keys = {gpu.key for gpu in all_gpus()}
    for family in FAMILIES:
        for name, table in document(family).items():
            if name != "fit":
                assert not keys & set(table)
