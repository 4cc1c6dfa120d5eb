// What was measured, on the roof: a filled mark by the measured time, a hollow one by the predicted time, a line between.

const MARK_COLUMNS = [
  ["", (mark) => mark.path || mark.name, "text"], ["op", (mark) => (mark.path ? mark.name : ""), "text"], ["kernels", (mark) => (mark.launches ? Math.round(mark.launches) : null), "count"],
  ["measured", (mark) => mark.seconds, "seconds"], ["predicted", (mark) => (mark.predicted ? mark.predicted.seconds : null), "seconds"],
  ["error", (mark) => mark.error, "signed"], ["FLOP/B", (mark) => placeOf(mark, "measured").intensity, "ratio"],
  ["FLOP/s", (mark) => placeOf(mark, "measured").rate, "rate"], ["GB/s", (mark) => placeOf(mark, "measured").bandwidth, "bandwidth"], ["of the roof", (mark) => mark.roof_share, "percent"],
];
const COUNTED_COLUMNS = [
  ["counted FLOP/s", (mark) => placeOf(mark, "counted").rate, "rate"], ["counted GB/s", (mark) => placeOf(mark, "counted").bandwidth, "bandwidth"],
  ["counted FLOP/B", (mark) => placeOf(mark, "counted").intensity, "ratio"],
];
const CACHE_COLUMNS = [["L2 FLOP/B", (mark) => placeOf(mark, "l2").intensity, "ratio"], ["L1 FLOP/B", (mark) => placeOf(mark, "l1").intensity, "ratio"]];

// Kinds, field, legend, symbol, colour (a place among the page's series, null: hollow), size (null: by the time). Symbols differ, so that no colour is needed.
const MARK_SERIES = [
  [["op"], "predicted", "predicted", "circle-open", null, null], [["op"], "measured", "measured", "circle", 0, null],
  [["op", "kernel"], "counted", "by counters", "square", 1, null], [["op", "kernel"], "l2", "over L2 bytes (no roof known)", "triangle-left", 5, 10],
  [["op", "kernel"], "l1", "over L1 bytes", "triangle-right", 4, 10],
  [["whole"], "predicted", "whole, predicted", "star-open", null, 18], [["whole"], "measured", "whole, measured", "star", 0, 18], [["whole"], "counted", "whole, by counters", "star", 1, 18],
  [["whole"], "l2", "whole, over L2 bytes", "triangle-down", 5, 13], [["whole"], "l1", "whole, over L1 bytes", "triangle-up", 4, 13],
  [["cut step"], "measured", "step, not complete", "cross-thin-open", 2, 10], [["step"], "measured", "step", "x-thin-open", 2, 10],
  [["step", "cut step"], "counted", "step, by counters", "y-up-open", 1, 11],
  [["pass"], "predicted", "whole pass, predicted", "cross-open", null, 14], [["pass"], "measured", "whole pass, by the stopwatch", "cross", 3, 14],
];

// Many names: below the chart, where no point is, in a margin that holds them and the axis.
function namesBelow(count) {
  const lines = Math.ceil(count / Math.max(1, Math.floor(find("measured-chart").clientWidth / 245)));
  return {
    margin: { l: 62, r: 14, t: 12, b: 52 + 20 * lines },
    legend: { orientation: "h", x: 0, y: 0, yref: "container", yanchor: "bottom", bgcolor: "rgba(0,0,0,0)", itemsizing: "constant", itemclick: false, itemdoubleclick: false },
  };
}

units.signed = (error) => `${error < 0 ? "-" : "+"}${Math.abs(error * 100).toFixed(0)} %`;

// Intensity and rates of a place: see Place in modelstat/report/chart/measured.py.
function placeOf(mark, field) {
  const place = mark[field];
  if (!place) return { intensity: null, rate: null, bandwidth: null };
  const per = (amount) => (place.seconds ? amount / place.seconds : null);
  return { intensity: place.bytes ? place.flops / place.bytes : null, rate: per(place.flops), bandwidth: per(place.bytes) };
}

const measurement = () => page.views[0].measured;

function drawMeasured() {
  const found = measurement();
  if (!found) return;
  find("measured").hidden = false;
  const colours = ink();
  const { marks, frame } = found;
  const spot = (mark, field) => position(placeOf(mark, field), frame);
  const hasFirstCache = marks.some((mark) => mark.l1);
  const { device } = page.views[0];
  const roofs = roofTraces(device, frame, colours.soft, (line) => (line.kind === "roof" ? line.name === device.roofs[0].name || hasFirstCache : line.on));
  const most = Math.max(...marks.filter((mark) => mark.kind === "op" || mark.kind === "kernel").map((mark) => mark.seconds || 0), 1e-12);
  const lineTrace = (field, dash) => {
    const [x, y] = [[], []];
    for (const mark of marks) {
      const [from, to] = [spot(mark, mark.measured ? "measured" : "counted"), spot(mark, field)];
      if (from && to && !mark.kind.endsWith("step")) { x.push(from[0], to[0], null); y.push(from[1], to[1], null); }
    }
    return { x, y, mode: "lines", line: { color: colours.soft, width: 1, dash }, hoverinfo: "skip", showlegend: false };
  };
  const whole = marks.find((mark) => mark.kind === "whole");
  const traces = MARK_SERIES.map(([kinds, field, label, symbol, series, size]) => {
    const shown = marks.map((mark, index) => [mark, index, kinds.includes(mark.kind) ? spot(mark, field) : null]).filter(([, , at]) => at);
    const colour = series === null ? colours.ink : page.series[series];
    const largest = field === "counted" ? 9 : 17;
    const sizes = shown.map(([mark]) => size || largest / 3 + largest * Math.sqrt(Math.min(1, (mark.seconds || 0) / most)));
    return {
      x: shown.map(([, , at]) => at[0]), y: shown.map(([, , at]) => at[1]), customdata: shown.map(([, index]) => index), mode: "markers", hoverinfo: "none",
      name: plain(kinds[0] === "whole" ? label.replace("whole", whole.name) : label),
      marker: { symbol, color: colour, opacity: 0.85, size: sizes, line: { color: symbol.endsWith("-open") ? colour : colours.ink, width: symbol.endsWith("-open") ? 1.8 : 0.6 } },
    };
  }).filter((trace) => trace.x.length);
  const lines = [lineTrace("predicted", "solid"), ...["counted", "l2", "l1"].map((field) => lineTrace(field, "dot"))].filter((trace) => trace.x.length);
  Plotly.react(find("measured-chart"), [...roofs.traces, ...lines, ...traces], layout(frame, roofs.annotations, namesBelow(traces.length)), CONFIG);
  drawMarks(found);
}

function drawMarks({ marks, source, left_out: number, notes }) {
  const has = (field) => marks.some((mark) => mark[field]);
  const columns = [...MARK_COLUMNS, ...(has("counted") ? COUNTED_COLUMNS : []), ...(has("l2") || has("l1") ? CACHE_COLUMNS : [])];
  const table = find("measured-table");
  fill(table.tHead, element("tr", {}, ...columns.map(([header, , kind]) => element("th", { scope: "col", className: kind === "text" ? "text" : "" }, header))));
  fill(table.tBodies[0], ...marks.map((mark) => element("tr", {}, ...columns.map(([, of, kind], index) => (
    element("td", { className: index === 0 ? "text path" : kind === "text" ? "text" : "", title: index === 0 ? mark.path || mark.name : null }, told(kind, of(mark)))
  )))));
  find("measured-source").textContent = `Measured: ${source}. Size: measured time. A line goes from the measured to the predicted point, a dotted one to the point of the counters.`;
  fill(find("measured-notes"), ...[...(number ? [`${number} shorter ops and kernels are left out`] : []), ...notes].map((each) => element("li", {}, each)));
}

function measuredTooltip(index) {
  const mark = measurement().marks[index];
  const columns = [...MARK_COLUMNS.slice(1), ...(mark.counted ? COUNTED_COLUMNS : []), ...(mark.l2 || mark.l1 ? CACHE_COLUMNS : [])];
  const pairs = columns.map(([header, of, kind]) => [header, of(mark), kind]).filter(([, value]) => value !== null && value !== "");
  return [element("b", {}, mark.path || mark.name), definitions(pairs.map(([header, value, kind]) => [header, told(kind, value)]))];
}
