// Two models in one chart: an arrow from before to after for each layer that changed.

const CHANGE_COLUMNS = [
  ["type", "text", "type"], ["params", "count", "params"], ["flops", "count", "FLOPs"], ["bytes", "bytes", "bytes"], ["intensity", "ratio", "FLOP/B"],
  ["seconds", "seconds", "time"], ["rate", "rate", "FLOP/s"],
];

function drawChanges() {
  if (!page.changes.length) return;
  find("changes").hidden = false;
  const colours = ink();
  const placed = (layer) => (layer && layer.intensity && layer.rate ? [layer.intensity, layer.rate] : null);
  const frame = { ...page.views[0].window, ...Object.fromEntries(["low", "bottom"].map((key) => [key, Math.min(...page.views.map((each) => each.window[key]))])) };
  frame.high = Math.max(...page.views.map((each) => each.window.high));
  frame.top = Math.max(...page.views.map((each) => each.window.top));
  const roofs = roofTraces(page.views[0].device, frame, colours.soft, (line) => line.on);
  const trace = (name, key, symbol, colour) => {
    const kept = page.changes.map((change, index) => [index, placed(change[key])]).filter(([, at]) => at);
    return {
      x: kept.map(([, at]) => at[0]), y: kept.map(([, at]) => at[1]), customdata: kept.map(([index]) => index), name, mode: "markers", hoverinfo: "none",
      marker: { symbol, color: colour, size: kept.map(([index]) => (index === 0 ? 17 : 11)), line: { color: colours.ink, width: 1.4 } },
    };
  };
  const arrows = page.changes.map((change) => [placed(change.before), placed(change.after)]).filter(([from, to]) => from && to).map(([from, to]) => ({
    x: Math.log10(to[0]), y: Math.log10(to[1]), ax: Math.log10(from[0]), ay: Math.log10(from[1]), xref: "x", yref: "y", axref: "x", ayref: "y",
    text: "", showarrow: true, arrowhead: 2, arrowsize: 1.2, arrowwidth: 1.4, arrowcolor: colours.ink, standoff: 7, startstandoff: 7,
  }));
  const traces = [trace("before", "before", "circle-open", colours.ink), trace("after", "after", "circle", page.series[2])];
  Plotly.react(find("change-chart"), [...roofs.traces, ...traces], layout(frame, [...roofs.annotations, ...arrows]), CONFIG);
  const heads = ["layer", ...CHANGE_COLUMNS.map(([, , header]) => header)];
  const table = find("change-table");
  fill(table.tHead, element("tr", {}, ...heads.map((header, index) => element("th", { scope: "col", className: index < 2 ? "text" : "" }, header))));
  fill(table.tBodies[0], ...page.changes.map((change) => element("tr", {},
    element("td", { className: "text path", title: change.path }, change.path || "whole model"),
    ...CHANGE_COLUMNS.map(([key, kind]) => element("td", { className: kind === "text" ? "text" : "" }, both(change, key, kind))))));
}

function both(change, key, kind) {
  const [before, after] = ["before", "after"].map((side) => (change[side] ? told(kind, change[side][key]) : "-"));
  return before === after ? before : `${before} → ${after}`;
}

function changeTooltip(index) {
  const change = page.changes[index];
  return [element("b", {}, change.path || "whole model"), definitions(CHANGE_COLUMNS.map(([key, kind, header]) => [header, both(change, key, kind)]))];
}
