from __future__ import annotations

from modelstat.cost.registry import cost_of
from tests.cost.ops import op, tensor


def test_mean_squared_error() -> None:
    pair = {"self": (8, 10), "target": (8, 10)}
    assert cost_of(op("aten::mse_loss", pair, ())).flops == 80 * (2 + 1)
    assert cost_of(op("aten::mse_loss", pair, (8, 10), reduction=0)).flops == 80 * 2


def test_likelihood_reads_one_score_per_target() -> None:
    inputs = {"self": (8, 1000), "target": tensor((8,), "int64")}
    cost = cost_of(op("aten::nll_loss_forward", inputs, (), ()))
    assert (cost.flops, cost.read) == (16, 8 * 4 + 8 * 8)


def test_connectionist_temporal_classification() -> None:
    inputs = {"log_probs": (50, 2, 20), "targets": tensor((2, 10), "int64")}
    assert cost_of(op("aten::_ctc_loss", inputs, (2,), (2, 50, 21), unused=(1,))).flops == 9 * 50 * 2 * 21
