// Play: a new game against a network, and what one may do in it.
import { html, sideName, t, worded } from "./drawing.js";
import { button, choiceField, field, group, number, offer, select } from "./forms.js";

// Fields that choose a network and how strongly it plays; read() gives a MOVER.
export class MoverFields {
  constructor(app, { optional = false, limits = true, visits = 100 } = {}) {
    this.app = app;
    this.optional = optional;
    this.network = select([], null, { onchange: () => this.profiles() });
    this.profile = select([], null);
    this.profileField = field(t("mover.profile"), this.profile);
    this.visits = number(visits, { min: 1, max: 10000000, step: 1 });
    this.seconds = number("", { min: 0, step: "any", placeholder: "–" });
    this.temperature = number(0, { min: 0, max: 10, step: 0.1 });
    this.node = html("div", { class: "fields" }, field(t("mover.network"), this.network), this.profileField, field(t("mover.visits"), this.visits, t("mover.visits.hint")),
      limits ? field(t("mover.seconds"), this.seconds) : null, limits ? field(t("mover.temperature"), this.temperature, t("mover.temperature.hint")) : null);
  }

  fill(game) {
    const chosen = this.network.value, info = this.app.games.find((one) => one.name === game), known = this.app.networksOf(game).filter((one) => !one.gives || one.gives.length > 0 || one.state === "listed");
    const options = known.map((one) => [one.name, `${one.name}${one.state === "ready" ? "" : ` – ${t(`state.${one.state}`)}`}`]);
    if (this.optional) options.unshift(["", t("mover.none")]);
    const first = options.some(([name]) => name === chosen) ? chosen : this.optional ? "" : info && info.network;
    offer(this.network, options, first);
    this.profiles();
  }

  profiles() {
    const known = this.app.networks.find((one) => one.name === this.network.value), names = (known && known.profiles) || [], kept = this.profile.value;
    offer(this.profile, [["", t("mover.plain")], ...names.map((name) => [name, profileName(name)])], kept);
    this.profileField.hidden = names.length === 0;
  }

  read() {
    if (!this.network.value) return null;
    const mover = { network: this.network.value };
    if (this.profile.value) mover.profile = this.profile.value;
    if (this.visits.value) mover.visits = Number(this.visits.value);
    if (this.seconds.value) { mover.seconds = Number(this.seconds.value); }
    if (Number(this.temperature.value)) mover.temperature = Number(this.temperature.value);
    return mover;
  }
}

// "rank_10k" as "10k".
export const profileName = (name) => name.replace(/^rank_/, "").replace(/_/g, " ");

export class PlayPanel {
  constructor(app) {
    this.app = app;
    this.kind = select([], null, { onchange: () => this.form() });
    this.choices = html("div", { class: "fields" });
    this.side = select([], null);
    this.mover = new MoverFields(app);
    this.clock = { main: number(0, { min: 0, step: 1 }), increment: number(0, { min: 0, step: "any" }), period: number(0, { min: 0, step: 1 }), periods: number(0, { min: 0, max: 100, step: 1 }) };
    this.begin = button(t("play.begin"), () => this.start(), { class: "button primary", id: "begin" });
    this.setup = html("form", { class: "card pad", "aria-label": t("play.new") }, html("h2", { text: t("play.new") }), html("div", { class: "fields" }, field(t("play.game"), this.kind), field(t("play.side"), this.side)), this.choices,
      group(t("play.opponent"), this.mover.node), html("details", null, html("summary", { text: t("play.clock") }), html("div", { class: "fields" }, ...Object.entries(this.clock).map(([name, input]) => field(t(`clock.${name}`), input)))),
      html("div", { class: "row" }, this.begin, button(t("play.here"), () => this.start(true), { title: t("play.here.hint") })));
    this.setup.addEventListener("submit", (event) => { event.preventDefault(); this.start(); });
    this.status = html("p", { class: "status", role: "status" });
    this.advice = html("p", { class: "soft" });
    this.typed = html("input", { type: "text", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
    this.actions = html("div", { class: "row" });
    const typing = html("form", { class: "row end" }, field(t("play.type"), this.typed), html("button", { type: "submit", class: "button", text: t("play.move") }));
    typing.addEventListener("submit", (event) => { event.preventDefault(); this.type(); });
    this.table = html("section", { class: "card pad", "aria-label": t("play.now") }, this.status, this.actions, this.advice, typing);
    this.node = html("div", { class: "stack" }, this.table, this.setup);
    const act = (name, run) => button(t(`play.${name}`), run, { "data-act": name });
    this.buttons = { pass: act("pass", () => this.app.play("pass")), take_back: act("take_back", () => this.app.ask("take_back")), hint: act("hint", () => this.hint()), score: act("score", () => this.count()),
      accept: act("accept", () => this.accept()), resign: act("resign", () => this.app.ask("resign")), stop_game: act("stop_game", () => this.app.ask("stop_game")) };
    this.actions.append(...Object.values(this.buttons));
  }

  welcomed() {
    const chosen = this.kind.value || (this.app.facts && this.app.facts.game);
    offer(this.kind, this.app.games.map((game) => [game.name, worded({ key: `game.${game.name}`, text: game.title })]), chosen);
    this.form();
  }

  networksChanged() { this.mover.fill(this.kind.value); }

  // The form offers what is on the board, until another game is chosen in it.
  treeChanged() {
    const { game } = this.app.facts;
    if (this.seen === game) return;
    this.seen = game;
    if (this.kind.value !== game) { this.kind.value = game; this.form(); }
  }

  form() {
    const game = this.app.games.find((one) => one.name === this.kind.value);
    if (!game) return;
    this.fields = game.choices.map((choice) => ({ ...choiceField(choice), name: choice.name }));
    this.choices.replaceChildren(...this.fields.map((one) => one.node));
    offer(this.side, [...game.sides.map((side) => [side, sideName(side)]), ["both", t("play.both")], ["watch", t("play.watch")]], game.sides[0]);
    this.mover.fill(game.name);
  }

  async start(here = false) {
    const game = this.app.games.find((one) => one.name === this.kind.value), mover = this.mover.read();
    if (!here || !this.app.facts || this.app.facts.game !== game.name) {
      const setup = Object.fromEntries(this.fields.map((one) => [one.name, one.read()]));
      if (!(await this.app.ask("new", { game: game.name, setup }))) return;
    }
    this.leave();
    const engines = this.side.value === "watch" ? game.sides : game.sides.filter((side) => side !== this.side.value && this.side.value !== "both");
    const clock = Object.fromEntries(Object.entries(this.clock).map(([name, input]) => [name, Number(input.value) || 0]));
    if (engines.length && mover && (clock.main || clock.period || clock.increment) && !this.mover.seconds.value && this.mover.visits.value === "") delete mover.visits;
    if (engines.length && !mover) { this.app.tell(t("play.nobody")); return; }
    if (engines.length) await this.app.ready([mover.network]);
    await this.app.ask("start_game", { engine: Object.fromEntries(engines.map((side) => [side, mover])), ...(clock.main || clock.period || clock.increment ? { clock } : {}) });
    this.app.pane.shown.flip = game.name === this.app.facts.game && this.app.pane.board.toggles.some((one) => one.key === "flip") && this.side.value === game.sides[1];
    this.app.draw();
    if (window.innerWidth >= 1000) this.app.pane.box.focus({ preventScroll: true });
  }

  type() {
    if (!this.app.position) return;
    const text = this.typed.value.trim(), legal = this.app.position.legal || {};
    const plain = (name) => name.toLowerCase().replace(/[+#x=!?-]/g, "").replaceAll("0", "o");
    const found = Object.keys(legal).find((move) => move.toLowerCase() === text.toLowerCase()) || Object.keys(legal).find((move) => legal[move] === text) || Object.keys(legal).find((move) => legal[move] && plain(legal[move]) === plain(text));
    if (!found) { this.app.tell(t("live.illegal", { point: text })); return; }
    this.typed.value = "";
    this.app.pane.make(found);
  }

  async hint() {
    const answer = await this.app.ask("hint", this.mover.visits.value ? { visits: Math.min(1000, Number(this.mover.visits.value)) } : {});
    if (!answer) return;
    this.app.pane.overlay = { entry: answer.entry, better: answer.move };
    this.advice.textContent = t("play.advice", { move: answer.san || answer.move });
    this.app.draw();
  }

  // Count: the board by ownership; stones may then be marked dead or alive by hand.
  async count(dead = null, final = false) {
    const answer = await this.app.ask("score", { ...(dead ? { dead } : {}), ...(final ? { final: true } : {}) });
    if (!answer) return;
    this.dead = new Set(answer.dead || []);
    this.app.pane.overlay = final ? {} : { dead: answer.dead || [], ownership: answer.ownership, counting: true };
    this.app.pane.handler = final || !this.app.info().scored ? null : (point) => this.mark(point);
    this.advice.textContent = answer.final || !this.app.info().scored ? answer.result : t("play.counted", { result: answer.result });
    this.buttons.accept.hidden = final || !this.app.info().scored;
    this.app.draw();
  }

  accept() { this.count([...this.dead], true); }

  mark(point) {
    const group = this.app.pane.board.groupAt ? this.app.pane.board.groupAt(this.app.position, point) : [point], off = this.dead.has(point);
    if (!group.length) return;
    for (const one of group) if (off) this.dead.delete(one); else this.dead.add(one);
    this.count([...this.dead]);
  }

  leave() {
    this.app.pane.handler = null;
    this.app.pane.overlay = {};
    this.buttons.accept.hidden = true;
    this.advice.textContent = "";
  }

  positionChanged(moved) {
    if (moved && this.app.tab === "play") this.leave();
    this.gameChanged();
  }

  gameChanged() {
    const { app } = this, { position, game } = app;
    if (!position || !app.facts) return;
    const info = app.info(), playing = Boolean(game && game.playing), over = (game && game.result) || (position.over && (position.result || position.reason));
    this.buttons.pass.hidden = !info || !info.passes;
    this.buttons.pass.disabled = !position.legal || !("pass" in position.legal);
    this.buttons.score.hidden = !info || !info.scored;
    this.buttons.accept.hidden = !(app.tab === "play" && app.pane.overlay.counting);
    for (const name of ["resign", "stop_game"]) this.buttons[name].disabled = !playing;
    this.status.textContent = game && game.to_score ? t("play.to_score") : over ? t("play.over", { result: [game && game.result, worded((game && game.reason) || position.reason)].filter(Boolean).join(" – ") || position.result || "" })
      : game && game.thinking ? t("play.is_thinking", { who: app.playerName(game.thinking) }) : t("play.to_move", { side: sideName(position.to_play) });
    if (game && game.to_score && !app.pane.overlay.counting && app.tab === "play" && !this.counting) { this.counting = true; this.count().finally(() => { this.counting = false; }); }
  }
}
