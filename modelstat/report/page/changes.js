// Two models in one chart: an arrow from before to after for each layer that changed.

const CHANGE_COLUMNS = [["params", "count"], ["flops", "count"], ["bytes", "bytes"], ["intensity", "ratio"], ["seconds", "seconds"], ["rate", "rate"]];
const CHANGE_HEADERS = { params: "params", flops: "FLOPs", bytes: "bytes", intensity: "FLOP/B", seconds: "time", rate: "FLOP/s" };

function drawChanges() {
  if (!page.changes.length) return;
  find("changes").hidden = false;
  const colours = ink();
  const placed = (state_) => (state_ && state_.intensity && state_.rate ? [state_.intensity, state_.rate] : null);
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
  const heads = ["layer", "before", "after", ...CHANGE_COLUMNS.flatMap(([key]) => [CHANGE_HEADERS[key], "after"])];
  const table = find("change-table");
  fill(table.tHead, element("tr", {}, ...heads.map((header, index) => element("th", { scope: "col", className: index < 3 ? "text" : "" }, header))));
  fill(table.tBodies[0], ...page.changes.map((change) => element("tr", {},
    element("td", { className: "text path", title: change.path }, change.path || "whole model"),
    element("td", { className: "text" }, change.before ? change.before.type : "-"), element("td", { className: "text" }, change.after ? change.after.type : "-"),
    ...CHANGE_COLUMNS.flatMap(([key, kind]) => ["before", "after"].map((side) => element("td", {}, change[side] ? told(kind, change[side][key]) : "-"))))));
}

function changeTooltip(index) {
  const change = page.changes[index];
  const pairs = CHANGE_COLUMNS.map(([key, kind]) => [CHANGE_HEADERS[key], `${change.before ? told(kind, change.before[key]) : "-"} → ${change.after ? told(kind, change.after[key]) : "-"}`]);
  return [element("b", {}, change.path || "whole model"), definitions([["type", `${change.before ? change.before.type : "-"} → ${change.after ? change.after.type : "-"}`], ...pairs])];
}
