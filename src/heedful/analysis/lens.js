// The lens: attention that people can see. One module for page, file and notebook; it fetches nothing.
//
//   mount(element, lens)                 a page or a file: `lens` is the JSON value that heedful.analysis.lens documents
//   mount(element, lens, { silence })    with a live model: silence(view, [[path, head]]) gives a promise of an answer
//   export default { render }            what anywidget calls in a notebook
//
// Parts, in order: values, words, looks, elements, the five panels, pictures, controls, mount.

// ---- values ----------------------------------------------------------------------------------------------------------

const READERS = {
  u1: (buffer) => new Uint8Array(buffer),
  u2: (buffer) => new Uint16Array(buffer),
  f4: (buffer) => new Float32Array(buffer),
};

/** Unpack a matrix: { shape, numbers (a Float32Array, row-major), step (the largest gap between two values) }. */
async function unpack(matrix) {
  const characters = atob(matrix.data);
  const packed = new Uint8Array(characters.length);
  for (let index = 0; index < characters.length; index += 1) packed[index] = characters.charCodeAt(index);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const whole = READERS[matrix.code](await new Response(stream).arrayBuffer());
  const scale = matrix.scale ?? [];
  if (!scale.length) return { shape: matrix.shape, numbers: whole, step: 0 };
  const numbers = new Float32Array(whole.length);
  const size = whole.length / matrix.shape[0];
  scale.forEach((factor, head) => {
    for (let index = head * size; index < (head + 1) * size; index += 1) numbers[index] = whole[index] * factor;
  });
  return { shape: matrix.shape, numbers, step: Math.max(...scale) };
}

const SITE_PARTS = ["weights", "norms", "joint_norms", "rollout"];
const MEASURES = ["weights", "norms", "rollout"];
const NUMBER_PARTS = ["query", "key", "value", "scores", "keep", "factor", "context", "share"];

/** Return a lens whose matrices are all unpacked. */
async function unpackLens(lens) {
  const unpackParts = async (owner, parts) => {
    const entries = parts.filter((each) => owner[each]).map(async (each) => [each, await unpack(owner[each])]);
    return { ...owner, ...Object.fromEntries(await Promise.all(entries)) };
  };
  const views = lens.views.map(async (view) => ({
    ...view,
    name: printable(view.name),
    notes: (view.notes ?? []).map(printable),
    silenced: view.silenced ?? [],
    sites: await Promise.all(view.sites.map((each) => unpackParts(each, SITE_PARTS))),
    numbers: await Promise.all((view.numbers ?? []).map((each) => unpackParts(each, NUMBER_PARTS))),
    causes: view.causes ? await unpackParts(view.causes, ["losses"]) : null,
  }));
  return { ...lens, heedful: printable(lens.heedful), views: await Promise.all(views) };
}

/** A rectangle of numbers: what one head did, or all together. */
class Grid {
  constructor(rows, columns, numbers = new Float32Array(rows * columns), step = 0) {
    Object.assign(this, { rows, columns, numbers, step });
  }

  at(row, column) {
    return this.numbers[row * this.columns + column];
  }

  row(index) {
    return this.numbers.subarray(index * this.columns, (index + 1) * this.columns);
  }

  column(index) {
    return Float32Array.from({ length: this.rows }, (_, row) => this.at(row, index));
  }

  /** What is told of it at a glance: its largest number, where that is, and the mean over the rows of their largest. */
  get facts() {
    if (this.known) return this.known;
    let [largest, place, total] = [0, -1, 0];
    for (let row = 0; row < this.rows; row += 1) {
      let most = 0;
      for (let index = row * this.columns; index < (row + 1) * this.columns; index += 1) {
        if (this.numbers[index] > most) most = this.numbers[index];
        if (this.numbers[index] > largest) [largest, place] = [this.numbers[index], index];
      }
      total += most;
    }
    this.known = { largest, place, confidence: total / Math.max(this.rows, 1) };
    return this.known;
  }

  get largest() {
    return this.facts.largest;
  }

  /** Sum over the pieces of a word that is read, mean over those of one that reads. */
  byWords(queries, keys) {
    const grid = new Grid(queries.words.length, keys.words.length, undefined, this.step);
    const counts = new Float32Array(grid.rows);
    queries.word_of.forEach((word) => (counts[word] += 1));
    for (let row = 0; row < this.rows; row += 1) {
      const into = queries.word_of[row];
      for (let column = 0; column < this.columns; column += 1) {
        grid.numbers[into * grid.columns + keys.word_of[column]] += this.at(row, column) / counts[into];
      }
    }
    return grid;
  }
}

/** Cut one head out of an unpacked matrix "H Q K"; "mean" takes the mean over the heads. */
function headOf(matrix, head) {
  const [heads, rows, columns] = matrix.shape;
  const size = rows * columns;
  if (head !== "mean") return new Grid(rows, columns, matrix.numbers.subarray(head * size, (head + 1) * size), matrix.step);
  const grid = new Grid(rows, columns, undefined, matrix.step);
  for (let index = 0; index < matrix.numbers.length; index += 1) grid.numbers[index % size] += matrix.numbers[index] / heads;
  return grid;
}

/** Return what is measured of all heads together: the mean of weights, the norms of their sum; null where it is not kept. */
function ofAllHeads(site, measure) {
  const matrix = measure === "norms" && site.num_heads > 1 ? site.joint_norms : site[measure];
  return matrix ? headOf(matrix, "mean") : null;
}

/** Return what a site shows in the present measure and unit, or null where it has nothing of the kind. */
function gridOf(view, site, head, state) {
  const matrix = site[state.measure];
  const isWhole = state.measure === "rollout";
  if (!isWhole && (!site.num_heads || (head !== "mean" && head >= site.num_heads))) return null;
  const key = `${state.measure} ${isWhole ? 0 : head} ${state.unit}`;
  site.cache ??= new Map();
  if (!site.cache.has(key)) {
    const grid = head === "mean" || isWhole ? ofAllHeads(site, state.measure) : matrix && headOf(matrix, head);
    if (!grid) return null;
    const sides = [view.sides[site.queries], view.sides[site.keys]];
    site.cache.set(key, state.unit === "words" ? grid.byWords(...sides) : grid);
  }
  return site.cache.get(key);
}

// ---- words -----------------------------------------------------------------------------------------------------------

const KIND_NAMES = { encoder: "source reads itself", cross: "answer reads source", decoder: "answer reads itself", pooling: "answer reads source" };
const MEASURE_NAMES = { weights: "weights", norms: "norms", rollout: "rollout" };
const MEASURE_TITLES = {
  weights: "Attention weights: how a query shares itself out over the keys. Each row sums to 1; to less where local attention lessens weights away from a centre that it predicts.",
  norms: "Value-weighted norms: the length of what each key adds, ‖α f(x)‖ (Kobayashi et al. 2020); of all heads together the length of the sum. A weight on a short vector counts little.",
  rollout: "Attention rollout: which inputs a position is made of after all layers so far, residual connections included (Abnar and Zuidema 2020).",
};

/** Write what could steer a page or hide in it as its code, as heedful does everywhere. */
export function printable(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (each) => {
    const code = each.codePointAt(0).toString(16);
    return code.length < 3 ? `\\x${code.padStart(2, "0")}` : code.length < 5 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
}

/** A word as it is shown; a space alone would not be. */
const visible = (word) => (word.trim() ? printable(word) : "\u2423");

function labels(view, side, state) {
  return view.sides[side][state.unit === "words" ? "words" : "pieces"].map(visible);
}

/** A number with as many decimals as its file keeps: what is written as one byte is good for two. */
function show(value, step = 0) {
  const decimals = step ? Math.min(3, Math.max(1, Math.floor(-Math.log10(step)))) : 3;
  return value.toFixed(decimals);
}

function showSmall(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2).replace("-", "\u2212");
}

function headName(path, head, view) {
  const site = view.sites.find((each) => each.path === path);
  return `${site.kind} layer ${site.layer} head ${head}`;
}

/** The places of the largest numbers, largest first, those below a hundredth of the largest left out. */
function strongest(numbers, count) {
  const order = Array.from(numbers, (value, index) => [value, index]).sort((a, b) => b[0] - a[0]);
  return order.slice(0, count).filter(([value]) => value > 0 && value > order[0][0] / 100);
}

function sayRow(names, numbers, step, count = 5) {
  return strongest(numbers, count).map(([value, index]) => `${names[index]} ${show(value, step)}`).join(", ") || "nothing";
}

// ---- looks -----------------------------------------------------------------------------------------------------------

function parseColor(text) {
  const value = parseInt(text.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Make 256 colours out of a list of stops in a custom property. An element not yet on a page has no style. */
function ramp(root, property) {
  const stops = (getComputedStyle(root).getPropertyValue(property).trim() || "#ffffff #00507d").split(/\s+/).map(parseColor);
  return Array.from({ length: 256 }, (_, index) => {
    const place = (index / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    return [0, 1, 2].map((part) => Math.round(stops[low][part] + (place - low) * (stops[low + 1][part] - stops[low][part])));
  });
}

/** How dark a number is, 0 to 1: the square root lets small ones be seen. */
const darkness = (value, largest) => (largest > 0 ? Math.sqrt(Math.min(1, Math.max(0, value / largest))) : 0);

/** Paint one pixel a number; the page scales it without blurring. */
function paint(canvas, grid, largest, colors) {
  canvas.width = Math.max(1, grid.columns);
  canvas.height = Math.max(1, grid.rows);
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  for (let index = 0; index < grid.numbers.length; index += 1) {
    const color = colors[Math.round(255 * darkness(grid.numbers[index], largest))];
    image.data[4 * index] = color[0];
    image.data[4 * index + 1] = color[1];
    image.data[4 * index + 2] = color[2];
    image.data[4 * index + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** Paint a vector as a strip: blue below zero, orange above, pale near it. */
function paintVector(canvas, vector, largest, colors) {
  canvas.width = vector.length;
  canvas.height = 1;
  const context = canvas.getContext("2d");
  const image = context.createImageData(vector.length, 1);
  vector.forEach((value, index) => {
    const place = largest > 0 ? Math.max(-1, Math.min(1, value / largest)) : 0;
    image.data.set([...colors[Math.round(127.5 * (1 + place))], 255], 4 * index);
  });
  context.putImageData(image, 0, 0);
}

const css = (color) => `rgb(${color.join(" ")})`;

// ---- elements --------------------------------------------------------------------------------------------------------

/** Make an element. Text goes in as text, never as markup. */
function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  return fill(element, properties, children);
}

function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || (value === false && !name.startsWith("aria-"))) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
  return element;
}

/** A notebook gives every widget a module of its own, and all of them share one document and one kernel. */
const MODULE = Math.random().toString(36).slice(2, 10);
let numElements = 0;
const freshId = (name) => `heedful-${MODULE}-${name}-${(numElements += 1)}`;

/** A choice of a few, as radio buttons in a row; on a narrow screen as a list that unfolds. */
function choice(app, label, key, options) {
  if (app.isNarrow) {
    const items = options.map(({ value, text }) => h("option", { value, selected: app.state[key] === value }, text));
    const change = (event) => app.set({ [key]: options[event.target.selectedIndex].value });
    return h("label", { class: "choice" }, h("span", { class: "legend-text" }, label), h("select", { "data-focus": key, onchange: change }, items));
  }
  const name = freshId(key);
  const items = options.map(({ value, text, title }) => {
    const id = freshId("option");
    const input = h("input", {
      type: "radio", id, name, value, checked: app.state[key] === value,
      "data-focus": `${key}-${value}`, onchange: () => app.set({ [key]: value }),
    });
    return h("span", { class: "option" }, input, h("label", { for: id, title }, text));
  });
  return h("fieldset", { class: "choice" }, h("legend", {}, label), h("div", { class: "options" }, items));
}

/** Let arrow keys go through elements as through a grid of rows; only one of them is a stop of the Tab key. */
function roving(rows, onmove) {
  const flat = rows.flat();
  flat.forEach((each) => (each.tabIndex = -1));
  const start = flat.find((each) => each.matches("[aria-pressed=true],[aria-current=true]")) ?? flat[0];
  if (start) start.tabIndex = 0;
  const go = (element) => {
    flat.forEach((each) => (each.tabIndex = each === element ? 0 : -1));
    element.focus();
    onmove?.(element);
  };
  rows.forEach((row, y) => row.forEach((element, x) => element.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    let next = null;
    if (event.key in steps) {
      const [down, right] = steps[event.key];
      const wanted = rows[Math.max(0, Math.min(rows.length - 1, y + down))];
      next = wanted[Math.max(0, Math.min(wanted.length - 1, x + right))];
    } else if (event.key === "Home") next = row[0];
    else if (event.key === "End") next = row[row.length - 1];
    if (next && next !== element) go(next);
    if (next) event.preventDefault();
  })));
}

const note = (...text) => h("p", { class: "note" }, ...text);

// ---- panel: all heads ------------------------------------------------------------------------------------------------

const kindsOf = (view) => [...new Set(view.sites.map((each) => each.kind))];

/** What every head of a kind shows, site by site, and the number that is darkest. */
function gridsOf(app, view, kind) {
  const sites = view.sites.filter((each) => each.kind === kind);
  const isWhole = app.state.measure === "rollout";
  const grids = sites.map((site) => Array.from({ length: isWhole ? 1 : site.num_heads }, (_, head) => gridOf(view, site, head, app.state)));
  const largest = app.state.measure === "weights" ? 1 : Math.max(...grids.flat().map((each) => each?.largest ?? 0));
  return { sites, grids, largest };
}

function headsPanel(app, view) {
  const most = Math.max(1, ...view.sites.map((each) => (app.state.measure === "rollout" ? 1 : each.num_heads)));
  const kinds = kindsOf(view).map((kind) => {
    const { sites, grids, largest } = gridsOf(app, view, kind);
    const rows = [];
    const body = sites.map((site, index) => {
      const names = [labels(view, site.queries, app.state), labels(view, site.keys, app.state)];
      const tiles = grids[index].map((grid, head) => grid && tile(app, view, site, head, grid, largest, names)).filter(Boolean);
      if (tiles.length) rows.push(tiles);
      const empty = site.num_heads ? `No ${MEASURE_NAMES[app.state.measure]} here.` : "No head is left.";
      return h("div", { class: "layer" }, h("h4", {}, `Layer ${site.layer}`),
        tiles.length ? h("div", { class: "tiles" }, tiles) : note(empty));
    });
    roving(rows);
    return h("section", {}, h("h3", {}, kind, h("small", {}, KIND_NAMES[kind])), body);
  });
  return h("div", {}, h("div", { class: "heads", style: { "--tiles": Math.min(8, most) } }, kinds), saving(app, view, headsPicture));
}

function tile(app, view, site, head, grid, largest, [queries, keys]) {
  const canvas = h("canvas", { "aria-hidden": true, width: grid.columns, height: grid.rows });
  app.paintWhenSeen(canvas, () => paint(canvas, grid, largest, app.colors));
  canvas.style.aspectRatio = `${grid.columns} / ${Math.max(grid.rows, grid.columns / 4)}`;
  const name = app.state.measure === "rollout" ? `${site.kind} layer ${site.layer}, rollout` : headName(site.path, head, view);
  const { largest: best, place, confidence } = grid.facts;
  const peak = best ? `; strongest: ${queries[Math.floor(place / grid.columns)]} reads ${keys[place % grid.columns]}, ${show(best, grid.step)}` : "";
  const description = `${name}; mean of the largest ${show(confidence, grid.step)}${peak}`;
  return h("button", {
    class: "tile", type: "button", "aria-label": description, title: description,
    "data-focus": `tile-${view.name}-${site.path}-${head}`,
    "aria-current": app.state.kind === site.kind && app.state.layer === site.layer && app.state.head === head,
    onclick: () => app.set({ tab: "head", kind: site.kind, layer: site.layer, head }),
    onfocus: () => app.say(description),
  }, canvas, h("span", { "aria-hidden": true }, app.state.measure === "rollout" ? "all" : `${head}`));
}

// ---- panel: one head -------------------------------------------------------------------------------------------------

function headPanel(app, view) {
  const found = app.chosen(view);
  if (!found.grid) return note(found.reason);
  const forms = { matrix: [matrixOf], lines: [linesOf], both: [matrixOf, linesOf] }[app.form];
  return h("div", {}, h("div", { class: "forms" }, forms.map((each) => each(app, view, found))), saving(app, view, headPicture));
}

/** The number that is darkest: weights are shown on one scale, so that heads compare. */
const darkest = (app, grid) => (app.state.measure === "weights" ? 1 : grid.largest);

function matrixOf(app, view, { site, grid }) {
  const queries = labels(view, site.queries, app.state);
  const keys = labels(view, site.keys, app.state);
  const longest = (names) => Math.min(16, Math.max(1, ...names.map((each) => each.length)));
  const fit = Math.floor((app.width(view) - 9 * longest(queries) - 24) / Math.max(1, grid.columns));
  const cell = Math.round(Math.max(4, Math.min(34, fit)) * app.state.zoom);
  const every = Math.max(1, Math.ceil(12 / cell));
  const largest = darkest(app, grid);
  const canvas = h("canvas", { "aria-hidden": true });
  paint(canvas, grid, largest, app.colors);
  const size = { width: `${cell * grid.columns}px`, height: `${cell * grid.rows}px` };
  Object.assign(canvas.style, size);
  const [band, bar, spot] = ["band", "bar", "spot"].map((each) => h("div", { class: each, "aria-hidden": true }));
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const label = (name, index, kind) => h("span", { class: kind, title: name, style: { "--size": `${cell}px` } }, index % every ? "" : h("bdi", {}, name));
  const tops = keys.map((name, index) => label(name, index, "top"));
  const lefts = queries.map((name, index) => label(name, index, "left"));
  const cells = h("div", {
    class: "cells", tabindex: 0, role: "application", "aria-roledescription": "matrix of attention",
    "aria-label": `${app.title(view)}: ${grid.rows} rows read ${grid.columns} columns. Arrow keys move, Enter follows the numbers.`,
    "data-focus": `cells-${view.name}`, style: size,
  }, canvas, band, bar, spot);
  const scroller = h("div", { class: "scroller" });
  const move = (row, column, isQuiet) => {
    app.state.row = Math.max(0, Math.min(grid.rows - 1, row));
    app.state.column = Math.max(0, Math.min(grid.columns - 1, column));
    const { row: y, column: x } = app.state;
    band.style.cssText = `top:${y * cell}px;height:${cell}px`;
    bar.style.cssText = `left:${x * cell}px;width:${cell}px`;
    spot.style.cssText = `top:${y * cell}px;left:${x * cell}px;width:${cell}px;height:${cell}px`;
    lefts.forEach((each, index) => each.toggleAttribute("data-on", index === y));
    tops.forEach((each, index) => each.toggleAttribute("data-on", index === x));
    readout.replaceChildren(h("b", {}, queries[y]), " reads ", h("b", {}, keys[x]), `: ${show(grid.at(y, x), grid.step)}`,
      h("span", {}, ` — in all it reads ${sayRow(keys, grid.row(y), grid.step)}`));
    if (!isQuiet) keepInSight(scroller, x * cell, y * cell, cell);
  };
  const place = (event) => {
    const box = cells.getBoundingClientRect();
    return [Math.floor((event.clientY - box.top) / cell), Math.floor((event.clientX - box.left) / cell)];
  };
  cells.addEventListener("pointermove", (event) => move(...place(event), true));
  cells.addEventListener("click", (event) => move(...place(event), true));
  cells.addEventListener("keydown", (event) => {
    const { row, column } = app.state;
    const goals = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [row, 0], End: [row, grid.columns - 1], PageUp: [row - 10, column], PageDown: [row + 10, column],
    };
    if (goals[event.key]) move(...goals[event.key]);
    else if (event.key === "Enter") app.set({ tab: "numbers", query: app.state.unit === "words" ? view.sides[site.queries].word_of.indexOf(row) : row });
    else return;
    event.preventDefault();
  });
  scroller.append(h("div", { class: "matrix" }, h("div", { class: "corner" }), h("div", { class: "tops" }, tops), h("div", { class: "lefts" }, lefts), cells));
  move(app.state.row, app.state.column, true);
  return h("div", {}, readout, scroller, legend(app, largest));
}

function keepInSight(scroller, left, top, cell) {
  const room = { x: scroller.querySelector(".lefts").offsetWidth, y: scroller.querySelector(".tops").offsetHeight };
  if (left < scroller.scrollLeft) scroller.scrollLeft = left - cell;
  if (left + room.x + cell > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = left + room.x + 2 * cell - scroller.clientWidth;
  if (top < scroller.scrollTop) scroller.scrollTop = top - cell;
  if (top + room.y + cell > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + room.y + 2 * cell - scroller.clientHeight;
}

function legend(app, largest) {
  const canvas = h("canvas", { "aria-hidden": true });
  paint(canvas, new Grid(1, 64, Float32Array.from({ length: 64 }, (_, index) => (index / 63) ** 2)), 1, app.colors);
  return h("figure", { class: "legend" }, canvas, h("div", {}, legendMarks(largest).map((each) => h("span", {}, each))), h("figcaption", {}, "Strength of colour grows with the square root, so that small values are seen."));
}

/** Numbers at even steps of darkness. */
const legendMarks = (largest) => [0, 1 / 16, 1 / 4, 9 / 16, 1].map((each) => show(each * largest, largest >= 1 ? 0.01 : 0.001));

const MOST_LINES = 600;

/** Where words stand in two columns, those at the left reading those at the right. */
function linesLayout(queries, keys, left, right) {
  const pitch = 24;
  return { left, right, height: pitch * Math.max(queries.length, keys.length) + 12, middle: (index) => index * pitch + pitch / 2 + 6 };
}

/** The strongest lines between them; a strong one lies over weak ones. */
function curves(grid, largest, { left, right, middle }) {
  const bend = (right - left) / 2;
  return strongest(grid.numbers, MOST_LINES).reverse().map(([value, index]) => {
    const [row, column] = [Math.floor(index / grid.columns), index % grid.columns];
    return s("path", {
      d: `M${left} ${middle(row)}C${left + bend} ${middle(row)} ${right - bend} ${middle(column)} ${right} ${middle(column)}`,
      "stroke-opacity": Math.max(0.04, darkness(value, largest) ** 1.5).toFixed(3), "stroke-width": (0.75 + 3 * darkness(value, largest)).toFixed(2),
      "data-row": row, "data-column": column,
    });
  });
}

function linesOf(app, view, { site, grid }) {
  const queries = labels(view, site.queries, app.state);
  const keys = labels(view, site.keys, app.state);
  const width = Math.max(260, Math.min(560, app.width(view)));
  const layout = linesLayout(queries, keys, width * 0.36, width * 0.64);
  const { height, left, right, middle } = layout;
  const paths = curves(grid, darkest(app, grid), layout);
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const drawing = s("svg", { class: "lines", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `${app.title(view)}: words at the left read words at the right` }, s("g", { "aria-hidden": true }, paths));
  const say = (part, index) => (part === "row" ? `${queries[index]} reads ${sayRow(keys, grid.row(index), grid.step)}` : `${keys[index]} is read by ${sayRow(queries, grid.column(index), grid.step)}`);
  const light = (part, index) => {
    paths.forEach((each) => each.toggleAttribute("data-on", each.dataset[part] === `${index}`));
    drawing.toggleAttribute("data-chosen", part !== null);
    if (part === null) return;
    app.state[part] = index;
    readout.textContent = say(part, index);
  };
  const [pinned, place] = app.pinned(view, site);
  const keep = (part, index) => app.set({ pinned: part === pinned && index === place ? null : [part, index] });
  const word = (name, index, part) => s("text", {
    x: part === "row" ? left - 8 : right + 8, y: middle(index) + 5, "text-anchor": part === "row" ? "end" : "start", role: "button", tabindex: -1,
    "data-focus": `line-${view.name}-${part}-${index}`, "aria-pressed": part === pinned && index === place, "aria-label": say(part, index),
    onfocus: () => light(part, index), onblur: () => light(pinned, place), onpointerenter: () => light(part, index), onpointerleave: () => light(pinned, place),
    onclick: () => keep(part, index), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); keep(part, index); } },
  }, shorten(name, Math.floor((left - 12) / 7.5)));
  const words = [queries.map((each, index) => word(each, index, "row")), keys.map((each, index) => word(each, index, "column"))];
  drawing.append(...words.flat());
  roving(Array.from({ length: Math.max(queries.length, keys.length) }, (_, index) => words.map((each) => each[Math.min(index, each.length - 1)])));
  const all = grid.numbers.filter((each) => each > 0).length;
  readout.textContent = "Point at a word, or go to one with Tab and the arrow keys; press it to keep it chosen.";
  light(pinned, place);
  return h("div", {}, readout, h("div", { class: "wide" }, drawing), all > paths.length && paths.length === MOST_LINES ? note(`The ${MOST_LINES} strongest of ${all} lines.`) : null);
}

const shorten = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);

// ---- panel: the sentence ---------------------------------------------------------------------------------------------

function sentencePanel(app, view) {
  const { site, grid, reason } = app.chosen(view);
  if (!grid) return note(reason);
  const isSelf = site.queries === site.keys;
  const names = { query: labels(view, site.queries, app.state), key: labels(view, site.keys, app.state) };
  const chips = {};
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const marked = (part, index) => {
    const reads = part === "query" || isSelf ? grid.row(index) : null;
    const readBy = part === "key" || isSelf ? grid.column(index) : null;
    const largest = darkest(app, grid);
    Object.entries(chips).forEach(([side, each]) => each.forEach((chip, place) => {
      const value = side === "key" || isSelf ? reads?.[place] ?? 0 : 0;
      const back = side === "query" || isSelf ? readBy?.[place] ?? 0 : 0;
      dress(app, chip, darkness(value, largest), darkness(back, largest), show(Math.max(value, back), grid.step), value, back);
      chip.setAttribute("aria-pressed", side === part && place === index);
    }));
    const said = [];
    if (reads) said.push(h("span", { class: "reads" }, h("b", {}, names[part][index]), ` reads ${sayRow(names.key, reads, grid.step)}`));
    if (readBy) said.push(h("span", { class: "read-by" }, h("b", {}, names[part][index]), ` is read by ${sayRow(names.query, readBy, grid.step)}`));
    readout.replaceChildren(...said);
  };
  const pick = (part, index) => {
    Object.assign(app.state, part === "query" ? { part, row: index } : { part, column: index });
    marked(part, index);
  };
  const current = () => (app.state.part === "key" && !isSelf ? ["key", Math.min(app.state.column, names.key.length - 1)] : ["query", Math.min(app.state.row, names.query.length - 1)]);
  const line = (part, title) => {
    chips[part] = names[part].map((name, index) => h("button", {
      class: "chip", type: "button", "data-focus": `chip-${view.name}-${part}-${index}`, "aria-pressed": "false",
      onclick: () => pick(part, index), onpointerenter: () => marked(part, index), onpointerleave: () => marked(...current()),
    }, h("bdi", {}, name), h("small", { "aria-hidden": true })));
    return h("div", { class: "line" }, h("h4", {}, title), h("div", { class: "chips", role: "group", "aria-label": title }, chips[part]));
  };
  const title = { source: "Source", target_output: "Answer", target_input: "Answer, as it is read", answer: "Answer" };
  const lines = isSelf ? [line("query", title[site.queries])] : [line("query", title[site.queries]), line("key", title[site.keys])];
  roving(Object.values(chips), (chip) => pick(...chip.dataset.focus.split("-").slice(-2).map((each, index) => (index ? Number(each) : each))));
  marked(...current());
  return h("div", { class: "sentence" }, lines, readout,
    h("p", { class: "note key" }, h("i", { class: "fill" }), "what the chosen word reads ", h("i", { class: "under" }), "who reads it"));
}

/** Fill a chip by how much it is read, underline it by how much it reads. */
function dress(app, chip, fillDark, backDark, text, value, back) {
  const color = app.colors[Math.round(255 * fillDark)];
  chip.style.setProperty("background", css(color));
  chip.style.setProperty("color", (color[0] * 3 + color[1] * 6 + color[2]) / 10 > 140 ? "#101214" : "#ffffff");
  chip.style.setProperty("--back", `${Math.round(100 * backDark)}%`);
  chip.lastChild.textContent = Math.max(value, back) >= 0.03 ? text : "";
}

// ---- panel: attention in numbers -------------------------------------------------------------------------------------

function rowOf(matrix, head, row) {
  const [, rows, width] = matrix.shape;
  return matrix.numbers.subarray((head * rows + row) * width, (head * rows + row + 1) * width);
}

/** Compute anew, from what the model computed with, what it made of one query. */
export function followQuery(numbers, head, query) {
  const keys = numbers.value.shape[1];
  const keep = rowOf(numbers.keep, 0, query);
  const asked = numbers.query ? rowOf(numbers.query, head, query) : null;
  const scale = numbers.key ? 1 / Math.sqrt(asked.length) : 1;
  const raw = Array.from({ length: keys }, (_, key) =>
    numbers.key ? rowOf(numbers.key, head, key).reduce((sum, each, index) => sum + each * asked[index], 0) : rowOf(numbers.scores, head, query)[key]);
  const scaled = raw.map((each) => each * scale);
  const best = Math.max(...scaled.filter((_, key) => keep[key]));
  const powers = scaled.map((each, key) => (keep[key] ? Math.exp(each - best) : 0));
  const total = powers.reduce((sum, each) => sum + each, 0);
  const shares = powers.map((each) => (total ? each / total : 0));
  const factor = numbers.factor ? rowOf(numbers.factor, 0, query) : null;
  const weights = factor ? shares.map((each, key) => each * factor[key]) : shares;
  const context = new Float32Array(numbers.value.shape[2]);
  weights.forEach((weight, key) => rowOf(numbers.value, head, key).forEach((each, index) => (context[index] += weight * each)));
  return { asked, keep, raw, scaled, shares, factor, weights, context, scale };
}

function numbersPanel(app, view) {
  const site = app.site(view);
  const numbers = site && view.numbers.find((each) => each.path === site.path);
  if (!numbers) {
    const kept = view.numbers.map((each) => { const found = view.sites.find((one) => one.path === each.path); return `${found.kind} layer ${found.layer}`; });
    return note(`This attention is not kept in numbers here. Kept are: ${kept.join(", ") || "none"}.`);
  }
  const head = app.state.head === "mean" ? 0 : Math.min(app.state.head, site.num_heads - 1);
  const queries = view.sides[site.queries].pieces.map(visible);
  const keys = view.sides[site.keys].pieces.map(visible);
  const query = Math.min(app.state.query, queries.length - 1);
  const found = followQuery(numbers, head, query);
  const recorded = site.weights ? headOf(site.weights, head).row(query) : found.weights;
  const context = rowOf(numbers.context, head, query);
  const gap = Math.max(...found.context.map((each, index) => Math.abs(each - context[index])));
  const weightGap = Math.max(...found.weights.map((each, key) => Math.abs(each - recorded[key])));
  const chips = queries.map((name, index) => h("button", {
    class: "chip plain", type: "button", "aria-pressed": index === query, "data-focus": `query-${view.name}-${index}`, onclick: () => app.set({ query: index }),
  }, h("bdi", {}, name)));
  roving([chips]);
  const share = numbers.share && rowOf(numbers.share, head, query);
  const isProduct = Boolean(numbers.key);
  const width = numbers.value.shape[2];
  const softmax = found.factor
    ? `the softmax makes shares that sum to 1; local attention lessens each by how far its key is from the centre that it predicts, a factor of at most 1, so that the weights sum to ${found.weights.reduce((sum, each) => sum + each, 0).toFixed(3)}`
    : "the softmax makes weights that sum to 1";
  const steps = [
    found.asked && step("Query", `What ‹${queries[query]}› asks for: ${found.asked.length} numbers, a projection of its state.`, vector(app, found.asked)),
    step(isProduct ? "Keys, scores, weights, values" : "Scores, weights, values",
      isProduct
        ? `Each position offers a key. Query times key, summed, is the raw score; divided by √${found.asked.length} = ${Math.sqrt(found.asked.length).toFixed(2)} it is scaled; ${softmax}.`
        : `The model scores each position; ${softmax}; the vectors of the positions are what is weighted.`,
      numbersTable(app, numbers, head, keys, found, isProduct)),
    step("Weighted sum", `Each value times its weight, added up: ${width} numbers, the context.`, vector(app, context)),
    share && step("New vector", `The context through head ${head}’s part of the output projection: what this head adds to the state of ‹${queries[query]}›, ${share.length} numbers.`, vector(app, share)),
  ].filter(Boolean);
  const digits = (value) => (value < 1e-9 ? "0" : value.toExponential(0));
  return h("div", { class: "numbers" },
    h("div", { class: "chips", role: "group", "aria-label": "The position that asks" }, chips),
    app.state.head === "mean" && site.num_heads > 1 ? note("Numbers are those of one head: head 0 until you choose another.") : null,
    h("ol", { class: "steps" }, steps),
    h("p", { class: "note" }, `Computed anew on this page from the model’s ${isProduct ? "queries, keys" : "scores"}${found.factor ? ", factors" : ""} and values. The weights that the model recorded differ by at most `
      + `${digits(weightGap)} (the file keeps them to ${digits((site.weights?.step ?? 0) / 2)}), its context by ${digits(gap)}.`));
}

const step = (title, text, content) => h("li", {}, h("h4", {}, title), h("p", {}, text), content);

/** Up to so many cells of a vector have their numbers below them; of longer ones the first are written out. */
const MOST_CELLS = 20;

function vector(app, numbers, count = 8) {
  const canvas = h("canvas", { "aria-hidden": true });
  const largest = numbers.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
  paintVector(canvas, numbers, largest, app.signed);
  if (numbers.length <= MOST_CELLS && !app.isNarrow) {
    const cells = Array.from(numbers, (each) => h("span", {}, showSmall(each)));
    return h("div", { class: "vector" }, canvas, h("code", { class: "cells-below", style: { "--cells": numbers.length } }, cells));
  }
  const first = Array.from(numbers.slice(0, count), showSmall);
  return h("div", { class: "vector" }, canvas, h("code", {}, first.join("  ") + (numbers.length > count ? "  …" : "")));
}

function numbersTable(app, numbers, head, keys, found, isProduct) {
  const largest = (matrix) => matrix.numbers.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
  const most = { key: numbers.key ? largest(numbers.key) : 0, value: largest(numbers.value) };
  const strip = (matrix, part, row, opacity = 1) => {
    const canvas = h("canvas", { "aria-hidden": true, style: { opacity } });
    paintVector(canvas, rowOf(matrix, head, row), most[part], app.signed);
    return h("td", { class: "strip" }, canvas);
  };
  const sum = h("p", { class: "readout sum", "aria-live": "polite" });
  const spell = (key) => {
    if (!isProduct) return;
    const offered = rowOf(numbers.key, head, key);
    const terms = Array.from(offered.slice(0, 4), (each, index) => `${showSmall(found.asked[index])}·${showSmall(each)}`);
    sum.textContent = `‹${keys[key]}›: ${terms.join(" + ")} + … ${offered.length} terms in all = ${showSmall(found.raw[key])}`;
  };
  const rows = keys.map((name, key) => {
    const hidden = !found.keep[key];
    return h("tr", { class: hidden ? "hidden" : null, onpointerenter: () => spell(key) },
      h("th", { scope: "row" }, h("button", { type: "button", class: "plain-word", onclick: () => spell(key), onfocus: () => spell(key) }, h("bdi", {}, name))),
      isProduct ? strip(numbers.key, "key", key) : null,
      h("td", { class: "number" }, showSmall(found.raw[key])),
      isProduct ? h("td", { class: "number" }, showSmall(found.scaled[key])) : null,
      found.factor ? [found.shares, found.factor].map((each) => h("td", { class: "number" }, hidden ? "" : each[key].toFixed(3))) : null,
      h("td", { class: "weight" }, hidden ? "hidden" : [h("i", { style: { width: `${(100 * found.weights[key]).toFixed(1)}%` } }), h("span", {}, found.weights[key].toFixed(3))]),
      strip(numbers.value, "value", key, 0.12 + 0.88 * Math.sqrt(found.weights[key])));
  });
  const heads = ["", isProduct && "key", isProduct ? "query · key" : "score", isProduct && "÷ √width", "softmax", Boolean(found.factor) && "× nearness", Boolean(found.factor) && "weight", "value, by weight"].filter((each) => each !== false);
  spell(found.weights.indexOf(Math.max(...found.weights)));
  return h("div", {}, sum, h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, rows))));
}

// ---- panel: why this word --------------------------------------------------------------------------------------------

function whyPanel(app, view) {
  const output = view.sides.answer ? "answer" : "target_output";
  const side = view.sides[output];
  const names = labels(view, output, app.state);
  const place = Math.min(app.state.output, names.length - 1);
  const positions = app.state.unit === "words" ? side.word_of.flatMap((word, index) => (word === place ? [index] : [])) : [place];
  const chips = names.map((name, index) => h("button", {
    class: "chip plain", type: "button", "aria-pressed": index === place, "data-focus": `output-${view.name}-${index}`, onclick: () => app.set({ output: index }),
  }, h("bdi", {}, name)));
  roving([chips]);
  return h("div", { class: "why" },
    h("div", { class: "chips", role: "group", "aria-label": "A word of the answer" }, chips),
    h("div", { class: "columns" }, sourcesOf(app, view, positions, names[place]), causesOf(app, view, positions, names[place])),
    answersOf(app, view));
}

/** Say which words an answer's position came from, by each method, in shares of one row. */
function sourcesOf(app, view, positions, name) {
  const kind = ["cross", "pooling", "decoder"].find((each) => view.sites.some((site) => site.kind === each));
  const sites = view.sites.filter((each) => each.kind === kind && each.num_heads);
  if (!sites.length) return h("section", {}, h("h4", {}, "Where it came from"), note("No attention leads to the answer of this model; its heads are at the right."));
  const keys = view.sides[sites[0].keys];
  const methods = MEASURES.map((measure) => {
    const grids = (measure === "rollout" ? sites.slice(-1) : sites).map((each) => ofAllHeads(each, measure)).filter(Boolean);
    if (!grids.length) return null;
    const total = new Float32Array(keys.words.length);
    grids.forEach((grid) => positions.forEach((position) => grid.row(position).forEach((value, key) => (total[keys.word_of[key]] += value))));
    const sum = total.reduce((a, b) => a + b, 0) || 1;
    return { measure, shares: total.map((each) => each / sum) };
  }).filter(Boolean);
  const words = keys.words.map(printable);
  const importance = words.map((_, word) => Math.max(...methods.map((each) => each.shares[word])));
  const order = strongest(importance, 12).map(([, word]) => word);
  const rows = order.map((word) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, words[word])),
    methods.map(({ shares }) => h("td", { class: "weight" }, h("i", { style: { width: `${(100 * shares[word]).toFixed(1)}%` } }), h("span", {}, `${Math.round(100 * shares[word])} %`)))));
  const about = { weights: "mean of heads, sum of layers", norms: "sum of heads, sum of layers", rollout: "through all layers" };
  return h("section", {}, h("h4", {}, `Where ‹${name}› came from`), h("div", { class: "wide" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", {}), methods.map(({ measure }) => h("th", { scope: "col", title: MEASURE_TITLES[measure] }, MEASURE_NAMES[measure], h("small", {}, about[measure]))))), h("tbody", {}, rows))),
    note(words.length > order.length ? `The ${order.length} strongest of ${words.length} words. ` : "", "Several answers to one question: where they disagree, none is the truth."));
}

function causesOf(app, view, positions, name) {
  const { causes } = view;
  if (!causes) return h("section", {}, h("h4", {}, "The heads responsible"), note("Not measured for this view."));
  const width = causes.losses.shape[1];
  const losses = causes.heads.map((_, index) => positions.reduce((sum, position) => sum + causes.losses.numbers[index * width + position], 0));
  const logProb = positions.reduce((sum, position) => sum + causes.log_probs[position], 0);
  const order = strongest(losses, 8);
  const most = Math.max(...losses, 1e-9);
  const rows = order.map(([loss, index]) => {
    const { path, head } = causes.heads[index];
    const known = view.silenced.find((each) => each.heads.length === 1 && each.heads[0].path === path && each.heads[0].head === head);
    const canSilence = app.options.silence || known;
    return h("tr", {}, h("th", { scope: "row" }, headName(path, head, view)),
      h("td", { class: "weight" }, h("i", { style: { width: `${(100 * loss) / most}%` } }), h("span", {}, loss < 0.001 ? "above −0.001" : `−${loss.toFixed(loss < 0.1 ? 3 : 2)}`)),
      h("td", {}, canSilence ? h("button", { type: "button", class: "small", "data-focus": `silence-${view.name}-${path}-${head}`, onclick: () => app.silence(view, [[path, head]]) }, "silence it") : null));
  });
  return h("section", {}, h("h4", {}, "The heads responsible"),
    h("p", {}, `‹${name}› has probability ${Math.exp(logProb).toFixed(3)}. With one head silent its log-probability changes by:`),
    rows.length ? h("div", { class: "wide" }, h("table", {}, h("tbody", {}, rows))) : note("No single head lowers it."),
    note(`Measured: the same answer, forced, once for each of the model’s heads (${causes.heads.length}).`));
}

function answersOf(app, view) {
  const mine = app.live.get(view) ?? [];
  const isSame = (each) => each.text === view.target_text && !each.told;
  const answers = [...mine, ...view.silenced.filter((each) => !isSame(each)), ...view.silenced.filter(isSame)];
  if (!answers.length) return null;
  const before = view.sides.answer ? view.sides.answer.words : view.target_text.split(/\s+/).filter(Boolean);
  const rows = answers.map((each) => {
    const heads = each.heads.map(({ path, head }) => headName(path, head, view)).join(", ");
    const isChosen = app.state.silenced === heads;
    return h("div", { class: "answer", "data-on": isChosen }, h("dt", {}, `without ${heads}`), h("dd", {}, each.told ?? [isSame(each) ? h("em", {}, "the same answer") : difference(before, each.words),
      h("small", {}, ` the first answer’s log-probability: ${each.log_prob.toFixed(2)}`)]));
  });
  const whole = view.causes ? view.causes.log_probs.reduce((a, b) => a + b, 0) : null;
  return h("section", { class: "answers" }, h("h4", {}, "The answer with heads silent"),
    h("dl", { "aria-live": "polite" }, h("div", { class: "answer" }, h("dt", {}, "with all heads"), h("dd", {}, h("bdi", {}, printable(view.target_text)), whole === null ? null : h("small", {}, ` log-probability ${whole.toFixed(2)}`))), rows),
    app.options.silence ? null : note("This file holds the answers for the heads that were chosen when it was written: by default those that did most, else those named with --silence."));
}

/** Mark the words that a new answer does not share with the old one (longest common subsequence). */
function difference(before, after) {
  const table = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) table[i][j] = before[i] === after[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  }
  const parts = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) { parts.push(h("bdi", {}, printable(after[j])), " "); i += 1; j += 1; }
    else if (j >= after.length || (i < before.length && table[i + 1][j] >= table[i][j + 1])) { parts.push(h("del", {}, printable(before[i])), " "); i += 1; }
    else { parts.push(h("ins", {}, printable(after[j])), " "); j += 1; }
  }
  return h("span", {}, parts);
}

// ---- pictures --------------------------------------------------------------------------------------------------------

const PAPER = { font: 12, cell: 16, tile: 96, gap: 28, longest: 24, lines: 150, legend: 160, sharpness: 4, mostPixels: 8192 };

/** Buttons that save what a panel shows; `draw(app, view, looks)` gives { title, parts: [{ width, height, node }] }. */
function saving(app, view, draw) {
  const button = (form) => h("button", {
    type: "button", class: "small", "data-focus": `save-${form}-${view.name}`, "aria-label": `Save as ${form.toUpperCase()}`, onclick: () => savePicture(app, view, draw, form),
  }, form.toUpperCase());
  return h("p", { class: "note saving" }, "Save this as ", button("svg"), " ", button("png"));
}

async function savePicture(app, view, draw, form) {
  const looks = paperLooks(app.root);
  const { title, parts } = draw(app, view, looks);
  const drawing = sheet(title, parts, looks);
  const svg = new Blob([new XMLSerializer().serializeToString(drawing)], { type: "image/svg+xml" });
  const content = form === "svg" ? svg : await toPng(svg, Number(drawing.getAttribute("width")), Number(drawing.getAttribute("height")));
  const name = `${title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 100)}.${form}`;
  const address = URL.createObjectURL(content);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  app.say(`${name} is saved.`);
}

async function toPng(svg, width, height) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  URL.revokeObjectURL(image.src);
  const scale = Math.min(PAPER.sharpness, PAPER.mostPixels / Math.max(width, height));
  const canvas = h("canvas", { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** The colours of the light page, whatever those at present are: pictures are for paper. */
function paperLooks(root) {
  const sample = h("div", { class: "heedful-lens", "data-theme": "light", hidden: true });
  root.append(sample);
  const style = getComputedStyle(sample);
  const [ink, accent, rule] = ["--ink", "--accent", "--rule"].map((each) => style.getPropertyValue(each).trim());
  const looks = { ink, accent, rule, colors: ramp(sample, "--ramp") };
  sample.remove();
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `bold ${PAPER.font}px ${PAPER_FONTS}`;
  return { ...looks, lengthOf: (texts) => Math.max(0, ...texts.map((each) => pen.measureText(each).width)) };
}

const PAPER_FONTS = "Helvetica, Arial, 'DejaVu Sans', sans-serif";

/** Put parts side by side on white, with a line of text below. */
function sheet(title, parts, looks) {
  const margin = 8;
  const width = Math.ceil(2 * margin + Math.max(looks.lengthOf([title]), parts.reduce((sum, each) => sum + each.width + PAPER.gap, -PAPER.gap)));
  const height = Math.ceil(3 * margin + Math.max(...parts.map((each) => each.height)) + PAPER.font);
  let x = margin;
  const placed = parts.map((each) => {
    const node = s("g", { transform: `translate(${x} ${margin})` }, each.node);
    x += each.width + PAPER.gap;
    return node;
  });
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": PAPER_FONTS, "font-size": PAPER.font, fill: looks.ink },
    s("title", {}, title), s("rect", { width, height, fill: "#ffffff" }), placed, s("text", { x: margin, y: height - margin }, title));
}

/** A matrix as rectangles in a frame: one path for each shade. */
function squares(grid, largest, looks, width, height) {
  const shades = new Map();
  grid.numbers.forEach((value, index) => {
    const shade = Math.round(255 * darkness(value, largest));
    if (shade) shades.set(shade, `${shades.get(shade) ?? ""}M${index % grid.columns} ${Math.floor(index / grid.columns)}h1v1h-1z`);
  });
  return [
    s("g", { transform: `scale(${width / grid.columns} ${height / grid.rows})`, "shape-rendering": "crispEdges" }, Array.from(shades, ([shade, d]) => s("path", { d, fill: css(looks.colors[shade]) }))),
    s("rect", { width, height, fill: "none", stroke: looks.rule }),
  ];
}

/** What the darkness means, as on the page. */
function paperLegend(largest, looks) {
  const step = PAPER.legend / 64;
  const marks = legendMarks(largest);
  return [
    Array.from({ length: 64 }, (_, index) => s("rect", { x: index * step, width: step, height: 8, fill: css(looks.colors[Math.round((255 * index) / 63)]), "shape-rendering": "crispEdges" })),
    s("rect", { width: PAPER.legend, height: 8, fill: "none", stroke: looks.rule }),
    marks.map((each, index) => s("text", { x: (index / (marks.length - 1)) * PAPER.legend, y: 20, "font-size": 9, "text-anchor": index ? (index < marks.length - 1 ? "middle" : "end") : "start" }, each)),
  ];
}

function headPicture(app, view, looks) {
  const found = app.chosen(view);
  const forms = { matrix: [matrixPart], lines: [linesPart], both: [matrixPart, linesPart] }[app.form];
  const title = app.title(view) + (app.state.measure === "rollout" ? "" : `, ${MEASURE_NAMES[app.state.measure]}`);
  return { title, parts: forms.map((each) => each(app, view, found, looks)) };
}

/** The words of both sides, and whether one was chosen to be kept. */
function paperWords(app, view, site) {
  const [pinned, place] = app.pinned(view, site);
  const side = (name, part) => labels(view, name, app.state).map((each, index) => ({ text: shorten(each, PAPER.longest), weight: part === pinned && index === place ? "bold" : undefined }));
  return [side(site.queries, "row"), side(site.keys, "column")];
}

function matrixPart(app, view, { site, grid }, looks) {
  const [queries, keys] = paperWords(app, view, site);
  const { cell, font } = PAPER;
  const [left, top] = [queries, keys].map((each) => looks.lengthOf(each.map(({ text }) => text)) + 6);
  const [width, height] = [cell * grid.columns, cell * grid.rows];
  const middle = (index) => (index + 0.5) * cell + font / 3;
  const largest = darkest(app, grid);
  const node = [
    s("g", { transform: `translate(${left} ${top})` }, squares(grid, largest, looks, width, height)),
    queries.map(({ text, weight }, row) => s("text", { x: left - 6, y: top + middle(row), "text-anchor": "end", "font-weight": weight }, text)),
    keys.map(({ text, weight }, column) => s("text", { transform: `translate(${left + middle(column)} ${top - 6}) rotate(-90)`, "font-weight": weight }, text)),
    s("g", { transform: `translate(${left} ${top + height + 10})` }, paperLegend(largest, looks)),
  ];
  return { width: left + Math.max(width, PAPER.legend), height: top + height + 34, node };
}

function linesPart(app, view, { site, grid }, looks) {
  const [queries, keys] = paperWords(app, view, site);
  const [before, after] = [queries, keys].map((each) => looks.lengthOf(each.map(({ text }) => text)) + 8);
  const layout = linesLayout(queries, keys, before, before + PAPER.lines);
  const [pinned, place] = app.pinned(view, site);
  const paths = curves(grid, darkest(app, grid), layout).filter((each) => pinned === null || each.dataset[pinned] === `${place}`);
  const word = (x, anchor) => ({ text, weight }, index) => s("text", { x, y: layout.middle(index) + PAPER.font / 3, "text-anchor": anchor, "font-weight": weight }, text);
  const node = [s("g", { fill: "none", stroke: looks.accent }, paths), queries.map(word(layout.left - 8, "end")), keys.map(word(layout.right + 8, "start"))];
  return { width: layout.right + after, height: layout.height, node };
}

function headsPicture(app, view, looks) {
  const parts = kindsOf(view).map((kind) => {
    const { sites, grids, largest } = gridsOf(app, view, kind);
    const [tile, label] = [PAPER.tile, 52];
    const nodes = [s("text", { y: PAPER.font, "font-weight": "bold" }, kind)];
    let y = 2 * PAPER.font;
    sites.forEach((site, index) => {
      const shown = grids[index].flatMap((grid, head) => (grid ? [{ grid, head }] : []));
      const height = Math.max(PAPER.font, ...shown.map(({ grid }) => tile * Math.min(4, Math.max(0.25, grid.rows / grid.columns))));
      nodes.push(s("text", { y: y + PAPER.font }, `layer ${site.layer}`));
      shown.forEach(({ grid, head }, place) => nodes.push(s("g", { transform: `translate(${label + place * (tile + 8)} ${y})` }, squares(grid, largest, looks, tile, height),
        app.state.measure === "rollout" ? null : s("text", { y: height + 11, "font-size": 9 }, `head ${head}`))));
      y += height + 20;
    });
    nodes.push(s("g", { transform: `translate(${label} ${y})` }, paperLegend(largest, looks)));
    const most = Math.max(1, ...grids.map((each) => each.length));
    return { width: label + Math.max(PAPER.legend, most * (tile + 8) - 8), height: y + 24, node: nodes };
  });
  return { title: `${view.name}, heads, ${MEASURE_NAMES[app.state.measure]}`, parts };
}

// ---- controls and mount ----------------------------------------------------------------------------------------------

const TABS = [
  { name: "heads", title: "All heads", short: "Heads", panel: headsPanel },
  { name: "head", title: "One head", short: "One", panel: headPanel },
  { name: "sentence", title: "Sentence", short: "Sentence", panel: sentencePanel },
  { name: "numbers", title: "In numbers", short: "Numbers", panel: numbersPanel },
  { name: "why", title: "Why this word", short: "Why", panel: whyPanel },
];

/** Words, unless the pieces are so small that a word says little: characters, bytes. */
function usualUnit(view) {
  const { pieces, words } = view.sides.source ?? view.sides.target_input;
  return pieces.length > 2.5 * words.length ? "pieces" : "words";
}

/** Which colours a notebook has; a page has none but the system's. */
const surroundings = () => ({ true: "light", false: "dark" })[document.body.dataset.jpThemeLight] ?? "auto";

/** How long a model may answer before a person is told what could be wrong. */
const PATIENCE_MS = 15000;

class App {
  constructor(root, lens, options) {
    Object.assign(this, { root, lens, options, live: new Map() });
    const sites = lens.views[0].sites;
    const first = ["cross", "pooling", "decoder", "encoder"].map((kind) => sites.filter((each) => each.kind === kind && each.num_heads).pop()).find(Boolean) ?? sites[0];
    this.state = {
      tab: "heads", kind: first.kind, layer: first.layer, head: "mean", measure: "weights", unit: usualUnit(lens.views[0]), form: "both",
      row: 0, column: 0, part: "query", query: 0, output: 0, zoom: 1, theme: "auto", silenced: null, pinned: null, ...options.state,
    };
    root.classList.add("heedful-lens");
    this.status = h("p", { class: "visually-hidden", role: "status" });
    this.media = matchMedia("(prefers-color-scheme: dark)");
    this.render = this.render.bind(this);
    this.media.addEventListener("change", this.render);
    this.notebook = new MutationObserver(this.render);
    this.notebook.observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
    let width = root.clientWidth;
    this.observer = new ResizeObserver(() => {
      if (root.clientWidth && Math.abs(root.clientWidth - width) > 8) { width = root.clientWidth; this.render(); }
    });
    this.observer.observe(root);
    this.unpainted = new Map();
    this.watcher = new IntersectionObserver((entries) => entries.filter((each) => each.isIntersecting).forEach(({ target }) => {
      this.watcher.unobserve(target);
      this.unpainted.get(target)?.();
      this.unpainted.delete(target);
    }), { rootMargin: "300px" });
    this.render();
  }

  destroy() {
    this.isGone = true;
    this.media.removeEventListener("change", this.render);
    this.notebook.disconnect();
    this.observer.disconnect();
    this.watcher.disconnect();
    this.root.replaceChildren();
  }

  /** Of many small pictures only those near the window cost time. */
  paintWhenSeen(canvas, paintIt) {
    this.unpainted.set(canvas, paintIt);
    this.watcher.observe(canvas);
  }

  set(changes) {
    if ("kind" in changes || "unit" in changes) this.state.pinned = null;
    Object.assign(this.state, changes);
    this.render();
  }

  say(text) {
    this.status.textContent = text;
  }

  /** The width that a view's panel has. */
  width() {
    const whole = Math.min(1216, this.root.clientWidth) - (this.isNarrow ? 30 : 48);
    const isHalf = (this.lens.views.length > 1 && this.root.clientWidth > 900) || (this.state.tab === "head" && this.form === "both");
    return isHalf ? whole / 2 - 16 : whole;
  }

  get isNarrow() {
    return this.root.clientWidth < 560;
  }

  get hasRoomForBoth() {
    const [view] = this.lens.views;
    const longest = Math.max(...Object.values(view.sides).map((each) => each.pieces.length));
    return this.lens.views.length === 1 && this.root.clientWidth > 900 && longest <= 80;
  }

  /** How one head is shown: what was chosen, where there is room for it. */
  get form() {
    return this.state.form === "both" && !this.hasRoomForBoth ? "matrix" : this.state.form;
  }

  /** How heads are taken together: vectors add up, weights do not. */
  get together() {
    return this.state.measure === "norms" ? "sum" : "mean";
  }

  /** The word whose lines stay chosen: ["row" or "column", which]; [null, null] where none is, or not of this view. */
  pinned(view, site) {
    const [part, index] = this.state.pinned ?? [null, null];
    const side = part && labels(view, part === "row" ? site.queries : site.keys, this.state);
    return side && index < side.length ? [part, index] : [null, null];
  }

  site(view) {
    return view.sites.find((each) => each.kind === this.state.kind && each.layer === this.state.layer);
  }

  chosen(view) {
    const site = this.site(view);
    if (!site) return { reason: `${view.name} has no ${this.state.kind} attention in layer ${this.state.layer}.` };
    const grid = gridOf(view, site, this.state.head, this.state);
    const missing = site.num_heads ? `${site.kind} layer ${site.layer} has no ${MEASURE_NAMES[this.state.measure]} of this kind here.` : `No head is left in ${site.kind} layer ${site.layer}.`;
    const noHead = this.state.head !== "mean" && this.state.head >= site.num_heads && site.num_heads;
    return { site, grid, reason: noHead ? `${site.kind} layer ${site.layer} has ${site.num_heads} heads.` : missing };
  }

  title(view) {
    const site = this.site(view);
    const which = this.state.measure === "rollout" ? "rollout" : this.state.head === "mean" ? `${this.together} of all heads` : `head ${this.state.head}`;
    return site ? `${view.name}, ${site.kind} layer ${site.layer}, ${which}` : view.name;
  }

  /** Show the answer with heads silent; the model is asked where nothing holds it. */
  silence(view, heads) {
    const isOf = (each) => each.heads.length === heads.length && each.heads.every(({ path, head }, index) => path === heads[index][0] && head === heads[index][1]);
    const isKnown = view.silenced.some(isOf) || this.live.get(view)?.some((each) => isOf(each) && !each.isRefused);
    if (!isKnown) {
      const others = (this.live.get(view) ?? []).filter((each) => !isOf(each));
      const asked = { heads: heads.map(([path, head]) => ({ path, head })), told: "The model is answering …" };
      this.live.set(view, [asked, ...others]);
      this.await(asked, this.options.silence(this.lens.views.indexOf(view), heads));
    }
    this.set({ silenced: heads.map(([path, head]) => headName(path, head, view)).join(", ") });
    this.root.querySelector(".answer[data-on]")?.scrollIntoView({ block: "nearest" });
  }

  /** Put into what was asked what came of it. A kernel that was restarted never answers. */
  async await(asked, promise) {
    const tell = (changes) => {
      Object.assign(asked, changes);
      if (!this.isGone) this.render();
    };
    const late = setTimeout(() => tell({ told: "No answer yet. Its kernel may be busy. If it was restarted, run the cell again." }), PATIENCE_MS);
    try {
      const answer = await promise;
      tell({ ...answer, told: null });
    } catch (error) {
      tell({ told: `No answer: ${error.message}`, isRefused: true });
    } finally {
      clearTimeout(late);
    }
  }

  controls() {
    const { views } = this.lens;
    const sites = views.flatMap((each) => each.sites);
    const { tab, kind, measure } = this.state;
    const kinds = [...new Set(sites.map((each) => each.kind))];
    const ofKind = sites.filter((each) => each.kind === kind);
    const layers = [...new Set(ofKind.map((each) => each.layer))].sort((a, b) => a - b);
    const numHeads = Math.max(0, ...ofKind.filter((each) => each.layer === this.state.layer).map((each) => each.num_heads));
    const heads = [...(tab === "numbers" ? [] : [{ value: "mean", text: this.together }]), ...Array.from({ length: numHeads }, (_, head) => ({ value: head, text: `${head}` }))];
    const measures = MEASURES.filter((each) => sites.some((site) => site[each]));
    const isOne = tab !== "heads" && tab !== "why";
    const parts = [];
    if (isOne && kinds.length > 1) parts.push(choice(this, "attention", "kind", kinds.map((each) => ({ value: each, text: each, title: KIND_NAMES[each] }))));
    if (isOne && layers.length > 1) parts.push(choice(this, "layer", "layer", layers.map((each) => ({ value: each, text: `${each}` }))));
    if (isOne && (measure !== "rollout" || tab === "numbers") && numHeads > 1) parts.push(choice(this, "head", "head", heads));
    if (tab !== "numbers" && tab !== "why") parts.push(choice(this, "measure", "measure", measures.map((each) => ({ value: each, text: MEASURE_NAMES[each], title: MEASURE_TITLES[each] }))));
    if (tab !== "numbers") parts.push(choice(this, "unit", "unit", [{ value: "pieces", text: "pieces" }, { value: "words", text: "words" }]));
    const forms = this.hasRoomForBoth ? ["matrix", "lines", "both"] : ["matrix", "lines"];
    if (tab === "head") parts.push(choice(this, "as", "form", forms.map((each) => ({ value: each, text: each }))));
    if (tab === "head" && this.form !== "lines") parts.push(this.zoom());
    return h("div", { class: "controls" }, parts);
  }

  zoom() {
    const button = (text, label, factor) => h("button", { type: "button", "aria-label": label, "data-focus": `zoom-${text}`, onclick: () => this.set({ zoom: Math.max(0.25, Math.min(8, this.state.zoom * factor)) }) }, text);
    return h("fieldset", { class: "choice" }, h("legend", {}, "size"), h("div", { class: "options" }, button("−", "smaller", 1 / 1.5), button("+", "larger", 1.5)));
  }

  tabs() {
    const buttons = TABS.map(({ name, title, short }) => h("button", {
      "aria-label": title,
      type: "button", role: "tab", "aria-selected": this.state.tab === name, "aria-current": this.state.tab === name, "data-focus": `tab-${name}`,
      onclick: () => this.set({ tab: name, ...(name === "numbers" && this.state.head === "mean" ? { head: 0 } : {}) }),
    }, this.isNarrow ? short : title));
    roving([buttons]);
    return h("div", { class: "tabs", role: "tablist", "aria-label": "Views" }, buttons);
  }

  header() {
    const next = { auto: "light", light: "dark", dark: "auto" };
    const theme = h("button", { type: "button", class: "theme", "data-focus": "theme", "aria-label": `Colours: ${this.state.theme}. Change to ${next[this.state.theme]}.`, onclick: () => this.set({ theme: next[this.state.theme] }) }, { auto: "◐ auto", light: "○ light", dark: "● dark" }[this.state.theme]);
    return h("header", {}, h("div", { class: "pairs" }, this.lens.views.map((view) => h("p", {},
      this.lens.views.length > 1 ? h("small", {}, view.name) : null,
      view.source_text === undefined ? null : [h("bdi", {}, printable(view.source_text)), h("span", { class: "arrow" }, " → ")],
      h("bdi", { class: "target" }, printable(view.target_text) || "(nothing)"),
      h("small", {}, view.source_text === undefined ? "" : view.is_forced ? " given" : " its own answer")))), theme);
  }

  render() {
    const { root, state } = this;
    const focus = root.contains(document.activeElement) ? document.activeElement.dataset?.focus ?? document.activeElement.getAttribute("data-focus") : null;
    root.dataset.theme = state.theme === "auto" ? surroundings() : state.theme;
    root.dataset.room = this.isNarrow ? "narrow" : root.clientWidth > 900 ? "wide" : "middle";
    this.watcher.disconnect();
    this.unpainted.clear();
    this.colors = ramp(root, "--ramp");
    this.signed = ramp(root, "--signed");
    const { panel, title } = TABS.find((each) => each.name === state.tab);
    const views = this.lens.views.map((view) => h("section", { class: "view", "aria-label": view.name },
      this.lens.views.length > 1 ? h("h2", {}, view.name) : null, panel(this, view)));
    const notes = this.lens.views.flatMap((each) => each.notes);
    root.replaceChildren(this.header(), this.tabs(), this.controls(),
      state.tab === "numbers" || state.tab === "why" ? "" : h("p", { class: "note about" }, MEASURE_TITLES[state.measure]),
      h("div", { class: "views", role: "tabpanel", "aria-label": title }, views), this.status,
      h("footer", {}, notes.map((each) => h("p", {}, each)), h("p", {}, this.precision())));
    if (focus) root.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  }

  precision() {
    const step = Math.max(0, ...this.lens.views.flatMap((view) => view.sites.flatMap((site) => (site.weights ? [site.weights.step] : []))));
    return `Weights are kept to ± ${(step / 2).toPrecision(1)}. Layers and heads count from 0. Written by Heedful ${this.lens.heedful}.`;
  }
}

/** Show a lens in an element. Returns a promise of { set(changes), destroy() }. */
export async function mount(root, lens, options = {}) {
  if (lens.format !== "heedful-lens" || lens.version !== 1) {
    root.replaceChildren(note(`This lens cannot be shown: format ${lens.format}, version ${lens.version}.`));
    return null;
  }
  const app = new App(root, await unpackLens(lens), options);
  root.dataset.ready = "";
  return app;
}

const OWN_KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown", "Enter", " "];

/** A notebook in command mode would move between its cells, or edit one, on keys that the lens acts upon. */
function keepKeys(event) {
  const isPlain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey);
  const isTyped = event.target.matches("select") && event.key.length === 1;
  if (isPlain && (isTyped || OWN_KEYS.includes(event.key))) event.stopPropagation();
}

/** For notebooks: anywidget hands over a model whose `lens` is the value, and which answers messages. */
function render({ model, el }) {
  const waiting = new Map();
  const receive = (message) => {
    const { resolve, reject } = waiting.get(message.id) ?? {};
    waiting.delete(message.id);
    if (message.error) reject?.(new Error(message.error));
    else resolve?.(message.answer);
  };
  model.on("msg:custom", receive);
  const silence = (view, heads) => new Promise((resolve, reject) => {
    const id = freshId("request");
    waiting.set(id, { resolve, reject });
    model.send({ id, view, heads });
  });
  const place = h("div", { onkeydown: keepKeys });
  el.append(place);
  const mounted = mount(place, model.get("lens"), { silence });
  return () => {
    model.off("msg:custom", receive);
    mounted.then((app) => app?.destroy());
  };
}

export default { render };
