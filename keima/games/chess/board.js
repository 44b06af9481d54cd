// The chess board: squares, pieces drawn here, and moves as arrows, as one SVG.
import { Board, COLOURS, sideName, svg, t } from "../../drawing.js";

const PIECES = {
  // Silhouettes on a 100 × 100 square, then detail lines.
  p: ["M50 20a13 13 0 0 1 8.6 22.8c2.9 1 4.4 2.6 4.4 4.7H58c.8 11 4.6 19.5 11 26.5 2.4 2.6 4 5.4 4 9H27c0-3.600 1.600-6.400 4-9 6.400-7 10.200-15.500 11-26.500h-5c0-2.100 1.500-3.700 4.400-4.700A13 13 0 0 1 50 20z", ""],
  r: ["M27 19h10v8h8v-8h10v8h8v-8h10v17l-7 7 2.500 26 6 5.500c1.500 1.400 2.500 3.500 2.500 6v2.500H23V80.500c0-2.500 1-4.600 2.500-6l6-5.500L34 43l-7-7z", "M34 43h32M31.500 69h37"],
  n: ["M29 83c-.5-3.500.8-6.500 3.500-9 2.500-15 15-20 15.500-31-5 3-8.500 7.500-14 9.500-1.500 3.500-5 6-8.500 4.500-4.500-2-5-7-3-10.500 4-7 6.500-16 13.500-21.500L34.500 14l10 6.500C63 19 78 37 75.500 83z", "M60 29c8 9 10 24 9 44M39.500 32.500l3-2"],
  b: ["M50 11a5.500 5.500 0 0 1 3.800 9.500C63 27 69 36 69 45c0 6.500-3 12-8 15.500l3 9.500c6 1.500 10 5 11 13H25c1-8 5-11.500 11-13l3-9.500C34 57 31 51.500 31 45c0-9 6-18 15.200-24.500A5.500 5.500 0 0 1 50 11z", "M50 33v17M42 41.500h16M39 60.500h22M36 70h28"],
  q: ["M50 14a5 5 0 0 1 3 9l5.500 21L69 27.500a5 5 0 1 1 5 2.300L73 47l10-8.500a5 5 0 1 1 3.500 4L74 66c-1 3 4 7 4 12v5H22v-5c0-5 5-9 4-12L13.500 42.500a5 5 0 1 1 3.500-4L27 47l-1-17.200a5 5 0 1 1 5-2.300L41.500 44 47 23a5 5 0 0 1 3-9z", "M26 66c15-4 33-4 48 0M23.500 76c17-4 36-4 53 0"],
  k: ["M46.500 8h7v6.500H60v7h-6.500V29c9-4.500 27-3 28 12 .6 8.500-5 14.500-9.500 21-1.500 2.500-1 4.500 1 7 2.500 3 4 5.500 4 9v5H23v-5c0-3.500 1.500-6 4-9 2-2.500 2.500-4.500 1-7-4.500-6.500-10.100-12.500-9.500-21 1-15 19-16.500 28-12v-7.500H40v-7h6.500z", "M50 31v27M28 63c14-4.500 30-4.500 44 0M25 74c16-4 34-4 50 0"],
};

const FILES = "abcdefgh";

// Marks in the colours of PGN's commands, by their letters, as Lichess draws them; each kind has one (editing.py).
const INKS = { G: "#15781b", R: "#a02020", Y: "#b86e00", B: "#003c9e" }, OWN = { circle: "G", arrow: "G", cross: "R", triangle: "Y", square: "B" };

// A FEN's placement as rows from the top, each a list of signs, "." where nothing stands; and back.
const unpacked = (placement) => placement.split("/").map((row) => [...row.replace(/[1-8]/g, (n) => ".".repeat(Number(n)))]);
const packed = (rows) => rows.map((row) => row.join("").replace(/\.+/g, (gap) => gap.length)).join("/");

export class ChessBoard extends Board {
  constructor(game, place) {
    super(game, place);
    this.sides = ["white", "black"];
    this.dark = "black";
    this.unit = "unit.halfmoves";
    this.ratio = 1;
    this.classes = ["squares"];
    this.points = 2;
    this.lineSteps = 0;
    this.toggles = [{ key: "policy", shortcut: "p", on: true }, { key: "flip", shortcut: "f", on: false }];
    this.flipped = false;
  }

  number(move) {
    const black = this.game.first === "black" ? 1 : 0, from = this.game.fen ? Number(this.game.fen.split(" ")[5] || 1) - 1 : 0;
    return `${from + Math.ceil((move.number + black) / 2)}${move.player === "white" ? "." : "…"}`;
  }

  // "17. Nd5 Qxb2 18. Bd6"
  variationWords(position, moves, written) {
    const fen = position.fen.split(" ");
    let white = fen[1] === "w", number = Number(fen[5]);
    return (written || moves).map((name, i) => {
      const words = white ? `${number}. ${name}` : i === 0 ? `${number}… ${name}` : name;
      if (!white) number += 1;
      white = !white;
      return words;
    }).join(" ");
  }

  // Moves from the first square to the second; a king may also be put on its own rook to castle.
  matching(points, legal) {
    const found = legal.filter((move) => move.startsWith(points.join("")));
    if (found.length || points.length < 2) return found;
    const side = points[1].charCodeAt(0) > points[0].charCodeAt(0) ? "g" : "c";
    return points[0][0] === "e" && "ah".includes(points[1][0]) ? legal.filter((move) => move === `${points[0]}${side}${points[1][1]}`) : [];
  }

  promotion(move) { return move[4] || ""; }

  pointAt(event) {
    const box = this.root.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * 8), y = Math.floor(((event.clientY - box.top) / box.height) * 8);
    if (x < 0 || y < 0 || x > 7 || y > 7) return null;
    return this.flipped ? `${FILES[7 - x]}${y + 1}` : `${FILES[x]}${8 - y}`;
  }

  step(point, dx, dy) {
    if (!point) return "e4";
    const turn = this.flipped ? -1 : 1;
    const file = Math.max(0, Math.min(7, FILES.indexOf(point[0]) + dx * turn)), rank = Math.max(1, Math.min(8, Number(point[1]) - dy * turn));
    return `${FILES[file]}${rank}`;
  }

  pieceAt(position, point) {
    return unpacked(position.fen.split(" ")[0])[8 - Number(point[1])][FILES.indexOf(point[0])];
  }

  pointWords(scene, point) {
    const sign = this.pieceAt(scene.position, point), white = sign === sign.toUpperCase();
    const piece = sign === "." ? t("point.empty") : t("point.piece", { side: t(white ? "side.white" : "side.black"), piece: t(`piece.${sign.toLowerCase()}`) });
    const targets = (scene.selected || []).length === 1 && this.matching([scene.selected[0], point], scene.legal || []).length;
    return [point, piece, targets ? t("point.target") : ""].filter(Boolean).join(", ");
  }

  // Placement and side after a move; rights and clocks are of no interest to a picture.
  after(position, move) {
    const [placement, turn, ...rest] = position.fen.split(" "), rows = unpacked(placement);
    const at = (square) => [8 - Number(square[1]), FILES.indexOf(square[0])];
    const [fromRow, fromFile] = at(move), [toRow, toFile] = at(move.slice(2)), piece = rows[fromRow][fromFile], target = rows[toRow][toFile];
    const white = piece === piece.toUpperCase(), own = target !== "." && (target === target.toUpperCase()) === white;
    rows[fromRow][fromFile] = ".";
    if (piece.toLowerCase() === "k" && (own || Math.abs(toFile - fromFile) === 2)) {
      const short = toFile > fromFile, rook = white ? "R" : "r", corner = own ? toFile : short ? 7 : 0;
      rows[toRow][corner] = ".";
      rows[toRow][short ? 6 : 2] = piece;
      rows[toRow][short ? 5 : 3] = rook;
    } else {
      if (piece.toLowerCase() === "p" && fromFile !== toFile && target === ".") rows[fromRow][toFile] = ".";
      rows[toRow][toFile] = move[4] ? (white ? move[4].toUpperCase() : move[4]) : piece;
    }
    const number = Number(rest[3]) + (turn === "b" ? 1 : 0);
    return { ...position, fen: [packed(rows), turn === "w" ? "b" : "w", "-", "-", "0", number].join(" "), check: undefined };
  }

  draw(scene) {
    const { position, line } = scene;
    const along = line ? this.along(position, line) : null, shown = along ? along.position : position;
    const last = along && along.last ? along.last : scene.last;
    this.flipped = Boolean(scene.flip);
    const root = this.rootFor(scene, "0 0 8 8");
    const at = (square) => {
      const file = FILES.indexOf(square[0]), rank = Number(square[1]) - 1;
      return scene.flip ? [7 - file, rank] : [file, 7 - rank];
    };
    this.drawSquares(root, at, last, shown);
    this.drawLegal(root, at, scene, shown);
    this.drawPieces(root, shown, at, scene.dragged);
    if (line) this.drawLine(root, line, at);
    else this.drawChoices(root, scene, at);
    for (const mark of scene.marks || []) this.drawMark(root, at, mark);
    if (scene.cursor) {
      const [x, y] = at(scene.cursor), box = { x: x + 0.05, y: y + 0.05, width: 0.9, height: 0.9, rx: 0.08, fill: "none" };
      root.append(svg("rect", { ...box, stroke: "#fff", "stroke-width": 0.12 }), svg("rect", { ...box, stroke: "#c2187a", "stroke-width": 0.06 }));
    }
    this.root = root;
    this.place.replaceChildren(root);
  }

  // A font's size in squares; on small boards as much more as can be read.
  font(size) { return Math.min(0.26, Math.max(size, 88.5 / (this.place.clientWidth || 800))); }

  drawSquares(root, at, last, position) {
    const size = this.font(0.17);
    for (let rank = 1; rank <= 8; rank++) for (let file = 0; file < 8; file++) {
      const name = FILES[file] + rank, [x, y] = at(name), light = (file + rank) % 2 === 0;
      root.append(svg("rect", { x, y, width: 1.003, height: 1.003, fill: light ? "var(--light-square)" : "var(--dark-square)" }));
      if (last && (last.move.slice(0, 2) === name || last.move.slice(2, 4) === name)) {
        root.append(svg("rect", { x, y, width: 1.003, height: 1.003, fill: "#f2c230", opacity: 0.46 }));
      }
      if (position.check === name) root.append(svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.48, fill: "#e0352b", opacity: 0.55 }));
      const label = { "font-size": size, "font-weight": 650, fill: light ? "var(--on-light)" : "var(--on-dark)", "font-family": "inherit" };
      if (x === 0) root.append(svg("text", { ...label, x: 0.04, y: y + 0.03 + 0.85 * size, text: rank }));
      if (y === 7) root.append(svg("text", { ...label, x: x + 0.95, y: 7.94, "text-anchor": "end", text: name[0] }));
    }
  }

  drawLegal(root, at, scene, position) {
    const [from] = scene.selected || [];
    if (!from) return;
    const [x, y] = at(from);
    root.append(svg("rect", { x, y, width: 1.003, height: 1.003, fill: "#1f6feb", opacity: 0.38 }));
    if (!scene.legal) return;
    for (const goal of new Set(this.matching([from], scene.legal).map((move) => move.slice(2, 4)))) {
      const [gx, gy] = at(goal), taken = this.pieceAt(position, goal) !== ".";
      root.append(svg("circle", taken ? { cx: gx + 0.5, cy: gy + 0.5, r: 0.45, fill: "none", stroke: "#1f6feb", "stroke-width": 0.07, opacity: 0.75 }
        : { cx: gx + 0.5, cy: gy + 0.5, r: 0.14, fill: "#1f6feb", opacity: 0.6 }));
    }
  }

  drawPieces(root, position, at, dragged) {
    unpacked(position.fen.split(" ")[0]).forEach((row, down) => row.forEach((sign, file) => {
      const square = FILES[file] + (8 - down);
      if (sign !== ".") this.piece(root, sign, ...at(square), dragged === square ? 0.35 : 1);
    }));
  }

  piece(root, sign, x, y, opacity = 1) {
    const white = sign === sign.toUpperCase(), [outline, detail] = PIECES[sign.toLowerCase()];
    root.append(svg("g", { transform: `translate(${x} ${y + 0.015}) scale(.01)`, opacity },
      svg("path", { d: outline, fill: white ? "#fdfcf8" : "#33353b", stroke: white ? "#2b2c30" : "#0e0f11", "stroke-width": 3.2, "stroke-linejoin": "round" }),
      detail ? svg("path", { d: detail, fill: "none", stroke: white ? "#2b2c30" : "#c9cbd2", "stroke-width": 2.4, "stroke-linecap": "round", opacity: white ? 0.9 : 0.75 }) : null));
  }

  // What is set on a square while a position is edited.
  sign(place, sign) {
    const root = svg("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" });
    if (sign !== ".") this.piece(root, sign, 0, 0);
    place.replaceChildren(root);
  }

  // At most four choices, the move played and the better one: each move one arrow, and no arrow on another.
  drawChoices(root, scene, at) {
    const arrows = new Map();
    (scene.choices || []).filter((choice, rank) => rank < 4 && (rank === 0 || choice.share >= 0.03)).forEach((choice, rank) => {
      const share = Math.sqrt(choice.share);
      arrows.set(choice.move, { width: 0.07 + 0.1 * share, colour: rank === 0 ? COLOURS.best : COLOURS.other, opacity: rank === 0 ? 0.85 : 0.4 + 0.4 * share, words: choice.words, label: choice.label, choice: choice.move });
    });
    if (scene.played) {
      const { move, best } = scene.played, known = arrows.get(move) || {};
      arrows.set(move, { width: 0.1, opacity: 0.85, words: t("legend.played"), ...known, colour: best ? COLOURS.better : COLOURS.played });
    }
    if (scene.better) arrows.set(scene.better, { width: 0.14, opacity: 0.9, words: t("legend.better"), ...arrows.get(scene.better), colour: COLOURS.better });
    this.arrows(root, at, [...arrows].reverse());
  }

  // The next moves of a variation as numbered arrows: the mover's blue, the answers grey.
  drawLine(root, line, at) {
    const ahead = line.step === 0 ? line.moves.slice(0, 3) : line.moves.slice(line.step, line.step + 1);
    const style = (index) => (index % 2 ? COLOURS.answer : COLOURS.best);
    this.arrows(root, at, ahead.map((move, index) => [move, { width: 0.14 - 0.025 * index, opacity: 0.9 - 0.12 * index, colour: style(index + line.step), words: `${index + 1 + line.step}`, label: `${index + 1 + line.step}` }]).reverse());
  }

  // Arrows on one line are laid beside one another, those to one square end one behind the other.
  arrows(root, at, found) {
    const lanes = {}, goals = {}, labels = [];
    for (const [move, arrow] of [...found].reverse()) {
      const [x1, y1] = at(move), [x2, y2] = at(move.slice(2)), angle = Math.atan2(y2 - y1, x2 - x1), turn = ((angle * 180) / Math.PI + 180) % 180;
      const lane = `${turn.toFixed(0)}:${(x1 * Math.sin(angle) - y1 * Math.cos(angle)).toFixed(1).replace("-", "")}`;
      const beside = (lanes[lane] = (lanes[lane] || 0) + 1) - 1, behind = (goals[move.slice(2, 4)] = (goals[move.slice(2, 4)] || 0) + 1) - 1;
      labels.push(this.arrow(root, [x1 + 0.5, y1 + 0.5], [x2 + 0.5, y2 + 0.5], arrow, 0.17 * Math.ceil(beside / 2) * (beside % 2 ? 1 : -1), 0.3 * behind));
    }
    for (const label of labels.reverse()) if (label) root.append(label);
  }

  arrow(root, [x1, y1], [x2, y2], { width, colour, opacity, words, label, choice }, aside, behind) {
    const length = Math.hypot(x2 - x1, y2 - y1) || 1, head = Math.min(0.2 + 1.3 * width, length * 0.6), half = width * 0.5 + head * 0.34;
    const reach = Math.max(length - 0.06 - behind, head + 0.2), angle = Math.atan2(y2 - y1, x2 - x1);
    const d = `M0.16 ${-width / 2}H${reach - head}V${-half}L${reach} 0L${reach - head} ${half}V${width / 2}H0.16z`;
    root.append(svg("path", { d, fill: colour, opacity, transform: `translate(${x1 - aside * Math.sin(angle)} ${y1 + aside * Math.cos(angle)}) rotate(${(angle * 180) / Math.PI})`, "stroke-linejoin": "round", "data-choice": choice }, svg("title", { text: words })));
    if (!label) return null;
    const along = Math.max(0.3, reach - head - 0.16);
    const x = x1 + along * Math.cos(angle) - aside * Math.sin(angle), y = y1 + along * Math.sin(angle) + aside * Math.cos(angle);
    return svg("g", { "pointer-events": "none" }, svg("rect", { x: x - 0.09 - 0.075 * label.length, y: y - 0.17, width: 0.18 + 0.15 * label.length, height: 0.34, rx: 0.17, fill: colour, stroke: "#fff", "stroke-width": 0.02 }),
      svg("text", { x, y: y + 0.09, "text-anchor": "middle", "font-size": this.font(0.22), "font-weight": 700, fill: "#fff", text: label }));
  }

  drawMark(root, at, mark) {
    const [x, y] = at(mark.at), ink = INKS[mark.colour || OWN[mark.kind]] || "#c2187a";
    if (mark.kind !== "label") this.markShape(root, mark, (name) => at(name).map((c) => c + 0.5), ink, 0.42, ink);
    else root.append(svg("text", { x: x + 0.16, y: y + 0.32, "text-anchor": "middle", "font-size": 0.34, "font-weight": 700, fill: ink, text: mark.text }));
  }

  describe(scene) {
    const last = scene.last ? t("board.last", { side: sideName(scene.last.player), move: scene.last.san || scene.last.move }) : "";
    return t("board.chess", { placement: scene.position.fen.split(" ")[0], last });
  }
}

export const BOARD = ChessBoard;
