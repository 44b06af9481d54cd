"use strict";
// Small helpers every part of the page uses. Text from the record only ever enters as text, never as markup.
const SVG_NS = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children || []) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG_NS, name), attributes, children);
const html = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const byId = (id) => document.getElementById(id);

// The boards by game; the page holds that of its own game, a class with
//   sides           both sides, the one first whose chances the graphs draw upwards
//   dark            which of them is drawn dark
//   draws           draws are shown as such, not halved
//   unit            what the game is long in: "moves", "half-moves"
//   toggles         [{key, label, hint, shortcut, on}]; "policy" is the network's or the search's moves
//   ratio           the board's width by its height
//   classes, palette  of the page's body; the colours --black and --white of the sides, where they are others
//   draw(ply, shown, variation)  draws the position after so many moves; a candidate's variation in place of them all
//   facts()         what the head tells of board and rules, in words
//   number(move)    "17…", where moves are not simply counted; absent where they are
//   variation(ply, candidate)    its moves in words; absent where their names do
//   moveAt(event)   the move under the pointer, or null; absent where a point is no move
// and a constructor of (review, the element to draw in).
const BOARDS = {};

const percent = (p, digits = 1) => `${(100 * p).toFixed(digits)} %`;
const capital = (word) => word[0].toUpperCase() + word.slice(1);
const signed = (x, digits = 1) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(digits)}`;
