// The board on the page: it draws the position with what is known of it, and turns pointers and keys into moves.
import { html, sideName, svg, t, worded } from "./drawing.js";
import { choicesOf, drawEvalbar } from "./view.js";
import { choose } from "./forms.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEPS = { start: "M5 4v12M15 4l-7 6 7 6z", back: "M13 4l-7 6 7 6z", forward: "M7 4l7 6-7 6z", end: "M15 4v12M5 4l7 6-7 6z" };

export class BoardPane {
  constructor(app) {
    this.app = app;
    this.shown = {};
    this.selected = [];
    this.cursor = null;
    this.handler = null; // what a point means while it is no move: setting up, marking, counting
    this.overlay = {}; // choices, line, ownership and dead points that a panel wants drawn
    const step = (name) => html("button", { type: "button", "data-go": name, title: t(`go.${name}`), "aria-label": t(`go.${name}`), onclick: () => app.go(name) }, svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { d: STEPS[name] })));
    this.box = html("div", { class: "board", id: "board", tabindex: 0, role: "application", "aria-roledescription": t("board.role"), "aria-describedby": "board-words" });
    this.task = html("p", { class: "verdict", role: "status" }); // what an exercise asks and says
    this.bar = html("div", { class: "evalbar", role: "img", "aria-label": t("graph.chances") });
    this.legend = html("ul", { class: "legend", "aria-label": t("part.legend") });
    this.where = html("output", { class: "where" });
    this.toggles = html("div", { class: "toggles" });
    this.words = html("p", { id: "board-words", class: "sr" });
    this.head = html("div", { class: "sides" });
    this.node = html("section", { class: "left pane", "aria-label": t("part.board") }, this.head, this.bar, this.task, html("div", { class: "boardbox" }, this.box), this.legend, this.words,
      html("div", { class: "controls", role: "toolbar", "aria-label": t("part.steps") }, html("div", { class: "steps" }, step("start"), step("back"), this.where, step("forward"), step("end")), this.toggles));
    this.listen();
  }

  // A board for a game; the same one again while its size does not change. True where it is a new one.
  use(Board, game) {
    const shape = JSON.stringify([game.game, game.xsize, game.ysize]);
    if (this.shape === shape) { this.board.game = game; return false; }
    this.shape = shape;
    this.board = new Board(game, this.box);
    this.cursor = null;
    this.selected = [];
    this.node.style.setProperty("--ratio", this.board.ratio);
    document.body.classList.remove("squares", "discs");
    document.body.classList.add(...this.board.classes);
    for (const name of ["--white", "--black"]) document.body.style.removeProperty(name);
    for (const [name, colour] of Object.entries(this.board.palette)) document.body.style.setProperty(name, colour);
    this.toggles.replaceChildren(...this.board.toggles.map((toggle) => {
      this.shown[toggle.key] = toggle.key === "ownership" ? false : toggle.on;
      const button = html("button", { class: "word", type: "button", "data-toggle": toggle.key, title: `${t(`toggle.${toggle.key}.hint`)} (${toggle.shortcut.toUpperCase()})`, "aria-pressed": String(this.shown[toggle.key]), text: t(`toggle.${toggle.key}`), onclick: () => this.flip(toggle.key) });
      return button;
    }));
    this.preview = null;
    this.overlay = {};
    return true;
  }

  flip(key) {
    this.shown[key] = !this.shown[key];
    this.toggles.querySelector(`[data-toggle="${key}"]`).setAttribute("aria-pressed", String(this.shown[key]));
    this.draw();
  }

  get position() { return this.preview || (this.overlay.position || this.app.position); }

  draw() {
    const { app, board, overlay } = this, position = this.position;
    if (!board || !position) return;
    const entry = overlay.entry && this.shown.policy && !this.preview ? overlay.entry : null;
    board.draw(this.scene = {
      position, last: position.move ? { move: position.move, player: position.player } : null, choices: entry ? choicesOf(entry) : null, better: overlay.better || null,
      line: overlay.line && !this.preview ? overlay.line : null, ownership: this.shown.ownership || overlay.counting ? overlay.ownership || (overlay.entry && overlay.entry.ownership) || null : null,
      numbers: this.shown.numbers ? app.line().filter((node) => node.move && node.ply <= position.ply).map((node) => ({ move: node.move, player: node.player, number: node.ply })) : null,
      marks: [...(position.marks || []), ...(overlay.tail ? [{ point: overlay.tail, kind: "circle" }] : [])].map((mark) => ({ at: mark.point, kind: mark.kind, text: mark.text && mark.text.length > 8 ? `${mark.text.slice(0, 7)}…` : mark.text, to: mark.to, colour: mark.colour })), legal: Object.keys(position.legal || {}), selected: this.selected, dragged: this.dragged,
      cursor: this.cursor && (this.pressed || document.activeElement === this.box) ? this.cursor : null, dead: overlay.dead || [], flip: this.shown.flip });
    this.legend.replaceChildren(...board.legend(this.scene).map(([name, text]) => html("li", null, html("i", { class: `swatch ${name}`, "aria-hidden": "true" }), text)));
    this.box.setAttribute("aria-label", `${t("part.board")}: ${position.text || board.describe(this.scene)}`);
  }

  // What surrounds the board, after a new position or judgement.
  drawAround() {
    const { app, board } = this, position = this.overlay.position || app.position, node = app.nodes.get(position.node), judged = node && node.judged;
    const source = this.overlay.entry && this.overlay.entry.win !== undefined ? { ...this.overlay.entry, to_play: position.to_play } : judged;
    this.task.hidden = !this.overlay.position;
    this.bar.hidden = !source || source.win === undefined || app.tab === "play" || Boolean(this.overlay.position);
    if (source && source.win !== undefined) drawEvalbar(this.bar, source, board);
    const end = app.line().at(-1);
    this.where.replaceChildren(`${position.ply}`, html("small", { text: ` / ${end ? end.ply : 0}` }));
    for (const button of this.node.querySelectorAll("[data-go]")) button.disabled = ["start", "back"].includes(button.dataset.go) ? position.node === 0 : !node || node.children.length === 0;
    this.words.textContent = position.text || "";
    const game = app.game || {}, clocks = game.clocks || {};
    this.head.replaceChildren(...board.sides.map((side) => html("div", { class: `side${position.to_play === side && !position.over ? " turn" : ""}` }, html("i", { class: `disc ${side === board.dark ? "b" : "w"}`, "aria-hidden": "true" }), html("span", { class: "who", text: app.playerName(side) }),
      position.captures && position.captures[side] ? html("span", { class: "captures", title: t("play.captures"), text: `+${position.captures[side]}` }) : null, game.thinking === side ? html("span", { class: "thinking", text: t("play.thinking") }) : null,
      clocks[side] ? html("span", { class: "clock", "data-clock": side, text: app.clockText(side) }) : null)));
  }

  // ---- choosing moves -------------------------------------------------------------------------------------------
  // A point was chosen: with those before it, perhaps a move. Resolves when it is played or there is none.
  async point(point) {
    if (!this.position) return; // the board of a game whose position has not come yet
    if (this.handler) { this.handler(point); return; }
    const legal = Object.keys(this.position.legal || {}), points = [...this.selected, point];
    let found = this.board.matching(points, legal);
    if (points.length < this.board.points) {
      this.selected = found.length ? points : [];
      this.draw();
      this.app.say(found.length ? t("live.selected", { what: this.board.pointWords(this.scene, point), n: found.length }) : t("live.nothing", { point }));
      return;
    }
    if (!found.length && this.selected.length) {
      found = [];
      this.selected = this.board.matching([point], legal).length && point !== this.selected[0] ? [point] : [];
      this.draw();
      return;
    }
    this.selected = [];
    if (!found.length) { this.draw(); this.app.say(t("live.illegal", { point })); return; }
    const move = found.length === 1 ? found[0] : await choose(t("play.promote"), found.map((one) => [one, t(`piece.${this.board.promotion(one)}`)]));
    if (move) await this.make(move); else this.draw();
  }

  // Draw a move at once, then ask for it.
  async make(move) {
    const before = this.position;
    this.preview = { ...this.board.after(before, move), move, player: before.to_play, to_play: this.board.sides[1 - this.board.sides.indexOf(before.to_play)], ply: before.ply + 1, legal: {}, marks: [], text: "" };
    this.draw();
    try {
      await this.app.play(move);
    } finally {
      this.preview = null;
      this.draw();
    }
  }

  cancel() {
    this.selected = [];
    this.draw();
  }

  listen() {
    const { box } = this;
    new ResizeObserver(() => this.draw()).observe(box); // what is written on it depends on its size
    box.addEventListener("pointerdown", (event) => {
      const point = this.board && this.board.pointAt(event);
      if (!point || event.button > 0) return;
      this.pressed = point;
      this.cursor = point;
      try { box.setPointerCapture(event.pointerId); } catch { /* the pointer is gone already */ }
      if (this.board.points > 1 && !this.handler) {
        if (!this.selected.length) { this.point(point); this.dragged = this.selected[0]; this.fresh = true; }
        else if (this.selected[0] === point) { this.dragged = point; this.fresh = false; }
        else this.fresh = false;
      } else this.draw();
    });
    box.addEventListener("pointermove", (event) => {
      if (!this.pressed) { if (event.pointerType === "mouse") this.hover(event); return; }
      const point = this.board.pointAt(event);
      if (point && point !== this.cursor) { this.cursor = point; this.draw(); }
    });
    box.addEventListener("pointerup", (event) => {
      if (!this.pressed) return;
      const point = this.board.pointAt(event), began = this.pressed;
      this.pressed = null;
      this.dragged = null;
      if (!point) { this.cancel(); return; }
      if (this.board.points > 1 && !this.handler) {
        if (point !== began && this.selected.length) this.point(point);
        else if (point === began && !this.fresh && this.selected.length) { if (this.selected[0] === point) this.cancel(); else this.point(point); }
        else this.draw();
      } else this.point(point);
    });
    box.addEventListener("pointercancel", () => { this.pressed = null; this.dragged = null; this.draw(); });
    box.addEventListener("pointerleave", () => this.app.hoverMove(null));
    box.addEventListener("focus", () => { this.cursor = this.cursor || this.board.step(null, 0, 0); this.draw(); });
    box.addEventListener("blur", () => this.draw());
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (ARROWS[event.key] && !event.shiftKey) {
        this.cursor = this.board.step(this.cursor, ...ARROWS[event.key]);
        this.draw();
        this.app.say(this.board.pointWords(this.scene, this.cursor));
      } else if ((event.key === "Enter" || event.key === " ") && this.cursor) this.point(this.cursor);
      else if (event.key === "Escape" && this.selected.length) this.cancel();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  hover(event) {
    const drawn = event.target.closest("[data-choice]"), point = this.board.points === 1 ? this.board.pointAt(event) : null;
    this.app.hoverMove(drawn ? drawn.dataset.choice : point);
  }

  announce(position) {
    if (!position.move) return;
    const name = this.app.nodes.get(position.node);
    this.app.say([t("live.move", { side: sideName(position.player), move: (name && name.san) || position.move }), position.check ? t("live.check") : "", position.over ? worded(position.reason) || position.result || "" : ""].filter(Boolean).join(". "));
  }
}
