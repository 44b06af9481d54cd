// The curves under a board: who is winning, and by how much; a click goes to the move.
import { html, svg, t } from "./drawing.js";

// A network's values lean towards or against the side to move; weighing the neighbours 1 : 2 : 1 takes that lean away.
function smooth(values) {
  const known = (i, v) => (values[i] === null || values[i] === undefined ? v : values[i]);
  return values.map((v, i) => (v === null || i === 0 || i === values.length - 1 ? v : (known(i - 1, v) + 2 * v + known(i + 1, v)) / 4));
}

// A round number not below `value`: 1, 2 or 5 times a power of ten.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value * 0.999);
}

export class Graph {
  // kind "share": the share of the first side, `over` and `under` the classes of the sides, with `draws` stacked on it;
  // kind "score": a number around zero, or from zero up (`from: 0`). go(ply) is called on a click, words(ply) says what
  // stands there. set(values, {draws, marks}) draws; a value may be null where nothing is known.
  constructor(options) {
    Object.assign(this, { marks: [], least: 1 }, options);
    this.plot = html("div", { class: "plot", tabindex: 0, role: "slider", "aria-label": this.label, "aria-valuemin": 0, style: `height:${this.height}px` });
    this.canvas = svg("svg", { preserveAspectRatio: "none", style: `height:${this.height}px`, "aria-hidden": "true" });
    this.dots = html("div", { class: "dots", "aria-hidden": "true" });
    this.levels = html("div", { class: "levels", "aria-hidden": "true" });
    this.ticks = html("div", { class: "ticks", "aria-hidden": "true" });
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: this.height });
    this.plot.append(this.canvas, this.dots);
    this.node = html("div", { class: "graph" }, this.levels, this.plot, this.ticks);
    this.at = 0;
    this.listen();
  }

  x(ply) { return (1000 * ply) / Math.max(1, this.total - 1); }

  set(values, { draws = null, marks = [] } = {}) {
    this.total = values.length;
    this.raw = values;
    this.canvas.setAttribute("viewBox", `0 0 1000 ${this.height}`);
    const values_ = this.smoothed === false ? values : smooth(values);
    this.canvas.replaceChildren();
    this.dots.replaceChildren();
    if (this.kind === "share") this.drawShare(values_, draws && smooth(draws)); else this.drawScore(values_);
    const known = (ply) => this.edge && this.edge[ply] !== null && this.edge[ply] !== undefined;
    const alone = values.map((_, ply) => ply).filter((ply) => known(ply) && !known(ply - 1) && !known(ply + 1)); // no line leads through them
    for (const mark of [...alone.map((ply) => ({ ply, grade: "" })), ...marks]) {
      const level = this.edge && this.edge[mark.ply];
      if (level !== null && level !== undefined) this.dots.append(html("i", { class: `dot ${mark.grade}`, style: `left:${this.x(mark.ply) / 10}%;top:${100 * (1 - level)}%` }));
    }
    this.canvas.append(this.cursor);
    this.drawTicks();
    this.plot.setAttribute("aria-valuemax", this.total - 1);
    this.show(Math.min(this.at, this.total - 1));
  }

  // Pieces of a line without gaps, as [ply, height] lists.
  runs(values, y) {
    const runs = [[]];
    values.forEach((v, ply) => { if (v === null || v === undefined) runs.push([]); else runs[runs.length - 1].push([this.x(ply), y(v)]); });
    return runs.filter((run) => run.length).map((run) => (run.length === 1 ? [run[0], [run[0][0] + (this.total === 1 ? 1000 : 3), run[0][1]]] : run));
  }

  trace(values, y) { return this.runs(values, y).map((run) => `M${run.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(2)}`).join("L")}`).join(""); }

  area(values, y, base) {
    return this.runs(values, y).map((run) => `M${run[0][0].toFixed(1)} ${base}L${run.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(2)}`).join("L")}L${run[run.length - 1][0].toFixed(1)} ${base}z`).join("");
  }

  drawShare(values, draws) {
    const h = this.height, y = (v) => h * (1 - v);
    const whole = this.area(values.map((v) => (v === null || v === undefined ? null : 1)), y, h);
    this.canvas.append(svg("path", { class: this.over, d: whole }));
    if (draws) this.canvas.append(svg("path", { class: "area-d", d: this.area(values.map((v, i) => (v === null ? null : v + (draws[i] || 0))), y, h) }));
    this.canvas.append(svg("path", { class: this.under, d: this.area(values, y, h) }));
    for (const level of [0.25, 0.5, 0.75]) this.canvas.append(svg("line", { class: "grid", x2: 1000, y1: h * level, y2: h * level }));
    this.edge = draws ? values.map((v, i) => (v === null ? null : v + (draws[i] || 0) / 2)) : values;
    this.canvas.append(svg("path", { class: "edge", d: this.trace(this.edge, y) }), svg("rect", { class: "frame", width: 1000, height: h }));
    this.drawLevels([[0, "100 %"], [0.5, "50"], [1, "0"]]);
  }

  drawScore(values) {
    const h = this.height, known = values.filter((v) => v !== null && v !== undefined).map(Math.abs), upwards = this.from === 0;
    const top = (this.limit = roundUp(Math.max(this.least, ...known))), zero = upwards ? h : h / 2;
    const y = (v) => (upwards ? h - (h * v) / top : h / 2 - (h / 2) * (v / top));
    const d = this.area(values, y, zero);
    if (upwards) this.canvas.append(svg("path", { class: "fill-plain", d }));
    else for (const [name, from] of [["fill-up", 0], ["fill-down", zero]]) {
      const id = `${name}-${(Graph.count = (Graph.count || 0) + 1)}`;
      this.canvas.append(svg("clipPath", { id }, svg("rect", { width: 1000, y: from, height: zero })), svg("path", { class: name, d, "clip-path": `url(#${id})` }));
    }
    for (const level of upwards ? [h / 2] : [h / 4, (3 * h) / 4]) this.canvas.append(svg("line", { class: "grid", x2: 1000, y1: level, y2: level }));
    this.canvas.append(svg("line", { class: "zero", x2: 1000, y1: zero, y2: zero }), svg("path", { class: "edge", d: this.trace(values, y) }), svg("rect", { class: "frame", width: 1000, height: h }));
    this.edge = values.map((v) => (v === null || v === undefined ? null : 1 - y(v) / h));
    this.drawLevels(upwards ? [[0, top], [1, "0"]] : [[0, `+${top}`], [0.5, "0"], [1, `−${top}`]]);
  }

  drawLevels(levels) {
    this.levels.replaceChildren(...levels.map(([at, text]) => html("span", { style: `top:${100 * at}%`, text })));
  }

  drawTicks() {
    const end = this.total - 1, step = end > 4 ? roundUp(end / 6) : 1, ticks = [];
    for (let ply = 0; ply <= end; ply += Math.max(1, step)) ticks.push(html("span", { style: `left:${this.x(ply) / 10}%`, text: ply }));
    this.ticks.replaceChildren(...ticks);
  }

  show(ply) {
    this.at = ply;
    const x = this.x(ply);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    this.plot.setAttribute("aria-valuenow", ply);
    this.plot.setAttribute("aria-valuetext", this.words ? this.words(ply) : t("graph.move", { n: ply }));
  }

  listen() {
    const plot = this.plot;
    const plyAt = (event) => {
      const box = plot.getBoundingClientRect();
      return Math.max(0, Math.min(this.total - 1, Math.round(((event.clientX - box.left) / box.width) * Math.max(1, this.total - 1))));
    };
    let dragging = false;
    plot.addEventListener("pointerdown", (event) => { dragging = true; plot.setPointerCapture(event.pointerId); this.go(plyAt(event)); });
    plot.addEventListener("pointerup", () => { dragging = false; });
    plot.addEventListener("pointercancel", () => { dragging = false; });
    plot.addEventListener("pointermove", (event) => {
      const ply = plyAt(event);
      if (dragging && ply !== this.at) this.go(ply);
      if (!this.tip) plot.append(this.tip = html("div", { class: "tip", "aria-hidden": "true" }));
      this.tip.textContent = this.words ? this.words(ply) : ply;
      const box = plot.getBoundingClientRect(), half = this.tip.offsetWidth / 2;
      this.tip.style.left = `${Math.max(half, Math.min(box.width - half, (box.width * ply) / Math.max(1, this.total - 1)))}px`;
    });
    plot.addEventListener("pointerleave", () => { if (this.tip) { this.tip.remove(); this.tip = null; } });
  }
}
