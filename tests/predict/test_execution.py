from __future__ import annotations

import pytest

from modelstat.errors import UsageError
from modelstat.predict.execution import COMPILED_HOST, Execution, host_seconds, parse_execution


@pytest.mark.parametrize(("text", "seconds"), [("fast", 11e-6), ("typical", 26e-6), ("slow", 45e-6), ("0", 0.0), ("7.5us", 7.5e-6)])
def test_hosts(text: str, seconds: float) -> None:
    assert host_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["quick", "", "-1", "nan", "inf", "1e9"])
def test_an_unknown_host_lists_those_there_are(text: str) -> None:
    with pytest.raises(UsageError, match="give fast, typical, slow, or the microseconds"):
        host_seconds(text)


def test_an_unknown_mode_lists_those_there_are() -> None:
    with pytest.raises(UsageError, match="mode 'jit': choose from eager, compile"):
        parse_execution("jit")


def test_what_a_kernel_costs_the_host() -> None:
    assert Execution().issue_seconds == 26e-6
    assert Execution(mode="compile").issue_seconds == 26e-6 * COMPILED_HOST
    assert Execution(mode="compile", cuda_graph=True).issue_seconds == 0.0


def test_the_text_names_what_was_asked_for() -> None:
    assert parse_execution("Compile", "11", channels_last=True).text == "compile, channels last, host 11 us an op"
    assert parse_execution(cuda_graph=True).text == "eager, CUDA graph"
