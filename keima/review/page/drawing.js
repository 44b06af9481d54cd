// What every board of the house draws with, and what it is. Text of a record only ever enters as text, never as markup.
const SVG_NS = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "style") node.style.cssText = value; // not as an attribute: a page may forbid those
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children || []) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}
export const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG_NS, name), attributes, children);
export const html = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
export const byId = (id) => document.getElementById(id);

export const percent = (p, digits = 1) => `${(100 * p).toFixed(digits)} %`;
export const capital = (word) => word[0].toUpperCase() + word.slice(1);
export const signed = (x, digits = 1) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(digits)}`;

// Every text by its key, in one file a language (review/page/texts); "{n}" in it is a place to fill.
let table = {};
export function useTexts(texts) { table = texts; }
export function t(key, places = {}) {
  const text = table[key] === undefined ? key : table[key];
  return text.replace(/\{(\w+)\}/g, (whole, name) => (places[name] === undefined ? whole : places[name]));
}
// The server's words: a text, or {text, key, values}, worded by its key where the language has that; values likewise.
export function worded(told) {
  if (told === null || typeof told !== "object") return told;
  const values = Object.entries(told.values || {}).map(([name, value]) => [name, worded(value)]);
  return table[told.key] === undefined ? told.text : t(told.key, Object.fromEntries(values));
}
export const sideName = (side) => capital(t(`side.${side}`));

// A board draws one scene at a time:
//   position   what the game's DRAWING.board tells of it, with to_play, a side in words
//   last       the move before it, {move, player}, or null
//   played     the move the game went on with, {move, player, best}, or null
//   better     the move that was better than the one before the position shown, or null
//   choices    [{move, share, best, label, under, words}]: a network's or a search's moves, the first of them first
//   line       a variation, {moves, step}: its moves in order, and how many of them are played on the board
//   ownership  [rows from the top][columns], −1 to 1 for the side to move
//   numbers    the moves up to here, [{move, player, number}], written on what stands there
//   marks      [{at, kind, text, to, colour}]: "triangle", "square", "circle", "cross", "label", "arrow"
//   legal      the moves one may choose from; selected: the points chosen so far
//   cursor     the point the keyboard stands on; dead: points marked as dead, [points]
//   flip       turned round
// A class for each game offers, beside draw(scene):
//   sides, dark      both sides, the one first whose chances graphs draw upwards; which of them is drawn dark
//   draws            draws are shown as such, not halved
//   unit             what the game is long in: the key of a text
//   toggles          [{key, shortcut, on}]: what can be shown or not; the texts "toggle.KEY" and "toggle.KEY.hint"
//   ratio            the board's width by its height
//   classes, palette of the page's body; the colours --black and --white of the sides, where they are others
//   points           names of points that make a move: 1 or 2
//   marked           can points have marks?
//   facts()          what a head tells of board and rules, in words
//   pointAt(event)   the point under a pointer, or null
//   step(point, dx, dy)     the point beside it, for the keyboard
//   pointWords(scene, point)  what stands there
//   after(position, move)   the position a legal move leads to, as far as it is drawn
//   number(move)     "17…" where moves are not simply counted
export class Board {
  constructor(game, place) {
    this.game = game;
    this.place = place;
    this.draws = true;
    this.unit = "unit.moves";
    this.classes = [];
    this.palette = {};
    this.points = 1;
    this.marked = true;
    this.lineSteps = Infinity; // how many moves of a variation stand on the board when it is first shown
  }

  facts() { return []; }

  // A mark that is no label: `at` gives the middle of a point, `size` is how far it reaches; an arrow crosses points of
  // every tone and has an ink of its own.
  markShape(layer, mark, at, ink, size, arrow = "#c2187a") {
    const [x, y] = at(mark.at), style = { fill: "none", stroke: ink, "stroke-width": 0.08, "data-mark": mark.kind };
    if (mark.kind === "triangle") layer.append(svg("path", { ...style, d: `M${x} ${y - 1.1 * size}l${size} ${1.7 * size}h${-2 * size}z` }));
    else if (mark.kind === "square") layer.append(svg("rect", { ...style, x: x - 0.8 * size, y: y - 0.8 * size, width: 1.6 * size, height: 1.6 * size }));
    else if (mark.kind === "circle") layer.append(svg("circle", { ...style, cx: x, cy: y, r: size }));
    else if (mark.kind === "cross") layer.append(svg("path", { ...style, "stroke-linecap": "round", d: `M${x - 0.85 * size} ${y - 0.85 * size}l${1.7 * size} ${1.7 * size}m0 ${-1.7 * size}l${-1.7 * size} ${1.7 * size}` }));
    else if (mark.kind === "arrow" && mark.to) {
      const [goalX, goalY] = at(mark.to), length = Math.hypot(goalX - x, goalY - y), angle = (Math.atan2(goalY - y, goalX - x) * 180) / Math.PI;
      layer.append(svg("path", { ...style, stroke: arrow, "stroke-width": 0.11, "stroke-linecap": "round", "stroke-linejoin": "round", transform: `translate(${x} ${y}) rotate(${angle})`, d: `M0 0H${length - 0.1}m-.24 -.2l.24 .2l-.24 .2` }));
    }
  }

  number(move) { return `${move.number}`; }

  // The legal moves that begin with these points.
  matching(points, legal) { return legal.filter((move) => move === points[0]); }

  // The moves of a variation in words.
  variationWords(position, moves, written) { return (written || moves).join(" "); }

  // The position after the first `step` moves of a variation, and the last of them.
  along(position, line) {
    let last = null;
    const others = (side) => this.sides[1 - this.sides.indexOf(side)];
    for (const move of line.moves.slice(0, line.step)) {
      last = { move, player: position.to_play };
      position = { ...this.after(position, move), to_play: others(position.to_play) };
    }
    return { position, last };
  }

  // What the board's colours mean, as [class, text].
  legend(scene) {
    const found = [];
    if (scene.choices && scene.choices.length) found.push(["best", t("legend.best")], ["other", t("legend.other")]);
    if (scene.played) found.push(scene.played.best ? ["better", t("legend.agreed")] : ["played", t("legend.played")]);
    if (scene.better) found.push(["better", t("legend.better")]);
    return found;
  }

  rootFor(scene, viewBox) {
    return svg("svg", { viewBox, role: "img", "aria-label": this.describe(scene), xmlns: SVG_NS });
  }
}

export const COLOURS = { best: "#1f6feb", other: "#5b93d6", played: "#d9730d", better: "#1c8f5a", answer: "#5f6470" };
