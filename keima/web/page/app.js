// The page: what the server has told so far, and the panels that show it. Every event tells the newest state.
import { html, sideName, t, useTexts, worded } from "./drawing.js";
import { TEXTS as ENGLISH } from "./text-en.js";
import { TEXTS as JAPANESE } from "./text-ja.js";
import { clockWords } from "./view.js";
import { BoardPane } from "./boardpane.js";
import { Connection, MANY, TAKEN } from "./socket.js";
import { PlayPanel } from "./play.js";
import { AnalysePanel } from "./analyse.js";
import { RecordPanel } from "./record.js";
import { ReviewPanel } from "./review.js";
import { NetworksPanel } from "./networks.js";
import { button, select } from "./forms.js";

const LANGUAGES = { en: ENGLISH, ja: JAPANESE };
const PANELS = { play: PlayPanel, analyse: AnalysePanel, record: RecordPanel, review: ReviewPanel, networks: NetworksPanel };
const KEYS = { ArrowLeft: "back", ArrowRight: "forward", ArrowUp: "previous", ArrowDown: "next", Home: "start", End: "end", PageUp: "back_ten", PageDown: "forward_ten" };

class App {
  constructor() {
    this.language = localStorage.getItem("keima-language") || (navigator.language.startsWith("ja") ? "ja" : "en");
    useTexts({ ...ENGLISH, ...LANGUAGES[this.language] });
    document.documentElement.lang = this.language;
    this.theme(localStorage.getItem("keima-theme") || "system");
    this.sounds = localStorage.getItem("keima-sounds") === "on";
    this.nodes = new Map();
    this.networks = [];
    this.games = [];
    this.facts = null;
    this.position = null;
    this.game = null;
    this.analysis = [null, null];
    this.boards = {};
    this.tab = "play";
    this.shell();
    this.connection = new Connection();
    this.connection.addEventListener("line", (event) => this.lineIs(event.detail.open, event.detail.code));
    this.connection.addEventListener("news", (event) => { this.queue = (this.queue || Promise.resolve()).then(() => this.news(event.detail)).catch((error) => this.complain(error)); });
    this.listen();
    setInterval(() => this.tick(), 200);
  }

  // ---- the page --------------------------------------------------------------------------------------------------
  shell() {
    this.pane = new BoardPane(this);
    this.panels = Object.fromEntries(Object.entries(PANELS).map(([name, Panel]) => [name, new Panel(this)]));
    const tab = (name) => html("button", { type: "button", role: "tab", id: `go-${name}`, "aria-controls": `page-${name}`, "aria-selected": String(name === this.tab), tabindex: name === this.tab ? 0 : -1, onclick: () => this.open(name), text: t(`page.${name}`) });
    this.tabs = html("div", { class: "pages", role: "tablist", "aria-label": t("page.tabs") }, ...Object.keys(PANELS).map(tab));
    const theme = select(["system", "light", "dark"].map((name) => [name, t(`theme.${name}`)]), localStorage.getItem("keima-theme") || "system", { "aria-label": t("theme.choose"), onchange: (event) => this.theme(event.target.value) });
    const language = select(Object.entries(LANGUAGES).map(([name, texts]) => [name, texts.language]), this.language, { "aria-label": t("language.choose"), onchange: (event) => { localStorage.setItem("keima-language", event.target.value); location.reload(); } });
    const sound = html("button", { type: "button", class: "button", "aria-pressed": String(this.sounds), "aria-label": t("sounds"), title: t("sounds"), onclick: () => { this.sounds = !this.sounds; localStorage.setItem("keima-sounds", this.sounds ? "on" : "off"); sound.setAttribute("aria-pressed", String(this.sounds)); }, text: "♪" });
    this.notice = html("div", { class: "notice toast", role: "alert", hidden: true });
    this.offline = html("div", { class: "notice offline", role: "status", hidden: true });
    this.live = html("div", { class: "sr", "aria-live": "polite", id: "live" });
    this.right = html("div", { class: "right side-panels" }, ...Object.entries(this.panels).map(([name, panel]) => {
      const page = html("div", { role: "tabpanel", id: `page-${name}`, "aria-labelledby": `go-${name}`, class: "page", hidden: name !== this.tab });
      page.append(panel.node);
      return page;
    }));
    this.main = html("main", { class: "columns", id: "main" }, this.pane.node, this.right);
    document.body.prepend(html("a", { class: "skip", href: "#board", text: t("page.skip") }),
      html("header", { class: "topbar" }, html("h1", { class: "brand", text: "keima" }), this.tabs, html("div", { class: "settings" }, sound, theme, language)), this.offline, this.notice, this.main, this.live);
  }

  open(name) {
    this.tab = name;
    for (const tab of this.tabs.children) {
      const chosen = tab.id === `go-${name}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !chosen;
    }
    this.pane.handler = null;
    this.pane.overlay = {};
    history.replaceState(null, "", `#${name}`);
    for (const panel of Object.values(this.panels)) if (panel.leave && panel !== this.panels[name]) panel.leave();
    this.wide(false);
    if (this.panels[name].enter) this.panels[name].enter();
    this.draw();
  }

  wide(on) { this.main.classList.toggle("wide", on); }

  theme(name) {
    localStorage.setItem("keima-theme", name);
    if (name === "system") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
  }

  say(words) { this.live.textContent = words; }

  complain(error, during) {
    if (error.message === "closed") return;
    if (!error.told && !(error instanceof Error && error.field !== undefined)) console.error(error);
    this.tell(error.message || String(error), during);
  }

  // A message, for so many milliseconds; 0: until it is closed.
  tell(text, during = 12000) {
    this.notice.replaceChildren(html("span", { text }), html("button", { type: "button", class: "tiny", "aria-label": t("do.close"), onclick: () => { this.notice.hidden = true; }, text: "×" }));
    this.notice.hidden = false;
    clearTimeout(this.noticeTimer);
    if (during) this.noticeTimer = setTimeout(() => { this.notice.hidden = true; }, during);
  }

  // What was taken from a bent record, and how.
  tellNotes(answer) { if (answer && answer.notes && answer.notes.length) this.tell(answer.notes.map(worded).join(" · ")); }

  lineIs(open, code) {
    this.offline.replaceChildren(html("span", { text: t(code === TAKEN ? "line.taken" : code === MANY ? "line.many" : "line.lost") }), ...(code === TAKEN ? [button(t("line.here"), () => this.connection.open())] : []));
    this.offline.hidden = open;
    if (open && this.facts) this.ask("state");
    if (open && this.panels.analyse.wanted) this.panels.analyse.start();
  }

  // ---- what the server says --------------------------------------------------------------------------------------
  async news(message) {
    if (message.event === "welcome") await this.welcome(message);
    else if (message.event === "tree") await this.tree(message);
    else if (message.event === "position") this.arrived(message);
    else if (message.event === "network") { this.networks = this.networks.map((one) => (one.name === message.network.name ? message.network : one)); if (!this.networks.includes(message.network)) this.networks.push(message.network); this.each("networksChanged"); this.waiters = (this.waiters || []).filter((check) => !check()); }
    else if (message.event === "game") { this.game = { ...message, at: performance.now() }; this.draw(); this.each("gameChanged"); }
    else if (message.event === "analysis") { this.analysis[message.number] = message; this.each("analysed", message); }
    else if (message.event === "review") this.each("reviewed", message);
    else if (message.event === "failed") { this.tell(worded(message.worded || message.message), 0); this.each("failed", message); }
  }

  each(name, ...details) { for (const panel of Object.values(this.panels)) if (panel[name]) panel[name](...details); }

  async welcome(message) {
    Object.assign(this, { games: message.games, networks: message.networks, hasLibrary: message.library, local: message.local });
    await Promise.all(this.games.map(async (game) => { this.boards[game.name] = (await import(game.board)).BOARD; }));
    this.each("welcomed");
    this.each("networksChanged");
  }

  async tree(message) {
    if (message.whole) this.nodes.clear();
    for (const node of message.removed || []) this.nodes.delete(node);
    for (const node of message.nodes) this.nodes.set(node.node, node);
    Object.assign(this, { facts: message.game, current: message.current, canUndo: message.can_undo, canRedo: message.can_redo });
    if (this.pane.use(this.boards[this.facts.game], this.facts)) { this.position = null; return; } // that of the new board follows
    if (this.position) this.draw();
    this.each("treeChanged");
  }

  arrived(message) {
    const moved = this.position && this.position.node !== message.node;
    this.position = message;
    if (moved) { this.pane.selected = []; this.pane.overlay.line = null; }
    if (moved && message.move) { this.pane.announce(message); this.click(); }
    if (!moved) this.each("treeChanged");
    this.each("positionChanged", moved);
    this.draw();
  }

  draw() {
    if (!this.position || !this.pane.board) return;
    this.pane.draw();
    this.pane.drawAround();
  }

  // ---- what the page asks ----------------------------------------------------------------------------------------
  async ask(what, fields = {}) {
    try {
      return await this.connection.ask(what, fields);
    } catch (error) {
      this.complain(error);
      return null;
    }
  }

  async play(move) {
    if (this.panels[this.tab].tried && this.panels[this.tab].tried(move)) return;
    await this.ask("play", { move });
  }

  go(to) { return this.ask("go", typeof to === "number" ? { node: to } : { by: to }); }

  hoverMove(move) { if (this.panels[this.tab].hoverMove) this.panels[this.tab].hoverMove(move); }

  // ---- the game --------------------------------------------------------------------------------------------------
  info() { return this.games.find((game) => game.name === this.facts.game); }

  // Resolves when networks that are being loaded are there, or have failed.
  ready(names) {
    const there = () => names.every((name) => !this.networks.some((one) => one.name === name && one.state === "loading"));
    if (there()) return Promise.resolve();
    this.tell(t("networks.wait", { names: names.join(", ") }), 4000);
    return new Promise((resolve) => { this.waiters = [...(this.waiters || []), () => there() && (resolve(), true)]; });
  }

  networksOf(game) { return this.networks.filter((one) => one.game === game); }

  // The nodes from the root through the current one to the end of its line.
  line() {
    const line = [];
    for (let node = this.nodes.get(this.current); node; node = this.nodes.get(node.parent)) { line.unshift(node); if (node.node === 0) break; }
    for (let node = line.at(-1); node && node.children.length;) { node = this.nodes.get(node.children[0]); if (node) line.push(node); }
    return line;
  }

  playerName(side) {
    const engine = this.game && this.game.engine && this.game.engine[side];
    return engine ? `${engine.network}${engine.profile ? ` (${engine.profile})` : ""}` : (this.facts.players && this.facts.players[side]) || sideName(side);
  }

  clockText(side) {
    const clock = this.game.clocks[side], spent = this.game.running === side ? (performance.now() - this.game.at) / 1000 : 0;
    const main = (clock.main || 0) - spent, period = clock.period ? t("play.period", { time: clockWords(main > 0 ? clock.period : Math.max(0, clock.period + main)), n: clock.periods }) : "";
    return main > 0 || !period ? clockWords(main) : period;
  }

  tick() {
    if (!this.game || !this.game.clocks || !this.game.running) return;
    for (const clock of document.querySelectorAll("[data-clock]")) clock.textContent = this.clockText(clock.dataset.clock);
  }

  click() {
    if (!this.sounds) return;
    this.audio = this.audio || new AudioContext();
    const tone = this.audio.createOscillator(), gain = this.audio.createGain(), now = this.audio.currentTime;
    tone.frequency.value = 420;
    gain.gain.setValueAtTime(0.18, now);
    gain.gain.exponentialRampToValueAtTime(0.001, now + 0.07);
    tone.connect(gain).connect(this.audio.destination);
    tone.start(now);
    tone.stop(now + 0.08);
  }

  // ---- keys, dropped files, pasted text ----------------------------------------------------------------------------
  listen() {
    document.addEventListener("keydown", (event) => {
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName || "");
      if ((event.ctrlKey || event.metaKey) && !typing && event.key.toLowerCase() === "z") { this.ask(event.shiftKey ? "redo" : "undo"); event.preventDefault(); return; }
      if (event.ctrlKey || event.metaKey || event.altKey || typing || !this.position || document.querySelector("dialog[open]")) return;
      const tab = event.target.closest("[role=tab]"), steps = { ArrowLeft: -1, ArrowRight: 1 };
      if (tab && steps[event.key] && !tab.closest(".review")) {
        const all = [...tab.parentElement.children], goal = all[(all.indexOf(tab) + steps[event.key] + all.length) % all.length];
        goal.click();
        goal.focus();
      } else if (this.panels[this.tab].key && this.panels[this.tab].key(event)) { /* the panel's */ } else if (KEYS[event.key]) this.go(KEYS[event.key]);
      else {
        const toggle = this.pane.board.toggles.find((one) => one.shortcut === event.key.toLowerCase());
        if (!toggle) return;
        this.pane.flip(toggle.key);
      }
      event.preventDefault();
    });
    document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
    document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dropping");
      const [file] = event.dataTransfer.files, text = event.dataTransfer.getData("text");
      if (file) this.loadFile(file); else if (text) this.load({ text });
    });
    document.addEventListener("paste", (event) => {
      if (/^(INPUT|TEXTAREA)$/.test(event.target.tagName || "")) return;
      const [file] = event.clipboardData.files, text = event.clipboardData.getData("text");
      if (file) this.loadFile(file); else if (text.trim()) this.load({ text });
    });
    window.addEventListener("hashchange", () => { const name = location.hash.slice(1); if (PANELS[name] && name !== this.tab) this.open(name); });
  }

  async loadFile(file) {
    if (file.size > 6e6) { this.tell(t("load.large")); return; }
    const bytes = new Uint8Array(await file.arrayBuffer());
    let data = "";
    for (let i = 0; i < bytes.length; i += 32768) data += String.fromCharCode(...bytes.subarray(i, i + 32768));
    await this.load({ data: btoa(data), name: file.name });
  }

  // A record or a position; where it holds several games, the one that is chosen.
  async load(what) {
    const answer = await this.ask("load", what);
    if (!answer) return null;
    this.tellNotes(answer);
    if (answer.games && answer.games.length > 1 && !what.index) this.panels.record.offer(answer.games, what);
    this.say(t("load.done", { title: (answer.games && answer.games[0] && answer.games[0].title) || "" }));
    return answer;
  }
}

const app = new App();
const wanted = location.hash.slice(1);
if (PANELS[wanted]) app.open(wanted);
