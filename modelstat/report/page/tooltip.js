// What a chart says about the point under the mouse or the keyboard: text nodes in a box of its own.

const tooltip = find("tooltip");

function showTooltip(content, x, y) {
  fill(tooltip, ...content);
  tooltip.hidden = false;
  const box = tooltip.getBoundingClientRect();
  const left = Math.min(x + 14, window.scrollX + document.documentElement.clientWidth - box.width - 8);
  // Below the point, where it hides no roof, unless the window ends there.
  const below = y + 18;
  tooltip.style.left = `${Math.max(window.scrollX + 4, left)}px`;
  tooltip.style.top = `${below + box.height < window.scrollY + window.innerHeight ? below : y - box.height - 14}px`;
}

const hideTooltip = () => { tooltip.hidden = true; };

function definitions(pairs) {
  return element("dl", {}, ...pairs.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]));
}

function pointTooltip(point) {
  const pairs = [
    ["op", point.ops > 1 ? `${point.name}, ${point.ops} ops` : point.name],
    ["family, dtype", [point.family, point.dtype].filter(Boolean).join(", ")],
    ["input", point.inputs || "-"], ["output", point.outputs || "-"],
    ["FLOPs", units.count(point.flops)], ["bytes", units.bytes(point.bytes)],
    ["intensity", point.intensity === null ? "-" : `${units.ratio(point.intensity)} FLOP/B`],
    ["ideal", told("seconds", point.ideal_seconds)],
    ["predicted", `${told("seconds", point.seconds)}${point.wait_seconds ? `, ${units.seconds(point.wait_seconds)} of it waiting for the host` : ""}`],
    ["of the time", told("percent", point.share)],
    ["of peak FLOP/s", `${told("percent", point.peak_share)} (${told("rate", point.rate)})`],
    ["of peak bandwidth", `${told("percent", point.bandwidth_share)} (${told("bandwidth", point.bandwidth)})`],
    ["bound by", point.bound || "not known"],
    ...(point.below_ideal ? [["below ideal", `by ${point.below_ideal}`]] : []),
  ];
  return [element("b", {}, place(point) || point.name), definitions(pairs)];
}

// Plotly's events say where the mouse is; the box is ours.
function hoverable(chart, contentOf) {
  chart.on("plotly_hover", (event) => {
    const content = contentOf(event.points[0]);
    if (content) showTooltip(content, event.event.pageX, event.event.pageY);
  });
  chart.on("plotly_unhover", hideTooltip);
}
