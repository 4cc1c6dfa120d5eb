// The filters above the chart: each of them acts on chart and table together.

let waiting = null;

function refresh() {
  drawPoints();
  drawTable();
}

// Typing is not redrawn letter by letter.
function refreshSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(refresh, 120);
}

function box(label, checked, change, extra = {}) {
  const input = element("input", { type: "checkbox", checked, on: { change: () => change(input.checked) }, ...extra });
  return element("label", {}, input, ` ${label}`);
}

function toggle(set, key, on) {
  if (on) set.delete(key); else set.add(key);
}

// Families, limits and roofs differ from view to view.
function drawFilters() {
  const everything = decoded[state.view].ops.filter((each) => !each.transfer);
  const number = (key, of) => everything.filter((each) => of(each) === key).length;
  const bounds = [...new Set(everything.map(limit))].sort();
  fill(find("bounds"), ...bounds.map((key) => box(`${key === "none" ? "not known" : key} (${number(key, limit)})`, !state.bounds.has(key), (on) => {
    toggle(state.bounds, key, on);
    refresh();
  }, { "data-bound": key })));
  const families = [...new Set(everything.map((each) => each.family))].sort();
  fill(find("families"), ...families.map((key) => box(`${key} (${number(key, (each) => each.family)})`, !state.families.has(key), (on) => {
    toggle(state.families, key, on);
    refresh();
  }, { "data-family": key })));
  fill(find("roofs"), ...lines(view().device).map((line) => box(line.name, !state.hidden.has(line.id), (on) => {
    toggle(state.hidden, line.id, on);
    drawPoints();
    drawProgramChart();
  }, { "data-roof": line.name, title: line.source })));
  const able = page.views[state.view].device.link !== null && decoded[state.view].ops.some((each) => each.transfer);
  find("transfers").disabled = !able;
  find("transfers-label").title = able ? `PCIe, ${units.bandwidth(view().device.link)} in one direction` : "The rate of this GPU's host link is not known.";
}

function hideUnused() {
  for (const each of page.views) for (const line of lines(each.device)) if (!line.on) state.hidden.add(line.id);
}

function listenToFilters() {
  const form = find("filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => {
    Object.assign(state, { level: "ops", colour: "bound", text: "", share: 0, transfers: false, selected: null, sort: { key: "seconds", down: true } });
    for (const set of [state.bounds, state.families, state.hidden]) set.clear();
    hideUnused();
    drawFilters();
    drawPrograms();
    refresh();
  }));
  for (const input of form.querySelectorAll("[name=level]")) {
    input.addEventListener("change", () => { state.level = input.value; state.selected = null; refresh(); });
  }
  find("colour").addEventListener("change", (event) => { state.colour = event.target.value; drawPoints(); });
  find("text").addEventListener("input", (event) => { state.text = event.target.value; refreshSoon(); });
  find("share").addEventListener("input", (event) => { state.share = Number(event.target.value) || 0; refreshSoon(); });
  find("transfers").addEventListener("change", (event) => { state.transfers = event.target.checked; drawPrograms(); refresh(); });
}
