"""Random games of Go, held to plain Python: legal moves, stones, captures, all ko rules, how a game ends, its score.

The plain side (`Truth`) knows grids only: chains by flooding, superko by the list of all grids there have been, points
from the definitions. Games on big boards are held to `sgfmill.boards` instead, stones and simple ko.
"""

from __future__ import annotations

import random

import sgfmill.boards

from keima.errors import IllegalMove
from keima.games.go import Position
from keima.games.go.board import BLACK, EMPTY, WHITE
from keima.games.go.rules import KO_RULES, SCORING_RULES, TAX_RULES
from tests.games.go.go_drawing import Grid, is_plainly_legal, played, stones_grid, with_stones
from tests.games.go.plain_area import plain_area, plain_life

LETTERS = "ABCDEFGHJKLMNOPQRST"
_BIG = 16
"""One seed in so many is a game on a big board."""
_SIDES = (2, 2, 2, 3, 3, 3, 4, 5)
"""Small boards repeat themselves soon."""
_PASSING = (0.02, 0.1, 0.3)
Situation = tuple[Grid, int]


def one(seed: int) -> None:
    """A game of random legal moves."""
    rng = random.Random(f"rules of go {seed}")
    if seed % _BIG == 0:
        _big_game(rng)
    else:
        _small_game(rng)


class Truth:
    """A game by the rules as `keima.games.go.rules.Rules` describes them."""

    def __init__(self, width: int, height: int, rules: dict[str, object]) -> None:
        self.rules = rules
        self.grid: Grid = ((EMPTY,) * width,) * height
        self.to_play = BLACK
        self.captures = {BLACK: 0, WHITE: 0}
        self.button = bool(rules["hasButton"])
        self.bonus = 0.0
        self.over = self.no_result = False
        self._before: Grid | None = None  # the grid before the last move, which simple ko looks at
        self._seen: list[Situation] = [(self.grid, BLACK)]  # with the side to move
        self._passed: set[Situation] = set()
        self._passes = 0

    def legal(self) -> dict[str, tuple[int, int]]:
        """The points by name; a pass is always legal."""
        return {
            f"{LETTERS[x]}{len(self.grid) - y}": (x, y)
            for y, row in enumerate(self.grid)
            for x in range(len(row))
            if self._is_legal(x, y)
        }

    def _is_legal(self, x: int, y: int) -> bool:
        if not is_plainly_legal(self.grid, x, y, self.to_play, bool(self.rules["suicide"]), self._before):
            return False
        after = played(self.grid, x, y, self.to_play)
        match self.rules["ko"]:
            case "SIMPLE":
                return True
            case "SITUATIONAL":
                return (after, 3 - self.to_play) not in self._seen
        return all(grid != after for grid, _ in self._seen)

    def play(self, point: tuple[int, int] | None) -> None:
        """A legal move; None passes."""
        colour = self.to_play
        self.to_play = 3 - colour
        if point is None:
            self._pass(colour)
            return
        self._passes = 0
        x, y = point
        after = played(self.grid, x, y, colour)
        full = with_stones(self.grid, {point}, colour)
        for each in (BLACK, WHITE):
            self.captures[each] += _count(full, each) - _count(after, each)
        self._before, self.grid = self.grid, after
        self._seen.append((after, 3 - colour))
        if self.rules["scoring"] == "TERRITORY":  # a stone is worth no point
            self.bonus += 1 if colour == BLACK else -1
        if self.rules["ko"] == "SIMPLE" and self._seen.count((after, 3 - colour)) >= 3:
            self.over = self.no_result = True

    def _pass(self, colour: int) -> None:
        self._before = None
        ko = self.rules["ko"]
        if self.button:
            self.button = False
            self.bonus += 0.5 if colour == WHITE else -0.5
            self._seen, self._passes = [], 0
            self._passed.clear()
        else:
            if ko in ("SIMPLE", "SPIGHT"):  # a pass lifts all bans; to pass twice in one situation ends the game
                self._seen = []
                self.over = (self.grid, colour) in self._passed
                self._passed.add((self.grid, colour))
            self._passes += ko != "SPIGHT"
            self.over = self.over or self._passes == 2
        self._seen.append((self.grid, 3 - colour))

    def score(self) -> float:
        """White's points minus Black's, without komi."""
        suicide, tax = bool(self.rules["suicide"]), self.rules["tax"]
        groups = 0
        if self.rules["scoring"] == "AREA" and tax == "NONE":
            area = plain_area(self.grid, True, True, True, suicide)
        elif self.rules["scoring"] == "AREA":
            area, groups = plain_life(self.grid, False, True, suicide)
        else:
            area, groups = plain_life(self.grid, tax == "NONE", False, suicide)
            rows = zip(area, self.grid, strict=True)
            area = tuple(tuple(owner or stone for owner, stone in zip(*row, strict=True)) for row in rows)
        points = _count(area, WHITE) - _count(area, BLACK) - (2 * groups if tax == "ALL" else 0)
        button = (0.5 if self.to_play == WHITE else -0.5) if self.button else 0
        return points + self.bonus + button


def _count(grid: Grid, colour: int) -> int:
    return sum(row.count(colour) for row in grid)


def _small_game(rng: random.Random) -> None:
    """By any rules."""
    width, height = rng.choices(_SIDES, k=2)
    rules: dict[str, object] = {
        "ko": rng.choice(KO_RULES),
        "scoring": rng.choice(SCORING_RULES),
        "tax": rng.choice(TAX_RULES),
        "suicide": rng.random() < 0.5,
        "hasButton": rng.random() < 0.2,
    }
    komi = rng.randrange(-20, 20) / 2
    truth, position = Truth(width, height, rules), Position.start((width, height), rules, komi)
    passing = rng.choice(_PASSING)
    for _ in range(rng.randrange(4, 100)):
        what = (position.to_json(), truth.grid)
        legal = truth.legal()
        assert set(position.legal()) == {*legal, "pass"}, (what, set(position.legal()) ^ set(legal))
        _refuses_what_is_illegal(rng, position, legal)
        name = "pass" if not legal or rng.random() < passing else rng.choice(sorted(legal))
        truth.play(legal.get(name))
        position = position.play(name)
        what = (position.to_json(), truth.grid)
        assert stones_grid(position) == truth.grid, what
        assert position.captures == {"B": truth.captures[BLACK], "W": truth.captures[WHITE]}, what
        assert (position.is_over, position.is_no_result) == (truth.over, truth.no_result), what
        if truth.over:
            break
    score = truth.score() + komi
    assert position.score() == score, (what, position.score(), score)
    if truth.over:
        won = "0" if score == 0 else f"{'W' if score > 0 else 'B'}+{abs(score):g}"
        assert position.result == ("Void" if truth.no_result else won), what
    again = Position.from_json(position.to_json())
    assert again == position, what


def _refuses_what_is_illegal(rng: random.Random, position: Position, legal: dict[str, tuple[int, int]]) -> None:
    """A random point, where it is not legal."""
    name = f"{LETTERS[rng.randrange(position.xsize)]}{rng.randrange(position.ysize) + 1}"
    assert position.is_legal(name) == (name in legal)
    if name in legal:
        return
    try:
        position.play(name)
    except IllegalMove:
        return
    raise AssertionError((position.to_json(), name))


def _big_game(rng: random.Random) -> None:
    """Stones and simple ko on boards up to 19×19; moves near the last ones, so that there are captures."""
    size = rng.randrange(7, 20)
    rules = {"ko": "SIMPLE", "scoring": "AREA", "tax": "NONE", "suicide": rng.random() < 0.5}
    position, board = Position.start(size, rules), sgfmill.boards.Board(size)
    banned = None
    area = rng.randrange(3, size + 1)
    for _ in range(rng.randrange(20, 150)):
        if position.is_over:
            return
        row, column = rng.randrange(area), rng.randrange(area)
        if board.get(row, column) is not None:
            continue
        after = board.copy()
        ko = after.play(row, column, position.to_play.lower())
        name = f"{LETTERS[column]}{row + 1}"
        suicide = after.get(row, column) is None
        alone = suicide and after.board == board.board
        legal = (row, column) != banned and not alone and (not suicide or rules["suicide"])
        assert position.is_legal(name) == legal, (position.to_json(), name)
        if legal:
            position, board, banned = position.play(name), after, ko
    stones = {(colour.upper(), f"{LETTERS[column]}{row + 1}") for colour, (row, column) in board.list_occupied_points()}
    assert set(position.on_board()) == stones, position.to_json()
