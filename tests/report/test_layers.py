from __future__ import annotations

from typing import Any

import msgspec
import pytest

from modelstat.errors import UsageError
from modelstat.hardware.database import find
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import roofline
from modelstat.report.document import Document, build
from modelstat.report.grid import Grid
from modelstat.report.layers import layer_grid
from modelstat.report.options import Options
from tests.report.sample import CONV, ODD, RELU, conv_trace, net_trace


def document(gpu: str | None = None, level: str = "module") -> Document:
    trace, costs = net_trace()
    boards = [find(gpu)] if gpu else []
    rooflines, predictions = ([one(trace, costs, board) for board in boards] for one in (roofline, predict))
    return build(trace, costs, rooflines, predictions=predictions, level=level)  # type: ignore[arg-type]


def table(grid: Grid) -> list[dict[str, Any]]:
    return [dict(zip((column.name for column in grid.columns), row.values, strict=True)) for row in grid.rows]


def test_the_total_comes_last_and_is_the_root() -> None:
    rows = table(layer_grid(document()))
    assert [row["layer"] for row in rows] == ["block (Block)", "block.conv (Conv2d)", "block.act (ReLU)", "spare (Linear)", "total"]
    assert rows[-1]["flops"] == CONV.flops + RELU.flops
    assert rows[-1]["params"] == 232


def test_a_model_that_is_one_layer_has_its_row_and_the_total() -> None:
    trace, costs = conv_trace()
    rows = table(layer_grid(build(trace, costs)))
    assert [row["layer"] for row in rows] == ["Conv2d", "total"]
    assert [row["flops"] for row in rows] == [CONV.flops] * 2


def test_columns_that_need_a_gpu_are_there_with_one_only() -> None:
    without = [column.name for column in layer_grid(document()).columns]
    assert without == ["layer", "output", "params", "madd", "flops", "read", "write", "intensity"]
    assert [column.name for column in layer_grid(document("v100")).columns] == [*without, "bound", "ideal", "predicted", "share"]
    wide = {column.name for column in layer_grid(document("v100"), Options(wide=True)).columns}
    assert wide > {*without, "bound", "ideal", "share", "macs", "rw", "calls", "dtype", "input"}


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        (Options(depth=0), []),
        (Options(depth=1), ["block", "spare"]),
        (Options(depth=9), ["block", "block.conv", "block.act", "spare"]),
        (Options(filter="block.*"), ["block.conv", "block.act"]),
        (Options(filter="block.*", depth=1), None),
        (Options(sort="flops"), ["block.conv", "block.act", "spare"]),
        (Options(sort="flops", depth=2), ["block", "block.conv", "block.act", "spare"]),
        (Options(sort="layer", depth=2), ["block", "block.act", "block.conv", "spare"]),
        (Options(sort="intensity"), ["block.conv", "block.act", "spare"]),
        (Options(sort="mem_write_bytes", top=1), ["block.conv"]),
        (Options(top=2), ["block.conv", "block.act"]),
    ],
)  # fmt: skip
def test_which_rows(options: Options, paths: list[str] | None) -> None:
    if paths is None:
        with pytest.raises(UsageError, match="matches no path"):
            layer_grid(document(), options)
    else:
        assert [row.path for row in layer_grid(document(), options).rows[:-1]] == paths


def test_every_column_has_the_value_of_the_contract() -> None:
    names = ("path", "type", "depth", "calls", "trainable", "macs", "rw", "own_flops", "own_read", "ideal_share", "compute", "memory")
    rows = table(layer_grid(document("v100"), Options(columns=(*names, "input"))))
    total = sum(max(cost.flops / peak, cost.bytes / 900e9) for cost, peak in ((CONV, 14e12), (RELU, 7e12), (ODD, 14e12)))
    assert rows[1]["rw"] == CONV.bytes
    assert rows[1]["ideal_share"] == pytest.approx(max(CONV.flops / 14e12, CONV.bytes / 900e9) / total)
    assert rows[1]["compute"] == pytest.approx(1e3 * CONV.flops / 14e12)
    assert rows[0]["own_flops"] == 0
    assert (rows[-1]["path"], rows[-1]["own_read"], rows[-1]["ideal_share"]) == ("total", ODD.read, 1.0)
    assert rows[1]["input"] == ((1, 3, 32, 128),)


def test_ops_are_rows_in_the_order_in_which_they_ran() -> None:
    rows = table(layer_grid(document("v100", "op"), Options(level="op")))
    assert [row["op"] for row in rows] == ["aten::convolution", "aten::relu", "odd::sum", ""]
    assert [row["bound"] for row in rows] == ["overhead"] * 4, "each op runs a few microseconds and is issued 26 us after the other"
    heaviest = table(layer_grid(document("v100", "op"), Options(level="op", sort="read", top=1)))
    assert heaviest[0]["read"] == max(CONV.read, RELU.read, ODD.read)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ("parms",)}, "no column 'parms' at level module: did you mean params"),
        ({"columns": ("zzz",)}, "choose from layer, path"),
        ({"columns": ("ideal",)}, "needs a GPU: add --gpu"),
        ({"sort": "bound"}, "needs a GPU"),
        ({"columns": ("params",), "level": "op"}, "at level op"),
        ({"level": "op"}, "level='op'"),
        ({"depth": -1}, "--depth -1"),
        ({"top": 0}, "--top 0"),
        ({"filter": "nothing*"}, "'nothing.'.*block, block.conv"),
    ],
)  # fmt: skip
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        layer_grid(document(), Options(**options))


def test_the_caption_reproduces_the_table() -> None:
    caption = layer_grid(document("v100")).caption
    for text in ("net", "1x3x32x128 float32", "batch 1", "fp32", "V100 PCIe 32GB", "14.0 TFLOP/s", "900 GB/s", "MAC = 2", "modelstat "):
        assert text in caption
    assert "batch as given" in layer_grid(msgspec.structs.replace(document(), batch=None)).caption
