// The roofline of ops or layers: one trace for each kind of limit or family, so that the legend names them.

const FAMILY_SYMBOLS = ["circle", "diamond", "triangle-up", "square", "cross", "star", "hexagon", "triangle-down"];
let ring = null;

function groups(shown) {
  const by = new Map();
  for (const point of shown) {
    const key = state.colour === "bound" ? limit(point) : point.family;
    if (!by.has(key)) by.set(key, []);
    by.get(key).push(point);
  }
  const families = [...new Set(points().map((each) => each.family))];
  return [...by].map(([key, several]) => {
    const place = families.indexOf(key);
    return {
      several,
      name: state.colour === "family" ? key : key === "none" ? "no limit known" : key === "transfer" ? "transfer" : `${key}-bound`,
      colour: state.colour === "bound" ? page.colours[key] : page.series[place % page.series.length],
      symbol: state.colour === "bound" ? page.symbols[key] : FAMILY_SYMBOLS[(place + Math.floor(place / 8)) % 8],
    };
  }).sort((one, other) => other.several.length - one.several.length);
}

function drawPoints() {
  const frame = plane();
  const colours = ink();
  const roofs = roofTraces(view().device, frame, colours.soft, (line) => !state.hidden.has(line.id));
  const most = Math.max(...points().filter((each) => !each.transfer).map((each) => each.seconds || 0), 1e-12);
  const traces = groups(visible()).map(({ several, name, colour, symbol }) => {
    const placed = several.map((point) => [point, position(point, frame)]).filter(([, at]) => at);
    return {
      x: placed.map(([, at]) => at[0]), y: placed.map(([, at]) => at[1]), customdata: placed.map(([point]) => point.row),
      name, mode: "markers", hoverinfo: "none",
      marker: {
        symbol, color: colour, opacity: 0.78, line: { color: colours.ink, width: 0.6 },
        size: placed.map(([point]) => 6 + 20 * Math.sqrt(Math.min(1, (point.seconds || 0) / most))),
      },
    };
  });
  const border = { x0: frame.bytes_only * 1.8, x1: frame.bytes_only * 1.8, xref: "x", y0: 0, y1: 1, yref: "paper" };
  const copies = points().some((each) => !each.flops && (state.transfers || !each.transfer));
  const shapes = copies ? [{ type: "line", ...border, line: { color: colours.soft, width: 1, dash: "dot" } }] : [];
  if (copies) {
    roofs.annotations.push({ text: "no FLOPs", x: Math.log10(border.x0), y: 1, yref: "paper", xanchor: "right", yanchor: "top", showarrow: false, font: { size: 11, color: colours.soft } });
  }
  const missing = view().device.left_out.filter((reason) => reason.startsWith("ceiling"));
  const chart = find("point-chart");
  Plotly.react(chart, [...roofs.traces, ...traces], layout(frame, roofs.annotations, { shapes }), CONFIG);
  say(missing);
  moveRing();
}

// How much of the model is shown, for the eye and for a screen reader.
function say(missing) {
  const shown = visible();
  const share = shown.reduce((sum, each) => sum + (each.share || 0), 0);
  const flops = shown.reduce((sum, each) => sum + each.flops, 0);
  const bytes = shown.reduce((sum, each) => sum + each.bytes, 0);
  const text = `${shown.length} of ${points().filter((each) => state.transfers || !each.transfer).length} ${state.level} shown: ${units.percent(share)} of the time, ${units.count(flops)} FLOPs, ${units.bytes(bytes)}.`;
  find("status").textContent = [text, ...missing.map((reason) => `No ${reason}.`)].join(" ");
}

function pixel(point) {
  const at = position(point, plane());
  const { xaxis, yaxis } = find("point-chart")._fullLayout;
  if (!at) return null;
  const x = xaxis.d2p(at[0]);
  const y = yaxis.d2p(at[1]);
  if (x < 0 || y < 0 || x > xaxis._length || y > yaxis._length) return null;
  return [x + xaxis._offset, y + yaxis._offset];
}

// The ring around the selected point is an element of its own: drawing the chart again for it would be slow.
function moveRing() {
  const chart = find("point-chart");
  const point = state.selected === null ? null : points()[state.selected];
  const at = point && isVisible(point) ? pixel(point) : null;
  if (ring === null) ring = element("div", { className: "ring", id: "ring" });
  if (!at) { ring.remove(); return null; }
  ring.style.left = `${at[0]}px`;
  ring.style.top = `${at[1]}px`;
  chart.append(ring);
  return at;
}

// Selecting is what links chart and table: from is where the selection came from.
function select(row, from) {
  state.selected = row;
  markRow(from !== "table");
  const at = moveRing();
  if (row === null || !at) { hideTooltip(); return; }
  if (from === "table" || from === "keys") {
    const box = find("point-chart").getBoundingClientRect();
    if (from === "keys" || (box.bottom > 0 && box.top < window.innerHeight)) {
      showTooltip(pointTooltip(points()[row]), window.scrollX + box.left + at[0], window.scrollY + box.top + at[1]);
    }
  }
}

function keysOnChart(event) {
  const order = visible().filter((point) => position(point, plane())).sort((one, other) => (other.seconds || 0) - (one.seconds || 0)).map((each) => each.row);
  const now = order.indexOf(state.selected);
  const next = { ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1, Home: 0, End: order.length - 1 }[event.key];
  if (next !== undefined && order.length) {
    event.preventDefault();
    select(order[Math.max(0, Math.min(order.length - 1, next))], "keys");
  } else if (event.key === "Enter" && state.selected !== null) {
    event.preventDefault();
    hideTooltip();
    focusRow(state.selected);
  } else if (event.key === "Escape") {
    select(null, "keys");
  }
}
