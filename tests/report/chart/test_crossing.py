"""The batch at which a model crosses its ridge point."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelstat.report.chart.crossing import crossing


@settings(deadline=None)
@given(st.floats(0.2, 1.5), st.floats(1.0, 50.0), st.floats(1.1, 60.0))
def test_a_power_law_is_crossed_where_it_says(exponent: float, scale: float, batch: float) -> None:
    """Intensity = scale x batch ** exponent reaches the ridge scale x b ** exponent at b."""
    batches = [1, 4, 16, 64]
    found = crossing(batches, [scale * each**exponent for each in batches], scale * batch**exponent)
    assert found == pytest.approx(batch)


@pytest.mark.parametrize(
    ("intensities", "ridge"),
    [([1.0, 2.0], 5.0), ([10.0, 20.0], 5.0), ([3.0, 3.0], 3.0), ([None, 4.0], 3.0), ([1.0, 4.0], None)],
)
def test_no_crossing(intensities: list[float | None], ridge: float | None) -> None:
    assert crossing([1, 2], intensities, ridge) is None
