// Variations: the tree of moves, what is written to it, positions set up, records loaded and saved, pictures.
import { html, sideName, svg, t, worded } from "./drawing.js";
import { button, field, group, offer, select } from "./forms.js";
import { boardPng, boardSvg, download } from "./picture.js";

const MARKS = ["triangle", "square", "circle", "cross", "label", "arrow"];
const SPAN = 44; // columns of the tree that are drawn

export class RecordPanel {
  constructor(app) {
    this.app = app;
    const ask = (what, fields) => app.ask(what, typeof fields === "function" ? fields() : fields);
    const act = (name, run) => button(t(`record.${name}`), run, { "data-act": name });
    this.buttons = { undo: act("undo", () => ask("undo")), redo: act("redo", () => ask("redo")), promote: act("promote", () => ask("promote", { node: app.current })), main: act("main", () => ask("promote", { node: app.current, main: true })), delete: act("delete", () => ask("delete", { node: app.current })) };
    this.tree = svg("svg", { class: "tree", "aria-hidden": "true" });
    this.branches = html("ul", { class: "branches row", "aria-label": t("record.branches") });
    this.comment = html("textarea", { rows: 3 });
    this.comment.addEventListener("change", () => ask("comment", { text: this.comment.value, node: this.commented }));
    this.tool = null;
    this.tools = html("div", { class: "row tools", role: "group", "aria-label": t("record.marks") }, ...MARKS.map((kind) => this.toolButton(`mark:${kind}`, t(`mark.${kind}`))));
    this.pieces = html("div", { class: "row tools", role: "group", "aria-label": t("record.setup") });
    this.turn = select([], null, { onchange: () => ask("set_up", { to_play: this.turn.value }) });
    this.file = html("input", { type: "file", accept: ".sgf,.pgn,.fen,.json,.c4,.txt,.gz,text/plain" });
    this.file.addEventListener("change", () => { if (this.file.files[0]) app.loadFile(this.file.files[0]); this.file.value = ""; });
    this.paste = html("textarea", { rows: 3, spellcheck: "false", placeholder: t("record.paste.hint") });
    this.offers = html("div", { class: "row" });
    this.names = {};
    this.people = html("div", { class: "fields" });
    this.node = html("div", { class: "stack" },
      html("section", { class: "card pad", "aria-label": t("record.tree") }, html("div", { class: "row" }, ...Object.values(this.buttons)), html("div", { class: "scroll treebox", tabindex: 0, role: "group", "aria-label": t("record.tree") }, this.tree), this.branches, field(t("record.comment"), this.comment)),
      html("section", { class: "card pad", "aria-label": t("record.edit") }, group(t("record.marks"), this.tools), group(t("record.setup"), this.pieces, field(t("record.turn"), this.turn))),
      html("section", { class: "card pad", "aria-label": t("record.files") }, field(t("record.load"), this.file), field(t("record.paste"), this.paste), html("div", { class: "row" }, button(t("record.read"), () => this.read()), button(t("record.save"), () => this.save())), this.offers,
        html("div", { class: "row" }, ...["svg", "png"].flatMap((kind) => [button(t(`record.copy.${kind}`), () => this.picture(kind, true)), button(t(`record.download.${kind}`), () => this.picture(kind, false))]))),
      html("section", { class: "card pad", "aria-label": t("record.people") }, html("h2", { text: t("record.people") }), this.people));
  }

  toolButton(name, title, content = title) {
    return html("button", { type: "button", class: "button", "data-tool": name, "aria-pressed": "false", "aria-label": title, title, onclick: () => this.take(this.tool === name ? null : name) }, content);
  }

  take(name) {
    this.tool = name;
    this.app.pane.overlay.tail = null;
    for (const one of this.node.querySelectorAll("[data-tool]")) one.setAttribute("aria-pressed", String(one.dataset.tool === name));
    this.app.pane.handler = name ? (point) => this.use(point) : null;
  }

  leave() { this.take(null); }
  enter() { this.take(this.tool); this.drawTree(); }

  use(point) {
    const [what, name] = [this.tool.slice(0, this.tool.indexOf(":")), this.tool.slice(this.tool.indexOf(":") + 1)];
    if (what === "piece") { this.app.ask("set_up", { changes: [[name, this.app.pane.board.setupPoint ? this.app.pane.board.setupPoint(this.app.position, point, name) : point]] }); return; }
    const marks = this.app.position.marks || [];
    if (name === "arrow") { this.arrow(marks, point); return; }
    const same = marks.find((mark) => mark.point === point && mark.kind === name), others = marks.filter((mark) => mark.point !== point || mark.kind === "arrow");
    const used = new Set(marks.filter((mark) => mark.kind === "label").map((mark) => mark.text)), letter = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"].find((one) => !used.has(one)) || "?";
    this.app.ask("marks", { marks: same ? others : [...others, { point, kind: name, ...(name === "label" ? { text: letter } : {}) }] });
  }

  // An arrow takes two points; the same two again take it away.
  arrow(marks, point) {
    const { overlay } = this.app.pane, from = overlay.tail;
    overlay.tail = from ? null : point;
    this.app.draw();
    if (!from || from === point) return;
    const others = marks.filter((mark) => !(mark.kind === "arrow" && mark.point === from && mark.to === point));
    this.app.ask("marks", { marks: others.length < marks.length ? others : [...marks, { point: from, kind: "arrow", to: point }] });
  }

  treeChanged() {
    const { app } = this, info = app.info(), node = app.nodes.get(app.current), parent = node && app.nodes.get(node.parent);
    this.buttons.undo.disabled = !app.canUndo;
    this.buttons.redo.disabled = !app.canRedo;
    this.buttons.delete.disabled = app.current === 0;
    this.buttons.promote.disabled = this.buttons.main.disabled = !parent;
    if (info && this.game !== info.name) {
      this.game = info.name;
      this.tools.parentElement.hidden = !app.pane.board.marked;
      this.pieces.replaceChildren(...[...info.pieces, { piece: "", title: t("record.take") }].map((one) => {
        const sign = html("span", { class: "sign" }), draw = app.pane.board.sign;
        if (draw && one.piece) draw.call(app.pane.board, sign, one.piece); else sign.textContent = one.piece || "⌫";
        return this.toolButton(`piece:${one.piece}`, worded({ key: `setup.${one.piece}`, text: one.title }), sign);
      }));
      offer(this.turn, info.sides.map((side) => [side, sideName(side)]), app.position && app.position.to_play);
    }
    this.people.replaceChildren(...(info ? info.sides : []).map((side) => field(sideName(side), html("input", { type: "text", value: (app.facts.players && app.facts.players[side]) || "", onchange: (event) => app.ask("describe", { players: { [side]: event.target.value } }) }))));
    if (app.tab === "record") this.drawTree();
  }

  positionChanged() {
    const { position } = this.app;
    if (document.activeElement !== this.comment || this.commented !== position.node) { this.comment.value = position.comment || ""; this.commented = position.node; }
    this.turn.value = position.to_play;
    this.treeChanged();
  }

  // The part of the tree around the current node: plies to the right, variations below one another.
  drawTree() {
    const { app } = this, current = app.nodes.get(app.current);
    if (!current) return;
    const dx = 30, dy = 30, from = Math.max(0, this.depth(current) - SPAN / 2), to = from + SPAN, places = new Map(), lanes = [];
    const stack = [[this.top(from), 0]];
    for (let [node, depth] = stack.pop(); node; [node, depth] = stack.pop() || []) {
      const parent = places.get(node.parent);
      const at = depth === 0 ? from : parent.depth + 1, main = parent && app.nodes.get(node.parent).children[0] === node.node;
      let lane = main ? parent.lane : parent ? parent.lane + 1 : 0;
      while (!main && (lanes[lane] === undefined ? -1 : lanes[lane]) >= at) lane += 1;
      lanes[lane] = Math.max(lanes[lane] === undefined ? -1 : lanes[lane], this.reach(node, at, to));
      places.set(node.node, { node, depth: at, lane });
      if (at < to) for (const child of [...node.children].reverse()) if (app.nodes.get(child)) stack.push([app.nodes.get(child), 1]);
    }
    const x = (place) => 18 + dx * (place.depth - from), y = (place) => 18 + dy * place.lane, parts = [];
    for (const place of places.values()) {
      const parent = places.get(place.node.parent);
      if (parent) parts.push(svg("path", { class: "branch", d: `M${x(parent)} ${y(parent)}L${x(parent)} ${Math.max(y(parent), y(place) - dy / 2)}L${x(place)} ${y(place)}` }));
    }
    for (const { node, ...place } of places.values()) {
      const tone = node.player ? (node.player === app.pane.board.dark ? "b" : "w") : "n";
      parts.push(svg("g", { class: `node ${tone}${node.node === app.current ? " current" : ""}`, onclick: () => app.go(node.node) }, svg("circle", { cx: x(place), cy: y(place), r: 12 }), node.grade && node.grade !== "good" ? svg("circle", { class: `flag ${{ inaccuracy: "slip", mistake: "error" }[node.grade] || node.grade}`, cx: x(place) + 9, cy: y(place) - 9, r: 4 }) : null,
        svg("text", { x: x(place), y: y(place) + 4, text: node.move ? node.ply : node.setup ? "◇" : "•" }), svg("title", { text: `${node.ply}. ${node.san || node.move || ""}${node.comment ? " ✎" : ""}` })));
    }
    const width = 36 + dx * SPAN, height = 36 + dy * Math.max(0, lanes.length - 1);
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) this.tree.setAttribute(name, value);
    this.tree.replaceChildren(...parts);
    const box = this.tree.parentElement, place = places.get(app.current);
    if (place && box.clientWidth) { box.scrollLeft = x(place) - box.clientWidth / 2; box.scrollTop = y(place) - box.clientHeight / 2; }
    const siblings = [...current.children.map((one) => ["→", one]), ...(app.nodes.get(current.parent) && current.node !== 0 ? app.nodes.get(current.parent).children.filter((one) => one !== current.node).map((one) => ["⇅", one]) : [])];
    this.branches.replaceChildren(...siblings.slice(0, 12).map(([sign, one]) => [sign, app.nodes.get(one)]).filter(([, node]) => node).map(([sign, node]) => html("li", null, button(`${sign} ${node.san || node.move || t("record.setup")}`, () => app.go(node.node)))));
  }

  depth(node) { let depth = 0; for (let at = node; at.node !== 0 && this.app.nodes.get(at.parent); at = this.app.nodes.get(at.parent)) depth += 1; return depth; }

  // The current line's node at that depth.
  top(depth) { const line = this.app.line(); return line[Math.min(depth, line.length - 1)]; }

  // How far a node's first line goes, so that no other is drawn over it.
  reach(node, at, to) {
    let depth = at;
    for (let next = node; depth <= to && next.children.length && this.app.nodes.get(next.children[0]); next = this.app.nodes.get(next.children[0])) depth += 1;
    return depth;
  }

  async read() {
    if (this.paste.value.trim() && (await this.app.load({ text: this.paste.value }))) this.paste.value = "";
  }

  offer(games, what) {
    this.app.open("record");
    this.offers.replaceChildren(field(t("record.which"), select(games.map((game) => [String(game.index), `${game.index}. ${game.title || game.error || ""}`]), "1", { onchange: (event) => this.app.load({ ...what, index: Number(event.target.value) }) })));
  }

  async save() {
    const answer = await this.app.ask("save", {});
    if (answer) download(answer.name, new Blob([answer.text], { type: `${answer.type};charset=utf-8` }));
  }

  async picture(kind, copy) {
    const root = this.app.pane.box.querySelector("svg"), type = kind === "png" ? "image/png" : copy ? "text/plain" : "image/svg+xml";
    const blob = kind === "png" ? boardPng(root) : new Blob([boardSvg(root)], { type });
    if (!copy) { download(`board.${kind}`, await blob); return; }
    try {
      await navigator.clipboard.write([new ClipboardItem({ [type]: blob })]); // a PNG's promise: browsers ask that the click be recent
      this.app.tell(t("record.copied"));
    } catch (error) {
      this.app.tell(t("record.uncopied", { why: error.message }));
    }
  }
}
