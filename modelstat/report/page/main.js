// Draws everything once, and again where the view or the theme changes.

function draw() {
  drawPrograms();
  drawFilters();
  refresh();
  drawTree();
  drawMemory();
  drawChanges();
  drawMeasured();
  drawBrief();
  drawDevice();
  drawNotes();
}

function chooseView(index) {
  Object.assign(state, { view: index, root: 0, selected: null });
  if (!decoded[index].ops.some((each) => each.transfer)) { state.transfers = false; find("transfers").checked = false; }
  state.bounds.clear();
  state.families.clear();
  find("view").value = String(index);
  hideTooltip();
  draw();
}

function wear(theme) {
  document.documentElement.dataset.theme = theme;
  find("theme").setAttribute("aria-pressed", String(theme === "dark"));
}

function start() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  wear(dark.matches ? "dark" : "light");
  dark.addEventListener("change", (event) => { wear(event.matches ? "dark" : "light"); draw(); });
  find("theme").addEventListener("click", () => { wear(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); draw(); });
  find("choose-view").hidden = page.views.length < 2;
  fill(find("view"), ...page.views.map((each, index) => element("option", { value: index }, each.label)));
  find("view").addEventListener("change", (event) => chooseView(Number(event.target.value)));
  find("weigh").addEventListener("change", (event) => { state.weigh = event.target.value; drawTree(); });
  find("capacity").addEventListener("change", (event) => { state.capacity = event.target.checked; drawMemory(); });
  find("version").textContent = `modelstat ${page.version}. MACs without bias, FLOPs with a MAC = 2, bytes read and written once per op; decimal prefixes.`;
  const { peak_bytes: needed, memory_bytes: capacity } = page.views[0].program;
  state.capacity = Boolean(capacity) && needed * 4 > capacity;
  find("capacity").checked = state.capacity;
  hideUnused();
  listenToFilters();
  listenToTable();
  draw();
  hoverable(find("program-chart"), (each) => (each.customdata === undefined ? null : programTooltip(each.customdata)));
  hoverable(find("point-chart"), (each) => (each.customdata === undefined ? null : pointTooltip(points()[each.customdata])));
  hoverable(find("memory-chart"), (each) => (each.customdata === undefined ? null : memoryTooltip(each.customdata)));
  if (page.changes.length) hoverable(find("change-chart"), (each) => (each.customdata === undefined ? null : changeTooltip(each.customdata)));
  if (measurement()) hoverable(find("measured-chart"), (each) => (each.customdata === undefined ? null : measuredTooltip(each.customdata)));
  find("program-chart").on("plotly_click", (event) => { if (event.points[0].customdata !== undefined) chooseView(event.points[0].customdata); });
  find("point-chart").on("plotly_click", (event) => { if (event.points[0].customdata !== undefined) select(event.points[0].customdata, "chart"); });
  find("point-chart").on("plotly_afterplot", moveRing);
  find("point-chart").addEventListener("keydown", keysOnChart);
  find("point-chart").addEventListener("blur", hideTooltip);
  document.documentElement.dataset.ready = "yes";
}

start();
