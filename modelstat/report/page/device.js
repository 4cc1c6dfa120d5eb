// The GPU: what it can do, and where each number comes from.

// Beside the first chart: the lines that it draws, and what is not there.
function drawBrief() {
  const { device, program } = view();
  const drawn = lines(device).filter((line) => line.on);
  const head = ["", "limit", "ridge"].map((each, index) => element("th", { scope: "col", className: index ? "" : "text" }, each));
  const body = drawn.map((line) => element("tr", {}, element("td", { className: "text" }, line.name),
    element("td", {}, line.kind === "roof" ? units.bandwidth(line.bandwidth) : units.rate(line.flops)), element("td", {}, line.kind === "roof" ? "" : `${units.ratio(line.ridge)} FLOP/B`)));
  const missing = [...device.left_out, ...(program.missing ? [program.missing] : [])].map((reason) => element("li", {}, reason));
  fill(find("brief"), element("h3", {}, device.name), element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)),
    missing.length ? element("p", { className: "hint" }, "Left out:") : "", element("ul", { className: "hint" }, ...missing), element("a", { href: "#h-device" }, "All peaks and their sources"));
}

function drawDevice() {
  const { device } = view();
  const facts = definitions(device.facts);
  const head = element("tr", {}, ...["precision", "unit", "peak", "ridge (FLOP/B)", "source"].map((each, index) => element("th", { scope: "col", className: index === 2 || index === 3 ? "" : "text" }, each)));
  const peaks = device.peaks.map((row) => element("tr", {},
    element("td", { className: "text" }, row.precision), element("td", { className: "text" }, row.unit), element("td", {}, row.peak === null ? "-" : row.peak),
    element("td", {}, told("ratio", row.ridge)), element("td", { className: "text source" }, row.source)));
  const memory = element("tr", {}, ...["memory", "bandwidth", "source"].map((each, index) => element("th", { scope: "col", className: index === 1 ? "" : "text" }, each)));
  const bandwidths = [...device.roofs, ...(device.link === null ? [] : [{ name: "host link, one direction", bandwidth: device.link, source: "lanes x transfer rate x line code of PCIe" }])]
    .map((row) => element("tr", {}, element("td", { className: "text" }, row.name), element("td", {}, units.bandwidth(row.bandwidth)), element("td", { className: "text source" }, row.source)));
  const table = (caption, heads, body) => element("div", { className: "scroll" },
    element("table", {}, element("caption", {}, caption), element("thead", {}, heads), element("tbody", {}, ...body)));
  fill(find("device"), facts, table("Peaks: dense, a fused multiply-add is 2", head, peaks), table("Bandwidths", memory, bandwidths));
}

function drawNotes() {
  fill(find("notes"), ...(view().notes.length ? view().notes : ["none"]).map((each) => element("li", {}, each)));
}
