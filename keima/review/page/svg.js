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

const percent = (p, digits = 1) => `${(100 * p).toFixed(digits)} %`;
const signed = (x, digits = 1) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(digits)}`;
