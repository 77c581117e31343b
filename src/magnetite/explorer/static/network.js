// A graph on a canvas, drawn by vis-network. Positions come from the server: nothing moves by itself.

import { make, token } from "./api.js";

export const LABELLED = 80;
const MANY_EDGES = 1200;

export class GraphCanvas {
  constructor(container, options = {}) {
    this.container = container;
    this.options = options;
    this.nodes = new vis.DataSet();
    this.edges = new vis.DataSet();
    this.network = null;
    this.clicked = null;
    const button = (text, label, act) => make("button", { type: "button", title: label, "aria-label": `${label}: ${container.getAttribute("aria-label").split(".")[0]}`, onclick: act }, text);
    container.after(make("div", { class: "zoom" },
      button("+", "Zoom in", () => this.zoom(1.3)), button("−", "Zoom out", () => this.zoom(1 / 1.3)), button("⤢", "Show all", () => this.fit())));
  }

  zoom(factor) {
    this.network?.moveTo({ scale: this.network.getScale() * factor });
  }

  /** Show all, or, where labels would become too small to read, the top. */
  begin() {
    this.network.fit({ animation: false });
    const { readable } = this.options;
    const nodes = this.nodes.get();
    if (!readable || !nodes.length || this.network.getScale() >= readable) return;
    const top = nodes.reduce((best, node) => (node.y < best.y ? node : best));
    this.network.moveTo({ scale: readable, position: { x: top.x, y: top.y + (this.container.clientHeight / 2 - 40) / readable } });
  }

  /** Show other nodes and edges, in vis-network's form. */
  show(nodes, edges, keepView = false) {
    const view = keepView && this.network
      ? { position: this.network.getViewPosition(), scale: this.network.getScale() } : null;
    const many = edges.length > MANY_EDGES;
    this.nodes = new vis.DataSet(nodes);
    this.edges = new vis.DataSet(edges);
    this.network?.destroy();
    const label = this.container.getAttribute("aria-label");
    this.network = new vis.Network(this.container, { nodes: this.nodes, edges: this.edges }, {
      physics: false,
      layout: { randomSeed: 1 },
      interaction: {
        hover: !many, tooltipDelay: 120, hideEdgesOnDrag: many, hideEdgesOnZoom: many, selectConnectedEdges: false,
        keyboard: { enabled: true, bindToWindow: false }, multiselect: false, dragNodes: !this.options.fixed,
      },
      nodes: {
        shape: "dot", borderWidth: many ? 0 : 1.2, labelHighlightBold: false, chosen: false,
        font: { color: token("text"), size: 13, face: "system-ui, sans-serif", vadjust: -1 },
        ...this.options.nodes,
      },
      edges: {
        smooth: false, arrows: { to: { enabled: true, scaleFactor: many ? 0.3 : 0.55 } }, width: many ? 0.4 : 1.2,
        color: { color: token("edge"), opacity: many ? 0.3 : 0.85, inherit: false }, chosen: false,
        selfReference: { size: 14 }, ...this.options.edges,
      },
    });
    if (label) this.container.firstChild?.setAttribute("aria-label", label);
    this.container.firstChild?.setAttribute("role", "application");
    this.network.on("click", (event) => this.clicked?.(event));
    if (view) this.network.moveTo(view);
    else this.begin();
  }

  update(nodes) {
    this.nodes.update(nodes);
  }

  recolour() {
    this.network?.setOptions({
      nodes: { font: { color: token("text") } }, edges: { color: { color: token("edge"), inherit: false } },
    });
  }

  fit() {
    this.network?.redraw();
    this.network?.fit({ animation: false });
  }

  /** The picture as it is seen, on the ground of the page. */
  picture() {
    const drawn = this.container.querySelector("canvas");
    const copy = document.createElement("canvas");
    copy.width = drawn.width;
    copy.height = drawn.height;
    const context = copy.getContext("2d");
    context.fillStyle = token("card");
    context.fillRect(0, 0, copy.width, copy.height);
    context.drawImage(drawn, 0, 0);
    return new Promise((done) => { copy.toBlob(done, "image/png"); });
  }
}
