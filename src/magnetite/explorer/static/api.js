// Requests to the server, and the parts of the page that every view uses.

export const $ = (id) => document.getElementById(id);

/** The answer of the server as data; an error has the server's one line as its message. */
export async function ask(path, payload, options = {}) {
  const request = payload === undefined
    ? options
    : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(payload), ...options };
  let response;
  try {
    response = await fetch(`/api/${path}`, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is `magnetite explore` still running?");
  }
  if (options.raw && response.ok) return response.blob();
  const content = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error(content.error || `status ${response.status}`);
  return content;
}

/** A function that runs `work(argument)` one at a time: of calls made meanwhile, only the last one is run. */
export function latest(work, failed) {
  let running = false;
  let next = null;
  return async function run(argument) {
    next = { argument };
    if (running) return;
    running = true;
    while (next) {
      const { argument: now } = next;
      next = null;
      try { await work(now); } catch (error) { if (error.name !== "AbortError") failed(error); }
    }
    running = false;
  };
}

/** An element with attributes and children; text is never parsed as HTML. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value;
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function say(id, text, bad = false) {
  $(id).textContent = text;
  $(id).classList.toggle("bad", bad);
}

/** Marks one button of a group as pressed. */
export function press(name, value) {
  for (const button of document.querySelectorAll(`[data-${name}]`)) {
    button.setAttribute("aria-pressed", String(button.dataset[name] === value));
  }
}

export function onPress(name, chosen) {
  for (const button of document.querySelectorAll(`button[data-${name}]`)) {
    button.addEventListener("click", () => chosen(button.dataset[name]));
  }
}

export function fill(select, entries, value) {
  select.replaceChildren(...entries.map(([key, text]) => make("option", { value: key }, text)));
  if (value !== undefined) select.value = value;
}

export function bars(element, entries, format = (part) => part.toFixed(3)) {
  const largest = Math.max(...entries.map((entry) => entry[1]), 1e-12);
  element.replaceChildren(...entries.map(([name, part]) => make(
    "div", { class: "bar" }, make("b", { title: name }, name),
    make("i", { style: `--part:${part / largest}`, "aria-hidden": "true" }), make("span", {}, format(part)))));
}

export function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => { button.textContent = before; }, 1200);
}

export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
