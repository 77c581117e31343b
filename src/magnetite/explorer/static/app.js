// The page: which view is shown, the theme, and the link to it.

import { $, ask, copy } from "./api.js";
import * as code from "./code.js";
import * as graph from "./graph.js";
import * as results from "./results.js";
import * as sorting from "./sorting.js";
import * as state from "./state.js";

const VIEWS = { graph, code, sorting, results };
const THEMES = { auto: ["◐ Auto", "as the system"], light: ["☀ Light", "light"], dark: ["☾ Dark", "dark"] };
const started = new Map();
let about;

function current() {
  const name = state.get("view", "graph");
  return name in VIEWS ? name : "graph";
}

async function showView() {
  const name = current();
  document.title = `${name[0].toUpperCase()}${name.slice(1)} · magnetite explorer`;
  for (const each of Object.keys(VIEWS)) $(`view-${each}`).hidden = each !== name;
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (!started.has(name)) started.set(name, VIEWS[name].start(about));
  VIEWS[name].shown();
  await started.get(name);
  document.documentElement.dataset.ready = name;
}

function showTheme() {
  const [text, words] = THEMES[document.documentElement.dataset.theme] ?? THEMES.auto;
  $("theme").textContent = text;
  $("theme").setAttribute("aria-label", `Colour theme: ${words}`);
}

function recolour() {
  for (const name of started.keys()) VIEWS[name].recolour();
}

$("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
  document.documentElement.dataset.theme = next;
  localStorage.setItem("magnetite-theme", next);
  showTheme();
  recolour();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
$("share").addEventListener("click", () => { state.set({ view: current() }); state.write(); copy(location.href, $("share")); });

const viewChanged = () => showView();
viewChanged.always = true;
state.onChange(viewChanged);
state.onChange(() => { for (const name of started.keys()) VIEWS[name].restore(); });
showTheme();
about = await ask("about");
await showView();
