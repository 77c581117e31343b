// The view Results.

import { $, ask, copy, make, onPress, press } from "./api.js";
import * as state from "./state.js";

const ORDER = ["figure", "study", "benchmark"];
const GROUPS = { figure: "Figures", study: "Studies", benchmark: "Benchmarks" };

let all = [];

export async function start() {
  $("filter").addEventListener("input", () => { state.set({ filter: $("filter").value }); list(); });
  onPress("kind", (kind) => { state.set({ kind }); press("kind", kind); list(); });
  try { all = (await ask("results")).results; all.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind)); } catch (error) { message(error.message); return; }
  await restore();
}

export async function restore() {
  $("filter").value = state.get("filter");
  press("kind", state.get("kind"));
  list();
  if (!all.length) {
    message("There are no results here: start `magnetite explore` in a clone of the repository, or give --results FOLDER.");
    return;
  }
  const wanted = state.get("result");
  await open(all.some((entry) => entry.name === wanted) ? wanted : all.find((entry) => entry.name === "figure-examples")?.name ?? all[0].name, false);
}

function message(text) {
  $("result").replaceChildren(make("p", { class: "empty" }, text));
}

function list() {
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const kind = state.get("kind");
  const found = all.filter((entry) => (!kind || entry.kind === kind)
    && words.every((word) => `${entry.name} ${entry.command} ${entry.device}`.toLowerCase().includes(word)));
  $("results-count").textContent = `${found.length} of ${all.length} results`;
  if (!found.length) {
    $("results-list").replaceChildren(make("li", { class: "empty" }, "No result has these words: filter by name, command or device."));
    return;
  }
  $("results-list").replaceChildren(...found.flatMap((entry, i) => [
    ...(entry.kind === found[i - 1]?.kind ? [] : [make("li", { class: "group" }, GROUPS[entry.kind])]), make("li", {}, make(
    "button", { type: "button", "data-name": entry.name, "aria-current": entry.name === state.get("result") ? "true" : null, onclick: () => open(entry.name) },
    title(entry.name), make("small", {}, `${entry.device ?? ""} · ${(entry.date ?? "").slice(0, 10)}`)))]));
}

const SPELLED = { gnn: "GNN", gpu: "GPU", cpu: "CPU", q: "q", svd: "SVD", api: "API" };

function title(name) {
  const words = name.replace(/^(figure|benchmark|run)-/, "").split("-").map((word) => SPELLED[word] ?? word);
  if (!(words[0] in SPELLED) && words[0] !== "q") words[0] = words[0][0].toUpperCase() + words[0].slice(1);
  return words.join(" ");
}

async function open(name, remember = true) {
  if (remember) state.set({ result: name });
  for (const button of $("results-list").querySelectorAll("button")) {
    if (button.dataset.name === name) button.setAttribute("aria-current", "true"); else button.removeAttribute("aria-current");
  }
  let result;
  try { result = await ask(`results/${encodeURIComponent(name)}`); } catch (error) { message(error.message); return; }
  const entry = all.find((each) => each.name === name);
  const button = make("button", { type: "button", class: "quiet", onclick: () => copy(result.command, button) }, "Copy");
  const facts = [["seed", result.seed], ["commit", String(result.commit ?? "").slice(0, 10)], ["device", result.device], ["date", (result.date ?? "").replace("T", " ").slice(0, 16)], ["seconds", result.seconds]];
  const figure = entry?.figures[0]
    ? [make("figure", {}, make("img", { src: `/api/figures/${encodeURIComponent(name)}${entry.figures[0]}`, alt: `Figure: ${title(name)}` }))] : [];
  $("result").replaceChildren(
    make("h3", {}, title(name)), make("div", { class: "command" }, make("code", {}, result.command), button),
    make("div", { class: "facts" }, ...facts.filter(([, value]) => value !== null && value !== "").map(([key, value]) => make("span", {}, `${key} ${value}`))),
    ...figure, ...result.tables.flatMap(table));
  $("result").scrollTop = 0;
}

function table({ title: name, columns, rows }) {
  return [
    ...(name ? [make("h4", {}, name.replaceAll("_", " "))] : []),
    make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": name || "Values" }, make("table", {},
      make("thead", {}, make("tr", {}, ...columns.map((column) => (column ? make("th", { scope: "col" }, column.replaceAll("_", " ")) : make("td", {}))))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make(
        "td", {}, cell === null ? "–" : typeof cell === "number" ? cell.toLocaleString("en", { maximumFractionDigits: 6 }) : String(cell)))))))),
  ];
}

export function shown() {}

export function recolour() {}
