// The board of connect four: holes, discs, and the network's columns, as one SVG.
class ConnectFourBoard {
  constructor(review, place) {
    this.review = review;
    this.place = place;
    this.sides = ["first player", "second player"];
    this.dark = "second player";
    this.draws = true;
    this.unit = "moves";
    this.ratio = 7 / 6.6;
    this.classes = ["squares"];
    this.toggles = [
      review.options.visits
        ? { key: "policy", label: "Candidates", hint: "the columns searched (P)", shortcut: "p", on: true }
        : { key: "policy", label: "Policy", hint: "the network's columns (P)", shortcut: "p", on: true },
    ];
  }

  facts() {
    return ["7×6"];
  }

  // The centre of a square: column 0 is a, row 0 the bottom one.
  at(column, row) {
    return { cx: column + 0.5, cy: 5.5 - row };
  }

  // `variation`: a candidate whose variation is drawn in place of the candidates, or null.
  draw(ply, shown, variation) {
    const { positions, moves } = this.review;
    const position = positions[ply], next = moves[ply], last = ply > 0 ? moves[ply - 1] : null;
    const root = svg("svg", { viewBox: "0 0 7 6.6", role: "img", "aria-label": this.describe(ply) });
    root.append(svg("rect", { x: 0, y: 0, width: 7, height: 6, rx: 0.25, fill: "#2f5fa8" }));
    const heights = this.drawDiscs(root, position, last);
    for (let column = 0; column < 7; column++) {
      root.append(svg("text", { x: column + 0.5, y: 6.42, "text-anchor": "middle", "font-size": 0.34, "font-weight": 600, fill: "currentColor", text: "abcdefg"[column] }));
    }
    if (variation) this.drawVariation(root, ply, variation, heights);
    else if (shown.policy) this.drawChoices(root, ply, position, next, heights);
    this.place.replaceChildren(root);
  }

  // Returns how many discs lie in each column.
  drawDiscs(root, position, last) {
    const heights = [0, 0, 0, 0, 0, 0, 0];
    position.rows.forEach((row, down) => [...row].forEach((sign, column) => {
      const height = 5 - down, place = this.at(column, height);
      root.append(svg("circle", { ...place, r: 0.42, fill: this.colour(sign), stroke: "#234a85", "stroke-width": 0.04 }));
      if (sign !== ".") heights[column] = Math.max(heights[column], height + 1);
      if (position.line.includes("abcdefg"[column] + (height + 1))) root.append(svg("circle", { ...place, r: 0.2, fill: "none", stroke: "#fff", "stroke-width": 0.1 }));
    }));
    if (last) {
      const column = "abcdefg".indexOf(last.move);
      root.append(svg("circle", { ...this.at(column, heights[column] - 1), r: 0.09, fill: "#1b2a41" }));
    }
    return heights;
  }

  colour(sign) {
    return { 1: "#f3c623", 2: "#d8452e" }[sign] || "#dbe6f5";
  }

  sign(ply) {
    return ply % 2 ? "2" : "1";
  }

  // Where the likeliest columns, or those searched most, would put a disc; the one played has a ring of its own.
  drawChoices(root, ply, position, next, heights) {
    const { candidates } = position;
    const found = candidates && candidates.length
      ? candidates.map((c) => [c.move, c.visits, Math.round(100 * (c.win + c.draw / 2)), `${c.move}: ${percent(c.win + c.draw / 2)}, ${c.visits} visits`])
      : Object.entries(position.policy || {}).map(([move, p]) => [move, p, Math.round(100 * p), `${move}: ${percent(p)}`]);
    const top = Math.max(...found.map(([, weight]) => weight), 1e-9);
    for (const [move, weight, label, words] of found) {
      this.choice(root, move, heights, this.sign(ply), 0.15 + 0.55 * Math.sqrt(weight / top), label, words);
    }
    if (!next) return;
    const column = "abcdefg".indexOf(next.move), best = found.length > 0 && found[0][0] === next.move;
    root.append(svg("circle", { ...this.at(column, heights[column]), r: 0.42, fill: "none", stroke: best ? "#1c8f5a" : "#e07b16", "stroke-width": 0.09 }, svg("title", { text: `played: ${next.move}` })));
  }

  // The variation's discs, numbered.
  drawVariation(root, ply, variation, heights) {
    const filled = [...heights];
    variation.pv.slice(0, 10).forEach((move, index) => {
      this.choice(root, move, filled, this.sign(ply + index), 0.85, `${index + 1}`, `${index + 1}. ${move}`);
      filled["abcdefg".indexOf(move)] += 1;
    });
  }

  choice(root, move, heights, sign, opacity, label, words) {
    const column = "abcdefg".indexOf(move), place = this.at(column, heights[column]);
    root.append(
      svg("circle", { ...place, r: 0.42, fill: this.colour(sign), opacity }, svg("title", { text: words })),
      svg("text", { x: place.cx, y: place.cy + 0.1, "text-anchor": "middle", "font-size": 0.28, "font-weight": 650, fill: "#1b2a41", "pointer-events": "none", text: label }));
  }

  // The column under a pointer event as the move it names, or null beside the board.
  moveAt(event) {
    const box = this.place.firstElementChild.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * 7);
    return column < 0 || column > 6 ? null : "abcdefg"[column];
  }

  describe(ply) {
    const last = ply > 0 ? this.review.moves[ply - 1] : null;
    const rows = this.review.positions[ply].rows.map((row) => row.replaceAll(".", "-")).join(", ");
    return `Connect four board after ${ply} moves${last ? `, last move ${last.player} in column ${last.move}` : ""}; rows from the top: ${rows}`;
  }
}

BOARDS.connect_four = ConnectFourBoard;
