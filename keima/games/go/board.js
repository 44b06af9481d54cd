// The Go board: wood, lines, stones, and what the network thinks, as one SVG.
const GO_COLUMNS = "ABCDEFGHJKLMNOPQRST";
const GO_PAD = 1.12; // from the outer lines to the board's edge

class GoBoard {
  constructor(review, place) {
    this.review = review;
    this.place = place;
    this.width = review.game.xsize;
    this.height = review.game.ysize;
    this.sides = ["black", "white"];
    this.dark = "black";
    this.draws = false;
    this.unit = "moves";
    this.ratio = (this.width + 1.24) / (this.height + 1.24);
    this.toggles = [
      review.options.visits
        ? { key: "policy", label: "Candidates", hint: "the moves searched: chances and visits (P)", shortcut: "p", on: true }
        : { key: "policy", label: "Policy", hint: "the network's candidate moves (P)", shortcut: "p", on: true },
      { key: "ownership", label: "Ownership", hint: "who owns each point (O)", shortcut: "o", on: false },
      { key: "numbers", label: "Numbers", hint: "move numbers on the stones (N)", shortcut: "n", on: false },
    ];
    this.hasOwnership = review.positions.some((p) => p.ownership);
    if (!this.hasOwnership) this.toggles = this.toggles.filter((t) => t.key !== "ownership");
    this.shell();
  }

  point(vertex) {
    return [GO_COLUMNS.indexOf(vertex[0]), this.height - Number(vertex.slice(1))];
  }

  facts() {
    const { game } = this.review;
    return [`${game.xsize}×${game.ysize}, ${game.rules_name}, komi ${game.komi}`, game.handicap.length ? `handicap ${game.handicap.length}` : null];
  }

  // The vertex under a pointer event, or null beside the board.
  moveAt(event) {
    const box = this.root.getBoundingClientRect();
    const x = Math.round(((event.clientX - box.left) / box.width) * (this.width - 1 + 2 * GO_PAD) - GO_PAD);
    const y = Math.round(((event.clientY - box.top) / box.height) * (this.height - 1 + 2 * GO_PAD) - GO_PAD);
    return x < 0 || y < 0 || x >= this.width || y >= this.height ? null : `${GO_COLUMNS[x]}${this.height - y}`;
  }

  shell() {
    const { width, height } = this;
    const pad = GO_PAD;
    const root = svg("svg", { viewBox: `${-pad} ${-pad} ${width - 1 + 2 * pad} ${height - 1 + 2 * pad}`, role: "img" });
    root.append(
      svg("defs", null,
        svg("radialGradient", { id: "black-stone", cx: ".36", cy: ".3", r: ".78" },
          svg("stop", { offset: "0", "stop-color": "#6b6e76" }), svg("stop", { offset: ".4", "stop-color": "#2b2d33" }), svg("stop", { offset: "1", "stop-color": "#0c0d10" })),
        svg("radialGradient", { id: "white-stone", cx: ".36", cy: ".3", r: ".82" },
          svg("stop", { offset: "0", "stop-color": "#ffffff" }), svg("stop", { offset: ".6", "stop-color": "#f1efe9" }), svg("stop", { offset: "1", "stop-color": "#bdb9af" })),
        svg("linearGradient", { id: "wood", x1: "0", y1: "0", x2: "1", y2: "1" },
          svg("stop", { offset: "0", style: "stop-color:var(--wood)" }), svg("stop", { offset: "1", style: "stop-color:var(--wood-2)" }))),
      svg("rect", { x: -pad, y: -pad, width: width - 1 + 2 * pad, height: height - 1 + 2 * pad, fill: "url(#wood)" }));
    const lines = [];
    for (let x = 0; x < width; x++) lines.push(`M${x} 0V${height - 1}`);
    for (let y = 0; y < height; y++) lines.push(`M0 ${y}H${width - 1}`);
    root.append(svg("path", { d: lines.join(""), stroke: "var(--wood-line)", "stroke-width": 0.035, "stroke-linecap": "square", fill: "none", opacity: 0.85 }));
    root.append(svg("rect", { x: 0, y: 0, width: width - 1, height: height - 1, fill: "none", stroke: "var(--wood-line)", "stroke-width": 0.07 }));
    for (const [x, y] of this.stars()) root.append(svg("circle", { cx: x, cy: y, r: 0.11, fill: "var(--wood-line)" }));
    const style = { "font-size": 0.36, fill: "var(--wood-line)", "text-anchor": "middle", opacity: 0.8, "font-family": "inherit" };
    for (let x = 0; x < width; x++) {
      for (const y of [-0.68, height - 1 + 0.93]) root.append(svg("text", { ...style, x, y, text: GO_COLUMNS[x] }));
    }
    for (let y = 0; y < height; y++) {
      for (const x of [-0.82, width - 1 + 0.82]) root.append(svg("text", { ...style, x, y: y + 0.13, text: height - y }));
    }
    this.layer = svg("g");
    root.append(this.layer);
    this.root = root;
    this.place.replaceChildren(root);
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

  // `variation`: a candidate whose variation is drawn in place of the candidates, or null.
  draw(ply, shown, variation) {
    const { positions, moves } = this.review;
    const position = positions[ply];
    const rows = position.stones.split("/");
    const last = ply > 0 ? moves[ply - 1] : null;
    const next = moves[ply];
    const layer = svg("g");
    if (shown.ownership && position.ownership) this.drawOwnership(layer, position, rows, false);
    rows.forEach((row, y) => [...row].forEach((stone, x) => {
      if (stone === ".") return;
      layer.append(svg("circle", { cx: x + 0.03, cy: y + 0.05, r: 0.475, fill: "#000", opacity: 0.28 }));
      layer.append(svg("circle", { cx: x, cy: y, r: 0.475, fill: stone === "B" ? "url(#black-stone)" : "url(#white-stone)" }));
    }));
    if (shown.ownership && position.ownership) this.drawOwnership(layer, position, rows, true);
    if (shown.numbers) this.drawNumbers(layer, ply, rows);
    if (position.ko) {
      const [x, y] = this.point(position.ko);
      layer.append(svg("rect", { x: x - 0.2, y: y - 0.2, width: 0.4, height: 0.4, fill: "none", stroke: "var(--wood-line)", "stroke-width": 0.06 }, svg("title", { text: "ko" })));
    }
    if (variation) this.drawVariation(layer, position, variation);
    else if (shown.policy && position.candidates && position.candidates.length) this.drawCandidates(layer, position, next);
    else if (shown.policy) this.drawPolicy(layer, position, next);
    else if (next && next.move !== "pass") this.drawNext(layer, next);
    if (last && last.move !== "pass" && !shown.numbers) {
      const [x, y] = this.point(last.move);
      layer.append(svg("circle", { cx: x, cy: y, r: 0.2, fill: "none", stroke: last.player === "black" ? "#fff" : "#17181b", "stroke-width": 0.075 }));
    }
    this.layer.replaceWith(layer);
    this.layer = layer;
    this.root.setAttribute("aria-label", this.describe(ply));
  }

  drawOwnership(layer, position, rows, onStones) {
    const turn = position.to_play === "black" ? 1 : -1;
    position.ownership.forEach((row, y) => row.forEach((value, x) => {
      const black = value * turn, strength = Math.abs(black);
      const occupied = rows[y][x] !== ".";
      const agrees = rows[y][x] === (black > 0 ? "B" : "W");
      if (strength < 0.08 || occupied !== onStones || (occupied && agrees)) return;
      const side = occupied ? 0.36 : 0.2 + 0.36 * strength;
      layer.append(svg("rect", {
        x: x - side / 2, y: y - side / 2, width: side, height: side, rx: 0.05,
        fill: black > 0 ? "#141518" : "#fdfcf9", opacity: 0.25 + 0.65 * strength,
      }));
    }));
  }

  drawNumbers(layer, ply, rows) {
    const seen = new Set();
    for (let number = ply; number > 0; number--) {
      const move = this.review.moves[number - 1];
      if (move.move === "pass" || seen.has(move.move)) continue;
      seen.add(move.move);
      const [x, y] = this.point(move.move);
      if (rows[y][x] !== (move.player === "black" ? "B" : "W")) continue;
      layer.append(svg("text", {
        x, y: y + 0.13, "text-anchor": "middle", "font-size": number > 99 ? 0.36 : 0.42, "font-weight": number === ply ? 700 : 500,
        fill: number === ply ? "#ff5a4f" : move.player === "black" ? "#f4f2ee" : "#1c1d21", text: number,
      }));
    }
  }

  drawNext(layer, next) {
    const [x, y] = this.point(next.move);
    layer.append(svg("circle", { cx: x, cy: y, r: 0.42, fill: "none", stroke: "var(--wood-line)", "stroke-width": 0.05, "stroke-dasharray": ".12 .1" }));
  }

  drawPolicy(layer, position, next) {
    const entries = Object.entries(position.policy).filter(([move]) => move !== "pass");
    const top = Math.max(...Object.values(position.policy), 1e-9);
    for (const [move, p] of entries.reverse()) {
      if (p < 0.003 && !(next && next.move === move)) continue;
      const [x, y] = this.point(move);
      const share = p / top;
      const best = share === 1;
      layer.append(svg("circle", {
        cx: x, cy: y, r: 0.19 + 0.27 * Math.sqrt(share), fill: best ? "#1f6feb" : "#2f7fd6", opacity: best ? 0.95 : 0.3 + 0.5 * Math.sqrt(share),
      }, svg("title", { text: `${move}: ${percent(p)}` })));
      if (p >= 0.01) {
        layer.append(svg("text", {
          x, y: y + 0.12, "text-anchor": "middle", "font-size": p >= 0.1 ? 0.36 : 0.31, "font-weight": 600, fill: "#fff", text: Math.round(100 * p),
        }));
      }
    }
    this.drawPlayed(layer, next);
  }

  drawPlayed(layer, next) {
    if (!next || next.move === "pass") return;
    const [x, y] = this.point(next.move);
    layer.append(svg("circle", { cx: x, cy: y, r: 0.46, fill: "none", stroke: next.player === "black" ? "#111" : "#fff", "stroke-width": 0.075 }, svg("title", { text: "played in the game" })));
  }

  // The moves searched: the more visits, the stronger the circle; in it the mover's chances, below them the visits.
  drawCandidates(layer, position, next) {
    const most = Math.max(...position.candidates.map((candidate) => candidate.visits), 1);
    [...position.candidates].reverse().forEach((candidate, place) => {
      if (candidate.move === "pass") return;
      const [x, y] = this.point(candidate.move), share = Math.sqrt(candidate.visits / most), best = place === position.candidates.length - 1;
      const colour = best ? "#1f6feb" : "#2f7fd6";
      layer.append(svg("circle", { cx: x, cy: y, r: best ? 0.48 : 0.3 + 0.17 * share, fill: colour, opacity: best ? 0.96 : 0.55 + 0.35 * share },
        svg("title", { text: `${candidate.move}: ${percent(candidate.win + candidate.draw / 2)}, ${candidate.visits} visits` })));
      const words = { x, "text-anchor": "middle", fill: "#fff", "pointer-events": "none" };
      layer.append(svg("text", { ...words, y: y + 0.03, "font-size": 0.34, "font-weight": 650, text: Math.round(100 * (candidate.win + candidate.draw / 2)) }));
      layer.append(svg("text", { ...words, y: y + 0.29, "font-size": 0.22, "font-weight": 500, text: candidate.visits }));
    });
    this.drawPlayed(layer, next);
  }

  // The variation's stones with their numbers, where they were first played; stones it captures stay on the board.
  drawVariation(layer, position, variation) {
    const seen = new Set();
    variation.pv.forEach((move, index) => {
      if (move === "pass" || seen.has(move)) return;
      seen.add(move);
      const [x, y] = this.point(move), black = (position.to_play === "black") === (index % 2 === 0);
      layer.append(svg("circle", { cx: x + 0.03, cy: y + 0.05, r: 0.475, fill: "#000", opacity: 0.28 }));
      layer.append(svg("circle", { cx: x, cy: y, r: 0.475, fill: black ? "url(#black-stone)" : "url(#white-stone)", stroke: "#1f6feb", "stroke-width": index === 0 ? 0.09 : 0.045 }));
      layer.append(svg("text", { x, y: y + 0.15, "text-anchor": "middle", "font-size": 0.44, "font-weight": 650, fill: black ? "#fff" : "#17181b", text: index + 1 }));
    });
  }

  describe(ply) {
    const last = ply > 0 ? this.review.moves[ply - 1] : null;
    const stones = this.review.positions[ply].stones;
    const count = (c) => stones.split(c).length - 1;
    return `Go board after ${ply} moves${last ? `, last move ${last.player} ${last.move}` : ""}; ${count("B")} black and ${count("W")} white stones`;
  }
}

BOARDS.go = GoBoard;
