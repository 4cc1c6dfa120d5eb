// The table of ops or layers: sortable, filtered with the chart, linked with it both ways.

const OP_COLUMNS = [
  ["path", "path", "text"], ["op", "name", "text"], ["family", "family", "text"], ["output", "outputs", "text"], ["FLOPs", "flops", "count"],
  ["bytes", "bytes", "bytes"], ["FLOP/B", "intensity", "ratio"], ["bound", "bound", "text"], ["ideal", "ideal_seconds", "seconds"],
  ["predicted", "seconds", "seconds"], ["share", "share", "percent"], ["% peak rate", "peak_share", "percent"], ["% bandwidth", "bandwidth_share", "percent"],
];

const shownAs = (point, key) => (key === "path" ? place(point) : point[key]);

function sorted(shown) {
  const { key, down } = state.sort;
  const isKnown = (each) => shownAs(each, key) !== null && shownAs(each, key) !== undefined;
  const known = shown.filter(isKnown);
  const unknown = shown.filter((each) => !isKnown(each));
  const order = (one, other) => (typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other);
  known.sort((one, other) => order(shownAs(one, key), shownAs(other, key)) * (down ? -1 : 1) || one.row - other.row);
  return [...known, ...unknown];
}

function drawTable() {
  const table = find("ops");
  const heads = OP_COLUMNS.map(([header, key, kind]) => {
    const now = state.sort.key === key ? (state.sort.down ? "descending" : "ascending") : null;
    const sort = () => {
      state.sort = { key, down: state.sort.key === key ? !state.sort.down : kind !== "text" };
      drawTable();
      table.tHead.querySelector(`[data-key="${key}"]`).focus();
    };
    return element("th", { scope: "col", "aria-sort": now, className: kind === "text" ? "text" : "" }, element("button", { type: "button", "data-key": key, on: { click: sort } }, header));
  });
  fill(table.tHead, element("tr", {}, ...heads));
  const body = document.createDocumentFragment();
  sorted(visible()).forEach((point, index) => {
    const line = element("tr", { "data-row": point.row, tabindex: index === 0 ? 0 : -1, "aria-current": String(point.row === state.selected) });
    for (const [, key, kind] of OP_COLUMNS) {
      const cell = element("td", { className: kind === "text" ? `text ${key}` : "" }, told(kind, shownAs(point, key)));
      if (key === "path") cell.title = point.path;
      line.append(cell);
    }
    body.append(line);
  });
  fill(table.tBodies[0], body);
  const { left_out_ops: number, left_out_share: share } = view();
  find("left-out").textContent = number && state.level === "ops" ? `${number} lighter ops are left out: ${units.percent(share)} of the time.` : "";
}

const rowOf = (row) => find("ops").tBodies[0].querySelector(`[data-row="${row}"]`);

function markRow(scroll) {
  for (const line of find("ops").tBodies[0].querySelectorAll('[aria-current="true"]')) line.setAttribute("aria-current", "false");
  const line = state.selected === null ? null : rowOf(state.selected);
  if (!line) return;
  line.setAttribute("aria-current", "true");
  // Only the table's own box scrolls: the chart must stay where the reader is.
  const frame = find("ops-scroll");
  if (scroll) frame.scrollTop = line.offsetTop - frame.clientHeight / 2;
}

function focusRow(row) {
  const line = rowOf(row);
  if (!line) return;
  for (const other of find("ops").tBodies[0].querySelectorAll('[tabindex="0"]')) other.setAttribute("tabindex", "-1");
  line.setAttribute("tabindex", "0");
  line.focus();
}

function listenToTable() {
  const body = find("ops").tBodies[0];
  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line) select(Number(line.dataset.row), "table");
  });
  body.addEventListener("keydown", (event) => {
    const line = event.target.closest("tr");
    const next = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling, Home: body.firstElementChild, End: body.lastElementChild }[event.key];
    if (next) {
      event.preventDefault();
      focusRow(Number(next.dataset.row));
      select(Number(next.dataset.row), "table");
    } else if (event.key === "Enter") {
      event.preventDefault();
      find("point-chart").focus();
      select(Number(line.dataset.row), "keys");
    }
  });
}
