// Analyse: the search as it goes on, beside raw policies, and the graphs of the line.
import { html, percent, sideName, signed, t, worded } from "./drawing.js";
import { Graph } from "./graphs.js";
import { button, group, number } from "./forms.js";
import { MoverFields, profileName } from "./play.js";

const PROFILES = ["rank_20k", "rank_10k", "rank_5k", "rank_1k", "rank_1d", "rank_5d", "rank_9d"];

export class AnalysePanel {
  constructor(app) {
    this.app = app;
    this.wanted = false;
    this.shownBy = 0;
    this.movers = [new MoverFields(app, { limits: false, visits: "" }), new MoverFields(app, { limits: false, optional: true, visits: "" })];
    this.toggle = button(t("analyse.start"), () => (this.wanted ? this.stop() : this.start()), { class: "button primary", id: "analyse" });
    this.more = number(1000, { min: 1, step: 100, "aria-label": t("analyse.more.count") });
    this.results = [0, 1].map((at) => html("section", { class: "choice found", "aria-label": t("analyse.result", { n: at + 1 }), hidden: true }));
    this.policies = html("div", { class: "choice policies" });
    this.graphs = html("div", { class: "card graphs", hidden: true });
    this.node = html("div", { class: "stack" },
      html("section", { class: "card pad", "aria-label": t("page.analyse") }, html("div", { class: "row" }, this.toggle, button(t("analyse.more"), () => this.searchMore()), this.more),
        html("details", null, html("summary", { text: t("analyse.networks") }), group(t("analyse.first"), this.movers[0].node), group(t("analyse.second"), this.movers[1].node))),
      html("div", { class: "card results" }, ...this.results), this.graphs,
      html("section", { class: "card pad", "aria-label": t("analyse.policies") }, html("div", { class: "row" }, button(t("analyse.policies"), () => this.ask())), this.policies));
  }

  networksChanged() { if (this.app.facts) for (const mover of this.movers) mover.fill(this.app.facts.game); }
  treeChanged() {
    if (this.game !== this.app.facts.game) { this.game = this.app.facts.game; this.networksChanged(); this.shape = ""; }
    this.drawGraphs();
  }

  async start(visits = null) {
    const networks = this.movers.map((mover) => mover.read()).filter(Boolean);
    if (visits) for (const one of networks) one.visits = visits;
    await this.app.ready(networks.map((one) => one.network));
    this.wanted = Boolean(await this.app.ask("analyse", { networks }));
    this.label();
  }

  async stop() {
    this.wanted = false;
    this.label();
    await this.app.ask("stop");
  }

  searchMore() {
    const found = this.app.analysis[0], had = found && found.node === this.app.current ? found.entry.visits || 0 : 0;
    this.start(had + Number(this.more.value));
  }

  label() {
    this.toggle.textContent = t(this.wanted ? "analyse.stop" : "analyse.start");
    this.toggle.setAttribute("aria-pressed", String(this.wanted));
  }

  key(event) {
    if (event.key !== " " || event.target.closest("button, summary")) return false;
    if (this.wanted) this.stop(); else this.start();
    return true;
  }

  leave() { if (this.wanted) this.stop(); }
  enter() { this.show(); }

  failed(message) { if (message.about === "analysis") { this.wanted = false; this.label(); } }

  analysed(message) {
    if (!message.running && message.stopped_by && message.stopped_by !== "visits" && this.wanted && message.node === this.app.current) { this.wanted = message.stopped_by === "moved"; this.label(); }
    if (this.app.tab !== "analyse") return;
    this.fresh = this.fresh || requestAnimationFrame(() => { this.fresh = null; this.show(); });
  }

  positionChanged(moved) {
    if (moved) this.policies.replaceChildren();
    if (this.app.tab === "analyse") this.show();
  }

  // What is known of the position: of the search that runs, else what was found of it before.
  entryOf(at) {
    const { app } = this, found = app.analysis[at];
    if (found && found.node === app.current) return { ...found };
    return at === 0 && app.position.entry ? { entry: app.position.entry, network: "", running: false } : null;
  }

  show() {
    if (!this.app.position) return;
    const { app } = this, entries = [0, 1].map((at) => (at === 0 || (this.movers[1].network.value && app.analysis[1]) ? this.entryOf(at) : null)), main = entries[this.shownBy] || entries[0];
    app.pane.overlay.entry = this.policy || (main && main.entry) || null;
    this.results.forEach((box, at) => this.drawResult(box, entries[at], at));
    if (this.held && !(main && main.entry.candidates || []).some((one) => one.move === this.held)) this.held = null;
    this.drawLine();
    app.draw();
  }

  drawResult(box, found, at) {
    box.hidden = !found;
    if (!found) return;
    const { entry } = found, side = this.app.position.to_play, rows = (entry.candidates || []).slice(0, 8), most = Math.max(1, ...rows.map((one) => one.visits)); // the first has not always most
    const facts = [entry.visits ? t("value.visits", { n: entry.visits.toLocaleString("en") }) : "", found.visits_per_second && found.running ? t("analyse.speed", { n: Math.round(found.visits_per_second) }) : "", entry.depth ? t("analyse.depth", { n: Math.round(entry.depth) }) : ""].filter(Boolean).join(" · ");
    const words = [entry.win === undefined ? "" : `${sideName(side)} ${percent(entry.win + (entry.draw || 0) / 2)}`, entry.lead === undefined ? "" : t("value.points", { n: signed(entry.lead) })].filter(Boolean).join(", ");
    const title = html("h2", null, html("button", { type: "button", class: "plain", "aria-pressed": String(this.shownBy === at), title: t("analyse.show"), onclick: () => { this.shownBy = at; this.policy = null; this.show(); } }, [found.network, found.profile && profileName(found.profile)].filter(Boolean).join(", ") || t("analyse.found")), html("span", { text: facts }));
    const points = rows.some((one) => one.lead !== undefined), cell = (cls, text) => html("span", { class: cls, text });
    const focused = box.contains(document.activeElement) ? document.activeElement.dataset.move : null;
    const head = html("div", { class: `candidate heads${points ? " points" : ""}`, "aria-hidden": "true" }, ...["move", "", "visits", "policy", "chances", ...(points ? ["points"] : [])].map((key) => html("span", { class: key === "move" || !key ? null : "pct", text: key ? t(`column.${key}`) : "" })));
    const list = html("ol", { class: "searched" }, ...rows.map((one) => html("li", null, html("button", { type: "button", class: `candidate${points ? " points" : ""}${this.held === one.move ? " on" : ""}`, "data-move": one.move, title: t("choice.keep"), "aria-pressed": String(this.held === one.move),
      onclick: () => { this.held = this.held === one.move ? null : one.move; this.shownBy = at; this.show(); }, ondblclick: () => this.app.pane.make(one.move), onpointerenter: () => this.hoverMove(one.move), onpointerleave: () => this.hoverMove(null) },
    cell("name", one.pv_san ? one.pv_san[0] : one.move), html("span", { class: "bar" }, html("i", { style: `width:${Math.min(100, (100 * one.visits) / most)}%` })), cell("pct", `${one.visits}`), cell("pct", percent(one.prior)), cell("pct strong", percent(one.win + one.draw / 2)), points ? cell("pct", one.lead === undefined ? "" : signed(one.lead)) : null))));
    const best = rows.find((one) => one.move === (this.held || this.hovered)) || rows[0];
    box.replaceChildren(title, html("p", { class: "soft", text: words }), rows.length ? head : "", rows.length ? list : "", best ? html("p", { class: "variation", text: this.app.pane.board.variationWords(this.app.position, best.pv, best.pv_san) }) : "");
    if (focused) { const again = box.querySelector(`[data-move="${focused}"]`); if (again) again.focus(); }
  }

  hoverMove(move) {
    if (move === this.hovered) return;
    this.hovered = move;
    this.drawLine();
    this.app.pane.draw();
  }

  drawLine() {
    const { pane } = this.app, entry = pane.overlay.entry, found = entry && (entry.candidates || []).find((one) => one.move === (this.hovered || this.held));
    pane.overlay.line = found && this.app.tab === "analyse" ? { moves: found.pv, step: Math.min(found.pv.length, pane.board.lineSteps) } : null;
  }

  drawGraphs() {
    const { app } = this, line = app.line(), board = app.pane.board, first = board.sides[0], judged = line.map((node) => node.judged || null), mine = (one) => one.to_play === first;
    const chances = judged.map((one) => (one && one.win !== undefined ? (mine(one) ? one.win : one.loss) + (board.draws ? 0 : (one.draw || 0) / 2) : null));
    const leads = judged.map((one) => (one && one.lead !== undefined && one.lead !== null ? (mine(one) ? one.lead : -one.lead) : null));
    this.graphs.hidden = !chances.some((v) => v !== null);
    if (this.graphs.hidden) return;
    const scored = leads.some((v) => v !== null), shape = `${board.constructor.name}${scored}`;
    if (this.shape !== shape) {
      this.shape = shape;
      const tone = (side) => (side === board.dark ? "b" : "w"), common = { smoothed: false, go: (ply) => { const node = app.line()[ply]; if (node) app.go(node.node); }, words: (ply) => { const node = app.line()[ply]; return node && node.move ? `${node.ply}. ${node.san || node.move}` : t("now.start"); } };
      this.share = new Graph({ ...common, kind: "share", label: t("graph.chances"), height: 96, over: `area-${tone(board.sides[1])}`, under: `area-${tone(first)}` });
      this.score = scored ? new Graph({ ...common, kind: "score", label: t("graph.score"), height: 64, least: 5 }) : null;
      this.graphs.replaceChildren(html("h2", null, board.draws ? t("graph.three", { first: sideName(first), second: sideName(board.sides[1]) }) : t("graph.of", { side: sideName(first) })), this.share.node, ...(this.score ? [html("h2", null, t("graph.score"), html("span", { text: t("graph.up", { side: sideName(first) }) })), this.score.node] : []));
    }
    const at = line.findIndex((node) => node.node === app.current);
    this.share.at = Math.max(0, at);
    this.share.set(chances, { draws: board.draws ? judged.map((one) => (one && one.draw) || 0) : null });
    if (this.score) { this.score.at = Math.max(0, at); this.score.set(leads); }
  }

  // What every loaded network would play without a search, and people of several strengths where a network knows them.
  async ask() {
    const answer = await this.app.ask("policies", { profiles: PROFILES });
    if (!answer) return;
    const rows = answer.policies.map((one) => {
      const moves = Object.entries((one.entry && one.entry.policy) || {}).slice(0, 4), name = one.profile ? t("analyse.human", { network: one.network, profile: profileName(one.profile) }) : one.network;
      if (!one.entry) return html("tr", null, html("th", { scope: "row", text: name }), html("td", { colspan: 4, text: worded(one.worded || one.error) }));
      return html("tr", null, html("th", { scope: "row" }, html("button", { type: "button", class: "plain", "aria-pressed": "false", title: t("analyse.show"), onclick: (event) => {
        this.policy = this.policy === one.entry ? null : one.entry;
        for (const other of this.policies.querySelectorAll("[aria-pressed]")) other.setAttribute("aria-pressed", String(other === event.currentTarget && Boolean(this.policy)));
        this.show();
      }, text: name })), ...moves.map(([move, p]) => html("td", null, html("b", { text: (one.entry.san && one.entry.san[move]) || move }), html("span", { class: "soft", text: ` ${percent(p, 0)}` }))));
    });
    this.policies.replaceChildren(html("div", { class: "scroll" }, html("table", null, html("tbody", null, ...rows))));
  }
}
