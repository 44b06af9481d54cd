"""Does a network mate with king and rook? It has the rook and the move in each position of rook_endings.fen.

    python benchmarks/rook_mates.py [PLAYER] [DEFENDER] [--positions 50]

Players as `keima match` takes them: "chess,visits=800" and "uci,nodes=20000:stockfish" if not given. Prints a line a
position and how many were won; the exit status is 1 if not all were.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from keima.engines.match.match import Match, MatchOptions

POSITIONS = Path(__file__).with_name("rook_endings.fen")
"""50 random ones, king and rook against king, the rook's side to move."""


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("player", nargs="?", default="chess,visits=800")
    parser.add_argument("defender", nargs="?", default="uci,nodes=20000:stockfish")
    parser.add_argument("--positions", type=int, default=50)
    options = parser.parse_args()
    won, fens = 0, POSITIONS.read_text(encoding="utf-8").splitlines()[: options.positions]
    for number, fen in enumerate(fens, 1):
        result = play(options.player, options.defender, fen)
        won += result[0]
        print(f"{number:3} {fen:40} {'won' if result[0] else 'NOT WON'}, {result[1]}", flush=True)
    print(f"{won} of {len(fens)} won")
    return int(won < len(fens))


def play(player: str, defender: str, fen: str) -> tuple[bool, str]:
    """One position: was it won, and how it ended. White is a match's first player, whoever moves first."""
    white = "R" in fen.split()[0]
    players = (player, defender) if white else (defender, player)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "one.fen"
        file.write_text(fen + "\n", encoding="utf-8")
        summary = Match(*players, MatchOptions(games=1, openings=str(file), swap=False)).run()
    result = summary.results[0]
    won = summary.tally.wins if white else summary.tally.losses
    return won == 1, f"{result.reason}, {result.plies} moves"


if __name__ == "__main__":
    sys.exit(main())
