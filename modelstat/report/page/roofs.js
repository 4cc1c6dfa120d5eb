// Roofs and ceilings as lines, and the axes that all rooflines share.

const CONFIG = {
  responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  // A PNG would be made by way of a blob, which the page's policy refuses.
  toImageButtonOptions: { format: "svg", filename: "roofline" },
};

const lines = (device) => [
  ...device.roofs.map((roof) => ({ ...roof, kind: "roof", id: `${device.key} ${roof.name}` })),
  ...device.ceilings.map((ceiling) => ({ ...ceiling, kind: "ceiling", id: `${device.key} ${ceiling.name}` })),
];

// One trace and one label for each roof and ceiling that is on. Roofs end at the highest ceiling, ceilings start at the fastest roof.
function roofTraces(device, frame, colour, isOn) {
  const on = lines(device).filter(isOn);
  const roofs = on.filter((line) => line.kind === "roof");
  const ceilings = on.filter((line) => line.kind === "ceiling");
  const top = ceilings.length ? Math.max(...ceilings.map((each) => each.flops)) : frame.top;
  const fastest = Math.max(...roofs.map((roof) => roof.bandwidth), 0);
  const traces = [];
  const annotations = [];
  const add = (x, y, text, at, anchor, dash, side = "bottom") => {
    traces.push({ x, y, mode: "lines", line: { color: colour, width: 1.6, dash }, hoverinfo: "skip", showlegend: false });
    annotations.push({
      x: Math.log10(at[0]), y: Math.log10(at[1]), text: plain(text), showarrow: false, xanchor: anchor, yanchor: side,
      font: { size: 11, color: colour },
    });
  };
  for (const roof of roofs) {
    const end = top / roof.bandwidth;
    const middle = Math.min(Math.sqrt(frame.low * end), end);
    // A name that the axis would cut off stands below its line.
    const cut = Math.log(middle / frame.low) < 0.2 * Math.log(frame.high / frame.low) && roof !== roofs[0];
    add([frame.low, end], [frame.low * roof.bandwidth, top], `${roof.name} ${units.bandwidth(roof.bandwidth)}`,
      [middle, middle * roof.bandwidth], cut ? "left" : "right", roof === roofs[0] ? "solid" : "dash", cut ? "top" : "bottom");
  }
  for (const ceiling of ceilings) {
    const start = fastest ? ceiling.flops / fastest : frame.low;
    add([start, frame.high], [ceiling.flops, ceiling.flops], `${ceiling.name} ${units.rate(ceiling.flops)}`,
      [frame.high, ceiling.flops], "right", ceiling.flops === top ? "solid" : "dash");
  }
  return { traces, annotations };
}

function layout(frame, annotations, extra = {}) {
  const colours = ink();
  const axis = { type: "log", gridcolor: colours.grid, zeroline: false, linecolor: colours.soft, tickcolor: colours.soft, exponentformat: "SI", dtick: 1 };
  return {
    paper_bgcolor: colours.back, plot_bgcolor: colours.back,
    font: { family: "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif", size: 12, color: colours.ink },
    margin: { l: 62, r: 14, t: 12, b: 48 }, hovermode: "closest", hoverdistance: 16, dragmode: "zoom",
    legend: { orientation: "h", x: 0, y: 1.08, itemsizing: "constant", itemclick: false, itemdoubleclick: false },
    xaxis: { ...axis, title: { text: "arithmetic intensity (FLOP/B)" }, exponentformat: "none", range: [Math.log10(frame.low), Math.log10(frame.high)] },
    yaxis: { ...axis, title: { text: "performance (FLOP/s)" }, range: [Math.log10(frame.bottom), Math.log10(frame.top)] },
    annotations, ...extra,
  };
}
