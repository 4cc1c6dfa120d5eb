// The tree of modules as an icicle of buttons: a module is as wide as its share of time, FLOPs or bytes; its children stand below it.

const LEVELS = 6;
const LEVEL_HEIGHT = 27;
const NARROWEST = 0.004;

function childrenOf(nodes) {
  const children = nodes.map(() => []);
  nodes.forEach((node, index) => { if (node.parent >= 0) children[node.parent].push(index); });
  return children;
}

const lastPart = (node) => (node.path ? node.path.slice(node.path.lastIndexOf(".") + 1) : node.type);

function drawTree() {
  const { nodes } = decoded[state.view];
  const children = childrenOf(nodes);
  const weight = (index) => nodes[index][state.weigh] || 0;
  const kind = { seconds: "seconds", flops: "count", bytes: "bytes" }[state.weigh];
  const made = [];
  const whole = weight(0) || 1;
  const base = weight(state.root) || 1;
  let deepest = 0;
  const across = find("tree").clientWidth || 1000;
  const put = (index, left, depth) => {
    const width = weight(index) / base;
    if (depth > LEVELS || (width < NARROWEST && depth > 0)) return;
    deepest = Math.max(deepest, depth);
    const node = nodes[index];
    const text = `${node.path || node.type} (${node.type}): ${told(kind, node[state.weigh])}, ${units.percent(weight(index) / whole)} of the model`;
    const button = element("button", { type: "button", title: text, "aria-label": text, "data-node": index, className: made.length % 2 ? "odd" : "", on: { click: () => zoomTo(index) } },
      (depth ? width : 1) * across > 28 ? `${lastPart(node)} ${units.percent(weight(index) / whole)}` : "");
    button.style.left = `${100 * left}%`;
    button.style.width = `${100 * Math.min(1, depth ? width : 1)}%`;
    button.style.top = `${depth * LEVEL_HEIGHT}px`;
    made.push(button);
    let start = left;
    for (const child of children[index]) {
      put(child, start, depth + 1);
      start += weight(child) / base;
    }
  };
  if (nodes.length) put(state.root, 0, 0);
  const tree = find("tree");
  tree.style.height = `${(deepest + 1) * LEVEL_HEIGHT}px`;
  fill(tree, ...made);
  drawCrumbs(nodes);
}

function drawCrumbs(nodes) {
  const path = [];
  for (let index = state.root; index >= 0 && nodes.length; index = nodes[index].parent) path.unshift(index);
  const crumbs = path.map((index) => element("button", { type: "button", "aria-current": index === state.root ? "true" : null, on: { click: () => zoomTo(index) } }, lastPart(nodes[index])));
  const only = element("button", { type: "button", id: "only", on: { click: () => showOnly(nodes[state.root].path) } }, "find its ops in chart and table");
  fill(find("crumbs"), ...crumbs, ...(nodes.length && nodes[state.root].path ? [only] : []));
}

function zoomTo(index) {
  state.root = index;
  drawTree();
  find("tree").querySelector("button")?.focus();
}

function showOnly(path) {
  state.text = path;
  find("text").value = path;
  refresh();
  find("points").scrollIntoView();
  find("text").focus();
}
