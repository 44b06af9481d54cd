// A reviewed game: board, judgement, graphs and lists, every part drawn from one state. The report is this view alone;
// the board in the browser shows it too, while a review is still being made.
import { capital, html, percent, sideName, signed, svg, t, worded } from "./drawing.js";
import { Graph } from "./graphs.js";

const GRADES = { good: "good", inaccuracy: "slip", mistake: "error", blunder: "blunder" };
const ICONS = { first: "M5 4v12M15 4l-7 6 7 6z", prev: "M13 4l-7 6 7 6z", next: "M7 4l7 6-7 6z", last: "M15 4v12M5 4l7 6-7 6z" };
const KEYS = { ArrowLeft: "prev", ArrowRight: "next", ArrowUp: "prevbad", ArrowDown: "nextbad", Home: "first", End: "last", PageUp: "back10", PageDown: "next10", "[": "lineback", "]": "lineon" };

const bySecond = (move) => Boolean(move.second) && move.second.grade !== "good";
export const isBad = (move) => (Boolean(move.grade) && move.grade !== "good") || bySecond(move);
// What a move is called: the second judge's word goes first; what it does not blame gets a question mark.
const gradeOf = (move) => (bySecond(move) ? move.second.grade : move.grade);
const gradeWords = (move) => t(`grade.${gradeOf(move)}`) + (isBad(move) && move.second && !bySecond(move) ? "?" : "");
// A move with the better one of the judge that blames it.
const corrected = (move) => (bySecond(move) ? { ...move, best_san: undefined, best_pv_san: undefined, ...Object.fromEntries(["best", "best_san", "best_pv", "best_pv_san"].filter((name) => name in move.second).map((name) => [name, move.second[name]])) } : move);
const gradeClass = (move) => GRADES[gradeOf(move)] || "";
const moveName = (move) => move.san || move.move;

// Ownership as a page packs it: base64 of int8 hundredths.
export function unpack(review) {
  for (const position of review.positions) {
    if (typeof position.ownership !== "string") continue;
    const bytes = Int8Array.from(atob(position.ownership), (c) => (c.charCodeAt(0) << 24) >> 24);
    position.ownership = Array.from({ length: review.game.ysize }, (_, y) =>
      Array.from(bytes.subarray(y * review.game.xsize, (y + 1) * review.game.xsize), (b) => b / 100));
  }
  return review;
}

// What is to be said for each move, from a search's candidates, else from a network's policy.
export function choicesOf(entry, count = 10) {
  const found = entry.candidates || [];
  if (found.length) {
    const most = Math.max(...found.map((one) => one.visits), 1);
    return found.slice(0, count).map((one, rank) => ({ move: one.move, share: one.visits / most, best: rank === 0, label: `${Math.round(100 * (one.win + one.draw / 2))}`, under: shortCount(one.visits),
      words: t("choice.searched", { move: one.pv_san ? one.pv_san[0] : one.move, chances: percent(one.win + one.draw / 2), visits: one.visits }) }));
  }
  const policy = Object.entries(entry.policy || {}).slice(0, count), top = policy.length ? policy[0][1] : 1;
  return policy.filter(([, p], rank) => p >= 0.003 || rank === 0).map(([move, p], rank) => ({ move, share: p / Math.max(top, 1e-9), best: rank === 0, label: p >= 0.01 ? `${Math.round(100 * p)}` : "", under: "",
    words: `${(entry.san && entry.san[move]) || move}: ${percent(p)}` }));
}

const shortCount = (n) => (n < 10000 ? `${n}` : n < 1e6 ? `${Math.round(n / 1000)}k` : `${(n / 1e6).toFixed(1)}M`);

export class ReviewView {
  // `Board` is the class of the game's board; onShow(ply) is told what is shown.
  constructor(root, review, Board, { onShow = null } = {}) {
    this.root = root;
    this.onShow = onShow;
    this.state = { ply: 0, sort: "loss", descending: true, sortAll: "number", allDescending: false, shown: {}, line: null, pinned: false };
    this.shell();
    this.board = new Board(review.game, this.part("board"));
    [this.first, this.second] = this.board.sides;
    root.style.setProperty("--ratio", this.board.ratio);
    for (const [name, colour] of Object.entries(this.board.palette)) root.style.setProperty(name, colour);
    root.classList.add("review", ...this.board.classes);
    this.listen();
    this.set(review);
  }

  part(name) { return this.root.querySelector(`[data-part="${name}"]`); }

  shell() {
    const button = (name, path) => html("button", { type: "button", "data-do": name, title: t(`step.${name}.hint`), "aria-label": t(`step.${name}`) }, svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { d: path })));
    const word = (name, sign) => html("button", { type: "button", class: "word", "data-do": name, title: t(`step.${name}.hint`), "aria-label": t(`step.${name}`) }, html("span", { "aria-hidden": "true", text: sign }), ` ${t("grade.mistake")}`);
    const tab = (name, chosen) => html("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, "aria-selected": String(chosen), tabindex: chosen ? 0 : -1 }, t(`tab.${name}`), name === "mistakes" ? html("span", { class: "count", "data-part": "count" }) : null);
    const panel = (name, chosen) => html("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, class: "panel", tabindex: 0, hidden: !chosen });
    this.root.replaceChildren(
      html("header", { class: "top" }, html("div", { class: "who" }, html("h1", { "data-part": "title" }), html("p", { class: "facts", "data-part": "facts" })), html("span", { class: "result", "data-part": "result", hidden: true })),
      html("div", { class: "notice", "data-part": "notice", role: "note", hidden: true }),
      html("div", { class: "columns" },
        html("section", { class: "left", "aria-label": t("part.board") },
          html("div", { class: "evalbar", "data-part": "evalbar", role: "img", "aria-label": "" }),
          html("div", { class: "boardbox" }, html("div", { class: "board", "data-part": "board" })),
          html("ul", { class: "legend", "data-part": "legend", "aria-label": t("part.legend") }),
          html("div", { class: "controls", role: "toolbar", "aria-label": t("part.steps") },
            html("div", { class: "steps" }, button("first", ICONS.first), button("prev", ICONS.prev), html("output", { class: "where", "data-part": "where" }), button("next", ICONS.next), button("last", ICONS.last)),
            html("div", { class: "steps" }, word("prevbad", "▴"), word("nextbad", "▾")),
            html("div", { class: "toggles", "data-part": "toggles" }))),
        html("section", { class: "right", "aria-label": t("part.judgement") },
          html("div", { class: "card now", "data-part": "now", "aria-live": "polite" }),
          html("div", { class: "card choice instead", "data-part": "instead", hidden: true }),
          html("div", { class: "card graphs", "data-part": "graphs" }),
          html("div", { class: "card choice", "data-part": "choice" }),
          html("div", { class: "card lists" },
            html("div", { class: "tabs", role: "tablist", "aria-label": t("part.lists") }, tab("mistakes", true), tab("all", false), tab("summary", false)),
            panel("mistakes", true), panel("all", false), panel("summary", false)))));
  }

  // The review as it stands now; the same one with more in it, or another.
  set(review) {
    this.review = review;
    this.searched = Boolean(review.options.visits);
    this.judge = t(this.searched ? "judge.search" : "judge.network");
    this.bad = review.moves.filter(isBad).map((move) => move.number);
    this.hasPoints = review.moves.some((move) => move.points_loss !== undefined);
    this.root.classList.toggle("scored", review.positions.some((one) => one.lead !== undefined));
    this.drawHead();
    if (!this.toggled) this.drawToggles();
    this.drawGraphs();
    this.drawMistakes();
    this.drawAll();
    this.drawSummary();
    this.show(Math.min(this.state.ply, review.positions.length - 1), true);
  }

  // ---- numbers for one side -----------------------------------------------------------------------------------
  mine(position, side) { return position.to_play === side; }
  winOf(position, side) { return this.mine(position, side) ? position.win : position.loss; }
  chancesOf(position, side = this.first) { return position.win === undefined ? null : this.winOf(position, side) + (this.board.draws && side === this.first ? 0 : (position.draw || 0) / 2); }
  leadOf(position, side) { return position.lead === undefined ? null : this.mine(position, side) ? position.lead : -position.lead; }
  tone(side) { return side === this.board.dark ? "b" : "w"; }
  playerName(side) { return (this.review.game.players && this.review.game.players[side]) || sideName(side); }
  label(move) { return this.board.number(move); }
  disc(side) { return html("i", { class: `disc ${this.tone(side)}`, "aria-hidden": "true" }); }
  isChoice(move) { return move.visits === 0 ? false : (move.place === undefined ? move.rank : move.place) === 1; }

  scoreWords(lead) {
    return lead === null ? "" : `${sideName(lead >= 0 ? this.first : this.second)} +${Math.abs(lead).toFixed(1)}`;
  }

  positionWords(ply) {
    const position = this.review.positions[ply], move = ply ? this.review.moves[ply - 1] : null;
    const parts = [move ? `${this.label(move)} ${moveName(move)}` : t("now.start")];
    if (position.win !== undefined) parts.push(`${sideName(this.first)} ${percent(this.chancesOf(position))}`);
    if (this.board.draws && position.draw !== undefined) parts.push(`${t("value.draw")} ${percent(position.draw)}`, `${sideName(this.second)} ${percent(this.winOf(position, this.second))}`);
    if (position.lead !== undefined) parts.push(this.scoreWords(this.leadOf(position, this.first)));
    return parts.join(" · ");
  }

  // ---- head ------------------------------------------------------------------------------------------------------
  drawHead() {
    const { game, network, options } = this.review;
    const player = (side) => html("span", { class: "player" }, this.disc(side), this.playerName(side), game.ranks && game.ranks[side] ? html("span", { class: "rank", text: ` ${game.ranks[side]}` }) : null);
    this.part("title").replaceChildren(player(this.first), html("span", { class: "vs", text: t("head.against") }), player(this.second));
    const facts = [game.event, game.date, game.opening, ...this.board.facts(), `${this.review.moves.length} ${t(this.board.unit)}`,
      this.searched ? t(options.deeper ? "head.deeper" : "head.searched", { ...options, network: network.name }) : t("head.judged", { network: network.name })];
    this.part("facts").replaceChildren(...facts.filter(Boolean).map((text) => html("span", { text })));
    this.part("result").hidden = !game.result;
    this.part("result").textContent = game.result || "";
    const notes = this.review.warnings || [];
    this.part("notice").hidden = notes.length === 0;
    this.part("notice").replaceChildren(...notes.map((note) => html("p", { text: worded(note) })));
  }

  // ---- what changes with the move -----------------------------------------------------------------------------
  drawEvalbar() {
    const position = this.review.positions[this.state.ply], bar = this.part("evalbar");
    bar.hidden = position.win === undefined;
    if (bar.hidden) return;
    drawEvalbar(bar, position, this.board);
    bar.setAttribute("aria-label", t("part.chances", { words: this.positionWords(this.state.ply) }));
  }

  drawNow() {
    const { review, state } = this, position = review.positions[state.ply], move = state.ply ? review.moves[state.ply - 1] : null;
    const parts = [], line = html("div", { class: "line" }), words = (key, places) => html("p", { text: t(key, places) });
    if (move) {
      line.append(html("span", { class: "number", text: this.label(move) }), html("span", { class: "played" }, this.disc(move.player), `${sideName(move.player)} ${moveName(move)}`));
      if (move.grade) line.append(html("span", { class: `tag ${gradeClass(move)}`, text: !isBad(move) && this.isChoice(move) ? t("grade.choice", { judge: this.judge }) : gradeWords(move) }));
    } else line.append(html("span", { class: "played", text: t("now.before") }));
    parts.push(line);
    if (move && move.prior !== undefined) {
      const best = move.best_san || move.best, prior = percent(move.prior);
      if (move.place !== undefined) {
        const share = t("now.share", { visits: move.visits, all: review.positions[state.ply - 1].visits });
        parts.push(this.isChoice(move) ? words("now.choice", { share, prior }) : words("now.preferred", { best, visits: move.best_visits, share, prior }));
      } else parts.push(move.rank === 1 ? words("now.first", { prior }) : words("now.ranked", { best, best_prior: percent(move.best_prior || 0), rank: move.rank, prior }));
    }
    if (move && move.winrate_loss !== undefined) {
      const side = sideName(move.player), cost = this.isChoice(move) ? t("now.after", { side, after: percent(move.winrate_after) }) : t("now.cost", { side, best: percent(move.winrate_best), after: percent(move.winrate_after) });
      const points = !this.isChoice(move) && move.points_loss !== undefined ? `, ${t("value.points", { n: signed(-move.points_loss) })}` : "";
      const pawns = move.cp_loss !== undefined ? `, ${t("value.centipawns", { n: Math.round(move.cp_loss) })}` : "";
      parts.push(html("p", { class: "cost", text: `${cost}${points}${pawns}${t("word.stop")}` }));
    }
    if (move && move.second) {
      const name = review.second.name, best = move.second.best_san || move.second.best;
      parts.push(bySecond(move) ? words("second.blames", { name, grade: t(`grade.${move.second.grade}`), n: move.second.cp_loss, best }) : words("second.good", { name }));
    }
    if (!move) parts.push(words("now.help"));
    const now = [position.lead === undefined ? "" : t("value.points", { n: this.scoreWords(this.leadOf(position, this.first)) }),
      position.moves_left === undefined ? "" : t("now.left", { n: Math.round(position.moves_left), unit: t(this.board.unit) }),
      move && move.clock !== undefined ? t("now.clock", { time: clockWords(move.clock) }) : ""].filter(Boolean);
    if (now.length) parts.push(words("now.now", { facts: now.join(", ") }));
    const comment = (review.game.comments || {})[String(state.ply)];
    if (comment) parts.push(html("p", { class: "comment", text: comment }));
    if (position.outcome) parts.push(html("p", { text: `${capital(worded({ key: `reason.${position.outcome}`, text: position.outcome }))}${t("word.stop")}` }));
    this.part("now").replaceChildren(...parts);
  }

  // ---- the board ---------------------------------------------------------------------------------------------
  // The move that was better than the one just played, where that was a mistake.
  better(ply = this.state.ply) {
    const move = ply ? this.review.moves[ply - 1] : null;
    const better = move && isBad(move) ? corrected(move) : null;
    return better && better.best && better.best !== move.move ? better : null;
  }

  drawBoard() {
    const { review, state } = this, { ply, shown, line } = state;
    if (line) {
      const position = review.positions[line.ply];
      this.board.draw(this.scene = { position, last: line.ply ? review.moves[line.ply - 1] : null, line: { moves: line.candidate.pv, step: line.step }, flip: shown.flip });
    } else {
      const position = review.positions[ply], bad = this.better();
      this.board.draw(this.scene = {
        position, last: ply ? review.moves[ply - 1] : null, choices: shown.policy && !(bad && this.board.points > 1) ? choicesOf(position) : null,
        played: shown.policy && review.moves[ply] && !bad ? { ...review.moves[ply], best: this.isChoice(review.moves[ply]) } : null, better: bad ? bad.best : null,
        ownership: shown.ownership ? position.ownership : null, flip: shown.flip, numbers: shown.numbers ? review.moves.slice(0, ply) : null });
    }
    this.part("legend").replaceChildren(...this.board.legend(this.scene).map(([name, text]) => html("li", null, html("i", { class: `swatch ${name}`, "aria-hidden": "true" }), text)));
    this.root.querySelectorAll("[data-candidate]").forEach((row) => {
      const on = Boolean(line) && row.candidate === line.candidate;
      row.classList.toggle("on", on);
      row.setAttribute("aria-pressed", String(on && state.pinned));
    });
    for (const box of this.root.querySelectorAll(".variation")) {
      const mine = line && line.box === box.dataset.box, candidate = mine ? line.candidate : box.candidate;
      const words = this.board.variationWords(review.positions[box.ply], candidate.pv, candidate.pv_san);
      box.querySelector("span").textContent = mine && line.step < line.candidate.pv.length && line.step > 0 ? `${words}  (${line.step}/${line.candidate.pv.length})` : words;
    }
  }

  // A candidate's variation on the board, from the position `ply`; pinned ones stay.
  showLine(candidate, ply, box, pinned) {
    this.state.line = { candidate, ply, box, step: this.board.lineSteps === Infinity ? candidate.pv.length : this.board.lineSteps };
    this.state.pinned = pinned;
    this.drawBoard();
  }

  hideLine() {
    if (!this.state.line) return;
    this.state.line = null;
    this.state.pinned = false;
    this.drawBoard();
  }

  hover(candidate, ply, box) { if (!this.state.pinned) { if (candidate) this.showLine(candidate, ply, box, false); else this.hideLine(); } }

  pin(candidate, ply, box) {
    if (this.state.pinned && this.state.line.candidate === candidate) this.hideLine(); else this.showLine(candidate, ply, box, true);
  }

  // Play the shown variation on, or back; without one, the first of those offered.
  stepLine(by, box = null) {
    const { state } = this;
    if (!state.line || (box && state.line.box !== box.dataset.box)) {
      const from = box || this.root.querySelector(".instead:not([hidden]) .variation") || this.root.querySelector(".variation");
      if (!from) return;
      this.showLine(from.candidate, from.ply, from.dataset.box, true);
      state.line.step = by > 0 ? 0 : from.candidate.pv.length + 1;
    }
    state.pinned = true;
    state.line.step = Math.max(0, Math.min(state.line.candidate.pv.length, state.line.step + by));
    this.drawBoard();
  }

  // ---- candidates -------------------------------------------------------------------------------------------------
  row(cells, attributes) { return html("button", { type: "button", ...attributes }, ...cells); }

  candidateRow(candidate, ply, box, most, playedMove) {
    const played = playedMove === candidate.move, mate = candidate.mate;
    const result = mate === undefined ? null : mate > 0 ? t("value.wins", { n: Math.ceil(mate / 2) }) : mate < 0 ? t("value.loses", { n: Math.ceil(-mate / 2) }) : t("value.draw");
    const cell = (cls, text) => html("span", { class: cls, text });
    const row = this.row([cell("name", candidate.pv_san ? candidate.pv_san[0] : candidate.move), html("span", { class: "bar" }, html("i", { style: `width:${Math.min(100, (100 * candidate.visits) / most)}%` })),
      cell("pct", `${candidate.visits}`), cell("pct", percent(candidate.prior)), cell("pct strong", result || percent(candidate.win + candidate.draw / 2)), candidate.lead === undefined ? null : cell("pct", signed(candidate.lead))],
    { class: `candidate${played ? " played" : ""}`, "data-candidate": box, "aria-pressed": "false", title: `${played ? `${t("legend.played")}; ` : ""}${t("choice.keep")}`,
      onclick: () => this.pin(candidate, ply, box), onpointerenter: (event) => { if (event.pointerType === "mouse") this.hover(candidate, ply, box); }, onpointerleave: (event) => { if (event.pointerType === "mouse") this.hover(null); } });
    row.candidate = candidate;
    return html("li", null, row);
  }

  variationBox(candidate, ply, name) {
    const step = (by, sign, key) => html("button", { type: "button", class: "tiny", "aria-label": t(key), title: `${t(key)} (${by < 0 ? "[" : "]"})`, onclick: () => this.stepLine(by, box), text: sign });
    const box = html("p", { class: "variation", "data-box": name }, step(-1, "◂", "line.back"), step(1, "▸", "line.on"), html("span"));
    box.candidate = candidate;
    box.ply = ply;
    return box;
  }

  searchedList(ply, name, playedMove, count) {
    const position = this.review.positions[ply], kept = position.candidates.slice(0, count), most = Math.max(1, ...kept.map((one) => one.visits));
    const at = playedMove ? position.candidates.findIndex((one) => one.move === playedMove) : -1;
    if (at >= count) kept[count - 1] = position.candidates[at];
    const head = html("div", { class: "candidate heads", "aria-hidden": "true" }, ...["move", "", "visits", "policy", "chances", ...(kept[0].lead === undefined ? [] : ["points"])].map((key) => html("span", { class: key === "move" || !key ? null : "pct", text: key ? t(`column.${key}`) : "" })));
    return [head, html("ol", { class: "searched" }, ...kept.map((one) => this.candidateRow(one, ply, name, most, playedMove))), this.variationBox(kept[0], ply, name)];
  }

  drawInstead() {
    const bad = this.better(), card = this.part("instead"), ply = this.state.ply - 1;
    card.hidden = !bad;
    if (!bad) { card.replaceChildren(); return; }
    const position = this.review.positions[ply], better = html("b", { class: "better", text: bad.best_san || bad.best });
    const title = html("h2", null, html("span", { class: "lead" }, t("instead.title", { move: moveName(bad) }), " ", better));
    if (position.candidates && position.candidates.length && !bySecond(bad)) { card.replaceChildren(title, ...this.searchedList(ply, "instead", bad.move, 3)); return; }
    const pv = bad.best_pv || [bad.best];
    card.replaceChildren(title, this.variationBox({ move: bad.best, pv, pv_san: bad.best_pv_san || (bad.best_san ? [bad.best_san] : undefined) }, ply, "instead"));
  }

  drawChoice() {
    const { review, state } = this, position = review.positions[state.ply], next = review.moves[state.ply], card = this.part("choice");
    const played = next ? t("choice.next", { move: moveName(next) }) : "", side = sideName(position.to_play);
    if (position.candidates && position.candidates.length) {
      card.replaceChildren(html("h2", null, t("choice.search", { side }), html("span", { text: [t("value.visits", { n: position.visits }), played].filter(Boolean).join(" · ") })), ...this.searchedList(state.ply, "choice", next && next.move, 5));
      return;
    }
    const entries = Object.entries(position.policy || {}).slice(0, 5), names = position.san || {};
    if (next && next.prior !== undefined && !entries.some(([move]) => move === next.move)) entries.splice(4, 1, [next.move, next.prior]);
    const list = html("ol", null, ...entries.map(([move, p]) => html("li", { class: next && next.move === move ? "played" : "", title: next && next.move === move ? t("legend.played") : null },
      html("span", { class: "name", text: names[move] || (next && next.move === move && next.san) || move }), html("span", { class: "bar" }, html("i", { style: `width:${100 * p}%` })), html("span", { class: "pct", text: percent(p) }))));
    card.replaceChildren(html("h2", null, t("choice.network", { side }), html("span", { text: played })), entries.length ? list : html("p", { class: "about", text: t("choice.over") }));
  }

  show(ply, quiet) {
    const { state, review } = this, end = review.positions.length - 1;
    state.ply = Math.max(0, Math.min(end, ply));
    state.line = null;
    state.pinned = false;
    this.drawEvalbar();
    this.drawNow();
    this.drawInstead();
    this.drawChoice();
    this.drawBoard();
    for (const graph of this.graphs) graph.show(state.ply);
    this.part("where").replaceChildren(`${state.ply}`, html("small", { text: ` / ${end}` }));
    const off = { first: state.ply === 0, prev: state.ply === 0, next: state.ply === end, last: state.ply === end, prevbad: !this.bad.some((n) => n < state.ply), nextbad: !this.bad.some((n) => n > state.ply) };
    for (const [name, disabled] of Object.entries(off)) this.root.querySelector(`[data-do="${name}"]`).disabled = disabled;
    for (const row of this.root.querySelectorAll("tr[data-move]")) {
      const current = Number(row.dataset.move) === state.ply;
      if (current) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current");
      if (current && row.closest(".panel:not([hidden])")) keepInView(row);
    }
    if (!quiet && this.onShow) this.onShow(state.ply);
  }

  // ---- lists ----------------------------------------------------------------------------------------------------
  // A move's loss: in the worse of points and chances, so that both are seen.
  lossOf(move, key) {
    if (key === "number") return move.number;
    if (key === "loss" && move.second) return move.second.winrate_loss + (move.winrate_loss || 0) / 1000;
    if (key === "loss") return Math.max(move.winrate_loss || 0, (move.points_loss || 0) / 50);
    return move[key] === undefined ? -Infinity : move[key];
  }

  moveRow(move) {
    const bad = isBad(move), cell = (cls, text) => html("td", { class: cls, text });
    return html("tr", { "data-move": move.number, onclick: () => this.show(move.number) },
      html("td", null, html("a", { href: `#move=${move.number}`, onclick: (event) => event.preventDefault() }, html("span", { class: "n", text: this.label(move) }), this.disc(move.player), moveName(move), html("span", { class: "sr", text: ` ${sideName(move.player)}` }))),
      html("td", null, bad ? html("span", { class: `tag ${gradeClass(move)}`, text: gradeWords(move) }) : ""),
      cell(`loss ${bad ? gradeClass(move) : ""}`, move.winrate_loss === undefined ? "" : signed(-100 * move.winrate_loss)),
      this.hasPoints ? cell(`loss ${bad ? gradeClass(move) : ""}`, move.points_loss === undefined ? "" : signed(-move.points_loss)) : null,
      cell("wide", move.prior === undefined ? "" : percent(move.prior)), cell(null, this.isChoice(move) && !bad ? "✓" : corrected(move).best_san || corrected(move).best || ""));
  }

  table(moves, sort, descending, sorted) {
    const column = (key, cls) => html("th", { scope: "col", class: cls || null, "aria-sort": sort === key ? (descending ? "descending" : "ascending") : null },
      html("button", { type: "button", title: t(`sort.${key}`, { judge: this.judge }), onclick: () => sorted(key) }, t(`column.${{ number: "move", loss: "grade", winrate_loss: "chances", points_loss: "points", prior: "policy" }[key]}`)));
    const ordered = [...moves].sort((a, b) => (descending ? -1 : 1) * (this.lossOf(a, sort) - this.lossOf(b, sort)) || a.number - b.number);
    return html("table", null,
      html("thead", null, html("tr", null, column("number"), column("loss"), column("winrate_loss"), this.hasPoints ? column("points_loss") : null, column("prior", "wide"), html("th", { scope: "col", title: t("sort.better", { judge: this.judge }), text: t("column.better") }))),
      html("tbody", null, ...ordered.map((move) => this.moveRow(move))));
  }

  drawMistakes() {
    const { state } = this, chosen = this.review.mistakes.map((number) => this.review.moves[number - 1]);
    this.part("count").textContent = chosen.length;
    const sorted = (key) => { state.descending = state.sort === key ? !state.descending : key !== "number"; state.sort = key; this.drawMistakes(); this.show(state.ply, true); };
    this.panel("mistakes").replaceChildren(chosen.length ? this.table(chosen, state.sort, state.descending, sorted) : html("p", { class: "none", text: t("list.none", { judge: this.judge }) }));
  }

  drawAll() {
    const { state } = this;
    const sorted = (key) => { state.allDescending = state.sortAll === key ? !state.allDescending : key !== "number"; state.sortAll = key; this.drawAll(); this.show(state.ply, true); };
    this.panel("all").replaceChildren(this.table(this.review.moves, state.sortAll, state.allDescending, sorted));
  }

  panel(name) { return this.root.querySelector(`#panel-${name}`); }

  drawSummary() {
    const { review } = this, { network, options, game } = review, sides = [this.first, this.second];
    const rows = [["moves", (p) => p.moves], ["chances", (p) => percent(p.mean_winrate_loss, 2)]];
    if (this.hasPoints) rows.push(["points", (p) => p.mean_points_loss.toFixed(2)]);
    if (sides.some((side) => review.players[side].accuracy !== undefined)) rows.push(["accuracy", (p) => percent(p.accuracy / 100)]);
    if (sides.some((side) => review.players[side].mean_cp_loss !== undefined)) rows.push(["centipawns", (p) => p.mean_cp_loss.toFixed(0)]);
    rows.push(["first", (p) => percent(p.first_choice, 0)], ["three", (p) => percent(p.among_three, 0)], ["prior", (p) => percent(p.mean_prior)], ["inaccuracies", (p) => p.inaccuracies], ["mistakes", (p) => p.mistakes], ["blunders", (p) => p.blunders]);
    const by = `${network.name} (${network.format})`, symmetry = options.symmetry === "average" ? t("about.averaged") : t("about.symmetry", { n: options.symmetry });
    const about = html("div", { class: "about" },
      html("p", { text: t(this.searched ? "about.searched" : "about.judged", { by, symmetry, visits: options.visits, preset: options.preset, seed: options.seed }) }),
      network.sha256 === undefined ? null : html("p", null, t("about.sha"), " ", html("code", { text: network.sha256 || t("about.fresh") })),
      game.source ? html("p", { text: t("about.record", { source: `${game.source}${game.index > 1 ? ` (${game.index})` : ""}`, version: review.keima }) }) : null,
      ...(game.notes || []).map((note) => html("p", { text: t("about.note", { text: worded(note) }) })));
    const cell = (side, value) => { const p = review.players[side]; const text = p && p.moves ? value(p) : "–"; return html("td", { text: `${text}`.includes("NaN") || text === undefined ? "–" : text }); };
    this.panel("summary").replaceChildren(
      html("table", { class: "summary" }, html("thead", null, html("tr", null, html("th", { scope: "col" }, html("span", { class: "sr", text: t("tab.summary") })), ...sides.map((side) => html("th", { scope: "col" }, this.disc(side), this.playerName(side))))),
        html("tbody", null, ...rows.map(([key, value]) => html("tr", null, html("th", { scope: "row", text: t(`summary.${key}`, { judge: this.judge }) }), ...sides.map((side) => cell(side, value)))))), about);
  }

  drawGraphs() {
    const { review, board } = this, positions = review.positions, box = this.part("graphs"), parts = [];
    this.graphs = [];
    const common = { go: (ply) => this.show(ply), words: (ply) => this.positionWords(ply) }, low = window.innerWidth >= 1000 && window.innerHeight < 800;
    const title = (text, hint) => html("h2", null, text, html("span", { text: hint }));
    const marks = this.bad.map((number) => ({ ply: number, grade: gradeClass(review.moves[number - 1]) })).filter((mark) => mark.grade !== "slip");
    const add = (options, values, more, words, hint) => {
      const graph = new Graph({ ...common, ...options });
      graph.set(values, more);
      this.graphs.push(graph);
      parts.push(title(words, hint), graph.node);
    };
    if (positions.some((p) => p.win !== undefined)) {
      add({ kind: "share", label: t("graph.chances"), height: low ? 84 : 112, over: `area-${this.tone(this.second)}`, under: `area-${this.tone(this.first)}` }, positions.map((p) => this.chancesOf(p)),
        { marks, draws: board.draws ? positions.map((p) => p.draw || 0) : null }, board.draws ? t("graph.three", { first: sideName(this.first), second: sideName(this.second) }) : t("graph.of", { side: sideName(this.first) }), t("graph.hint"));
    }
    if (positions.some((p) => p.lead !== undefined)) add({ kind: "score", label: t("graph.score"), height: low ? 56 : 76, least: 5 }, positions.map((p) => this.leadOf(p, this.first)), {}, t("graph.score"), t("graph.up", { side: sideName(this.first) }));
    else if (positions.some((p) => p.moves_left !== undefined)) add({ kind: "score", from: 0, label: t("graph.left"), height: low ? 48 : 60, least: 20 }, positions.map((p) => (p.moves_left === undefined ? null : p.moves_left)), {}, t("graph.left"), "");
    box.hidden = parts.length === 0;
    box.replaceChildren(...parts);
  }

  // ---- controls --------------------------------------------------------------------------------------------------
  drawToggles() {
    this.toggled = true;
    this.toggles = this.board.toggles.filter((toggle) => toggle.key !== "ownership" || this.review.positions.some((p) => p.ownership));
    for (const toggle of this.toggles) {
      this.state.shown[toggle.key] = toggle.on;
      const button = html("button", { class: "word", type: "button", title: `${t(`toggle.${toggle.key}.hint`)} (${toggle.shortcut.toUpperCase()})`, "aria-pressed": String(toggle.on), text: t(`toggle.${toggle.key}`) });
      toggle.flip = () => {
        this.state.shown[toggle.key] = !this.state.shown[toggle.key];
        button.setAttribute("aria-pressed", String(this.state.shown[toggle.key]));
        this.drawBoard();
      };
      button.addEventListener("click", toggle.flip);
      this.part("toggles").append(button);
    }
  }

  selectTab(name) {
    if (!this.panel(name)) return;
    for (const tab of this.root.querySelectorAll("[role=tablist] [role=tab]")) {
      const chosen = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      this.root.querySelector(`#${tab.getAttribute("aria-controls")}`).hidden = !chosen;
    }
    const row = this.root.querySelector(".panel:not([hidden]) tr[aria-current]");
    if (row) keepInView(row);
  }

  act(name) {
    const { ply } = this.state, end = this.review.positions.length - 1;
    const goal = { first: 0, prev: ply - 1, next: ply + 1, last: end, back10: ply - 10, next10: ply + 10, prevbad: [...this.bad].reverse().find((n) => n < ply), nextbad: this.bad.find((n) => n > ply) }[name];
    if (goal !== undefined) this.show(goal);
    else if (name === "lineback" || name === "lineon") this.stepLine(name === "lineon" ? 1 : -1);
  }

  // A key of the keyboard; true where it meant something here.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName || "")) return false;
    const tab = event.target.closest && event.target.closest("[role=tab]");
    if (tab && this.root.contains(tab) && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      const tabs = [...tab.parentElement.children], goal = tabs[(tabs.indexOf(tab) + (event.key === "ArrowRight" ? 1 : tabs.length - 1)) % tabs.length];
      this.selectTab(goal.id.slice(4));
      goal.focus();
      return true;
    }
    if (event.key === "Escape" && this.state.line) { this.hideLine(); return true; }
    const toggle = this.toggles.find((one) => one.shortcut === event.key.toLowerCase());
    if (toggle) toggle.flip(); else if (KEYS[event.key]) this.act(KEYS[event.key]); else return false;
    return true;
  }

  listen() {
    for (const button of this.root.querySelectorAll("[data-do]")) button.addEventListener("click", () => this.act(button.dataset.do));
    for (const tab of this.root.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => this.selectTab(tab.id.slice(4)));
    const at = (event) => {
      const drawn = event.target.closest("[data-choice]"), move = drawn ? drawn.dataset.choice : this.board.points === 1 ? this.board.pointAt(event) : null;
      return this.state.shown.policy ? (this.review.positions[this.state.ply].candidates || []).find((one) => one.move === move) : null;
    };
    const box = this.part("board");
    new ResizeObserver(() => { if (this.scene) this.board.draw(this.scene); }).observe(box); // what is written on it depends on its size
    box.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse" && this.board.points === 1) this.hover(at(event), this.state.ply, "choice"); });
    box.addEventListener("pointerleave", () => this.hover(null));
    box.addEventListener("click", (event) => { const found = at(event); if (found) this.pin(found, this.state.ply, "choice"); else if (this.state.pinned) this.hideLine(); });
  }

  // "#move=57" opens there; "&tab=summary&show=ownership,numbers" also chooses a list and what is drawn, "&pv=2" keeps the
  // second candidate's variation on the board.
  follow(hash) {
    const wanted = new URLSearchParams(hash.replace(/^#/, "")), number = (name) => Number.parseInt(wanted.get(name) || "0", 10) || 0;
    if (wanted.get("tab")) this.selectTab(wanted.get("tab"));
    if (wanted.has("show")) for (const toggle of this.toggles) if (wanted.get("show").split(",").includes(toggle.key) !== this.state.shown[toggle.key]) toggle.flip();
    this.show(number("move"), true);
    const candidate = (this.review.positions[this.state.ply].candidates || [])[number("pv") - 1];
    if (candidate) this.pin(candidate, this.state.ply, "choice");
  }
}

// Both sides' chances as one bar, for the position of an entry with win, draw, loss and to_play.
export function drawEvalbar(bar, position, board) {
  const [first, second] = board.sides, mine = position.to_play === first, tone = (side) => (side === board.dark ? "b" : "w");
  const a = mine ? position.win : position.loss, b = mine ? position.loss : position.win, d = position.draw || 0;
  const part = (cls, share, align) => html("div", { class: cls, style: `flex-grow:${Math.max(share, 0.0001)};text-align:${align}` }, share > 0.12 ? html("span", { text: percent(share, 1) }) : null);
  bar.replaceChildren(...(board.draws ? [part(tone(first), a, "left"), part("d", d, "center"), part(tone(second), b, "right")] : [part(tone(first), a + d / 2, "left"), part(tone(second), b + d / 2, "right")]));
}

function keepInView(row) {
  const panel = row.closest(".panel"), top = row.offsetTop - 34, bottom = row.offsetTop + row.offsetHeight;
  if (top < panel.scrollTop) panel.scrollTop = top;
  else if (bottom > panel.scrollTop + panel.clientHeight) panel.scrollTop = bottom - panel.clientHeight;
}

export function clockWords(seconds) {
  const whole = Math.max(0, Math.ceil(seconds)), two = (n) => `${n}`.padStart(2, "0");
  return whole >= 3600 ? `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}` : `${Math.floor(whole / 60)}:${two(whole % 60)}`;
}
