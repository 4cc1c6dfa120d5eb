// Live bytes along the trace: weights, and activations on top of them.

function drawMemory() {
  const colours = ink();
  const { weight_bytes: weights, peak } = view().memory;
  const { steps } = decoded[state.view];
  const x = steps.map((step) => step.op);
  const total = steps.map((step) => weights + step.activation_bytes);
  const capacity = view().device.memory_bytes;
  const area = (name, y, colour) => ({ x, y, name, mode: "lines", stackgroup: "live", line: { width: 0.5, color: colour, shape: "hv" }, fillcolor: colour, hoverinfo: "none", customdata: x.map((_, index) => index) });
  const traces = [area("weights", steps.map(() => weights), page.series[0]), area("activations", steps.map((step) => step.activation_bytes), page.series[3])];
  if (peak !== null) {
    traces.push({ x: [x[peak]], y: [total[peak]], name: "peak", mode: "markers", marker: { symbol: "star", size: 14, color: page.series[1], line: { color: colours.ink, width: 1 } }, hoverinfo: "none", customdata: [peak] });
  }
  const ends = x.length > 1 ? [x[0], x[x.length - 1]] : [(x[0] || 0) - 1, (x[0] || 0) + 1];
  if (capacity && state.capacity) {
    traces.push({ x: ends, y: [capacity, capacity], name: "capacity of the GPU", mode: "lines", line: { color: page.series[1], dash: "dash", width: 2 }, hoverinfo: "skip" });
  }
  const axis = { gridcolor: colours.grid, zeroline: false, linecolor: colours.soft };
  const base = layout({ low: 1, high: 10, bottom: 1, top: 10 }, []);
  Plotly.react(find("memory-chart"), traces, {
    ...base, margin: { ...base.margin, t: 30, l: 78 },
    xaxis: { ...axis, title: { text: "op, in the order of the trace" }, range: ends }, yaxis: { ...axis, title: { text: "bytes alive" }, tickformat: ".3s", ticksuffix: "B", rangemode: "tozero" },
  }, CONFIG);
  const used = capacity ? `, ${units.percent(view().program.peak_bytes / capacity)} of the ${units.bytes(capacity)} of ${view().device.name}` : "; the GPU's capacity is not known";
  const where = peak === null ? "No op runs." : `Peak at op ${steps[peak].op}, ${steps[peak].name} in ${steps[peak].path || "the root"}: ${units.bytes(weights + steps[peak].activation_bytes)} (weights ${units.bytes(weights)}, activations ${units.bytes(steps[peak].activation_bytes)})${used}.`;
  find("memory-text").textContent = where;
  find("capacity").disabled = !capacity;
}

function memoryTooltip(index) {
  const step = decoded[state.view].steps[index];
  const weights = view().memory.weight_bytes;
  return [element("b", {}, `op ${step.op}: ${step.name}`), definitions([
    ["module", step.path || "(root)"], ["alive", units.bytes(weights + step.activation_bytes)], ["weights", units.bytes(weights)], ["activations", units.bytes(step.activation_bytes)],
  ])];
}
