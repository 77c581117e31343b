// The state of all views in the hash of the address, so that a link shows the same.

const state = new URLSearchParams(location.hash.slice(1));
const listeners = [];
let timer = 0;

export const get = (name, fallback = "") => state.get(name) ?? fallback;

export function set(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") state.delete(name);
    else state.set(name, String(value));
  }
  clearTimeout(timer);
  timer = setTimeout(write, 60); // browsers limit how often the address changes
}

export function write() {
  clearTimeout(timer);
  history.replaceState(null, "", `#${state}`);
}

export function onChange(listener) {
  listeners.push(listener);
}

addEventListener("hashchange", () => {
  const given = new URLSearchParams(location.hash.slice(1));
  // A link of the navigation names the view alone and keeps the rest.
  if ([...given.keys()].join() === "view") {
    state.set("view", given.get("view"));
    write();
  } else if (given.has("view")) {
    for (const name of [...state.keys()]) state.delete(name);
    for (const [name, value] of given) state.set(name, value);
    for (const listener of listeners) listener();
  }
  for (const listener of listeners) if (listener.always) listener();
});
