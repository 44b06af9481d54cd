// Review: a game judged while one watches, its mistakes as exercises, and the library of games.
import { html, percent, sideName, signed, t, worded } from "./drawing.js";
import { button, field, number, offer, select } from "./forms.js";
import { clockWords, ReviewView } from "./view.js";

export class ReviewPanel {
  constructor(app) {
    this.app = app;
    this.network = select([], null);
    this.visits = number(100, { min: 0, max: 100000, step: 10 });
    this.start = button(t("review.start"), () => this.begin(), { class: "button primary", id: "review-start" });
    this.halt = button(t("review.stop"), () => app.ask("stop_review"), { disabled: true });
    this.open = button(t("review.open"), () => this.show(true), { disabled: true });
    this.bar = html("progress", { max: 1, value: 0, "aria-label": t("review.progress") });
    this.words = html("p", { class: "soft", role: "status" });
    this.exercise = null;
    this.tasks = html("div", { class: "stack" });
    this.makeTasks = button(t("exercises.make"), () => this.exercises(), { disabled: true });
    this.search = Object.fromEntries(["text", "player", "result", "opening"].map((name) => [name, html("input", { type: "search" })]));
    this.found = html("div", { class: "scroll" });
    this.library = html("section", { class: "card pad", "aria-label": t("library"), hidden: true }, html("h2", { text: t("library") }),
      html("form", { class: "fields", onsubmit: (event) => { event.preventDefault(); this.look(0); } }, ...Object.entries(this.search).map(([name, input]) => field(t(`library.${name}`), input)), html("button", { type: "submit", class: "button", text: t("library.search") })), this.found);
    this.report = html("div", { id: "report" });
    this.reportBox = html("div", { class: "reportbox", hidden: true }, button(t("review.close"), () => this.show(false)), this.report);
    this.node = html("div", { class: "stack" },
      html("section", { class: "card pad", "aria-label": t("page.review") }, html("p", { class: "soft", text: t("review.drop") }), html("div", { class: "fields" }, field(t("mover.network"), this.network), field(t("review.visits"), this.visits, t("review.visits.hint"))),
        html("div", { class: "row" }, this.start, this.halt, this.open), this.bar, this.words),
      html("section", { class: "card pad", "aria-label": t("exercises") }, html("h2", { text: t("exercises") }), html("div", { class: "row" }, this.makeTasks), this.tasks), this.library);
    this.verdict = app.pane.task;
  }

  welcomed() {
    this.library.hidden = !this.app.hasLibrary;
    if (!this.reportBox.isConnected) this.app.main.append(this.reportBox);
    if (this.app.hasLibrary) this.look(0);
  }

  networksChanged() { this.treeChanged(); }

  treeChanged() {
    if (!this.app.facts) return;
    const info = this.app.info(), known = this.app.networksOf(this.app.facts.game).filter((one) => !one.gives || one.gives.includes("value"));
    offer(this.network, known.map((one) => [one.name, one.name]), this.network.value || (info && info.network));
  }

  enter() { if (this.shown) this.show(true); }
  leave() { this.reportBox.hidden = true; this.endExercise(); this.app.main.classList.remove("wide"); }

  async begin() {
    this.review = null;
    const answer = await this.app.ask("review", { ...(this.network.value ? { network: this.network.value } : {}), visits: Number(this.visits.value) });
    this.asked = Boolean(answer);
  }

  show(on) {
    this.shown = on && Boolean(this.view);
    this.reportBox.hidden = !this.shown;
    this.app.wide(this.shown);
    if (this.shown) this.view.show(this.view.state.ply, true);
  }

  reviewed(message) {
    const running = ["waiting", "fast", "deep"].includes(message.state);
    this.halt.disabled = !running;
    this.start.disabled = running;
    this.bar.hidden = !running;
    this.bar.value = message.total ? message.done / message.total : 0;
    this.words.textContent = message.state === "none" ? "" : [t(`review.${message.state}`), running && message.total ? `${message.done} / ${message.total}` : "", running && message.seconds_left ? t("review.left", { time: clockWords(message.seconds_left) }) : "", message.message ? worded(message.worded || message.message) : ""].filter(Boolean).join(" · ");
    if (message.state === "none") { this.review = this.view = null; this.shown = false; this.reportBox.hidden = true; this.app.wide(false); this.tasks.replaceChildren(); }
    if (message.report) this.merge(message);
    this.open.disabled = !this.view;
    this.makeTasks.disabled = !this.view;
  }

  // The report as it stands: positions that have not changed are kept from before.
  merge(message) {
    const positions = this.review ? [...this.review.positions] : [];
    for (const position of message.report.positions) positions[position.ply] = position;
    positions.length = message.report.moves.length + 1;
    if (Array.from(positions).some((one) => !one)) { this.review = { ...message.report, positions }; return; }
    this.review = { ...message.report, positions };
    this.reviewNodes = message.nodes;
    const shape = JSON.stringify([this.review.game.game, this.review.game.xsize, this.review.game.ysize, this.review.game.players, this.review.game.source]);
    if (this.view && this.shape === shape) this.view.set(this.review);
    else {
      this.shape = shape;
      this.report.className = "";
      const Board = this.app.boards[this.review.game.game];
      this.view = new ReviewView(this.report, this.review, Board, {});
      if (this.app.tab === "review" && this.asked) this.show(true);
    }
  }

  key(event) {
    if (this.shown && event.key === "Escape" && !this.view.state.line) { this.show(false); return true; }
    return this.shown ? this.view.key(event) : false;
  }

  // ---- exercises -------------------------------------------------------------------------------------------------
  async exercises() {
    const answer = await this.app.ask("exercises", { count: 20 });
    if (!answer) return;
    this.tasks.replaceChildren(answer.exercises.length ? html("ol", { class: "tasks row" }, ...answer.exercises.map((one) => html("li", null, button(t("exercises.one", { n: one.number, side: sideName(one.player), loss: one.points === undefined ? percent(one.loss, 0) : t("value.points", { n: one.points.toFixed(1) }) }), () => this.pose(one), { "data-exercise": one.exercise, "aria-pressed": "false" })))) : html("p", { text: t("exercises.none") }));
  }

  pose(exercise) {
    this.exercise = exercise;
    for (const one of this.tasks.querySelectorAll("[data-exercise]")) one.setAttribute("aria-pressed", String(Number(one.dataset.exercise) === exercise.exercise));
    this.app.pane.selected = [];
    this.app.pane.overlay = { position: { legal: {}, ...exercise.position } };
    this.verdict.textContent = t("exercises.find", { side: sideName(exercise.player) });
    this.app.draw();
    this.app.pane.box.focus({ preventScroll: true });
    this.app.pane.node.scrollIntoView({ block: "start", behavior: "smooth" });
  }

  // Moving on in the game ends the exercise.
  positionChanged(moved) {
    if (!moved || !this.exercise) return;
    this.endExercise();
    this.app.pane.overlay = {};
  }

  endExercise() {
    this.exercise = null;
    for (const one of this.tasks.querySelectorAll("[aria-pressed=true]")) one.setAttribute("aria-pressed", "false");
  }

  // A move on the board is an attempt while an exercise stands there.
  tried(move) {
    if (!this.exercise) return false;
    const { exercise } = this;
    this.verdict.textContent = t("exercises.judging");
    this.app.ask("answer", { exercise: exercise.exercise, move }).then((answer) => {
      if (!answer) return;
      const better = answer.best_san || answer.best, loss = answer.points === undefined ? percent(answer.loss) : t("value.points", { n: signed(-answer.points) });
      this.verdict.textContent = t(`exercises.${answer.verdict}`, { move, best: better, played: answer.played, loss });
      this.app.pane.overlay = { position: { legal: {}, ...exercise.position }, better: answer.best, ...(answer.verdict === "wrong" ? { line: { moves: [move, ...(answer.reply || [])], step: Math.min(this.app.pane.board.lineSteps, 1 + (answer.reply || []).length) } } : {}) };
      this.app.draw();
      setTimeout(() => { if (this.exercise === exercise && this.app.pane.overlay.line) { this.app.pane.overlay.line = null; this.app.draw(); } }, 4000);
    });
    return true;
  }

  // ---- library -----------------------------------------------------------------------------------------------------
  async look(first) {
    const wanted = Object.fromEntries(Object.entries(this.search).filter(([, input]) => input.value.trim()).map(([name, input]) => [name, input.value.trim()]));
    const answer = await this.app.ask("library", { ...wanted, first, count: 50 });
    if (!answer) return;
    const row = (game) => html("tr", null, html("td", null, game.error ? `${game.file}: ${game.error}` : html("button", { type: "button", class: "plain", onclick: () => this.take(game), text: game.title || game.file })), ...[game.date, game.result, game.moves].map((text) => html("td", { text: text === undefined || text === null ? "" : text })), html("td", null, html("span", { class: "opening", title: game.opening || null, text: game.opening || "" })));
    this.found.replaceChildren(html("p", { class: "soft", role: "status", text: t(answer.reading ? "library.reading" : "library.total", { n: answer.total }) }),
      html("table", null, html("thead", null, html("tr", null, ...["game", "date", "result", "moves", "opening"].map((name) => html("th", { scope: "col", text: t(`library.${name}`) })))), html("tbody", null, ...answer.games.map(row))),
      html("div", { class: "row" }, first > 0 ? button(t("library.before"), () => this.look(Math.max(0, first - 50))) : null, first + 50 < answer.total ? button(t("library.after"), () => this.look(first + 50)) : null));
    if (answer.reading) { clearTimeout(this.later); this.later = setTimeout(() => { if (this.app.tab === "review") this.look(first); }, 1500); }
  }

  async take(game) {
    this.app.tellNotes(await this.app.ask("open_game", { file: game.file, index: game.index }));
  }
}
