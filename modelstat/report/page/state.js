// What the page shows, and small helpers to build it. Names from outside become text nodes only, never markup.

const page = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);

const state = {
  view: 0, level: "ops", colour: "bound", text: "", share: 0, transfers: false, capacity: false, weigh: "seconds", root: 0,
  bounds: new Set(), families: new Set(), hidden: new Set(), sort: { key: "seconds", down: true }, selected: null,
};

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "className") made.className = value;
    else if (key === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

function fill(parent, ...children) {
  parent.replaceChildren(...children);
}

// Columns back to rows. TEXTS are the columns whose numbers are places in the table of texts.
const TEXTS = new Set(["path", "name", "type", "family", "dtype", "inputs", "outputs", "bound", "below_ideal"]);

function rows(places) {
  const names = Object.keys(places);
  const length = names.length ? page.columns[places[names[0]]].length : 0;
  return Array.from({ length }, (_, row) => {
    const made = { row };
    for (const name of names) {
      const value = page.columns[places[name]][row];
      made[name] = TEXTS.has(name) && value !== null ? page.strings[value] : value;
    }
    return made;
  });
}

// What follows from the other columns: rates, shares and the intensity.
function complete(point, device, program, transfer) {
  const per = (amount) => (point.seconds ? amount / point.seconds : null);
  return {
    ...point, transfer, rate: per(point.flops), bandwidth: per(point.bytes), intensity: point.bytes ? point.flops / point.bytes : null,
    bandwidth_share: transfer ? null : per(point.bytes / device.roofs[0].bandwidth),
    share: transfer || point.seconds === null || !program.seconds ? null : point.seconds / program.seconds,
  };
}

const decoded = page.views.map((view) => {
  const of = (places, transfer) => rows(places).map((point) => complete(point, view.device, view.program, transfer));
  const transfers = of(view.transfers, true);
  const join = (places) => [...of(places, false), ...transfers].map((each, row) => ({ ...each, row }));
  return { ops: join(view.ops), layers: join(view.layers), nodes: rows(view.nodes), steps: rows(view.memory.steps) };
});

const view = () => page.views[state.view];
// Transfers compute nothing: with them the plane reaches further to the left.
const plane = () => (state.transfers ? view().window_with_transfers : view().window);
const points = () => decoded[state.view][state.level];
const limit = (point) => point.bound || "none";

// Where a point stands: see Window.position in modelstat/report/chart/window.py.
function position(point, frame) {
  if (point.intensity && point.rate) return [point.intensity, point.rate];
  return point.bandwidth ? [frame.bytes_only, frame.bytes_only * point.bandwidth] : null;
}

function isVisible(point) {
  if (point.transfer && !state.transfers) return false;
  if (state.bounds.has(limit(point)) || state.families.has(point.family)) return false;
  if (state.share > 0 && !(point.share * 100 >= state.share) && !point.transfer) return false;
  const wanted = state.text.trim().toLowerCase();
  return !wanted || `${point.path} ${point.name}`.toLowerCase().includes(wanted);
}

const visible = () => points().filter(isVisible);
const place = (point) => point.path || (point.transfer ? "" : "(root)");

// Colours come from the style sheet, so that charts follow the theme.
function ink() {
  const style = getComputedStyle(document.documentElement);
  const take = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: take("ink"), soft: take("soft"), grid: take("grid"), back: take("back"), accent: take("accent") };
}

// Plotly reads some tags in its labels: what comes from outside must not become one.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
