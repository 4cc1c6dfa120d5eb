"""What the renderers write: rows that a program reads back, text that fits, names that do no harm."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser

import msgspec
import pytest

from modelstat.errors import UsageError
from modelstat.hardware.database import find
from modelstat.predict.prediction import predict
from modelstat.predict.roofline import roofline
from modelstat.report import comparison, json, table, tabular
from modelstat.report.document import Document, build
from modelstat.report.options import Options
from modelstat.report.summary import findings, header
from tests.report.sample import CONV, ODD, RELU, net_trace

HOSTILE = ("<img src=x onerror=alert(1)>", "a|b", "x_y&%")
STEERING = ("[bold]red[/bold]", "\x1b[31mred", "many\nlines")


def document(*gpus: str, names: tuple[str, str, str] = ("conv", "act", "spare"), **changes: object) -> Document:
    trace, costs = net_trace(names, **changes)
    boards = [find(gpu) for gpu in gpus]
    rooflines = [roofline(trace, costs, gpu) for gpu in boards]
    return build(trace, costs, rooflines, predictions=[predict(trace, costs, gpu) for gpu in boards])


def drawn(*documents: Document, options: Options = Options(), width: int = 100) -> str:  # noqa: B008
    file = io.StringIO()
    table.render(documents, file, options, width=width)
    return file.getvalue()


def written(form: str, *documents: Document, options: Options = Options()) -> str:  # noqa: B008
    file = io.StringIO()
    tabular.render(documents, form, file, options)
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("gpus", [(), ("v100",), ("v100", "2070 super", "a100")])
def test_the_report_fits(width: int, gpus: tuple[str, ...]) -> None:
    text = drawn(document(*gpus), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_the_tree_is_indented_and_cut_not_wrapped() -> None:
    lines = drawn(document("v100", names=("a_name_that_is_much_too_long_for_any_column", "act", "spare"))).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("layer (type)"))
    assert lines[start + 1].startswith("block (Block)")
    assert lines[start + 2].startswith("  a_name_that")
    assert "…" in lines[start + 2]
    assert lines[start + 3].startswith("  act (ReLU)")
    assert lines[start + 5].startswith("total")


def test_paths_are_whole_without_the_tree() -> None:
    text = drawn(document("v100"), options=Options(sort="ideal"))
    assert "block.conv (Conv2d)" in text


def test_chosen_columns_are_never_dropped() -> None:
    names = ("path", "input", "output", "params", "trainable", "macs", "madd", "flops", "read", "write", "rw", "own_read", "own_write")
    text = drawn(document(), options=Options(columns=names), width=80)
    assert "own MemWrite" in text


def test_colours_follow_the_bound_on_a_terminal() -> None:
    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system="standard", legacy_windows=False)
    for part in table.display([document("v100")]):
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[35moverhead" in text


def test_the_best_of_several_models_is_bold_on_a_terminal() -> None:
    """Of two models that differ in one count."""
    from rich.console import Console

    first = document()
    more = msgspec.structs.replace(first.totals, macs=first.totals.macs + 10**6)
    second = msgspec.structs.replace(first, model=msgspec.structs.replace(first.model, spec="other"), totals=more)
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system="standard", legacy_windows=False)
    console.print(table.display([second, first], Options(columns=("model", "params", "macs")))[1])
    bold = re.findall(r"\x1b\[1m *([^\s\x1b]+)", console.file.getvalue())  # type: ignore[attr-defined]
    assert bold == ["model", "params", "MACs", "884.7k"], "the heads, and the smaller count"


@pytest.mark.parametrize("name", [*HOSTILE, *STEERING])
def test_a_name_is_data_in_the_terminal(name: str) -> None:
    text = drawn(document(names=(name, "act", "spare")), width=200)
    assert "\x1b" not in text
    shown = name.replace("\x1b", r"\x1b").replace("\n", r"\n")
    assert f"  {shown} (Conv2d)" in text


@pytest.mark.parametrize("name", [*HOSTILE, *STEERING])
def test_a_name_is_data_in_csv(name: str) -> None:
    rows = list(csv.DictReader(io.StringIO(written("csv", document(names=(name, "act", "spare"))), newline="")))
    assert rows[1]["path"] == "block." + name.replace("\x1b", "\x1b")


@pytest.mark.parametrize("name", [*HOSTILE, *STEERING])
def test_a_name_is_data_in_markdown(name: str) -> None:
    lines = written("markdown", document(names=(name, "act", "spare"))).splitlines()
    pipes = {len(re.findall(r"(?<!\\)\|", line)) for line in lines[:7]}
    assert len(pipes) == 1, "every line has the same cells"
    assert "<" not in "".join(lines).replace("&lt;", "")
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("name", [*HOSTILE, *STEERING])
def test_a_name_is_data_in_latex(name: str) -> None:
    text = written("latex", document(names=(name, "act", "spare")))
    body = re.sub(r"\\[%&_#$]|\\\\|\\text\w+\{\}", "", text.split("\\midrule")[1].split("\\bottomrule")[0])
    cells = {line.count("&") for line in body.splitlines() if line.strip()}
    assert len(cells) == 1
    assert not set('%_#$<>|"^~') & set(body)


class Page(HTMLParser):
    """The cells of a table, row by row, and every tag that is in the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.caption = ""
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._in = tag
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._in in ("td", "th", "strong"):
            self.rows[-1][-1] += data
        elif self._in == "caption":
            self.caption += data

    def handle_endtag(self, tag: str) -> None:
        self._in = ""


@pytest.mark.parametrize("name", [*HOSTILE, *STEERING])
def test_a_name_is_data_in_html(name: str) -> None:
    page = Page(written("html", document("v100", names=(name, "act", "spare"), model=name)))
    assert page.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td", "strong"}
    shown = name.replace("\x1b", r"\x1b").replace("\n", r"\n")
    assert page.rows[2][0] == f"block.{shown} (Conv2d)"
    assert page.caption.startswith(f"{shown}, input 1x3x32x128 float32; batch 1, fp32; Tesla V100 PCIe 32GB")
    assert {len(row) for row in page.rows} == {len(page.rows[0])}


def test_a_hostile_model_name_reaches_every_caption_escaped() -> None:
    evil = document(model="<script>|$x_y")
    assert "<script>" not in written("markdown", evil)
    assert "x\\_y" in written("latex", evil)
    assert "<script>" not in written("html", evil)


def test_csv_holds_raw_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(written("csv", document("v100")))))
    assert [row["path"] for row in rows] == ["block", "block.conv", "block.act", "spare", "total"]
    assert rows[1]["flops"] == str(CONV.flops)
    assert rows[1]["output_shapes"] == "1x8x32x128"
    assert float(rows[2]["ideal_ms"]) == pytest.approx(1e3 * RELU.bytes / 900e9)
    assert rows[3]["intensity"] == "", "not applicable is empty, not zero"
    assert rows[4]["mem_read_bytes"] == str(CONV.read + RELU.read + ODD.read)


def test_tsv_is_csv_with_tabs() -> None:
    comma = list(csv.reader(io.StringIO(written("csv", document()))))
    assert list(csv.reader(io.StringIO(written("tsv", document())), delimiter="\t")) == comma


def test_tables_to_paste_say_how_to_reproduce_them() -> None:
    facts = ("batch 1", "fp32", "14.0 TFLOP/s", "900 GB/s", "MAC = 2", "modelstat", "torch 2.14.1", "eager, host 26 us an op", "1x3x32x128")
    for form in ("markdown", "latex", "html"):
        text = written(form, document("v100"))
        for fact in facts:
            assert fact in text


def test_formats_carry_the_same_rows() -> None:
    counts = {form: len(tabular.grid_of([document()]).rows) for form in tabular.WRITERS}
    assert set(counts.values()) == {5}
    assert len(written("csv", document()).splitlines()) == 1 + 5
    assert sum(line.startswith("|") for line in written("markdown", document()).splitlines()) == 2 + 5


def test_several_gpus_and_batches_are_one_comparison() -> None:
    one, eight = document("v100", "a100"), document("v100", "a100", batch=8)
    rows = list(csv.DictReader(io.StringIO(written("csv", one, eight))))
    assert [(row["batch"], row["gpu"]) for row in rows] == [(batch, gpu.name) for batch in ("1", "8") for gpu in one.gpus]
    assert float(rows[2]["ideal_ms_per_sample"]) == pytest.approx(float(rows[2]["ideal_ms"]) / 8)
    assert "model" not in rows[0], "what is the same in all rows is in the caption"


def test_a_gpu_without_the_peak_is_a_null_row_with_a_reason() -> None:
    text = drawn(document("a100", "1080 ti", precision="tf32"))
    row = next(line for line in text.splitlines() if line.startswith("GeForce GTX 1080 Ti "))
    assert " - " in row
    assert "has no tf32 peak" in re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(columns=("madd",)), "'madd' in a comparison"),
        (Options(depth=1), "one batch, precision and GPU"),
        (Options(filter="a"), "one batch, precision and GPU"),
    ],
)
def test_a_comparison_refuses_what_it_has_not(options: Options, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        comparison.comparison_grid([document("v100", "a100")], options)


def test_a_comparison_is_sorted() -> None:
    grid = comparison.comparison_grid([document("v100", "t4")], Options(columns=("gpu", "ideal"), sort="ideal"))
    assert [row.values[0] for row in grid.rows] == ["Tesla T4", "Tesla V100 PCIe 32GB"]
    wide = comparison.comparison_grid([document("v100", "t4")], Options(wide=True))
    assert {"model", "peak", "bandwidth"} < {column.name for column in wide.columns}


def test_the_header_names_board_peak_ridge_and_siblings() -> None:
    text = " ".join(" ".join(line) for line in header([document("v100")]))
    for fact in ("net", "232 params", "224 trainable", "1x3x32x128 float32", "batch 1", "fp32", "Tesla V100 PCIe 32GB"):
        assert fact in text
    for fact in ("14.0 TFLOP/s fp32 dense", "900 GB/s", "ridge 15.56", "V100 SXM2"):
        assert fact in text


def test_findings_answer_what_a_reviewer_asks() -> None:
    lines = findings(document("v100"))
    text = " ".join(" ".join(line) for line in lines)
    moved = CONV.bytes + RELU.bytes + ODD.bytes
    flops = CONV.flops + RELU.flops
    assert f"{flops / moved:.2f} FLOP/B for the whole model, below the ridge 15.56: memory-bound as a whole" in text
    assert "summed over ops" in text
    assert "taken once over the whole model" in text
    assert "in memory-bound ops" in text
    assert f"contractions {100 * CONV.flops / flops:.1f} %" in text
    assert f"element-wise {100 * RELU.flops / flops:.1f} %" in text
    assert "fits (peak memory, up to 95 %)" in text
    assert f"odd::sum (1x): {100 * ODD.bytes / moved:.1f} % of the bytes" in text
    assert "never called: spare" in text
    heavy = next(text for label, text in lines if label == "Heaviest")
    assert heavy.startswith("block.conv"), "by predicted time on a GPU: the first op waits for its host"


def test_without_a_gpu_the_heaviest_are_those_of_most_flops() -> None:
    lines = dict(findings(document()))
    assert lines["Heaviest"].startswith("block.conv")
    assert "Ideal time" not in lines


def test_everything_counted_says_none() -> None:
    trace, costs = net_trace()
    known = [msgspec.structs.replace(cost, known="formula") for cost in costs]
    assert ("No formula", "none: every op is counted") in findings(build(trace, known))


def test_json_ends_with_a_newline() -> None:
    file = io.StringIO()
    json.write([document()], file)
    assert file.getvalue().endswith("}\n")
