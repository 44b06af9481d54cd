// The board of connect four: holes, discs, and what is to be said for each column, as one SVG.
import { Board, COLOURS, sideName, svg, t } from "../../drawing.js";

const COLUMNS = "abcdefg";
const INK = "#1b2a41";

export class ConnectFourBoard extends Board {
  constructor(game, place) {
    super(game, place);
    this.sides = ["first player", "second player"];
    this.dark = "second player";
    this.ratio = 7 / 6.6;
    this.classes = ["squares", "discs"];
    this.palette = { "--white": "#f3c623", "--black": "#d8452e" };
    this.marked = false; // a column is chosen here, a mark lies on a square: those of records are drawn, none are made
    this.toggles = [{ key: "policy", shortcut: "p", on: true }];
  }

  facts() { return ["7×6"]; }

  // The centre of a square: column 0 is a, row 0 the bottom one.
  at(column, row) { return { cx: column + 0.5, cy: 5.5 - row }; }

  pointAt(event) {
    const box = this.root.getBoundingClientRect(), column = Math.floor(((event.clientX - box.left) / box.width) * 7);
    return column < 0 || column > 6 ? null : COLUMNS[column];
  }

  step(point, dx) { return point ? COLUMNS[Math.max(0, Math.min(6, COLUMNS.indexOf(point) + dx))] : "d"; }

  pointWords(scene, point) {
    const column = scene.position.rows.map((row) => row[COLUMNS.indexOf(point)]).reverse().filter((sign) => sign !== ".");
    const discs = column.map((sign) => t(`disc.${sign}`)).join(", ");
    const choice = (scene.choices || []).find((one) => one.move === point);
    return [t("point.column", { column: point }), discs || t("point.empty"), choice ? choice.words : ""].filter(Boolean).join(", ");
  }

  after(position, move) {
    const rows = position.rows.map((row) => [...row]), column = COLUMNS.indexOf(move), free = rows.map((row) => row[column]).lastIndexOf(".");
    if (free >= 0) rows[free][column] = position.to_play === this.sides[0] ? "1" : "2";
    return { ...position, rows: rows.map((row) => row.join("")), line: [] };
  }

  // The square of a column where a disc would lie, or the one to take away.
  setupPoint(position, column, piece) {
    const height = position.rows.filter((row) => row[COLUMNS.indexOf(column)] !== ".").length;
    return `${column}${Math.max(1, Math.min(6, piece ? height + 1 : height))}`;
  }

  // A disc to choose while a position is edited.
  sign(place, sign) {
    place.replaceChildren(svg("svg", { viewBox: "-.55 -.55 1.1 1.1", "aria-hidden": "true" }, svg("circle", { r: 0.47, fill: this.colour(sign), stroke: "#234a85", "stroke-width": 0.06 })));
  }

  draw(scene) {
    const { position, line } = scene;
    const along = line ? this.along(position, line) : null, shown = along ? along.position : position;
    const root = this.rootFor(scene, "0 0 7 6.6");
    root.append(svg("rect", { x: 0, y: 0, width: 7, height: 6, rx: 0.25, fill: "#2f5fa8" }));
    const heights = this.drawDiscs(root, shown, line ? along.last : scene.last);
    for (let column = 0; column < 7; column++) {
      root.append(svg("text", { x: column + 0.5, y: 6.42, "text-anchor": "middle", "font-size": 0.34, "font-weight": 600, fill: "var(--ink)", text: COLUMNS[column] }));
    }
    const sign = position.to_play === this.sides[0] ? "1" : "2";
    if (line) this.drawLine(root, position, line);
    else {
      for (const choice of scene.choices || []) this.drawChoice(root, choice, heights, sign);
      if (scene.played) this.ring(root, scene.played.move, heights, scene.played.best ? COLOURS.better : COLOURS.played, t("legend.played"));
      if (scene.better) this.ring(root, scene.better, heights, "#7ff0b4", t("legend.better"));
    }
    for (const mark of scene.marks || []) this.drawMark(root, mark);
    if (scene.cursor) {
      const x = COLUMNS.indexOf(scene.cursor);
      root.append(svg("rect", { x: x + 0.04, y: 0.04, width: 0.92, height: 5.92, rx: 0.2, fill: "none", stroke: "#fff", "stroke-width": 0.07 }));
    }
    this.root = root;
    this.place.replaceChildren(root);
  }

  // Returns how many discs lie in each column.
  drawDiscs(root, position, last) {
    const heights = [0, 0, 0, 0, 0, 0, 0];
    position.rows.forEach((row, down) => [...row].forEach((sign, column) => {
      const height = 5 - down, place = this.at(column, height);
      root.append(svg("circle", { ...place, r: 0.42, fill: this.colour(sign), stroke: "#234a85", "stroke-width": 0.04 }));
      if (sign !== ".") heights[column] = Math.max(heights[column], height + 1);
      if (position.line.includes(COLUMNS[column] + (height + 1))) root.append(svg("circle", { ...place, r: 0.2, fill: "none", stroke: "#fff", "stroke-width": 0.1 }));
    }));
    if (last) {
      const column = COLUMNS.indexOf(last.move);
      root.append(svg("circle", { ...this.at(column, heights[column] - 1), r: 0.09, fill: INK }));
    }
    return heights;
  }

  colour(sign) { return { 1: "#f3c623", 2: "#d8452e" }[sign] || "#dbe6f5"; }

  drawChoice(root, choice, heights, sign) {
    const column = COLUMNS.indexOf(choice.move), place = this.at(column, heights[column]);
    if (heights[column] > 5) return;
    root.append(svg("circle", { ...place, r: 0.42, fill: this.colour(sign), opacity: 0.15 + 0.55 * Math.sqrt(choice.share), "data-choice": choice.move }, svg("title", { text: choice.words })));
    if (choice.best) root.append(svg("circle", { ...place, r: 0.45, fill: "none", stroke: COLOURS.best, "stroke-width": 0.07 }));
    const words = { x: place.cx, "text-anchor": "middle", fill: INK, "pointer-events": "none" };
    root.append(svg("text", { ...words, y: place.cy + (choice.under ? 0.03 : 0.1), "font-size": 0.28, "font-weight": 650, text: choice.label }));
    if (choice.under) root.append(svg("text", { ...words, y: place.cy + 0.27, "font-size": 0.22, "font-weight": 550, text: choice.under }));
  }

  ring(root, move, heights, colour, title) {
    const column = COLUMNS.indexOf(move);
    root.append(svg("circle", { ...this.at(column, heights[column]), r: 0.45, fill: "none", stroke: "#fff", "stroke-width": 0.13 }),
      svg("circle", { ...this.at(column, heights[column]), r: 0.45, fill: "none", stroke: colour, "stroke-width": 0.09 }, svg("title", { text: title })));
  }

  drawMark(root, mark) {
    const at = (name) => { const { cx, cy } = this.at(COLUMNS.indexOf(name[0]), Number(name[1]) - 1); return [cx, cy]; }, [x, y] = at(mark.at);
    if (mark.kind !== "label") this.markShape(root, mark, at, INK, 0.25);
    else root.append(svg("text", { x, y: y + 0.12, "text-anchor": "middle", "font-size": 0.34, "font-weight": 700, fill: INK, text: mark.text }));
  }

  // The numbers of the variation's discs.
  drawLine(root, position, line) {
    const filled = [...COLUMNS].map((_, column) => position.rows.filter((row) => row[column] !== ".").length);
    line.moves.slice(0, line.step).forEach((move, index) => {
      const column = COLUMNS.indexOf(move), place = this.at(column, filled[column]);
      filled[column] += 1;
      root.append(svg("text", { x: place.cx, y: place.cy + 0.11, "text-anchor": "middle", "font-size": 0.32, "font-weight": 700, fill: INK, text: index + 1 }));
    });
  }

  describe(scene) {
    const last = scene.last ? t("board.last", { side: sideName(scene.last.player), move: scene.last.move }) : "";
    return t("board.connect_four", { rows: scene.position.rows.map((row) => row.replaceAll(".", "-")).join(", "), last });
  }
}

export const BOARD = ConnectFourBoard;
