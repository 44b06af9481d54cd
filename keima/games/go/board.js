// The Go board: wood, lines, stones, and what a network thinks of them, as one SVG.
import { Board, COLOURS, sideName, svg, t, worded } from "../../drawing.js";

const GO_COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ";
const GO_PAD = 1.12; // from the outer lines to the board's edge
let boards = 0; // on the page; each has gradients of its own, since those of a hidden one are not drawn

export class GoBoard extends Board {
  constructor(game, place) {
    super(game, place);
    this.width = game.xsize;
    this.height = game.ysize;
    this.sides = ["black", "white"];
    this.dark = "black";
    this.draws = false;
    this.ratio = (this.width - 1 + 2 * GO_PAD) / (this.height - 1 + 2 * GO_PAD);
    this.toggles = [{ key: "policy", shortcut: "p", on: true }, { key: "ownership", shortcut: "o", on: false }, { key: "numbers", shortcut: "n", on: false }];
    boards += 1;
    this.fills = { black: `black-stone-${boards}`, white: `white-stone-${boards}`, wood: `wood-${boards}` };
    this.shell();
  }

  point(vertex) { return [GO_COLUMNS.indexOf(vertex[0]), this.height - Number(vertex.slice(1))]; }

  name(x, y) { return `${GO_COLUMNS[x]}${this.height - y}`; }

  facts() {
    const { game } = this;
    return [`${game.xsize}×${game.ysize}`, worded(game.rules_name), t("fact.komi", { komi: game.komi }),
      game.handicap && game.handicap.length ? t("fact.handicap", { n: game.handicap.length }) : null];
  }

  pointAt(event) {
    const box = this.root.getBoundingClientRect();
    const x = Math.round(((event.clientX - box.left) / box.width) * (this.width - 1 + 2 * GO_PAD) - GO_PAD);
    const y = Math.round(((event.clientY - box.top) / box.height) * (this.height - 1 + 2 * GO_PAD) - GO_PAD);
    return x < 0 || y < 0 || x >= this.width || y >= this.height ? null : this.name(x, y);
  }

  step(point, dx, dy) {
    const [x, y] = point ? this.point(point) : [Math.floor(this.width / 2), Math.floor(this.height / 2)];
    if (!point) return this.name(x, y);
    return this.name(Math.max(0, Math.min(this.width - 1, x + dx)), Math.max(0, Math.min(this.height - 1, y + dy)));
  }

  pointWords(scene, point) {
    const [x, y] = this.point(point), stone = scene.position.stones.split("/")[y][x];
    const choice = (scene.choices || []).find((one) => one.move === point);
    return [point, t(stone === "." ? "point.empty" : stone === "B" ? "point.black" : "point.white"),
      scene.last && scene.last.move === point ? t("point.last") : "", choice ? choice.words : ""].filter(Boolean).join(", ");
  }

  // Stones after a move: groups of the other side without liberties are taken, then the mover's own.
  after(position, move) {
    if (move === "pass") return { ...position, ko: undefined };
    const rows = position.stones.split("/").map((row) => [...row]), [x, y] = this.point(move);
    const mine = position.to_play === "black" ? "B" : "W";
    rows[y][x] = mine;
    const beside = (px, py) => [[px + 1, py], [px - 1, py], [px, py + 1], [px, py - 1]].filter(([a, b]) => rows[b] && rows[b][a]);
    const take = (px, py) => {
      const sign = rows[py][px], seen = new Set([`${px},${py}`]), group = [[px, py]];
      for (let i = 0; i < group.length; i++) {
        for (const [a, b] of beside(...group[i])) {
          if (rows[b][a] === ".") return;
          if (rows[b][a] === sign && !seen.has(`${a},${b}`)) { seen.add(`${a},${b}`); group.push([a, b]); }
        }
      }
      for (const [a, b] of group) rows[b][a] = ".";
    };
    for (const [a, b] of beside(x, y)) if (rows[b][a] !== "." && rows[b][a] !== mine) take(a, b);
    take(x, y);
    return { ...position, stones: rows.map((row) => row.join("")).join("/"), ko: undefined };
  }

  // The stones of the group at a point.
  groupAt(position, point) {
    const rows = position.stones.split("/"), [x, y] = this.point(point), sign = rows[y][x], group = sign === "." ? [] : [[x, y]], seen = new Set([point]);
    for (let i = 0; i < group.length; i++) {
      const [px, py] = group[i];
      for (const [a, b] of [[px + 1, py], [px - 1, py], [px, py + 1], [px, py - 1]]) {
        if (rows[b] && rows[b][a] === sign && !seen.has(this.name(a, b))) { seen.add(this.name(a, b)); group.push([a, b]); }
      }
    }
    return group.map(([a, b]) => this.name(a, b));
  }

  // A stone to choose while a position is edited.
  sign(place, sign) {
    place.replaceChildren(svg("svg", { viewBox: "-.55 -.55 1.1 1.1", "aria-hidden": "true" }, svg("circle", { r: 0.47, fill: sign === "B" ? "#17181b" : "#fff", stroke: "#6d6f78", "stroke-width": 0.06 })));
  }

  shell() {
    const { width, height } = this, pad = GO_PAD;
    const root = svg("svg", { viewBox: `${-pad} ${-pad} ${width - 1 + 2 * pad} ${height - 1 + 2 * pad}`, role: "img", "aria-label": "" });
    const stops = (...pairs) => pairs.map(([offset, colour]) => svg("stop", { offset, "stop-color": colour }));
    root.append(
      svg("defs", null,
        svg("radialGradient", { id: this.fills.black, cx: ".36", cy: ".3", r: ".78" }, ...stops(["0", "#6b6e76"], [".4", "#2b2d33"], ["1", "#0c0d10"])),
        svg("radialGradient", { id: this.fills.white, cx: ".36", cy: ".3", r: ".82" }, ...stops(["0", "#ffffff"], [".6", "#f1efe9"], ["1", "#bdb9af"])),
        svg("linearGradient", { id: this.fills.wood, x1: "0", y1: "0", x2: "1", y2: "1" },
          svg("stop", { offset: "0", style: "stop-color:var(--wood)" }), svg("stop", { offset: "1", style: "stop-color:var(--wood-2)" }))),
      svg("rect", { x: -pad, y: -pad, width: width - 1 + 2 * pad, height: height - 1 + 2 * pad, fill: `url(#${this.fills.wood})` }));
    const lines = [];
    for (let x = 0; x < width; x++) lines.push(`M${x} 0V${height - 1}`);
    for (let y = 0; y < height; y++) lines.push(`M0 ${y}H${width - 1}`);
    root.append(svg("path", { d: lines.join(""), stroke: "var(--wood-line)", "stroke-width": 0.035, "stroke-linecap": "square", fill: "none", opacity: 0.85 }));
    root.append(svg("rect", { x: 0, y: 0, width: width - 1, height: height - 1, fill: "none", stroke: "var(--wood-line)", "stroke-width": 0.07 }));
    for (const [x, y] of this.stars()) root.append(svg("circle", { cx: x, cy: y, r: 0.11, fill: "var(--wood-line)" }));
    this.coordinates = svg("g", { fill: "var(--wood-line)", "text-anchor": "middle", "font-family": "inherit" });
    this.layer = svg("g");
    root.append(this.coordinates, this.layer);
    this.root = root;
    this.place.replaceChildren(root);
  }

  // A font's size: that many points' distances, on small boards as much more as can be read, but no more than `most`.
  font(size, most = 0.62) { return Math.min(most, Math.max(size, 11 / this.spacing)); }

  drawCoordinates() {
    const { width, height } = this, spacing = this.root.getBoundingClientRect().width / (width - 1 + 2 * GO_PAD) || 40;
    if (spacing === this.spacing) return;
    this.spacing = spacing;
    const size = this.font(0.4), squeezed = size > 0.5 ? { textLength: 0.62, lengthAdjust: "spacingAndGlyphs" } : {}, parts = [];
    for (let x = 0; x < width; x++) for (const y of [-0.66, height - 1 + 0.55 + 0.85 * size]) parts.push(svg("text", { x, y, text: GO_COLUMNS[x] }));
    for (let y = 0; y < height; y++) for (const x of [-0.8, width - 1 + 0.8]) parts.push(svg("text", { x, y: y + 0.36 * size, ...(height - y > 9 ? squeezed : {}), text: height - y }));
    this.coordinates.setAttribute("font-size", size);
    this.coordinates.replaceChildren(...parts);
  }

  stars() {
    const at = (n) => (n < 7 ? (n % 2 ? [(n - 1) / 2] : []) : [n > 12 ? 3 : 2, ...(n % 2 && n >= 9 ? [(n - 1) / 2] : []), n > 12 ? n - 4 : n - 3]);
    const points = [];
    for (const x of at(this.width)) for (const y of at(this.height)) {
      const middleX = 2 * x === this.width - 1, middleY = 2 * y === this.height - 1;
      if (this.width >= 15 || middleX === middleY || this.width !== this.height) points.push([x, y]);
    }
    return points;
  }

  draw(scene) {
    const { position, last, line } = scene;
    this.drawCoordinates();
    const along = line ? this.along(position, line) : null, shown = along ? along.position : position;
    const rows = shown.stones.split("/"), layer = svg("g"), dead = new Set(scene.dead || []);
    if (scene.ownership) this.drawOwnership(layer, scene, rows, false);
    rows.forEach((row, y) => [...row].forEach((stone, x) => {
      if (stone !== ".") this.stone(layer, x, y, stone === "B", dead.has(this.name(x, y)) ? 0.4 : 1);
    }));
    if (scene.ownership) this.drawOwnership(layer, scene, rows, true);
    if (scene.numbers && !line) this.drawNumbers(layer, scene.numbers, rows);
    if (shown.ko) {
      const [x, y] = this.point(shown.ko);
      layer.append(svg("rect", { x: x - 0.2, y: y - 0.2, width: 0.4, height: 0.4, fill: "none", stroke: "var(--wood-line)", "stroke-width": 0.06 }, svg("title", { text: t("point.ko") })));
    }
    if (line) this.drawLine(layer, position, line, rows);
    else {
      if (scene.choices) this.drawChoices(layer, scene.choices);
      if (scene.played) this.ring(layer, scene.played.move, scene.played.best ? COLOURS.better : COLOURS.played, t("legend.played"), ".22 .1");
      if (scene.better) this.ring(layer, scene.better, COLOURS.better, t("legend.better"));
    }
    if (last && last.move !== "pass" && !scene.numbers && !line) {
      const [x, y] = this.point(last.move);
      layer.append(svg("circle", { cx: x, cy: y, r: 0.2, fill: "none", stroke: last.player === "black" ? "#fff" : "#17181b", "stroke-width": 0.075 }));
    }
    for (const point of dead) this.cross(layer, ...this.point(point), "#cf3a34");
    for (const mark of scene.marks || []) this.drawMark(layer, mark, rows);
    if (scene.cursor) {
      const [x, y] = this.point(scene.cursor);
      layer.append(svg("rect", { x: x - 0.46, y: y - 0.46, width: 0.92, height: 0.92, rx: 0.12, fill: "none", stroke: "#fff", "stroke-width": 0.14 }),
        svg("rect", { x: x - 0.46, y: y - 0.46, width: 0.92, height: 0.92, rx: 0.12, fill: "none", stroke: "#c2187a", "stroke-width": 0.07 }));
    }
    this.layer.replaceWith(layer);
    this.layer = layer;
    this.root.setAttribute("aria-label", this.describe(scene));
  }

  stone(layer, x, y, black, opacity = 1, edge = null) {
    layer.append(svg("circle", { cx: x + 0.03, cy: y + 0.05, r: 0.475, fill: "#000", opacity: 0.28 * opacity }),
      svg("circle", { cx: x, cy: y, r: 0.475, fill: `url(#${black ? this.fills.black : this.fills.white})`, opacity, stroke: edge, "stroke-width": edge ? 0.05 : null }));
  }

  cross(layer, x, y, colour) {
    layer.append(svg("path", { d: `M${x - 0.22} ${y - 0.22}l.44 .44M${x + 0.22} ${y - 0.22}l-.44 .44`, stroke: colour, "stroke-width": 0.11, "stroke-linecap": "round" }));
  }

  drawMark(layer, mark, rows) {
    const [x, y] = this.point(mark.at), on = rows[y][x], ink = on === "B" ? "#fff" : "#17181b";
    if (mark.kind !== "label") { this.markShape(layer, mark, (name) => this.point(name), ink, 0.25); return; }
    if (on === ".") layer.append(svg("circle", { cx: x, cy: y, r: 0.32, fill: "var(--wood)" }));
    layer.append(svg("text", { x, y: y + 0.36 * this.font(0.46), "text-anchor": "middle", "font-size": this.font(0.46), "font-weight": 650, fill: ink, text: mark.text }));
  }

  drawOwnership(layer, scene, rows, onStones) {
    const turn = scene.position.to_play === "black" ? 1 : -1;
    scene.ownership.forEach((row, y) => row.forEach((value, x) => {
      const black = value * turn, strength = Math.abs(black);
      const occupied = rows[y][x] !== ".", agrees = rows[y][x] === (black > 0 ? "B" : "W");
      if (strength < 0.08 || occupied !== onStones || (occupied && agrees)) return;
      const side = occupied ? 0.36 : 0.2 + 0.36 * strength;
      layer.append(svg("rect", { x: x - side / 2, y: y - side / 2, width: side, height: side, rx: 0.05, fill: black > 0 ? "#141518" : "#fdfcf9", opacity: 0.25 + 0.65 * strength }));
    }));
  }

  drawNumbers(layer, moves, rows) {
    const seen = new Set(), end = moves.length - 1;
    for (let at = end; at >= 0; at--) {
      const { move, player, number } = moves[at];
      if (move === "pass" || seen.has(move)) continue;
      seen.add(move);
      const [x, y] = this.point(move);
      if (rows[y][x] !== (player === "black" ? "B" : "W")) continue;
      const size = number > 99 ? this.font(0.36, 0.47) : this.font(0.42);
      layer.append(svg("text", { x, y: y + 0.36 * size, "text-anchor": "middle", "font-size": size, "font-weight": at === end ? 700 : 500,
        fill: at === end ? "#ff5a4f" : player === "black" ? "#f4f2ee" : "#1c1d21", text: number }));
    }
  }

  // The stronger the circle the more is to be said for the move; in it a label, below that another.
  drawChoices(layer, choices) {
    const small = this.spacing < 24, room = this.spacing > 33; // for both numbers, large enough to be read
    [...choices].reverse().forEach((choice) => {
      if (choice.move === "pass") return;
      const [x, y] = this.point(choice.move), share = Math.sqrt(choice.share);
      layer.append(svg("circle", { cx: x, cy: y, r: choice.best || small ? 0.48 : 0.35 + 0.12 * share, fill: choice.best ? COLOURS.best : "#2f73c4", opacity: choice.best ? 0.96 : 0.7 + 0.25 * share, "data-choice": choice.move },
        svg("title", { text: choice.words })));
      const words = { x, "text-anchor": "middle", fill: "#fff", "pointer-events": "none" };
      const two = room && choice.under && (choice.best || share > 0.5), size = choice.label.length > 2 ? this.font(0.38, 0.42) : this.font(0.4);
      if (choice.label !== "") layer.append(svg("text", { ...words, y: y + (two ? -0.01 : 0.36 * size), "font-size": two ? 0.38 : size, "font-weight": 650, text: choice.label }));
      if (two) layer.append(svg("text", { ...words, y: y + 0.31, "font-size": 0.32, "font-weight": 550, text: choice.under }));
    });
  }

  ring(layer, move, colour, title, dashes = null) {
    if (move === "pass") return;
    const [x, y] = this.point(move);
    layer.append(svg("circle", { cx: x, cy: y, r: 0.47, fill: "none", stroke: "#fff", "stroke-width": 0.15, opacity: 0.85 }),
      svg("circle", { cx: x, cy: y, r: 0.47, fill: "none", stroke: colour, "stroke-width": 0.1, "stroke-dasharray": dashes }, svg("title", { text: title })));
  }

  // The variation's stones with their numbers; what they capture is gone.
  drawLine(layer, position, line, rows) {
    const first = new Map(), start = position.to_play === "black" ? 0 : 1;
    line.moves.slice(0, line.step).forEach((move, index) => { if (move !== "pass" && !first.has(move)) first.set(move, index); });
    for (const [move, index] of first) {
      const [x, y] = this.point(move), black = (index + start) % 2 === 0;
      if (rows[y][x] === ".") continue;
      layer.append(svg("circle", { cx: x, cy: y, r: 0.455, fill: "none", stroke: COLOURS.best, "stroke-width": index === 0 ? 0.1 : 0.05 }),
        svg("text", { x, y: y + 0.36 * this.font(0.44), "text-anchor": "middle", "font-size": this.font(0.44), "font-weight": 650, fill: black ? "#fff" : "#17181b", text: index + 1 }));
    }
  }

  describe(scene) {
    const count = (sign) => scene.position.stones.split(sign).length - 1;
    return t("board.go", { black: count("B"), white: count("W"), last: scene.last ? t("board.last", { side: sideName(scene.last.player), move: scene.last.move }) : "" });
  }
}

export const BOARD = GoBoard;
