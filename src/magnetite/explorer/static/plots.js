// Small plots as SVG.

import { svg, token } from "./api.js";
import { colourOf } from "./colour.js";

/** Entries of an eigenvector in the complex plane. */
export function plane(element, re, im) {
  const width = 300, height = 220, middle = [width / 2, height / 2], reach = 96;
  const largest = Math.max(...re.map((x, i) => Math.hypot(x, im[i])), 1e-12);
  const radius = re.length > 300 ? 1.8 : re.length > 60 ? 3 : 4.5;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Eigenvector in the complex plane" });
  root.append(
    svg("circle", { cx: middle[0], cy: middle[1], r: reach, class: "axis" }),
    svg("circle", { cx: middle[0], cy: middle[1], r: reach / 2, class: "grid", fill: "none" }),
    svg("line", { x1: middle[0] - reach, x2: middle[0] + reach, y1: middle[1], y2: middle[1], class: "grid" }),
    svg("line", { x1: middle[0], x2: middle[0], y1: middle[1] - reach, y2: middle[1] + reach, class: "grid" }));
  for (let i = 0; i < re.length; i += 1) {
    root.append(svg("circle", {
      cx: (middle[0] + (re[i] / largest) * reach).toFixed(1), cy: (middle[1] - (im[i] / largest) * reach).toFixed(1),
      r: radius, fill: colourOf(Math.atan2(im[i], re[i])), stroke: token("card"), "stroke-width": radius > 2 ? 0.8 : 0,
    }));
  }
  const labels = [["real", width - 4, middle[1] - 5, "end"], ["imaginary", middle[0] + 5, 10, "start"],
    [`radius ${largest.toPrecision(2)}`, 4, height - 4, "start"]];
  for (const [text, x, y, anchor] of labels) root.append(svg("text", { x, y, "text-anchor": anchor }, text));
  element.replaceChildren(root);
}

/** Eigenvalues over q, with a line at the present q; a click chooses another one. */
export function spectrum(element, found, chosen, q, choose) {
  const width = 300, height = 170, left = 30, right = 12, top = 8, bottom = 24;
  const largest = Math.max(...found.values.flat(), 1e-9);
  const x = (value) => left + (value / 0.5) * (width - left - right);
  const y = (value) => height - bottom - (value / largest) * (height - top - bottom);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Lowest ${found.values.length} eigenvalues for q from 0 to 0.5` });
  for (const tick of [0, 0.1, 0.2, 0.3, 0.4, 0.5]) {
    root.append(svg("line", { x1: x(tick), x2: x(tick), y1: top, y2: height - bottom, class: "grid" }),
      svg("text", { x: x(tick), y: height - 10, "text-anchor": "middle" }, String(tick)));
  }
  for (const tick of [0, largest / 2, largest]) root.append(svg("text", { x: left - 4, y: y(tick) + 3, "text-anchor": "end" }, tick.toFixed(2)));
  found.values.forEach((row, number) => {
    const points = row.map((value, i) => `${x(found.q[i]).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    const current = number === chosen;
    root.append(svg("polyline", { points, fill: "none", stroke: token(current ? "accent" : "edge"),
      "stroke-width": current ? 2.4 : 1, opacity: current ? 1 : 0.7 }));
  });
  root.append(svg("line", { x1: x(Math.min(q, 0.5)), x2: x(Math.min(q, 0.5)), y1: top, y2: height - bottom, stroke: token("bad"), "stroke-width": 1.4, "stroke-dasharray": "4 3" }));
  root.addEventListener("click", (event) => {
    const box = root.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    choose(Math.min(Math.max(((at - left) / (width - left - right)) * 0.5, 0), 0.5));
  });
  element.replaceChildren(root);
}

/** The adjacency matrix with its nodes in this order; the colour is the phase of the source. */
export function matrix(canvas, graph, order, phases) {
  const n = graph.nodes;
  const side = Math.max(300, n);
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  const cell = side / n;
  const place = new Array(n);
  order.forEach((node, i) => { place[node] = i; });
  context.clearRect(0, 0, side, side);
  for (const [source, target] of graph.edges) {
    context.fillStyle = colourOf(phases[source]);
    context.fillRect(Math.floor(place[target] * cell), Math.floor(place[source] * cell), Math.ceil(cell), Math.ceil(cell));
  }
}
