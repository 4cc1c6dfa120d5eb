from __future__ import annotations

import builtins
import io
import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from modelstat.analysis import Analysis
from modelstat.cost import registry
from modelstat.cost.record import Cost
from modelstat.errors import MissingExtraError, UsageError
from modelstat.hardware.database import find
from modelstat.records import Trace
from tests.report.sample import conv_trace, net_trace


def conv(*gpus: str, level: Any = "module") -> Analysis:
    trace, _ = conv_trace()
    return Analysis.from_trace(trace, [find(gpu) for gpu in gpus], level=level)


def test_the_conv2d_end_to_end() -> None:
    totals = conv().totals
    assert (totals.params, totals.macs, totals.flops, totals.madd) == (224, 884_736, 1_802_240, 1_769_472)
    assert (totals.mem_read_bytes, totals.mem_write_bytes) == (50_048, 131_072)


def test_costs_are_computed_once_and_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = registry.costs

    def counted(trace: Trace, **options: Any) -> tuple[Cost, ...]:
        calls.append(trace.model)
        return real(trace, **options)

    monkeypatch.setattr(registry, "costs", counted)
    analysis = conv("v100")
    assert calls == []
    _ = analysis.totals, analysis.layers, analysis.gpus, analysis.to_json(), repr(analysis), analysis.to_json(level="op")
    assert calls == ["conv"]


def test_layers_gpus_and_warnings_are_those_of_the_document() -> None:
    analysis = conv("v100", "t4")
    assert [row.path for row in analysis.layers] == [""]
    assert [gpu.key for gpu in analysis.gpus] == ["v100-pcie-32", "t4"]
    assert analysis.warnings == analysis.document.warnings
    assert Analysis.from_trace(net_trace()[0]).warnings[0] == "never called: spare"


def test_json_at_either_level() -> None:
    assert "ops" not in json.loads(conv("v100").to_json())
    assert len(json.loads(conv("v100").to_json(level="op"))["ops"]) == 1
    assert len(json.loads(conv("v100", level="op").to_json())["gpus"][0]["ops"]) == 1


def test_dataframe() -> None:
    pytest.importorskip("pandas", reason="pandas is optional")
    frame = Analysis.from_trace(net_trace()[0], [find("v100")]).to_dataframe()
    assert list(frame["path"]) == ["", "block", "block.conv", "block.act", "spare"]
    assert frame["own_macs"].sum() == frame["macs"][0] == 884_736
    assert frame["ideal_share"][0] == 1.0
    assert "ideal_ms" not in conv().to_dataframe()
    assert list(conv().to_dataframe()["path"]) == [""]


def test_dataframe_without_pandas_says_which_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    with pytest.raises(MissingExtraError, match=r"pandas.*\[dataframe\]"):
        conv().to_dataframe()


def test_displays() -> None:
    from rich.console import Console

    analysis = conv("v100")
    assert repr(analysis) == "<Analysis of conv: 224 params, 884.74 k MACs, 1.80 M FLOPs, Tesla V100 PCIe 32GB: 201 ns>"
    assert "Conv2d" in str(analysis)
    console = Console(file=io.StringIO(), width=100)
    console.print(analysis)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "ridge 15.56" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_the_notebook_table_escapes_names() -> None:
    evil = "<img src=x onerror=alert(1)>"
    page = Analysis.from_trace(net_trace((evil, "act", "spare"), model="<script>")[0])._repr_html_()
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<img" not in page
    assert "<script" not in page


def test_a_gpu_without_the_peak_does_not_break_the_displays() -> None:
    trace = msgspec.structs.replace(conv_trace()[0], precision="tf32")
    analysis = Analysis.from_trace(trace, [find("1080 ti")])
    assert "unknown" in repr(analysis)
    assert "has no tf32 peak" in " ".join(str(analysis).split())


def test_importing_it_is_cheap() -> None:
    slow = ("torch", "rich", "tabulate", "pandas", "yaml")
    code = f"import sys, modelstat.analysis; print([name for name in {slow} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_real_model_fits_the_page_and_shows_its_blocks() -> None:
    """resnet18's stem, stages and blocks; 11,689,512 params and 1,814,073,344 MACs, as torchvision publishes them."""
    models = pytest.importorskip("torchvision.models", reason="the model is torchvision's")
    import torch

    from modelstat.report.document import build
    from modelstat.report.layers import layer_grid
    from modelstat.report.options import Options
    from modelstat.report.table import render
    from modelstat.trace.capture import capture

    with torch.device("meta"):
        trace = capture(models.resnet18().eval(), (torch.empty(1, 3, 224, 224),))
    analysis = Analysis.from_trace(trace, [find("v100")])
    assert (analysis.totals.params, analysis.totals.macs) == (11_689_512, 1_814_073_344)
    assert sum(row.own.macs for row in analysis.layers) == analysis.totals.macs
    stages = [f"layer{stage}{block}" for stage in (1, 2, 3, 4) for block in ("", ".0", ".1")]
    assert [row.path for row in layer_grid(analysis.document).rows] == ["conv1", "bn1", "relu", "maxpool", *stages, "avgpool", "fc", ""]
    for width in (80, 100, 200):
        for options in (Options(), Options(depth=9), Options(sort="ideal"), Options(level="op")):
            file = io.StringIO()
            document = build(trace, analysis.costs, analysis.rooflines, level=options.level)
            render([document], file, options, width=width)
            assert max(map(len, file.getvalue().splitlines())) <= width


def test_the_page_of_an_analysis() -> None:
    pytest.importorskip("plotly", reason="the html extra is optional")
    assert conv("v100").to_html().startswith("<!DOCTYPE html>")
    with pytest.raises(UsageError, match="needs a GPU"):
        conv().to_html()


def test_a_notebook_shows_the_table_and_the_chart() -> None:
    pytest.importorskip("plotly", reason="the html extra is optional")
    counts, timed = conv()._repr_html_(), conv("v100")._repr_html_()
    assert counts.startswith("<table>")
    assert "<script" not in counts
    assert timed.startswith("<table>")
    assert "Plotly.newPlot" in timed


def test_the_figure_of_an_analysis() -> None:
    """One trace per roof and ceiling, one per bound, one for the whole model: all under the V100's 14 TFLOP/s."""
    pytest.importorskip("plotly", reason="the html extra is optional")
    figure = conv("v100").plot()
    names = [trace.name for trace in figure.data]
    assert names[:2] == ["HBM2 900 GB/s", "fp32 CUDA cores 14.0 TFLOP/s"]
    assert names[-1] == "whole model"
    assert max(figure.data[1].y) == 14.0e12
    assert "1x3x32x128" in figure.data[2].hovertext[0]
    assert len(Analysis.from_trace(net_trace()[0], [find("v100")]).plot(level="module").data) > len(names) - 1


def test_names_are_text_in_the_figure() -> None:
    """Plotly reads some tags in its labels, and a script element ends at the first `</script>`."""
    pytest.importorskip("plotly", reason="the html extra is optional")
    attack = "<b></script><script>alert(1)</script>"
    analysis = Analysis.from_trace(net_trace((attack, "act", "spare"), model=attack)[0], [find("v100")])
    assert all("<b></" not in text for trace in analysis.plot().data for text in trace.hovertext or ())
    assert "<script>alert" not in analysis._repr_html_()


def test_without_plotly_the_figure_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(MissingExtraError, match=r"\[html\]"):
        conv("v100").plot()
