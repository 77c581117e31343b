// The view Code.

import { $, ask, bars, latest, make, say, token } from "./api.js";
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
let seed = 0;
const failed = (error) => say("code-status", error.message, true);

export async function start(about) {
  const box = { shape: "box", margin: 6, borderWidth: 1, font: { size: 13, face: "ui-monospace, monospace", color: token("text") }, shapeProperties: { borderRadius: 5 } };
  canvases = Object.fromEntries(KINDS.map((kind) => [kind, new GraphCanvas($(kind), { nodes: box, edges: { width: 1.3, arrows: { to: { enabled: true, scaleFactor: 0.45 } } } })]));
  $("edge-keys").append(...Object.values(EDGES).map(([colour, name]) => make("span", { style: `--key:${colour}` }, name)));
  $("build").addEventListener("click", () => { seed = 0; build(); });
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
  const answer = await ask("code/graphs", { source });
  present(answer);
  for (const kind of KINDS) badge(kind, "", "");
  say("code-status", `${answer.function}: ${answer.sequential.size} and ${answer.dataflow.size} nodes`);
  await names(source, "");
}, failed);

const rewrite = latest(async (kind) => {
  const before = $("source").value;
  seed += 1;
  const answer = await ask("code/rewrite", { source: before, seed, kind });
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
  for (const kind of KINDS) {
    const graph = answer[kind];
    $(`${kind}-hash`).textContent = `${graph.note ?? `hash ${graph.hash.slice(0, 24)}`} · ${graph.size} nodes, ${graph.count} edges`;
    $(`${kind}-hash`).title = graph.hash;
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

/** Names for the present text, and, after a rewrite, the share that each had before. */
async function names(source, before) {
  const [now, then] = await Promise.all([source, before].map((text) => (text ? ask("code/names", { source: text }) : null)));
  if (!now.names.length) {
    $("names").replaceChildren(make("p", { class: "small muted" }, now.reason ?? "The model proposes no name."));
    return;
  }
  bars($("names"), now.names, (part) => `${(100 * part).toFixed(1)} %`);
  if (then) {
    const same = JSON.stringify(then.names) === JSON.stringify(now.names);
    const old = then.names.map(([name, part]) => `${name} ${(100 * part).toFixed(1)} %`).join(", ");
    $("names").append(make("p", { class: "small muted" }, same ? "The same names and probabilities as before the rewrite." : `Before the rewrite: ${old}`));
  }
}

export function shown() { for (const kind of KINDS) canvases?.[kind].fit(); }

export function recolour() { if (last) present(last); }
