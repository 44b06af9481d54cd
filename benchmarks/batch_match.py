"""A match of networks whose games are all played at once, their leaves sharing batches: hundreds of games in minutes.

    python benchmarks/batch_match.py go:int8 go:bf16 --games 400 --visits 100
    python benchmarks/batch_match.py go:int8 go:bf16 --games 400 --visits 100 --equal-time
    python benchmarks/batch_match.py go:int8 b6c96.bin.gz:int8 --size 19 --komi 7.5 --games 100

Two games from each opening, colours exchanged. An opening is --plies moves drawn from the first network's policy, kept
where its value is within --even of a draw. Moves after it are searched and the best one is played; trees are not kept
from move to move. --equal-time gives the first player as many visits more as it makes visits a second more in the same
kind of search, which is measured first, by turns. A network is a file, or a game's name for its default network.
--records writes the games, in their game's format (.pgn, .sgf). One JSON line.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np

import keima
from keima.cli.common import open_network
from keima.elo import Tally
from keima.games.game import GAMES
from keima.games.go.position import result_of
from keima.games.position import Position
from keima.games.records import PlayedGame
from keima.search.search import search_batch

BATCH = 64
ROUNDS = 40
"""Of drawing openings, as many in each as are wanted, before there are too few that are even."""


class Player:
    """A network, its precision, and the visits it may make."""

    def __init__(self, entry: str, visits: int, threads: int | None) -> None:
        name, _, precision = entry.rpartition(":")
        self.network = open_network(name)
        self.evaluator = keima.Evaluator(self.network, batch_size=BATCH, precision=precision, threads=threads)
        self.visits, self.searched, self.seconds = visits, 0, 0.0

    def search(self, positions: Sequence[Position], seed: int) -> list[keima.SearchResult]:
        """Search positions at once, and count."""
        began = time.perf_counter()
        found = search_batch(self.evaluator, positions, self.visits, seed=seed)
        self.seconds += time.perf_counter() - began
        self.searched += sum(result.visits for result in found)
        return found


def draw_openings(
    player: Player, start: Position, count: int, plies: int, even: float, rng: np.random.Generator
) -> list[Position]:
    """So many different positions, by the policy."""
    found: dict[str, Position] = {}
    for _ in range(ROUNDS):
        lines = [start] * count
        for _ in range(plies):
            going = [k for k, line in enumerate(lines) if not line.is_over]
            for k, answer in zip(going, player.evaluator([lines[k] for k in going]), strict=True):
                odds = np.array([*answer.policy.values()])
                lines[k] = lines[k].play(str(rng.choice([*answer.policy], p=odds / odds.sum())))
        lines = [line for line in lines if not line.is_over]
        for line, answer in zip(lines, player.evaluator(lines), strict=True):
            if abs(answer.value or 0.0) <= even:
                found.setdefault(str(line.moves), line)
        if len(found) >= count:
            return [*found.values()][:count]
    raise SystemExit(
        f"of {ROUNDS * count} openings {len(found)} are even enough: give a larger --even, or more --plies"
    )


def result_as_it_stands(position: Position) -> str:
    """A game that went on for too long counts as it stands, in Go by its area; in the others it has none: ""."""
    return position.result or (result_of(position.score()) if isinstance(position, keima.go.Position) else "")


def first_side_points(position: Position) -> float:
    """Of the side that begins: 1, ½ or 0."""
    result = result_as_it_stands(position)
    return 1.0 if result.startswith(("B+", "1-0")) else 0.0 if result.startswith(("W+", "0-1")) else 0.5


def play(players: tuple[Player, Player], openings: Sequence[Position], first: str, longest: int) -> list[Position]:
    """All games to their ends, two from each opening; the first player has the side `first` in even ones."""
    games = [opening for opening in openings for _ in range(2)]
    turn = 0
    while going := [k for k, game in enumerate(games) if not game.is_over and len(game.moves) < longest]:
        for who, player in enumerate(players):
            due = [k for k in going if (games[k].to_play == first) == (k % 2 == who)]
            mine = [k for k in due if not games[k].is_over]
            for k, result in zip(mine, player.search([games[k] for k in mine], turn), strict=True):
                games[k] = games[k].play(result.best)
        turn += 1
    return games


def count(games: Sequence[Position]) -> Tally:
    """The first player's results."""
    points = [abs(k % 2 - first_side_points(game)) for k, game in enumerate(games)]
    pairs = Counter(int(2 * (points[k] + points[k + 1])) for k in range(0, len(points), 2))
    return Tally(
        points.count(1.0),
        points.count(0.5),
        points.count(0.0),
        (pairs[0], pairs[1], pairs[2], pairs[3], pairs[4]),
    )


def record_text(number: int, game: Position, players: Sequence[str]) -> str:
    """The game of that number, from 0, as a record."""
    names, opening = (players[number % 2], players[1 - number % 2]), f"{number // 2 + 1}"
    how = (opening, "by the rules" if game.is_over else "stopped", date.today().isoformat())
    played = PlayedGame(game, names, result_as_it_stands(game), "batch match", number + 1, *how)
    records = GAMES[game.game].records
    return records.write(records.of_game(played))


def measure_rates(players: Sequence[Player], positions: Sequence[Position], rounds: int) -> list[float]:
    """Visits a second of each, medians of rounds in which they take turns."""
    rates: list[list[float]] = [[] for _ in players]
    for turn in range(rounds + 1):
        for rate, player in zip(rates, players, strict=True):
            player.searched, player.seconds = 0, 0.0
            player.search(positions, turn)
            rate.append(player.searched / player.seconds)
    return [median(rate[1:]) for rate in rates]


def main() -> None:
    """Play, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("players", nargs=2, metavar="NETWORK:PRECISION")
    parser.add_argument("--size", type=int, default=9, help="of Go boards")
    parser.add_argument("--komi", type=float, default=7.0)
    parser.add_argument("--rules", default="chinese")
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--visits", type=int, nargs="+", default=[100], help="of both, or of each")
    parser.add_argument("--equal-time", action="store_true", help="the first one's visits by the rates measured")
    parser.add_argument("--plies", type=int, default=8)
    parser.add_argument("--even", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--records", type=Path, metavar="FILE")
    options = parser.parse_args()
    one, other = (Player(entry, options.visits[-k], options.threads) for k, entry in enumerate(options.players))
    starts: dict[str, Position] = {
        "go": keima.go.Position.start(options.size, options.rules, options.komi),
        "chess": keima.chess.Position.start(),
        "connect_four": keima.connect_four.Position.start(),
    }
    start = starts[one.network.encoding.game]
    longest = 2 * options.size**2 if start is starts["go"] else 400
    rng = np.random.default_rng(options.seed)
    openings = draw_openings(one, start, options.games // 2, options.plies, options.even, rng)
    rates = measure_rates((one, other), openings[:64], 5)
    if options.equal_time:
        one.visits = round(other.visits * rates[0] / rates[1])
    began = time.perf_counter()
    games = play((one, other), openings, start.to_play, longest)
    tally = count(games)
    found = {
        "players": options.players,
        "visits": [one.visits, other.visits],
        "rates": [round(rate) for rate in rates],
        "won, drawn, lost": [tally.wins, tally.draws, tally.losses],
        "score": [round(100 * share, 1) for share in (tally.score, *tally.score_interval)],
        "elo": [round(elo) for elo in (tally.elo, *tally.elo_interval)],
        "seconds": round(time.perf_counter() - began),
    }
    print(json.dumps(found))
    if options.records:
        texts = [record_text(number, game, options.players) for number, game in enumerate(games)]
        options.records.write_text("\n".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
