// The chess board: squares, pieces drawn here, and the network's moves as arrows, as one SVG.
const PIECES = {
  // Silhouettes on a 100 × 100 square, then detail lines.
  p: ["M50 20a13 13 0 0 1 8.6 22.8c2.9 1 4.4 2.6 4.4 4.7H58c.8 11 4.6 19.5 11 26.5 2.4 2.6 4 5.4 4 9H27c0-3.600 1.600-6.400 4-9 6.400-7 10.200-15.500 11-26.500h-5c0-2.100 1.500-3.700 4.400-4.700A13 13 0 0 1 50 20z", ""],
  r: ["M27 19h10v8h8v-8h10v8h8v-8h10v17l-7 7 2.500 26 6 5.500c1.500 1.400 2.500 3.500 2.500 6v2.500H23V80.500c0-2.500 1-4.600 2.500-6l6-5.500L34 43l-7-7z", "M34 43h32M31.500 69h37"],
  n: ["M29 83c-.5-3.500.8-6.500 3.500-9 2.500-15 15-20 15.500-31-5 3-8.500 7.500-14 9.500-1.500 3.500-5 6-8.500 4.500-4.500-2-5-7-3-10.500 4-7 6.500-16 13.500-21.500L34.500 14l10 6.500C63 19 78 37 75.500 83z", "M60 29c8 9 10 24 9 44M39.500 32.500l3-2"],
  b: ["M50 11a5.500 5.500 0 0 1 3.800 9.500C63 27 69 36 69 45c0 6.500-3 12-8 15.500l3 9.500c6 1.500 10 5 11 13H25c1-8 5-11.500 11-13l3-9.500C34 57 31 51.500 31 45c0-9 6-18 15.200-24.500A5.500 5.500 0 0 1 50 11z", "M50 33v17M42 41.500h16M39 60.500h22M36 70h28"],
  q: ["M50 14a5 5 0 0 1 3 9l5.500 21L69 27.500a5 5 0 1 1 5 2.300L73 47l10-8.500a5 5 0 1 1 3.500 4L74 66c-1 3 4 7 4 12v5H22v-5c0-5 5-9 4-12L13.500 42.500a5 5 0 1 1 3.500-4L27 47l-1-17.200a5 5 0 1 1 5-2.300L41.500 44 47 23a5 5 0 0 1 3-9z", "M26 66c15-4 33-4 48 0M23.500 76c17-4 36-4 53 0"],
  k: ["M46.500 8h7v6.500H60v7h-6.500V29c9-4.500 27-3 28 12 .6 8.500-5 14.500-9.500 21-1.500 2.500-1 4.500 1 7 2.500 3 4 5.500 4 9v5H23v-5c0-3.500 1.500-6 4-9 2-2.500 2.500-4.500 1-7-4.500-6.500-10.100-12.500-9.500-21 1-15 19-16.500 28-12v-7.500H40v-7h6.500z", "M50 31v27M28 63c14-4.500 30-4.500 44 0M25 74c16-4 34-4 50 0"],
};

class ChessBoard {
  constructor(review, place) {
    this.review = review;
    this.place = place;
    this.sides = ["white", "black"];
    this.dark = "black";
    this.draws = true;
    this.unit = "half-moves";
    this.ratio = 1;
    this.classes = ["squares"];
    this.toggles = [
      review.options.visits
        ? { key: "policy", label: "Candidates", hint: "the moves searched as arrows (P)", shortcut: "p", on: true }
        : { key: "policy", label: "Policy", hint: "the network's moves as arrows (P)", shortcut: "p", on: true },
      { key: "flip", label: "Flip", hint: "turn the board round (F)", shortcut: "f", on: false },
    ];
  }

  facts() {
    return [];
  }

  number(move) {
    return `${Math.ceil((move.number + (this.review.game.first === "black" ? 1 : 0)) / 2)}${move.player === "white" ? "." : "…"}`;
  }

  // "17. Nd5 Qxb2 18. Bd6"
  variation(ply, candidate) {
    const fen = this.review.positions[ply].fen.split(" ");
    let white = fen[1] === "w", number = Number(fen[5]);
    return candidate.pv_san.map((name, i) => {
      const words = white ? `${number}. ${name}` : i === 0 ? `${number}… ${name}` : name;
      if (!white) number += 1;
      white = !white;
      return words;
    }).join(" ");
  }

  // `variation`: a candidate whose variation is drawn in place of the candidates, or null.
  draw(ply, shown, variation) {
    const { positions, moves } = this.review;
    const position = positions[ply];
    const last = ply > 0 ? moves[ply - 1] : null;
    const next = moves[ply];
    const root = svg("svg", { viewBox: "0 0 8 8", role: "img", "aria-label": this.describe(ply) });
    const at = (square) => {
      const file = square.charCodeAt(0) - 97, rank = Number(square[1]) - 1;
      return shown.flip ? [7 - file, rank] : [file, 7 - rank];
    };
    this.drawSquares(root, shown, at, last, position);
    this.drawPieces(root, position, at);
    if (variation) this.drawVariation(root, position, variation, at);
    else if (shown.policy) this.drawChoices(root, position, next, at);
    this.place.replaceChildren(root);
  }

  drawSquares(root, shown, at, last, position) {
    for (let rank = 1; rank <= 8; rank++) for (let file = 0; file < 8; file++) {
      const name = "abcdefgh"[file] + rank, [x, y] = at(name), light = (file + rank) % 2 === 0;
      root.append(svg("rect", { x, y, width: 1.003, height: 1.003, fill: light ? "var(--light-square)" : "var(--dark-square)" }));
      if (last && (last.move.slice(0, 2) === name || last.move.slice(2, 4) === name)) {
        root.append(svg("rect", { x, y, width: 1.003, height: 1.003, fill: "#f2c230", opacity: 0.46 }));
      }
      if (position.check === name) root.append(svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.48, fill: "#e0352b", opacity: 0.55 }));
      const label = { "font-size": 0.17, "font-weight": 650, fill: light ? "var(--dark-square)" : "var(--light-square)", "font-family": "inherit" };
      if (x === 0) root.append(svg("text", { ...label, x: 0.05, y: y + 0.2, text: rank }));
      if (y === 7) root.append(svg("text", { ...label, x: x + 0.95, y: 7.94, "text-anchor": "end", text: name[0] }));
    }
  }

  drawPieces(root, position, at) {
    position.fen.split(" ")[0].split("/").forEach((row, down) => {
      let file = 0;
      for (const sign of row) {
        if (sign >= "1" && sign <= "8") { file += Number(sign); continue; }
        const [x, y] = at("abcdefgh"[file] + (8 - down));
        const white = sign === sign.toUpperCase();
        const [outline, detail] = PIECES[sign.toLowerCase()];
        root.append(svg("g", { transform: `translate(${x} ${y + 0.015}) scale(.01)` },
          svg("path", { d: outline, fill: white ? "#fdfcf8" : "#33353b", stroke: white ? "#2b2c30" : "#0e0f11", "stroke-width": 3.2, "stroke-linejoin": "round" }),
          detail ? svg("path", { d: detail, fill: "none", stroke: white ? "#2b2c30" : "#c9cbd2", "stroke-width": 2.4, "stroke-linecap": "round", opacity: white ? 0.9 : 0.75 }) : null));
        file += 1;
      }
    });
  }

  // The likeliest moves, or those searched most, as arrows of their weight; the move played in a colour of its own.
  drawChoices(root, position, next, at) {
    const { candidates } = position;
    const found = candidates && candidates.length
      ? candidates.map((c) => [c.move, c.visits, `${c.pv_san[0] || c.move}: ${percent(c.win + c.draw / 2)}, ${c.visits} visits`])
      : Object.entries(position.policy).map(([move, p]) => [move, p, `${move}: ${percent(p)}`]);
    const top = Math.max(...found.map(([, weight]) => weight), 1e-9);
    for (const [move, weight, words] of found.filter(([, w], rank) => rank < 6 && w >= 0.02).reverse()) {
      if (next && next.move === move) continue;
      this.arrow(root, at, move, 0.06 + 0.12 * Math.sqrt(weight / top), "#1f6feb", 0.3 + 0.5 * Math.sqrt(weight / top), words);
    }
    if (!next) return;
    const [, weight, words] = found.find(([move]) => move === next.move) || [next.move, 0, next.san || next.move];
    const best = found.length > 0 && found[0][0] === next.move;
    this.arrow(root, at, next.move, 0.06 + 0.12 * Math.sqrt(weight / top), best ? "#1c8f5a" : "#e07b16", 0.86, `played: ${words}`);
  }

  // The variation's first moves as numbered arrows, the mover's blue and the answers grey.
  drawVariation(root, position, variation, at) {
    const moves = variation.pv.slice(0, 8);
    moves.forEach((move, index) => this.arrow(root, at, move, Math.max(0.06, 0.16 - 0.02 * index), index % 2 ? "#5f6470" : "#1f6feb", Math.max(0.5, 0.92 - 0.06 * index), variation.pv_san[index] || move));
    const crowd = {};
    moves.forEach((move, index) => {
      const goal = move.slice(2, 4), [x, y] = at(goal), shift = (crowd[goal] = (crowd[goal] || 0) + 1) - 1;
      const place = { cx: x + 0.82 - 0.3 * shift, cy: y + 0.18 };
      root.append(svg("circle", { ...place, r: 0.15, fill: index % 2 ? "#5f6470" : "#1f6feb", stroke: "#fff", "stroke-width": 0.025 }));
      root.append(svg("text", { x: place.cx, y: place.cy + 0.068, "text-anchor": "middle", "font-size": 0.19, "font-weight": 700, fill: "#fff", text: index + 1 }));
    });
  }

  arrow(root, at, move, width, colour, opacity, title) {
    const [x1, y1] = at(move.slice(0, 2)).map((c) => c + 0.5), [x2, y2] = at(move.slice(2, 4)).map((c) => c + 0.5);
    const length = Math.hypot(x2 - x1, y2 - y1) || 1, head = Math.min(0.2 + 1.3 * width, length * 0.6), half = width * 0.5 + head * 0.34;
    const reach = length - 0.06;
    const d = `M0.16 ${-width / 2}H${reach - head}V${-half}L${reach} 0L${reach - head} ${half}V${width / 2}H0.16z`;
    const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
    root.append(svg("path", { d, fill: colour, opacity, transform: `translate(${x1} ${y1}) rotate(${angle})`, "stroke-linejoin": "round" }, svg("title", { text: title })));
  }

  describe(ply) {
    const last = ply > 0 ? this.review.moves[ply - 1] : null;
    const placement = this.review.positions[ply].fen.split(" ")[0];
    return `Chess board after ${ply} half-moves${last ? `, last move ${last.player} ${last.san || last.move}` : ""}; placement ${placement}`;
  }
}

BOARDS.chess = ChessBoard;
