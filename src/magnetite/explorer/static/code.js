// The view Code.

import { $, ask, bars, fill, latest, make, say, token } from "./api.js";
import { GraphCanvas } from "./network.js";
import * as state from "./state.js";

const EXAMPLE = `def f1_score(pred, label):
    correct = pred == label
    tp = (correct & label).sum()
    fn = (~correct & ~pred).sum()
    fp = (~correct & pred).sum()
    precision = tp / (tp + fp)
    recall = tp / (tp + fn)
    return 2 * (precision * recall) / (precision + recall)
`;
const KINDS = ["sequential", "dataflow"];
const EDGES = {
  FIELD: ["#8c8c9c", "syntax"], NEXT_TOKEN: ["#d1495b", "next token"], CFG_NEXT: ["#3d7be0", "control flow"],
  LAST_WRITE: ["#1f9d63", "last write"], CALCULATED_FROM: ["#d98a17", "calculated from"], CALLS: ["#a55bd8", "calls"],
};

let canvases;
let last = null;
let first = null; // the text before the rewrites
let seed = 0;
const percent = (part) => `${(100 * part).toFixed(1)} %`;
const chosen = () => state.get("function") || null;
const failed = (error) => say("code-status", error.message, true);

export async function start(about) {
  const box = { shape: "box", margin: 6, borderWidth: 1, font: { size: 13, face: "ui-monospace, monospace", color: token("text") }, shapeProperties: { borderRadius: 5 } };
  canvases = Object.fromEntries(KINDS.map((kind) => [kind, new GraphCanvas($(kind), { readable: 0.72, nodes: box, edges: { width: 1.3, arrows: { to: { enabled: true, scaleFactor: 0.45 } } } })]));
  $("edge-keys").append(...Object.values(EDGES).map(([colour, name]) => make("span", { style: `--key:${colour}` }, name)));
  $("build").addEventListener("click", () => { seed = 0; build(); });
  $("function").addEventListener("change", () => { state.set({ function: $("function").value }); build(); });
  $("undo").addEventListener("click", () => { $("source").value = first; seed = 0; build(); });
  $("reorder").addEventListener("click", () => rewrite("reorder"));
  $("rename").addEventListener("click", () => rewrite("rename"));
  $("source").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) build(); });
  if (about.file?.endsWith(".py") && !state.get("source")) {
    $("source").value = (await ask("file")).source;
    await build();
  } else await restore();
}

export async function restore() {
  const text = state.get("source", EXAMPLE);
  if ($("source").value !== text) $("source").value = text;
  await build();
}

const build = latest(async () => {
  const source = $("source").value;
  remember(source);
  say("code-status", "Analysing …");
  const answer = await read(source);
  first = null;
  $("undo").disabled = true;
  present(answer);
  for (const kind of KINDS) badge(kind, "", "");
  say("code-status", `${answer.function}: ${answer.sequential.size} and ${answer.dataflow.size} nodes`);
  await names(source, "");
}, failed);

/** Both graphs; where the text no longer has the chosen function, those of its first one. */
async function read(source) {
  try {
    return await ask("code/graphs", { source, name: chosen() });
  } catch (error) {
    if (!chosen()) throw error;
    state.set({ function: null });
    return ask("code/graphs", { source });
  }
}

const rewrite = latest(async (kind) => {
  const before = $("source").value;
  seed += 1;
  const answer = await ask("code/rewrite", { source: before, seed, kind, name: chosen() });
  first ??= before;
  $("undo").disabled = false;
  $("source").value = answer.source;
  remember(answer.source);
  present(answer);
  for (const each of KINDS) badge(each, answer.changed[each] ? "changed" : "same", answer.changed[each] ? "changed" : "unchanged");
  const count = answer.did === "reordered" ? `: one of ${Number(answer.count).toLocaleString("en")} equivalent texts` : "";
  say("code-status", `${answer.function} ${answer.did}${count}`);
  await names(answer.source, before);
}, failed);

function remember(source) {
  state.set({ source: source.length < 6000 && source !== EXAMPLE ? source : null });
}

function badge(kind, name, text) {
  $(`${kind}-badge`).className = `badge ${name}`;
  $(`${kind}-badge`).textContent = text;
}

function present(answer) {
  last = answer;
  fill($("function"), answer.functions.map((name) => [name, name]), answer.function);
  $("function").disabled = answer.functions.length < 2;
  for (const kind of KINDS) {
    const graph = answer[kind];
    const now = graph.hash.slice(0, 16), then = answer.before?.[kind].slice(0, 16);
    $(`${kind}-hash`).textContent = `hash ${then && then !== now ? `${then} → ${now}` : now}${then === now ? " as before" : ""}`;
    $(`${kind}-hash`).title = graph.hash;
    $(`${kind}-size`).textContent = graph.note ?? `${graph.size} nodes, ${graph.count} edges`;
    canvases[kind].show(
      graph.nodes.map((node, id) => ({
        id, label: node.label, x: node.x, y: node.y, title: `line ${node.line}`,
        color: { background: token(node.named ? "accent-soft" : "card"), border: token("line") },
      })),
      graph.edges.map(([from, to, type, name], id) => ({
        id, from, to, title: `${type} ${name}`, color: { color: EDGES[type][0], opacity: 0.9, inherit: false },
        smooth: type === "FIELD" ? false : { enabled: true, type: "curvedCW", roundness: 0.14 },
      })),
    );
  }
}

/** Names for the present text, and, after a rewrite, beside those for the text before. */
async function names(source, before) {
  const [now, then] = await Promise.all([source, before].map((text) => (text ? ask("code/names", { source: text, name: chosen() }) : null)));
  if (!now.names.length) {
    $("names").replaceChildren(make("p", { class: "small muted" }, now.reason ?? "The model proposes no name."));
    return;
  }
  if (!then) { bars($("names"), now.names, percent); return; }
  const same = JSON.stringify(then.names) === JSON.stringify(now.names);
  const cells = (entry) => [make("td", { class: "name", title: entry?.[0] ?? "" }, entry?.[0] ?? ""), make("td", { class: "part" }, entry ? percent(entry[1]) : "")];
  $("names").replaceChildren(
    make("table", { class: "compared" },
      make("thead", {}, make("tr", {}, ...["before the rewrite", "after it"].map((text) => make("th", { scope: "col", colspan: "2" }, text)))),
      make("tbody", {}, ...now.names.map((entry, i) => make("tr", { class: entry[0] === then.names[i]?.[0] ? "" : "moved" }, ...cells(then.names[i]), ...cells(entry))))),
    make("p", { class: "small muted" }, same ? "The same names and probabilities as before." : "Other names or probabilities than before."));
}

export function shown() { for (const kind of KINDS) canvases?.[kind].fit(); }

export function recolour() { if (last) present(last); }
