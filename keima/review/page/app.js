// The page: one state (how many moves are played, what is shown), and every part drawn from it.
const review = unpack(JSON.parse(byId("review").textContent));
const searched = Boolean(review.options.visits);
const judge = searched ? "search" : "network";
const isChoice = (move) => (move.place === undefined ? move.rank : move.place) === 1;
const state = { ply: 0, sort: "winrate_loss", shown: {}, pinned: null, hovered: null }; // candidates whose variation is shown
const board = new BOARDS[review.game.game](review, byId("board"));
const [first, second] = board.sides;
const graphs = [];

function unpack(data) {
  for (const position of data.positions) {
    if (typeof position.ownership !== "string") continue;
    const bytes = Int8Array.from(atob(position.ownership), (c) => (c.charCodeAt(0) << 24) >> 24);
    position.ownership = Array.from({ length: data.game.ysize }, (_, y) =>
      Array.from(bytes.subarray(y * data.game.xsize, (y + 1) * data.game.xsize), (b) => b / 100));
  }
  return data;
}

// ---- numbers for one side -------------------------------------------------------------------------------------
const mine = (position, side) => position.to_play === side;
const winOf = (position, side) => (mine(position, side) ? position.win : position.loss);
const winrateOf = (position, side) => winOf(position, side) + (position.draw || 0) / 2;
const chancesOf = (position) => (board.draws ? winOf(position, first) : winrateOf(position, first));
const leadOf = (position, side) => (position.lead === undefined ? null : mine(position, side) ? position.lead : -position.lead);
const sideName = (side) => capital(side);
const tone = (side) => (side === board.dark ? "b" : "w");
const playerName = (side) => review.game.players[side] || sideName(side);
const moveName = (move) => move.san || move.move;
const moveLabel = (move) => (board.number ? board.number(move) : `${move.number}`);
const GRADES = { good: "good", inaccuracy: "slip", mistake: "error", blunder: "blunder" };
const gradeClass = (move) => GRADES[move.grade] || "";

function scoreWords(lead) {
  if (lead === null) return "";
  const side = lead >= 0 ? first : second;
  return `${sideName(side)} +${Math.abs(lead).toFixed(1)}`;
}

function positionWords(ply) {
  const position = review.positions[ply];
  const parts = [ply ? `${moveLabel(review.moves[ply - 1])} ${moveName(review.moves[ply - 1])}` : "Start"];
  parts.push(`${sideName(first)} ${percent(chancesOf(position))}`);
  if (board.draws && position.draw !== undefined) parts.push(`draw ${percent(position.draw)}`, `${sideName(second)} ${percent(winOf(position, second))}`);
  if (position.lead !== undefined) parts.push(scoreWords(leadOf(position, first)));
  return parts.join(" · ");
}

// ---- head --------------------------------------------------------------------------------------------------------
function drawHead() {
  const { game, network } = review;
  const player = (side) => html("span", { class: "player" }, html("i", { class: `disc ${tone(side)}`, "aria-hidden": "true" }), playerName(side),
    game.ranks && game.ranks[side] ? html("span", { class: "rank", text: ` ${game.ranks[side]}` }) : null);
  byId("title").replaceChildren(player(first), html("span", { class: "vs", text: "against" }), player(second));
  const facts = [game.event, game.date, game.opening, ...board.facts(), `${review.moves.length} ${board.unit}`, `judged by ${network.name}${searched ? ` with ${review.options.visits} visits` : ""}`];
  byId("facts").replaceChildren(...facts.filter(Boolean).map((text) => html("span", { text })));
  if (game.result) { byId("result").hidden = false; byId("result").textContent = game.result; }
}

// ---- what changes with the move ------------------------------------------------------------------------------------
function drawEvalbar() {
  const position = review.positions[state.ply];
  const bar = byId("evalbar");
  if (position.win === undefined) { bar.hidden = true; return; }
  const a = winOf(position, first), d = position.draw || 0, b = winOf(position, second);
  const part = (cls, share, side) => html("div", { class: cls, style: `flex-grow:${share}` },
    share > 0.12 ? html("span", { text: percent(share, 1) }) : null);
  const drawn = board.draws ? [part(tone(first), a), part("d", d), part(tone(second), b)] : [part(tone(first), a + d / 2), part(tone(second), b + d / 2)];
  drawn[0].style.textAlign = "left";
  drawn[drawn.length - 1].style.textAlign = "right";
  bar.replaceChildren(...drawn);
  bar.setAttribute("aria-label", `Chances: ${positionWords(state.ply)}`);
}

function drawNow() {
  const position = review.positions[state.ply];
  const move = state.ply ? review.moves[state.ply - 1] : null;
  const box = byId("now");
  const parts = [];
  const line = html("div", { class: "line" });
  if (move) {
    line.append(html("span", { class: "number", text: board.number ? moveLabel(move) : `Move ${move.number}` }),
      html("span", { class: "played" }, html("i", { class: `disc ${tone(move.player)}`, "aria-hidden": "true" }), board.number ? moveName(move) : `${sideName(move.player)} ${moveName(move)}`));
    if (move.grade) line.append(html("span", { class: `tag ${gradeClass(move)}`, text: move.grade === "good" ? (isChoice(move) ? `${judge}'s first choice` : "good") : move.grade }));
  } else line.append(html("span", { class: "played", text: "Before the first move" }));
  parts.push(line);
  if (move && move.prior !== undefined) {
    const why = html("p");
    if (move.place !== undefined) {
      const share = `${move.visits} of ${review.positions[state.ply - 1].visits} visits`;
      if (isChoice(move)) why.append("The search's choice, with ", html("b", { text: share }), `; policy ${percent(move.prior)}.`);
      else why.append("The search preferred ", html("b", { text: move.best_san || move.best }), ` (${move.best_visits} visits); this move got `, html("b", { text: share }), `, policy ${percent(move.prior)}.`);
    } else if (move.rank === 1) why.append("The network gave this move ", html("b", { text: percent(move.prior) }), ", its first choice.");
    else why.append("The network preferred ", html("b", { text: move.best_san || move.best }), ` (${percent(move.best_prior)}); this move ranks `, html("b", { text: `${move.rank}` }), ` with ${percent(move.prior)}.`);
    parts.push(why);
  }
  if (move && move.winrate_loss !== undefined) {
    const cost = html("p");
    if (isChoice(move)) cost.append(`${sideName(move.player)}'s chances after it: `, html("b", { text: percent(move.winrate_after) }));
    else cost.append("Against its choice: ", html("b", { text: percent(move.winrate_best) }), " → ", html("b", { text: percent(move.winrate_after) }), ` for ${sideName(move.player)}`);
    if (!isChoice(move) && move.points_loss !== undefined) cost.append(", ", html("b", { text: signed(-move.points_loss) }), " points");
    parts.push(cost);
  }
  if (!move) parts.push(html("p", { text: "Use the arrow keys, or click in the graph or in a list." }));
  if (position.lead !== undefined || position.moves_left !== undefined) {
    const now = [];
    if (position.lead !== undefined) now.push(`${scoreWords(leadOf(position, first))} points`);
    if (position.moves_left !== undefined) now.push(`about ${Math.round(position.moves_left)} ${board.unit} to go`);
    parts.push(html("p", { text: `Now: ${now.join(", ")}.` }));
  }
  const comment = (review.game.comments || {})[String(state.ply)];
  if (comment) parts.push(html("p", { class: "comment", text: comment }));
  if (position.outcome) parts.push(html("p", { text: `${position.outcome[0].toUpperCase()}${position.outcome.slice(1)}.` }));
  box.replaceChildren(...parts);
}

// The candidate whose variation is shown: the one under the pointer, else the one that was clicked.
function shownCandidate() {
  const at = state.hovered === null ? state.pinned : state.hovered;
  return at === null ? null : (review.positions[state.ply].candidates || [])[at] || null;
}

const variationWords = (candidate) => (board.variation ? board.variation(state.ply, candidate) : candidate.pv.join(" "));

function drawVariation() {
  const candidate = shownCandidate(), candidates = review.positions[state.ply].candidates || [];
  board.draw(state.ply, state.shown, candidate);
  byId("choice").querySelectorAll("[data-candidate]").forEach((row) => {
    const on = candidates[Number(row.dataset.candidate)] === candidate;
    row.classList.toggle("on", on);
    row.setAttribute("aria-pressed", String(Number(row.dataset.candidate) === state.pinned));
  });
  const words = byId("choice").querySelector(".variation");
  if (words) words.textContent = candidate || candidates[0] ? variationWords(candidate || candidates[0]) : "";
}

function hover(at) {
  if (at === state.hovered) return;
  state.hovered = at;
  drawVariation();
}

function pin(at) {
  state.pinned = state.pinned === at ? null : at;
  if (state.pinned === null) state.hovered = null;
  drawVariation();
}

function candidateRow(candidate, at, next) {
  const side = review.positions[state.ply].to_play, most = review.positions[state.ply].candidates[0].visits || 1;
  const isPlayed = next && next.move === candidate.move;
  const result = candidate.mate === undefined ? null : candidate.mate > 0 ? `wins in ${Math.ceil(candidate.mate / 2)}` : candidate.mate < 0 ? `loses in ${Math.ceil(-candidate.mate / 2)}` : "draw";
  return html("li", null, html("button", { type: "button", class: `candidate${isPlayed ? " played" : ""}`, "data-candidate": at, "aria-pressed": "false",
    title: `${isPlayed ? "played in the game; " : ""}policy ${percent(candidate.prior)}; click to keep the variation on the board`,
    onclick: () => pin(at), onpointerenter: () => hover(at), onpointerleave: () => hover(null), onfocus: () => hover(at), onblur: () => hover(null) },
  html("span", { class: "name", text: candidate.pv_san ? candidate.pv_san[0] : candidate.move }),
  html("span", { class: "bar" }, html("i", { style: `width:${Math.min(100, (100 * candidate.visits) / most)}%` })),
  html("span", { class: "pct", text: `${candidate.visits}` }), html("span", { class: "pct", text: percent(candidate.prior) }),
  html("span", { class: "pct strong", text: result || percent(candidate.win + candidate.draw / 2) }),
  candidate.lead === undefined ? null : html("span", { class: "pct", text: signed(candidate.lead) })));
}

function drawCandidates(position, next) {
  const kept = position.candidates.slice(0, 5);
  const played = next ? position.candidates.findIndex((candidate) => candidate.move === next.move) : -1;
  const rows = kept.map((candidate, at) => candidateRow(candidate, at, next));
  if (played >= 5) rows[4] = candidateRow(position.candidates[played], played, next);
  const title = html("h2", null, `The search's moves for ${sideName(position.to_play)}`, html("span", { text: `${position.visits} visits${next ? ` · played next: ${moveName(next)}` : ""}` }));
  const head = html("div", { class: "candidate heads", "aria-hidden": "true" }, html("span", { text: "Move" }), html("span"), html("span", { class: "pct", text: "Visits" }),
    html("span", { class: "pct", text: "Policy" }), html("span", { class: "pct", text: "Chances" }), kept[0].lead === undefined ? null : html("span", { class: "pct", text: "Points" }));
  byId("choice").replaceChildren(title, head, html("ol", { class: kept[0].lead === undefined ? "searched" : "searched points" }, ...rows), html("p", { class: "variation", title: "the variation expected" }));
}

function drawChoice() {
  const position = review.positions[state.ply];
  if (position.candidates && position.candidates.length) { drawCandidates(position, review.moves[state.ply]); return; }
  const next = review.moves[state.ply];
  const list = html("ol");
  const names = position.san || {};
  const entries = Object.entries(position.policy).slice(0, 5);
  const played = next && !entries.some(([move]) => move === next.move) && next.prior !== undefined ? [[next.move, next.prior]] : [];
  for (const [move, p] of [...entries.slice(0, played.length ? 4 : 5), ...played]) {
    const isPlayed = next && next.move === move;
    list.append(html("li", { class: isPlayed ? "played" : "", title: isPlayed ? "played in the game" : null },
      html("span", { class: "name", text: names[move] || (isPlayed && next.san) || move }), html("span", { class: "bar" }, html("i", { style: `width:${100 * p}%` })), html("span", { class: "pct", text: percent(p) })));
  }
  const title = html("h2", null, `The network's moves for ${sideName(position.to_play)}`, next ? html("span", { text: `played next: ${moveName(next)}` }) : null);
  byId("choice").replaceChildren(title, entries.length ? list : html("p", { class: "about", text: "The game is over here." }));
}

function show(ply, fromHash) {
  state.ply = Math.max(0, Math.min(review.positions.length - 1, ply));
  state.pinned = state.hovered = null;
  drawEvalbar();
  drawNow();
  drawChoice();
  drawVariation();
  for (const graph of graphs) graph.show(state.ply, positionWords(state.ply));
  byId("where").replaceChildren(`${state.ply}`, html("small", { text: ` / ${review.positions.length - 1}` }));
  const end = review.positions.length - 1;
  for (const [id, off] of [["first", state.ply === 0], ["prev", state.ply === 0], ["next", state.ply === end], ["last", state.ply === end]]) byId(id).disabled = off;
  byId("prevbad").disabled = !bad.some((n) => n < state.ply);
  byId("nextbad").disabled = !bad.some((n) => n > state.ply);
  for (const row of document.querySelectorAll("tr[data-move]")) {
    const current = Number(row.dataset.move) === state.ply;
    if (current) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current");
    if (current && row.closest(".panel:not([hidden])")) keepInView(row);
  }
  if (!fromHash) history.replaceState(null, "", `#move=${state.ply}`);
}

function keepInView(row) {
  const panel = row.closest(".panel"), top = row.offsetTop - 34, bottom = row.offsetTop + row.offsetHeight;
  if (top < panel.scrollTop) panel.scrollTop = top;
  else if (bottom > panel.scrollTop + panel.clientHeight) panel.scrollTop = bottom - panel.clientHeight;
}

// ---- lists -----------------------------------------------------------------------------------------------------------
const bad = review.moves.filter((m) => m.grade && m.grade !== "good").map((m) => m.number);
const hasPoints = review.moves.some((m) => m.points_loss !== undefined);

function moveRow(move) {
  const loss = move.winrate_loss === undefined ? "" : signed(-100 * move.winrate_loss);
  return html("tr", { "data-move": move.number, onclick: () => show(move.number) },
    html("td", null, html("a", { href: `#move=${move.number}`, onclick: (event) => { event.preventDefault(); } },
      html("span", { class: "n", text: moveLabel(move) }), html("i", { class: `disc ${tone(move.player)}`, title: sideName(move.player) }), moveName(move))),
    html("td", null, move.grade && move.grade !== "good" ? html("span", { class: `tag ${gradeClass(move)}`, text: move.grade }) : ""),
    html("td", { class: `loss ${move.winrate_loss > 0.02 ? gradeClass(move) : ""}`, text: loss }),
    hasPoints ? html("td", { text: move.points_loss === undefined ? "" : signed(-move.points_loss) }) : null,
    html("td", { class: "wide", text: move.prior === undefined ? "" : percent(move.prior) }),
    html("td", { text: isChoice(move) ? "✓" : move.best ? `${move.best_san || move.best}` : "" }));
}

function table(moves, sortable) {
  const column = (key, text, hint, cls) => html("th", { scope: "col", class: cls || null, title: hint, "aria-sort": sortable && state.sort === key ? (key === "number" ? "ascending" : "descending") : null },
    sortable && key ? html("button", { type: "button", onclick: () => { state.sort = key; drawMistakes(); show(state.ply, true); } }, text) : text);
  return html("table", null,
    html("thead", null, html("tr", null, column("number", "Move", "in the order of the game"), column(null, "", ""),
      column("winrate_loss", "Chances", `the mover's chances against the ${judge}'s choice, in percentage points`),
      hasPoints ? column("points_loss", "Points", `the score against the ${judge}'s choice`) : null,
      column(null, "Policy", "the probability the network gave the move", "wide"), column(null, "Better", `the ${judge}'s first choice`))),
    html("tbody", null, ...moves.map(moveRow)));
}

function drawMistakes() {
  const chosen = review.mistakes.map((number) => review.moves[number - 1]);
  if (state.sort === "number") chosen.sort((a, b) => a.number - b.number);
  else if (state.sort !== "winrate_loss") chosen.sort((a, b) => b[state.sort] - a[state.sort]);
  byId("badcount").textContent = chosen.length;
  byId("panel-mistakes").replaceChildren(chosen.length ? table(chosen, true) : html("p", { class: "none", text: `The ${judge} finds no mistake in this game.` }));
}

function aboutJudgement(network, options) {
  const by = `${network.name} (${network.format})`, symmetry = options.symmetry === "average" ? "averaged over the eight symmetries" : `symmetry ${options.symmetry}`;
  const graphs = "The graphs are smoothed over neighbouring moves; the thin line is the judgement itself.";
  if (searched) return `Every position was searched with ${options.visits} visits by the network ${by}, preset ${options.preset}, seed ${options.seed}. A move's loss is the value of the search's best move minus the value found after the move played, for the player who moved. Policy is the network's alone, ${symmetry}. ${graphs}`;
  return `Every position was judged once by the network ${by}, ${symmetry}, without search. A move's loss is its judgement after its own first choice minus its judgement after the move played; single numbers are rough, averages say more. ${graphs}`;
}

function drawSummary() {
  const rows = [["Moves", (p) => p.moves], ["Chances lost a move", (p) => percent(p.mean_winrate_loss, 2)]];
  if (hasPoints) rows.push(["Points lost a move", (p) => p.mean_points_loss.toFixed(2)]);
  rows.push([`The ${judge}'s first choice`, (p) => percent(p.first_choice, 0)], ["Among its first three", (p) => percent(p.among_three, 0)],
    ["Mean policy of the moves", (p) => percent(p.mean_prior)], ["Inaccuracies", (p) => p.inaccuracies], ["Mistakes", (p) => p.mistakes], ["Blunders", (p) => p.blunders]);
  const { network, options, game } = review;
  const people = [first, second];
  const about = html("div", { class: "about" },
    html("p", { text: aboutJudgement(network, options) }),
    html("p", null, "Network file sha256 ", html("code", { text: network.sha256 || "none (fresh weights)" })),
    html("p", { text: `Record: ${game.source}${game.index > 1 ? `, game ${game.index}` : ""}. Made by keima ${review.keima}.` }),
    ...(game.notes || []).map((text) => html("p", { text: `Note: ${text}.` })));
  byId("panel-summary").replaceChildren(
    html("table", { class: "summary" }, html("thead", null, html("tr", null, html("th", { scope: "col" }),
      ...people.map((side) => html("th", { scope: "col" }, html("i", { class: `disc ${tone(side)}` }), playerName(side))))),
    html("tbody", null, ...rows.map(([label, value]) => html("tr", null, html("td", { text: label }), ...people.map((side) => html("td", { text: review.players[side].moves ? value(review.players[side]) : "–" })))))), about);
}

function drawGraphs() {
  const box = byId("graphs"), total = review.positions.length;
  const known = review.positions.every((p) => p.win !== undefined);
  const common = { total, go: show, words: positionWords };
  const marks = bad.map((number) => ({ ply: number, grade: gradeClass(review.moves[number - 1]) })).filter((m) => m.grade !== "slip");
  const parts = [], low = window.innerWidth >= 1000 && window.innerHeight < 800;
  if (known) {
    const share = new Graph({ ...common, kind: "share", label: "Chances along the game", height: low ? 88 : 118, marks, over: `area-${tone(second)}`, under: `area-${tone(first)}`,
      values: review.positions.map(chancesOf),
      draws: board.draws && review.positions.some((p) => p.draw !== undefined) ? review.positions.map((p) => p.draw || 0) : null });
    graphs.push(share);
    parts.push(html("h2", null, board.draws ? `${sideName(first)} wins, draws, ${sideName(second)} wins` : `${sideName(first)}'s chances`, html("span", { text: "click or drag to go there" })), share.node);
  }
  const leads = review.positions.map((p) => leadOf(p, first));
  const left = review.positions.map((p) => (p.moves_left === undefined ? null : p.moves_left));
  if (leads.some((v) => v !== null)) {
    const score = new Graph({ ...common, kind: "score", label: "Score along the game", height: low ? 52 : 74, values: leads, least: 5 });
    graphs.push(score);
    parts.push(html("h2", null, "Score", html("span", { text: `±${score.limit.toFixed(0)} points, up is ${sideName(first)}` })), score.node);
  } else if (left.some((v) => v !== null)) {
    const score = new Graph({ ...common, kind: "score", from: 0, label: `${capital(board.unit)} left`, height: low ? 48 : 60, values: left, least: 20 });
    graphs.push(score);
    parts.push(html("h2", null, `${capital(board.unit)} left`, html("span", { text: `0 to ${score.limit.toFixed(0)}` })), score.node);
  }
  if (parts.length) box.replaceChildren(...parts); else box.hidden = true;
}

// ---- controls ----------------------------------------------------------------------------------------------------------
function drawToggles() {
  for (const toggle of board.toggles) {
    state.shown[toggle.key] = toggle.on;
    const button = html("button", { class: "word", type: "button", title: toggle.hint, "aria-pressed": String(toggle.on), text: toggle.label });
    toggle.flip = () => {
      state.shown[toggle.key] = !state.shown[toggle.key];
      button.setAttribute("aria-pressed", String(state.shown[toggle.key]));
      board.draw(state.ply, state.shown, shownCandidate());
    };
    button.addEventListener("click", toggle.flip);
    byId("toggles").append(button);
  }
}

function selectTab(name) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  const row = document.querySelector(".panel:not([hidden]) tr[aria-current]");
  if (row) keepInView(row);
}

function listen() {
  const jumpBad = (step) => {
    const goal = step > 0 ? bad.find((n) => n > state.ply) : [...bad].reverse().find((n) => n < state.ply);
    if (goal) show(goal);
  };
  const actions = {
    first: () => show(0), prev: () => show(state.ply - 1), next: () => show(state.ply + 1), last: () => show(review.positions.length - 1),
    prevbad: () => jumpBad(-1), nextbad: () => jumpBad(1),
  };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  const keys = { ArrowLeft: actions.prev, ArrowRight: actions.next, ArrowUp: actions.prevbad, ArrowDown: actions.nextbad, Home: actions.first, End: actions.last,
    PageUp: () => show(state.ply - 10), PageDown: () => show(state.ply + 10) };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inTabs = event.target.getAttribute && event.target.getAttribute("role") === "tab";
    if (inTabs && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      const tabs = [...document.querySelectorAll("[role=tab]")], at = tabs.indexOf(event.target);
      const goal = tabs[(at + (event.key === "ArrowRight" ? 1 : tabs.length - 1)) % tabs.length];
      selectTab(goal.id.slice(4));
      goal.focus();
      event.preventDefault();
      return;
    }
    const toggle = board.toggles.find((t) => t.shortcut === event.key.toLowerCase());
    const action = keys[event.key] || (toggle && toggle.flip);
    if (event.key === "Escape" && state.pinned !== null) pin(state.pinned);
    if (action) { action(); event.preventDefault(); }
  });
  for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => selectTab(tab.id.slice(4)));
  window.addEventListener("hashchange", followHash);
  if (searched && board.moveAt) listenToBoard();
}

// A candidate's variation shows while the pointer is on its point, and stays after a click.
function listenToBoard() {
  const candidateAt = (event) => {
    const move = state.shown.policy ? board.moveAt(event) : null;
    const at = (review.positions[state.ply].candidates || []).findIndex((candidate) => candidate.move === move);
    return at < 0 ? null : at;
  };
  const box = byId("board");
  box.addEventListener("pointermove", (event) => hover(candidateAt(event)));
  box.addEventListener("pointerleave", () => hover(null));
  box.addEventListener("click", (event) => { const at = candidateAt(event); if (at !== null) pin(at); });
}

// "#move=57" opens the page there; "#move=57&tab=summary&show=ownership,numbers" also chooses a list and what is drawn,
// "#move=57&pv=2" keeps the second candidate's variation on the board.
function followHash() {
  show(hashPly(), true);
  const wanted = Number.parseInt(new URLSearchParams(location.hash.slice(1)).get("pv") || "0", 10);
  if (searched && wanted > 0) pin(wanted - 1);
}

function hashPly() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (wanted.get("tab")) selectTab(wanted.get("tab"));
  if (wanted.has("show")) {
    const chosen = wanted.get("show").split(",");
    for (const toggle of board.toggles) if (chosen.includes(toggle.key) !== state.shown[toggle.key]) toggle.flip();
  }
  return Number.parseInt(wanted.get("move") || "0", 10) || 0;
}

document.documentElement.style.setProperty("--ratio", board.ratio);
for (const [name, colour] of Object.entries(board.palette || {})) document.documentElement.style.setProperty(name, colour);
document.body.classList.add(...(board.classes || []));
if (hasPoints) document.body.classList.add("scored");
drawHead();
drawToggles();
drawGraphs();
drawMistakes();
byId("panel-all").replaceChildren(table(review.moves, false));
drawSummary();
listen();
followHash();
