// Whole models: their roofline, their numbers, and which of them the rest of the page shows.

const PROGRAM_COLUMNS = [
  ["", "label", "text"], ["predicted", "seconds", "seconds"], ["ideal", "ideal_seconds", "seconds"], ["samples/s", "throughput", "perSecond"],
  ["FLOPs", "flops", "count"], ["bytes", "bytes", "bytes"], ["FLOP/B", "intensity", "ratio"], ["of the roof", "roof_share", "percent"],
  ["% peak rate", "peak_share", "percent"], ["% bandwidth", "bandwidth_share", "percent"], ["memory", "peak_bytes", "bytes"], ["GPU idle", "idle_seconds", "seconds"], ["bound", "bound", "text"],
];

function drawPrograms() {
  const table = find("programs");
  fill(table.tHead, element("tr", {}, ...PROGRAM_COLUMNS.map(([header, , kind]) => element("th", { scope: "col", className: kind === "text" ? "text" : "" }, header))));
  fill(table.tBodies[0], ...page.views.map((each, index) => {
    const row = { ...each.program, label: each.label };
    const cells = PROGRAM_COLUMNS.map(([, key, kind]) => element("td", { className: kind === "text" ? "text" : "" }, told(kind, row[key])));
    const choose = () => chooseView(index);
    return element("tr", {
      "data-row": index, tabindex: 0, "aria-current": String(index === state.view),
      on: { click: choose, keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } } },
    }, ...cells);
  }));
  const whole = view().program;
  const moved = state.transfers ? decoded[state.view].ops.filter((each) => each.transfer).reduce((sum, each) => sum + each.seconds, 0) : 0;
  const range = whole.low_seconds === null ? "" : ` (90 %: ${units.seconds(whole.low_seconds)} to ${units.seconds(whole.high_seconds)})`;
  const time = whole.seconds === null ? null : whole.seconds + moved;
  const tiles = [
    [told("seconds", time), `${moved ? "predicted time with transfers" : "predicted time"}${range}`], [told("seconds", whole.ideal_seconds), "ideal time (roofline)"],
    [whole.bound ? `${whole.bound}-bound` : "-", "what limits the predicted time"], [told("percent", whole.roof_share), "of the roof: reached of what is attainable"],
    [told("percent", whole.peak_share), `of peak rate (${told("rate", whole.rate)})`], [told("percent", whole.bandwidth_share), `of peak bandwidth (${told("bandwidth", whole.bandwidth)})`],
    [whole.intensity === null ? "-" : `${units.ratio(whole.intensity)} FLOP/B`, whole.peak ? `intensity, ridge ${units.ratio(whole.peak / view().device.roofs[0].bandwidth)}` : "intensity"],
    [units.bytes(whole.peak_bytes), whole.memory_bytes ? `peak memory, ${units.percent(whole.peak_bytes / whole.memory_bytes)} of the GPU's` : "peak memory"],
  ];
  fill(find("tiles"), ...tiles.map(([value, label]) => element("div", { className: "tile" }, element("b", {}, value), element("span", {}, label))));
  find("subtitle").textContent = `${view().inputs}, ${view().batch === null ? "batch as given" : `batch ${view().batch}`}, ${view().precision}, ${view().execution}`;
  drawProgramChart();
}

function drawProgramChart() {
  const colours = ink();
  const devices = [...new Map(page.views.map((each) => [each.device.key, each.device])).values()];
  const frame = {
    low: Math.min(...page.views.map((each) => each.window.low)), high: Math.max(...page.views.map((each) => each.window.high)),
    top: Math.max(...page.views.map((each) => each.window.top)), bytes_only: Math.min(...page.views.map((each) => each.window.bytes_only)),
  };
  const placed = page.views.map((each, index) => ({ index, at: position(each.program, frame) })).filter((each) => each.at);
  const floor = Math.min(...devices.map((device) => frame.low * device.roofs[0].bandwidth), ...placed.map((each) => each.at[1]));
  frame.bottom = floor / 2;
  const single = devices.length === 1;
  const colourOf = (device) => (single ? colours.soft : page.series[devices.findIndex((each) => each.key === device.key) % page.series.length]);
  const parts = devices.map((device) => (single ? roofTraces(device, frame, colourOf(device), (line) => !state.hidden.has(line.id)) : outline(device, frame, colourOf(device))));
  const several = page.views.length > devices.length;
  const labelOf = (each) => (single ? each.label : each.label.replace(`, ${each.device.name}`, ""));
  const symbols = ["star", "circle", "diamond", "square", "triangle-up", "cross", "hexagon", "pentagon"];
  const trace = {
    x: placed.map((each) => each.at[0]), y: placed.map((each) => each.at[1]), customdata: placed.map((each) => each.index),
    mode: several && page.views.length <= 6 ? "markers+text" : "markers", text: placed.map((each) => plain(labelOf(page.views[each.index]))),
    textposition: "bottom right", textfont: { size: 11, color: colours.ink }, hoverinfo: "none", showlegend: false,
    marker: {
      size: placed.map((each) => (each.index === state.view ? 17 : 12)), symbol: placed.map((each) => symbols[each.index % symbols.length]),
      color: placed.map((each) => (single ? page.colours[page.views[each.index].program.bound || "none"] : colourOf(page.views[each.index].device))), line: { color: colours.ink, width: 1 },
    },
  };
  const chart = find("program-chart");
  Plotly.react(chart, [...parts.flatMap((each) => each.traces), trace], layout(frame, parts.flatMap((each) => each.annotations)), CONFIG);
}

// Of several GPUs only the outline is drawn, in a colour that the legend names.
function outline(device, frame, colour) {
  const [roof] = device.roofs;
  const on = device.ceilings.filter((each) => each.on);
  const top = on.length ? Math.max(...on.map((each) => each.flops)) : frame.high * roof.bandwidth;
  const ridge = top / roof.bandwidth;
  return {
    annotations: [],
    traces: [{
      x: [frame.low, ridge, frame.high], y: [frame.low * roof.bandwidth, top, top], mode: "lines", line: { color: colour, width: 2 }, hoverinfo: "skip",
      name: plain(`${device.name}: ${units.bandwidth(roof.bandwidth)}${on.length ? `, ${units.rate(top)}` : ""}`),
    }],
  };
}

function programTooltip(index) {
  const whole = page.views[index].program;
  return [element("b", {}, page.views[index].label), definitions(PROGRAM_COLUMNS.slice(1).map(([header, key, kind]) => [header, told(kind, whole[key])]))];
}
