// The view Graph.

import { $, ask, bars, copy, fill, latest, make, onPress, press, save, say, token } from "./api.js";
import { colourOf, drawWheel } from "./colour.js";
import { GraphCanvas, LABELLED } from "./network.js";
import { matrix, plane, spectrum } from "./plots.js";
import * as state from "./state.js";

const SHARED_EDGES = 400; // graphs with more edges are not put into the address
const LISTED_EDGES = 60; // graphs with more edges are read from a file in the lines of Python

let canvas;
let about;
let graph = { nodes: 0, edges: [], weights: null, names: null, positions: [] };
let found = null; // the answer to the last encoding
let curve = null; // the spectrum over q
let landing = null; // walks from the chosen node
let file = null; // name of the file that is shown
let pending = null; // the node from which an edge is being drawn

const source = () => state.get("from", "example");
const setting = () => ({
  potential: state.get("potential", "relative"),
  q: Number(state.get("q", "1")),
  normalised: state.get("normalised", "0") === "1",
});
const chosen = () => Math.min(Number(state.get("j", "0")), found ? found.values.length - 1 : 0);
const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
const nameOf = (node) => graph.names?.[node] ?? String(node);
const bare = () => ({ nodes: graph.nodes, edges: graph.edges, weights: graph.weights, names: graph.names });
const failed = (error) => say("graph-status", error.message, true);

export async function start(given) {
  about = given;
  canvas = new GraphCanvas($("graph-canvas"));
  canvas.clicked = clicked;
  fill($("example"), [...about.examples, "random"].map((name) => [name, name]));
  $("formats").textContent = about.formats.join(" ");
  $("file").accept = about.formats.join(",");
  listen();
  if (about.file && !about.file.endsWith(".py") && !state.get("from")) {
    file = about.file;
    state.set({ from: "file" });
    showSource();
    await load(() => ask("file"));
  } else await restore();
}

/** Show what the address says. */
export async function restore() {
  showSettings();
  showSource();
  const kind = source();
  if (kind === "example") await loadExample();
  else if (kind === "typed") { $("edges").value = state.get("edges", $("edges").value); await loadTyped(); }
  else if (kind === "drawn") await loadDrawn();
  else if (file === null && state.get("edges")) { state.set({ from: "typed" }); await restore(); } // a link to a file that is not here
  else if (file === null) { state.set({ from: "example" }); showSource(); await loadExample(); }
}

function listen() {
  onPress("source", (kind) => {
    state.set({ from: kind, start: null });
    showSource();
    if (kind === "example") loadExample();
    if (kind === "typed") loadTyped();
    if (kind === "drawn") loadDrawn();
  });
  onPress("potential", (kind) => {
    state.set({ potential: kind, q: kind === "absolute" && found ? Math.round(found.q * 1000) / 1000 : 1 });
    showSettings();
    encode();
  });
  onPress("layout", (kind) => { state.set({ layout: kind }); press("layout", kind); place(); });
  $("example").addEventListener("change", () => { state.set({ example: $("example").value, start: null }); loadExample(); });
  $("example-nodes").addEventListener("input", () => {
    $("example-nodes-out").textContent = $("example-nodes").value;
    state.set({ n: $("example-nodes").value, start: null });
    loadExample();
  });
  $("q").addEventListener("input", () => { state.set({ q: $("q").value }); showSettings(); encode(); });
  $("j").addEventListener("input", () => { state.set({ j: $("j").value }); paint(); drawSpectrum(); });
  $("normalised").addEventListener("change", () => { state.set({ normalised: $("normalised").checked ? "1" : "0" }); encode(); findSpectrum(); });
  $("file").addEventListener("change", () => upload($("file").files[0]));
  $("which").addEventListener("change", () => upload($("file").files[0], $("which").value));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    $("drop").addEventListener(kind, (event) => {
      event.preventDefault();
      $("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) {
        $("file").files = event.dataTransfer.files;
        upload(event.dataTransfer.files[0]);
      }
    });
  }
  $("read-edges").addEventListener("click", () => { state.set({ start: null }); loadTyped(); });
  $("add-node").addEventListener("click", () => addNode());
  $("add-edge").addEventListener("click", () => addEdge(Number($("from").value), Number($("to").value)));
  $("remove").addEventListener("click", () => removeNode(Number($("from").value)));
  $("clear").addEventListener("click", () => { graph = { nodes: 1, edges: [], weights: null, names: null, positions: [[0, 0]] }; drawn(); });
  $("start").addEventListener("change", () => { state.set({ start: $("start").value }); walk(); });
  $("feature").addEventListener("change", () => { state.set({ feature: $("feature").value }); showWalks(); });
  $("show-walks").addEventListener("change", () => { state.set({ sized: $("show-walks").checked ? "1" : null }); paint(); });
  $("node-table").closest("details").addEventListener("toggle", () => paint());
  $("download").addEventListener("click", download);
  $("picture").addEventListener("click", async () => save(await canvas.picture(), "graph.png"));
  $("download-graph").addEventListener("click", () => save(new Blob([nodeLink()], { type: "application/json" }), "graph.json"));
  $("copy-python").addEventListener("click", () => copy($("python").textContent, $("copy-python")));
}

function showSource() {
  const kind = source();
  press("source", kind);
  for (const panel of document.querySelectorAll("[data-panel]")) panel.hidden = panel.dataset.panel !== kind;
  $("example").value = state.get("example", "trumpet (DAG)");
  $("example-nodes").value = state.get("n", "24");
  $("example-nodes-out").textContent = $("example-nodes").value;
}

function showSettings() {
  const { potential, q, normalised } = setting();
  press("potential", potential);
  press("layout", state.get("layout", "drawn"));
  $("q").disabled = potential === "adaptive";
  $("q").max = potential === "absolute" ? "0.5" : "1";
  $("q").step = potential === "absolute" ? "0.005" : "0.01";
  $("q").value = q;
  $("q-name").textContent = potential === "absolute" ? "Potential q" : potential === "relative" ? "Potential q′" : "Potential, chosen for the graph";
  $("q-out").textContent = potential === "adaptive" ? "" : q.toFixed(potential === "absolute" ? 3 : 2);
  $("normalised").checked = normalised;
  $("show-walks").checked = state.get("sized") === "1";
}

const load = latest(async (read) => {
  say("graph-status", "Reading …");
  const given = await read();
  graph = given;
  $("which-label").hidden = !(given.graphs > 1) || source() !== "file";
  $("which").max = (given.graphs ?? 1) - 1;
  if (source() === "file") state.set({ edges: shared() });
  await present();
}, failed);

/** The edges of a small graph from a file as text, so that a link shows it elsewhere; null if a list of edges cannot. */
function shared() {
  const linked = new Set(graph.edges.flat());
  const plainNames = [...linked].every((node) => /^[\w.:-]{1,60}$/.test(nameOf(node)));
  if (graph.edges.length > SHARED_EDGES || linked.size < graph.nodes || !plainNames) return null;
  return graph.edges.map(([u, v], i) => `${nameOf(u)} ${nameOf(v)}${graph.weights ? ` ${graph.weights[i]}` : ""}`).join("\n");
}

function loadExample() {
  const name = state.get("example", "trumpet (DAG)"), nodes = Number(state.get("n", "24"));
  const edges = Math.min(Number(state.get("m", String(3 * nodes))), (nodes * (nodes - 1)) / 2);
  return load(() => (name === "random" ? ask("graph/random", { nodes, edges }) : ask("graph/example", { name, nodes })));
}

function loadTyped() {
  const text = $("edges").value;
  state.set({ edges: text.length < 4000 ? text : null });
  return load(() => ask("graph/typed", { text }));
}

function upload(given, which = "0") {
  if (!given) return;
  if (given.size > about.limits.bytes) {
    failed(new Error(`${given.name} has ${given.size.toLocaleString("en")} bytes, more than ${about.limits.bytes.toLocaleString("en")}: encode it with \`magnetite encode\``));
    return;
  }
  file = given.name;
  state.set({ start: null });
  load(() => ask(`graph/read?name=${encodeURIComponent(given.name)}&graph=${encodeURIComponent(which)}`, undefined, { method: "POST", body: given }));
}

/** A drawn graph is in the address: `x,y;x,y` for the nodes and `0-1,1-2` for the edges. */
function loadDrawn() {
  const places = state.get("places", "-0.6,0;0,0.5;0.6,0;0,-0.5").split(";").map((pair) => pair.split(",").map(Number));
  const edges = state.get("links", "0-1,1-2,2-3").split(",").filter(Boolean).map((pair) => pair.split("-").map(Number));
  const good = places.filter((pair) => pair.length === 2 && pair.every(Number.isFinite)).slice(0, 500);
  graph = { nodes: good.length, positions: good, weights: null, names: null,
    edges: edges.filter(([u, v]) => u < good.length && v < good.length && u >= 0 && v >= 0) };
  return present();
}

function drawn() {
  const short = graph.edges.length <= SHARED_EDGES;
  state.set({
    from: "drawn", start: null,
    places: short ? graph.positions.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(";") : null,
    links: short ? graph.edges.map((edge) => edge.join("-")).join(",") || "none" : null,
  });
  present(true);
}

function addNode(at) {
  const angle = graph.nodes * 2.4;
  const reach = 0.25 + 0.09 * Math.sqrt(graph.nodes);
  graph = { ...graph, names: null, nodes: graph.nodes + 1, positions: [...graph.positions, at ?? [reach * Math.cos(angle), reach * Math.sin(angle)]] };
  drawn();
}

function addEdge(from, to) {
  if (graph.edges.some(([u, v]) => u === from && v === to)) {
    say("graph-status", `There is an edge from ${from} to ${to} already.`);
    return;
  }
  graph = { ...graph, weights: null, edges: [...graph.edges, [from, to]] };
  drawn();
}

function removeNode(node) {
  if (graph.nodes < 2) return;
  const less = (other) => (other > node ? other - 1 : other);
  graph = {
    ...graph, weights: null, names: null, nodes: graph.nodes - 1, positions: graph.positions.filter((_, i) => i !== node),
    edges: graph.edges.filter(([u, v]) => u !== node && v !== node).map(([u, v]) => [less(u), less(v)]),
  };
  drawn();
}

function clicked(event) {
  const node = event.nodes[0];
  if (source() !== "drawn") {
    if (node !== undefined) { state.set({ start: node }); $("start").value = node; walk(); }
    return;
  }
  if (node === undefined) {
    pending = null;
    addNode([event.pointer.canvas.x / scale(), -event.pointer.canvas.y / scale()]);
  } else if (pending === null || pending === node) {
    pending = pending === node ? null : node;
    say("graph-status", pending === null ? "" : `Edge from ${node}: click its target.`);
    state.set({ start: node });
    $("start").value = node;
    $("from").value = node;
  } else {
    addEdge(pending, node);
    pending = null;
  }
}

const scale = () => (graph.nodes <= 60 ? 300 : 24 * Math.sqrt(graph.nodes) + 180);

/** Show a new graph, then everything that is computed from it. */
async function present(keepView = false) {
  found = curve = landing = null;
  pending = null;
  const nodes = Array.from({ length: graph.nodes }, (_, i) => [String(i), nameOf(i)]);
  for (const id of ["start", "from", "to"]) fill($(id), nodes, "0");
  $("start").value = Math.min(Number(state.get("start", "0")), graph.nodes - 1);
  $("to").value = String(Math.min(1, graph.nodes - 1));
  const both = new Set(graph.edges.map(([u, v]) => `${u} ${v}`));
  const names = graph.nodes <= LABELLED;
  canvas.show(
    graph.positions.map(([x, y], id) => ({
      id, x: x * scale(), y: -y * scale(), size: 9, label: names ? nameOf(id).slice(0, 24) : undefined,
      title: nameOf(id), color: { background: token("sunk"), border: token("edge") },
    })),
    graph.edges.map(([from, to], id) => ({
      id, from, to, ...(graph.edges.length < 1200 && from !== to && both.has(`${to} ${from}`) ? { smooth: { enabled: true, type: "curvedCW", roundness: 0.16 } } : {}),
    })),
    keepView,
  );
  await findEncoding();
  if (!keepView && state.get("layout", "drawn") !== "drawn") canvas.fit();
  findSpectrum();
  advise();
  walk();
}

async function findEncoding() {
  const began = performance.now();
  const answer = await ask("graph/encode", { graph: bare(), ...setting() });
  if (answer.re[0].length !== graph.nodes) return; // the graph has changed meanwhile
  found = answer;
  $("j").max = String(found.values.length - 1);
  $("j").value = String(chosen());
  paint();
  if (state.get("layout", "drawn") !== "drawn") place();
  drawSpectrum();
  const size = `${plural(graph.nodes, "node")}, ${plural(graph.edges.length, "edge")}`;
  say("graph-status", `${file && source() === "file" ? `${file} · ` : ""}${size} · q = ${found.q.toPrecision(3)} · encoded in ${Math.round(performance.now() - began)} ms`);
  document.documentElement.dataset.encoded = String(Number(document.documentElement.dataset.encoded ?? "0") + 1);
}

const encode = latest(findEncoding, failed);

const findSpectrum = latest(async () => {
  curve = await ask("graph/spectrum", { graph: bare(), normalised: setting().normalised });
  drawSpectrum();
}, failed);

function drawSpectrum() {
  if (!curve || !found) return;
  spectrum($("spectrum"), curve, chosen(), found.q, (q) => {
    state.set({ potential: "absolute", q: q.toFixed(3) });
    showSettings();
    encode();
  });
}

/** Sizes and colours of the nodes, and everything else about the chosen eigenvector. */
function paint() {
  if (!found) return;
  const j = chosen();
  const re = found.re[j], im = found.im[j];
  const moduli = re.map((x, i) => Math.hypot(x, im[i]));
  const phases = re.map((x, i) => Math.atan2(im[i], x));
  const shown = $("show-walks").checked && landing ? landing.landing[Number($("feature").value)] : moduli;
  const largest = Math.max(...shown, 1e-12), start = Number($("start").value);
  $("size-name").textContent = shown === moduli ? "modulus" : `probability to land, from ${nameOf(Number($("start").value)).slice(0, 24)}`;
  const unit = graph.nodes <= 60 ? 22 : Math.max(5, 190 / Math.sqrt(graph.nodes));
  canvas.update(shown.map((value, id) => ({
    id, size: unit * (0.28 + 0.72 * (value / largest)),
    color: { background: colourOf(phases[id]), border: token(id === start ? "bad" : "text") },
    title: `${nameOf(id)}: modulus ${moduli[id].toFixed(4)}, phase ${(phases[id] / Math.PI).toFixed(3)} π`,
  })));
  $("j-out").textContent = String(j);
  $("vector-name").textContent = String(j);
  $("vector-note").textContent = `eigenvalue ${found.values[j].toPrecision(5)} · phases span ${(Math.max(...phases) - Math.min(...phases)).toFixed(2)} rad`;
  plane($("plane"), re, im);
  const order = phases.map((_, i) => i).sort((a, b) => phases[b] - phases[a] || a - b);
  matrix($("matrix"), graph, order, phases);
  $("matrix").setAttribute("aria-label", `Adjacency matrix of ${graph.nodes} nodes, ordered by the phase of eigenvector ${j}`);
  writePython(j);
  writeTable(moduli, phases);
  if (state.get("layout", "drawn") !== "drawn") place(order);
}

/** Move the nodes to the chosen arrangement. */
function place(given) {
  if (!found) return;
  const kind = state.get("layout", "drawn");
  const j = chosen();
  const order = given ?? found.re[j].map((_, i) => i).sort((a, b) => Math.atan2(found.im[j][b], found.re[j][b]) - Math.atan2(found.im[j][a], found.re[j][a]) || a - b);
  const rank = new Array(graph.nodes);
  order.forEach((node, i) => { rank[node] = i; });
  const size = Math.max(300, graph.nodes * 9);
  canvas.update(graph.positions.map(([x, y], id) => {
    if (kind === "circle") {
      const angle = (rank[id] / graph.nodes) * 2 * Math.PI - Math.PI / 2;
      return { id, x: size * Math.cos(angle), y: size * Math.sin(angle) };
    }
    if (kind === "line") return { id, x: (rank[id] - (graph.nodes - 1) / 2) * 62, y: rank[id] % 2 ? 26 : -26 };
    return { id, x: x * scale(), y: -y * scale() };
  }));
  if (!given) canvas.fit();
}

const walk = latest(async () => {
  const answer = await ask("graph/walks", { graph: bare(), start: Number($("start").value) });
  landing = answer;
  fill($("feature"), answer.features.map((name, i) => [String(i), name]), state.get("feature", "4"));
  markStart();
  showWalks();
}, failed);

/** A ring around the node from which walks start. */
function markStart() {
  const start = Number($("start").value), thin = graph.edges.length > 1200 ? 0 : 1.2;
  canvas.update(graph.positions.map((_, id) => ({ id, borderWidth: id !== start ? thin : graph.nodes > 60 ? 2.4 : 4 })));
  paint();
}

function showWalks() {
  if (!landing) return;
  const parts = landing.landing[Number($("feature").value)].map((part, i) => [nameOf(i), part]);
  bars($("walks"), parts.sort((a, b) => b[1] - a[1]).slice(0, 5));
  if ($("show-walks").checked) paint();
}

const advise = latest(async () => {
  const advice = await ask("graph/advise", { graph: bare() });
  const q = advice.q === null ? "" : `, q = ${advice.q.toPrecision(3)}`;
  $("advice").replaceChildren(
    make("strong", {}, `${advice.name}, k = ${advice.k}${q}`), make("span", { class: "muted" }, advice.reason),
    make("details", {}, make("summary", {}, "Costs of all encodings"), make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Costs of all encodings" }, make("table", {},
      make("tr", {}, ...advice.columns.map((name) => make("th", { scope: "col" }, name))),
      ...advice.rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell))))))),
  );
}, failed);

function writePython(j) {
  const { potential, q, normalised } = setting();
  const k = Math.min(16, graph.nodes);
  const qs = { absolute: String(q), relative: `mt.Relative(${q})`, adaptive: "mt.Adaptive()" }[potential];
  let read;
  if (source() === "file" && file) read = `mt.read(${JSON.stringify(file)})${graph.graphs > 1 ? `[${$("which").value || 0}]` : ""}`;
  else if (graph.edges.length > LISTED_EDGES) read = 'mt.read("graph.json")  # Download: Graph (JSON)';
  else {
    const [sources, targets] = [0, 1].map((side) => `[${graph.edges.map((edge) => edge[side]).join(", ")}]`);
    const weights = graph.weights ? `, edge_weight=[${graph.weights.join(", ")}]` : "";
    read = `mt.Digraphs.from_edges([${sources}, ${targets}], ${graph.nodes}${weights})`;
  }
  $("python").textContent = [
    "import torch, magnetite as mt", `graphs = ${read}`,
    `encoding = mt.MagneticLaplacian(k=${k}, q=${qs}, normalised=${normalised ? "True" : "False"}, dtype=torch.float64)`,
    `vector = encoding(graphs)[0].vectors[:, ${j}]`, "modulus, phase = vector.abs(), vector.angle()"].join("\n");
}

function writeTable(moduli, phases) {
  if (!$("node-table").closest("details").open) return;
  const rows = moduli.slice(0, 500).map((modulus, i) => make("tr", {}, make("th", { scope: "row" }, nameOf(i)),
    make("td", {}, modulus.toFixed(5)), make("td", {}, phases[i].toFixed(5))));
  $("node-table").replaceChildren(make("tr", {}, ...["node", "modulus", "phase (rad)"].map((name) => make("th", { scope: "col" }, name))), ...rows);
}

async function download() {
  try {
    const format = $("format").value;
    save(await ask("graph/download", { graph: bare(), ...setting(), format }, { raw: true }), `encoding${format}`);
  } catch (error) { failed(error); }
}

/** The graph as node-link data, which `mt.read` reads. */
function nodeLink() {
  const distinct = new Set(graph.names ?? []).size === graph.nodes; // long names are cut and may have become equal
  const id = (node) => (distinct ? nameOf(node) : node);
  return JSON.stringify({
    directed: true, multigraph: true, graph: {}, nodes: Array.from({ length: graph.nodes }, (_, i) => ({ id: id(i) })),
    links: graph.edges.map(([from, to], i) => ({ source: id(from), target: id(to), key: i, ...(graph.weights ? { weight: graph.weights[i] } : {}) })),
  });
}

export function shown() {
  drawWheel($("wheel"), token("muted"));
  canvas?.fit();
}

export function recolour() {
  drawWheel($("wheel"), token("muted"));
  canvas?.recolour();
  paint();
  drawSpectrum();
}
