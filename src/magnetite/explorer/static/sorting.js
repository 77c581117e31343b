// The view Sorting.

import { $, ask, fill, latest, make, onPress, say, svg, token } from "./api.js";
import { colourOf } from "./colour.js";
import { GraphCanvas } from "./network.js";
import * as state from "./state.js";

let canvas;
let network = { length: 6, comparators: [] };
let answer = null;
let chosen = null;
let seed = 0;
const failed = (error) => say("sorting-status", error.message, true);

export async function start() {
  canvas = new GraphCanvas($("sorting-graph"));
  onPress("known", (name) => pick("sorting/known", { name, length: network.length }));
  $("wires").addEventListener("input", () => {
    const length = Number($("wires").value);
    $("wires-out").textContent = String(length);
    set({ length, comparators: network.comparators.filter(([low, high]) => low < length && high < length) });
  });
  $("generate").addEventListener("click", () => generate(true));
  $("generate-wrong").addEventListener("click", () => generate(false));
  $("add-comparator").addEventListener("click", () => add(Number($("low").value), Number($("high").value)));
  $("drop-last").addEventListener("click", () => set({ ...network, comparators: network.comparators.slice(0, -1) }));
  $("empty").addEventListener("click", () => set({ ...network, comparators: [] }));
  $("comparators").addEventListener("change", () => {
    const words = $("comparators").value.split(/[\s,;]+/).filter(Boolean);
    const pairs = words.map((word) => word.split("-").map(Number));
    if (pairs.every((pair) => pair.length === 2 && pair.every(Number.isInteger))) set({ ...network, comparators: pairs });
    else failed(new Error("Write comparators as pairs of wires, such as 0-1 2-3."));
  });
  await restore();
}

export async function restore() {
  const [length, pairs] = state.get("net", "6:0-5 1-3 2-4 1-2 3-4 0-3 2-5 0-1 2-3 4-5 1-2 3-4").split(":");
  const comparators = (pairs ?? "").split(" ").filter(Boolean).map((pair) => pair.split("-").map(Number));
  await set({ length: Math.min(Math.max(Number(length) || 6, 2), 16), comparators });
}

const generate = (correct) => { seed += 1; return pick("sorting/generated", { length: Math.min(network.length, 12), seed, correct }); };

const pick = (path, payload) => ask(path, payload).then((found) => set(found), failed);

function add(low, high) {
  if (low === high) { failed(new Error("A comparator needs two different wires.")); return; }
  set({ ...network, comparators: [...network.comparators, [Math.min(low, high), Math.max(low, high)]] });
}

function set(given) {
  network = { length: given.length, comparators: given.comparators };
  chosen = null;
  const text = network.comparators.map((pair) => pair.join("-")).join(" ");
  state.set({ net: `${network.length}:${text}` });
  $("wires").value = String(network.length);
  $("wires-out").textContent = String(network.length);
  $("comparators").value = text;
  const wires = Array.from({ length: network.length }, (_, i) => [String(i), String(i)]);
  const before = [$("low").value || "0", $("high").value || "1"];
  fill($("low"), wires, Number(before[0]) < network.length ? before[0] : "0");
  fill($("high"), wires, Number(before[1]) < network.length ? before[1] : "1");
  return check();
}

const check = latest(async () => {
  const found = await ask("sorting/check", network);
  answer = found;
  draw();
  facts();
  drawGraph();
  say("sorting-status", "");
  pending();
  judge(await ask("sorting/verdict", network));
}, failed);

const KINDS = { random: "random", compact: "compact", merging: "like a merge sort", unfinished: "unfinished", smallest: "smallest known", classic: "Batcher, bitonic" };
const percent = (part) => (part === null ? "–" : `${Math.round(100 * part)} %`);

/** No verdict of another network stands beside the truth about this one. */
function pending() {
  $("verdict").textContent = $("agreement").textContent = "…";
  $("verdict").className = "big";
  $("agreement").className = "badge";
}

/** The model's verdict, whether it is right, and how often it is right on such networks. */
function judge({ probability, reason, accuracy }) {
  const sorts = probability >= 0.5, right = sorts === answer.correct;
  $("verdict").textContent = probability === null ? "–" : sorts ? "Sorts" : "Does not sort";
  $("verdict").className = `big ${probability === null ? "" : sorts ? "good" : "bad"}`;
  $("agreement").textContent = probability === null ? "" : right ? "right" : "wrong";
  $("agreement").className = `badge ${right ? "same" : "changed"}`;
  if (probability === null) { $("about-model").replaceChildren(make("p", { class: "small muted" }, reason)); return; }
  const parts = [make("p", { class: "small" }, `It gives “sorts” a probability of ${(100 * probability).toFixed(1)} %.`)];
  if (accuracy) {
    const [low, high] = accuracy.trained;
    if (accuracy.rows.length) {
      parts.push(make("table", { class: "accuracy" },
        make("caption", {}, `How often it is right on networks of ${network.length} wires`),
        make("thead", {}, make("tr", {}, make("td", {}), ...["correct", "incorrect"].map((text) => make("th", { scope: "col" }, text)))),
        make("tbody", {}, ...accuracy.rows.map((row) => make("tr", {}, make("th", { scope: "row" }, KINDS[row.kind] ?? row.kind), make("td", {}, percent(row.correct)), make("td", {}, percent(row.incorrect)))))));
    }
    const seen = `It was trained on networks of ${low} to ${high} wires`;
    parts.push(make("p", { class: "small muted" }, network.length > high || network.length < low ? `${seen}: this one is outside.` : `${seen}. “Smallest” and “Batcher” include copies with one comparator changed.`));
  }
  $("about-model").replaceChildren(...parts);
}

/** Columns of comparators that do not overlap, layer by layer. */
function columns(layers) {
  const found = [];
  for (const layer of layers) {
    const own = [];
    for (const pair of layer) {
      const [low, high] = [Math.min(...pair), Math.max(...pair)];
      const free = own.find((column) => column.every(([a, b]) => Math.max(a, b) < low || Math.min(a, b) > high));
      if (free) free.push(pair); else own.push([pair]);
    }
    own.forEach((column, i) => found.push({ pairs: column, gap: i === 0 && found.length > 0 }));
  }
  return found;
}

function draw() {
  const step = 34, top = 18, left = 46;
  const placed = columns(answer.layers);
  let x = left + 10;
  const marks = [];
  for (const { pairs, gap } of placed) {
    x += gap ? 34 : 20;
    for (const pair of pairs) marks.push([x, pair]);
  }
  const width = Math.max(x + 76, 420), height = top * 2 + step * (network.length - 1);
  const y = (wire) => top + step * wire;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": `Network of ${network.length} wires and ${network.comparators.length} comparators` });
  for (let wire = 0; wire < network.length; wire += 1) {
    const hit = svg("line", { x1: left, x2: width - 42, y1: y(wire), y2: y(wire), class: "hit", "data-wire": wire });
    hit.addEventListener("click", () => click(wire));
    root.append(hit, svg("line", { x1: left, x2: width - 42, y1: y(wire), y2: y(wire), class: wire === chosen ? "wire chosen" : "wire", "pointer-events": "none" }));
    root.append(svg("text", { x: 4, y: y(wire) + 5 }, answer.failing ? `${wire}:  ${answer.failing[wire]}` : String(wire)));
    if (answer.output) {
      const wrong = (wire > 0 && answer.output[wire - 1] > answer.output[wire]) || (wire + 1 < network.length && answer.output[wire] > answer.output[wire + 1]);
      root.append(svg("text", { x: width - 32, y: y(wire) + 5, class: wrong ? "wrong" : "" }, String(answer.output[wire])));
    }
  }
  const end = network.comparators.at(-1);
  marks.forEach(([at, [low, high]], i) => {
    const name = i === marks.length - 1 && end && end[0] === low && end[1] === high ? "last" : "";
    root.append(svg("line", { x1: at, x2: at, y1: y(low), y2: y(high), class: `comparator ${name}`, "pointer-events": "none" }));
    for (const wire of [low, high]) root.append(svg("circle", { cx: at, cy: y(wire), r: 5, class: name, "pointer-events": "none" }));
  });
  $("network").replaceChildren(root);
}

function click(wire) {
  if (chosen === null) { chosen = wire; draw(); say("sorting-status", `Comparator from wire ${wire}: click the other wire.`); }
  else if (chosen === wire) { chosen = null; draw(); say("sorting-status", ""); }
  else add(chosen, wire);
}

function facts() {
  $("correct").textContent = answer.correct ? "Sorts" : "Does not sort";
  $("correct").className = `big ${answer.correct ? "good" : "bad"}`;
  const bits = (values) => make("span", { class: "bits" }, values.join(" "));
  $("failing").replaceChildren(...(answer.correct
    ? [make("p", { class: "small muted" }, `Checked on all ${(2 ** network.length).toLocaleString("en")} inputs of zeros and ones (0-1 principle).`)]
    : [make("p", { class: "small muted" }, "A failing input, and what comes out:"), make("p", {}, bits(answer.failing)), make("p", {}, "→ ", bits(answer.output))]));
  const sorts = answer.sorts ? (answer.sorts.exact ? answer.sorts.text : `≈ ${answer.sorts.text}`) : "–";
  const rows = [["wires", network.length], ["comparators", network.comparators.length], ["parallel steps", answer.layers.length],
    ["edges of the graph", answer.graph?.edges.length ?? 0], ["topological sorts", sorts]];
  $("facts").replaceChildren(...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
  const pairs = network.comparators.map(([low, high]) => `(${low}, ${high})`).join(", ");
  $("sorting-python").textContent = `import magnetite as mt\nnet = mt.sorting.SortingNetwork(${network.length}, [${pairs}])\nnet.is_correct(), net.topological_sorts()\nnet.to_digraphs()`;
}

function drawGraph() {
  const graph = answer.graph ?? { nodes: 0, edges: [], positions: [] };
  const layer = [];
  const left = answer.layers.map((pairs) => pairs.map(String));
  for (const pair of network.comparators) {
    const at = left.findIndex((pairs) => pairs.includes(String(pair)));
    left[at]?.splice(left[at].indexOf(String(pair)), 1);
    layer.push(at);
  }
  const middle = (id) => network.comparators[id][0] + network.comparators[id][1];
  const heights = new Map();
  for (let each = 0; each < answer.layers.length; each += 1) {
    const own = layer.map((_, id) => id).filter((id) => layer[id] === each).sort((a, b) => middle(a) - middle(b));
    own.forEach((id, i) => heights.set(id, (i - (own.length - 1) / 2) * 66));
  }
  canvas.show(
    graph.positions.map((_, id) => {
      const [low, high] = network.comparators[id];
      return { id, x: layer[id] * 110, y: heights.get(id) + (layer[id] % 2) * 14, size: 13, label: `${low}–${high}`, title: `comparator ${id}`,
        color: { background: colourOf(-(layer[id] / Math.max(answer.layers.length, 1)) * 2 * Math.PI * 0.8), border: token("text") } };
    }),
    graph.edges.map(([from, to], id) => ({ id, from, to })),
  );
}

export function shown() { canvas?.fit(); }

export function recolour() { if (answer) { draw(); drawGraph(); } }
