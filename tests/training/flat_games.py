"""Games made here as the flat arrays that loaders read: no files, no Parquet."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from keima.games.chess.archive import ChessGames
from keima.games.chess.position import Position as ChessPosition
from keima.games.go.archive.flat import GoGames
from keima.games.go.position import Position
from keima.games.go.rules import Rules
from keima.games.go.vertices import vertex_to_xy
from keima.games.rows import UNKNOWN_WINNER

WHITE_BIT = 1 << 15


@dataclass
class Game:
    """A game of Go as a record has it."""

    moves: list[tuple[str, str]]
    size: tuple[int, int] = (9, 9)
    setup: list[tuple[str, str]] = field(default_factory=list)
    to_play: str = "B"
    rules: str = "chinese"
    komi: float = 7.5
    winner: int = UNKNOWN_WINNER
    score: float = float("nan")
    ranks: tuple[str, str] = ("", "")

    def position(self, turn):
        """The position before move `turn`, by the public API alone, with the side of that move to play."""
        black, white = ([v for c, v in self.setup if c == colour] for colour in "BW")
        position = Position.start(self.size, self.rules, self.komi, black=black, white=white, to_play=self.to_play)
        for colour, vertex in self.moves[:turn]:
            position = position.play_as(colour, vertex)
        return position.with_to_play(self.moves[turn][0]) if turn < len(self.moves) else position


def packed(colour, vertex, size):
    xy = vertex_to_xy(vertex, *size)
    point = size[0] * size[1] if xy is None else xy[1] * size[0] + xy[0]
    return point | (WHITE_BIT if colour == "W" else 0)


def starts(lists):
    return np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)


def flat_of(games):
    """These games of Go."""
    moves = [[packed(*move, game.size) for move in game.moves] for game in games]
    setup = [[packed(*stone, game.size) for stone in game.setup] for game in games]
    rules = tuple(dict.fromkeys(Rules.parse(game.rules) for game in games))
    ranks = ("", *dict.fromkeys(rank for game in games for rank in game.ranks if rank))
    return GoGames(
        moves=np.array([move for one in moves for move in one], np.uint16),
        start=starts(moves),
        winner=np.array([game.winner for game in games], np.int8),
        key=np.arange(len(games), dtype=np.uint64),
        setup=np.array([stone for one in setup for stone in one], np.uint16),
        setup_start=starts(setup),
        to_play_first=np.array([game.to_play == "W" for game in games], np.uint8),
        xsize=np.array([game.size[0] for game in games], np.uint8),
        ysize=np.array([game.size[1] for game in games], np.uint8),
        rules_index=np.array([rules.index(Rules.parse(game.rules)) for game in games], np.uint16),
        rules=rules,
        komi=np.array([game.komi for game in games], np.float32),
        handicap=np.zeros(len(games), np.uint8),
        score=np.array([game.score for game in games], np.float32),
        black_rank=np.array([ranks.index(game.ranks[0]) for game in games], np.uint16),
        white_rank=np.array([ranks.index(game.ranks[1]) for game in games], np.uint16),
        ranks=ranks,
    )


def random_game(seed, size=(9, 9), length=40, rules="chinese", passes=0.0, out_of_turn=0.0, setup=()):
    """A game of random legal moves, with passes and moves out of turn at these rates."""
    chance = random.Random(seed)
    first = chance.choice("BW") if setup else "B"
    game = Game([], size, list(setup), first, rules, chance.choice([0.5, 6.5, 7.5]), chance.choice([-1, 0, 1]))
    position = game.position(0)
    for _ in range(length):
        if chance.random() < out_of_turn:
            position = position.with_to_play("W" if position.to_play == "B" else "B")
        names = position.legal()
        vertex = "pass" if chance.random() < passes or len(names) == 1 else chance.choice(names[:-1])
        game.moves.append((position.to_play, vertex))
        position = position.play_as(*game.moves[-1])
    game.score = float(chance.randrange(-20, 20)) + 0.5
    return game


@dataclass
class ChessGame:
    """A game of chess by its UCI moves."""

    moves: list[str]
    fen: str | None = None
    chess960: bool = False
    winner: int = UNKNOWN_WINNER
    elo: tuple[int, int] = (-1, -1)

    def position(self, turn):
        return ChessPosition.from_fen(self.fen, self.moves[:turn], self.chess960)

    def codes(self):
        """The moves as the kernel names them, found among the legal ones."""
        found = []
        for turn, move in enumerate(self.moves):
            position = self.position(turn)
            found.append(int(position.legal_codes[position.legal().index(move)]))
        return found


def flat_of_chess(games):
    """These games of chess."""
    moves = [game.codes() for game in games]
    fens = tuple(dict.fromkeys(game.fen for game in games if game.fen))
    return ChessGames(
        moves=np.array([move for one in moves for move in one], np.uint16),
        start=starts(moves),
        winner=np.array([game.winner for game in games], np.int8),
        key=np.arange(len(games), dtype=np.uint64),
        start_fen=np.array([fens.index(game.fen) if game.fen else -1 for game in games], np.int32),
        start_fens=fens,
        chess960=np.array([game.chess960 for game in games], np.bool_),
        white_elo=np.array([game.elo[0] for game in games], np.int16),
        black_elo=np.array([game.elo[1] for game in games], np.int16),
    )


def random_chess(seed, length=30, fen=None, chess960=False):
    chance = random.Random(seed)
    game = ChessGame([], fen, chess960, chance.choice([-1, 0, 1]))
    position = game.position(0)
    while len(game.moves) < length and position.legal():
        game.moves.append(chance.choice(position.legal()))
        position = position.play(game.moves[-1])
    return game
