// The curves under the board: who is winning, and by how much; a click goes to the move.
// A network's values lean towards or against the side to move; weighing the neighbours 1 : 2 : 1 takes that lean away.
function smooth(values) {
  const at = (i) => values[Math.max(0, Math.min(values.length - 1, i))];
  return values.map((v, i) => (i === 0 || i === values.length - 1 ? v : (at(i - 1) + 2 * v + at(i + 1)) / 4));
}

class Graph {
  // values: one per position. kind "share": the share of `under`, with `draws` stacked on it; kind "score": a number
  // around zero, or from zero up (`from: 0`). go(ply) is called on a click, words(ply) says what stands there.
  constructor(options) {
    Object.assign(this, options);
    this.count = this.total - 1 || 1;
    this.node = html("div", {
      class: "graph", tabindex: 0, role: "slider", "aria-label": this.label, "aria-valuemin": 0, "aria-valuemax": this.total - 1, style: `height:${this.height}px`,
    });
    this.canvas = svg("svg", { viewBox: `0 0 1000 ${this.height}`, preserveAspectRatio: "none", style: `height:${this.height}px`, "aria-hidden": "true" });
    this.node.append(this.canvas);
    if (this.kind === "share") this.drawShare(); else this.drawScore();
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: this.height });
    this.canvas.append(this.cursor);
    this.listen();
  }

  x(ply) { return (1000 * ply) / this.count; }

  drawShare() {
    const h = this.height, raw = this.values;
    this.values = smooth(this.values);
    if (this.draws) this.draws = smooth(this.draws);
    this.canvas.append(svg("rect", { class: this.over, width: 1000, height: h }));
    const path = (values) => values.map((v, ply) => `${ply ? "L" : "M"}${this.x(ply).toFixed(1)} ${(h * (1 - v)).toFixed(2)}`).join("");
    const under = (values) => `${path(values)}L1000 ${h}L0 ${h}z`;
    if (this.draws) this.canvas.append(svg("path", { class: "area-d", d: under(this.values.map((v, i) => v + this.draws[i])) }));
    this.canvas.append(svg("path", { class: this.under, d: under(this.values) }));
    for (const level of [0.25, 0.5, 0.75]) this.canvas.append(svg("line", { class: "grid", x2: 1000, y1: h * level, y2: h * level }));
    this.canvas.append(svg("path", { class: "raw", d: path(raw) }));
    const edge = this.draws ? this.values.map((v, i) => v + this.draws[i] / 2) : this.values;
    this.canvas.append(svg("path", { class: "edge", d: path(edge) }));
    this.canvas.append(svg("rect", { class: "frame", width: 1000, height: h }));
    for (const mark of this.marks || []) {
      this.node.append(html("i", { class: `dot ${mark.grade}`, style: `left:${this.x(mark.ply) / 10}%;top:${100 * (1 - edge[mark.ply])}%` }));
    }
  }

  drawScore() {
    const h = this.height, known = this.values.filter((v) => v !== null).map(Math.abs);
    const low = this.from === 0 ? 0 : null;
    const top = Math.max(this.least || 1, ...known);
    this.limit = top;
    const raw = this.values.map((v) => (v === null ? 0 : v));
    this.values = smooth(raw);
    const y = (v) => (low === 0 ? h - (h * v) / top : h / 2 - (h / 2) * (v / top));
    const trace = (values) => values.map((v, ply) => `${this.x(ply).toFixed(1)} ${y(v).toFixed(2)}`);
    const points = trace(this.values);
    const zero = y(0), area = `M0 ${zero}L${points.join("L")}L1000 ${zero}z`;
    if (low === 0) this.canvas.append(svg("path", { d: area, fill: "var(--accent)", opacity: 0.16 }));
    else for (const [name, from] of [["fill-up", 0], ["fill-down", zero]]) {
      const id = `${name}-${this.total}`;
      this.canvas.append(svg("clipPath", { id }, svg("rect", { width: 1000, y: from, height: zero })));
      this.canvas.append(svg("path", { class: name, d: area, "clip-path": `url(#${id})` }));
    }
    this.canvas.append(svg("line", { class: "zero", x2: 1000, y1: zero, y2: zero }));
    this.canvas.append(svg("path", { class: "raw", d: `M${trace(raw).join("L")}` }), svg("path", { class: "edge", d: `M${points.join("L")}` }));
    this.canvas.append(svg("rect", { class: "frame", width: 1000, height: h }));
  }

  show(ply, words) {
    const x = this.x(ply);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    this.node.setAttribute("aria-valuenow", ply);
    this.node.setAttribute("aria-valuetext", words);
  }

  listen() {
    const plyAt = (event) => {
      const box = this.node.getBoundingClientRect();
      return Math.max(0, Math.min(this.total - 1, Math.round(((event.clientX - box.left) / box.width) * this.count)));
    };
    let dragging = false;
    this.node.addEventListener("pointerdown", (event) => { dragging = true; this.node.setPointerCapture(event.pointerId); this.go(plyAt(event)); });
    this.node.addEventListener("pointerup", () => { dragging = false; });
    this.node.addEventListener("pointercancel", () => { dragging = false; });
    this.node.addEventListener("pointermove", (event) => {
      const ply = plyAt(event);
      if (dragging) this.go(ply);
      if (!this.tip) this.node.append(this.tip = html("div", { class: "tip", "aria-hidden": "true" }));
      this.tip.textContent = this.words(ply);
      const box = this.node.getBoundingClientRect(), half = this.tip.offsetWidth / 2;
      this.tip.style.left = `${Math.max(half, Math.min(box.width - half, (box.width * ply) / this.count))}px`;
    });
    this.node.addEventListener("pointerleave", () => { if (this.tip) { this.tip.remove(); this.tip = null; } });
  }
}
