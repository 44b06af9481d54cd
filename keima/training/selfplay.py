"""Games of Go that policies play against each other, many at once and without a search.

Every move is drawn from a policy's softmax, as AlphaGo's reinforcement learning plays its games (Silver et al. 2016,
Methods, "Policy network: reinforcement learning"). A move that fills an own true eye is never made (AlphaGo's
"sensibleness"); a policy without a pass passes when nothing else is left to it. Two passes end a game, and the area is
counted with every stone alive that stands on the board.

All games go on side by side, one move each a round; each round asks either player once, for all the boards it is to
move on. Game g is a function of the players, the seed and its number, whatever else is played beside it.

    boards → planes → logits → legal, sensible moves → softmax → drawn move → boards
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from keima.atomic import replacing
from keima.encodings.alphago import sensible_moves
from keima.encodings.encoding import Batch, Encoding, decoding_context
from keima.encodings.go_points import policy_places
from keima.errors import BadRecord, BadRequest, KeimaError
from keima.games.go.board import BLACK, BOARD, MAX_POINTS, WHITE
from keima.games.go.history import HISTORY, KO_SIMPLE, is_over, play_move, score_now
from keima.games.go.rules import Rules
from keima.inference.evaluator import Evaluator
from keima.jit import njit
from keima.networks.network import Network
from keima.training.batches import go_filler
from keima.training.flat import FlatGames
from keima.training.recipe import SelfplayRecipe
from keima.training.replay import WHITE_BIT, go_games, replay_game
from keima.training.sampling import random_numbers

MAX_MOVES = 362
_DRAW, _SYMMETRY = 11, 12
"""Purposes of random numbers."""
_ARRAYS = ("moves", "start", "winner", "score", "symmetry", "first_black")

Array = NDArray[Any]


class Player(Protocol):
    """A policy that plays."""

    @property
    def network(self) -> Network:
        """Whose policy it is."""
        ...

    def logits(self, batch: Batch) -> NDArray[np.float32]:
        """float32 [N, H · W + 1], pass last, in the orientation of the planes."""
        ...


class EvaluatorPlayer:
    """A network that does not change, in its evaluator.

    Args:
        evaluator: of a network of Go with a policy.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    @property
    def network(self) -> Network:
        """The evaluator's."""
        return self._evaluator.network

    def logits(self, batch: Batch) -> NDArray[np.float32]:
        """float32 [N, H · W + 1], pass last."""
        policy: NDArray[np.float32] = self._evaluator.infer(batch).policy
        return policy


@dataclass(frozen=True)
class Table:
    """What games are played by.

    Attributes:
        size: points a side.
        rules: of area scoring.
        komi: points for White.
        temperature: of the policies.
        max_moves: a game of so many is ended and counted.
    """

    size: int
    rules: Rules
    komi: float
    temperature: float
    max_moves: int


class Played(NamedTuple):
    """G games that were played.

    Attributes:
        games: the games, results included.
        first_black: bool [G]: the first player has Black.
        symmetry: int64 [G]: the orientation both players saw the board in.
    """

    games: FlatGames
    first_black: NDArray[np.bool_]
    symmetry: NDArray[np.int64]


def check_player(network: Network) -> None:
    """Refuse a network that cannot play so.

    Raises:
        BadRequest: of chess, without a policy, a rollout policy, or a human network.
    """
    other = network.system == "alphago-rollout" or "metadata" in network.input_names
    if network.encoding.game != "go" or other or "policy" not in network.output_names:
        name = f"{network.pedigree.name} ({network.system})"
        raise BadRequest(f"games are played by networks of Go with a policy, which {name} is not")


def set_table(recipe: SelfplayRecipe, network: Any) -> Table:
    """The table that a recipe describes, for a network.

    Raises:
        BadRequest: rules that are none or do not count area, a komi that is none, a size that is not the network's;
            the place is the recipe's key.
    """
    own = getattr(network.encoding, "board_size", None)
    if recipe.size and own is not None and recipe.size != own:
        raise BadRequest(f"the network is for {own}×{own} boards, not {recipe.size}×{recipe.size}", place="size")
    size = recipe.size or own or 19
    try:
        rules = Rules.parse(recipe.rules)
    except KeimaError as error:
        raise BadRequest(error.message, place="rules") from error
    if rules.scoring != "AREA":
        raise BadRequest("games of policies alone are counted by area, which these rules do not", place="rules")
    if abs(recipe.komi) > size * size or (2 * recipe.komi) % 1:
        message = f"should be a whole or half number within ±{size * size}, not {recipe.komi:g}"
        raise BadRequest(message, place="komi")
    return Table(size, rules, recipe.komi, recipe.temperature, recipe.max_moves or 3 * size * size)


def play_games(
    players: tuple[Player, Player], table: Table, numbers: NDArray[np.int64], seed: int, symmetries: bool = True
) -> Played:
    """Play games, the first player with Black in those of even number.

    Args:
        players: the first and the second, who may be the same.
        table: rules, size, komi.
        numbers: int64 [G], the games' numbers.
        seed: everything random follows from it and a game's number.
        symmetries: each game is seen in an orientation of its own.

    Raises:
        BadRequest: no training on a player's encoding.
    """
    games = _Games(players, table, numbers, seed, symmetries)
    while games.any_left():
        games.play_round()
    return games.finish()


class _Games:
    """Games under way."""

    def __init__(
        self, players: tuple[Player, Player], table: Table, numbers: NDArray[np.int64], seed: int, symmetries: bool
    ) -> None:
        count = len(numbers)
        self.table, self.numbers, self.seed = table, numbers, seed
        self.players = seats = tuple(_Seat(player, table) for player in players)
        self.first_black = numbers % 2 == 0
        allowed = 7 if symmetries and all(seat.encoding.symmetries > 1 for seat in seats) else 0
        chance = np.array([random_numbers(seed, _SYMMETRY, int(number), 1)[0] for number in numbers], np.uint64)
        self.symmetry = (chance >> np.uint64(61)).astype(np.int64) & allowed
        self.boards, self.histories = _start(table, count)
        self.moves = np.zeros((count, table.max_moves), np.uint16)
        self.length = np.zeros(count, np.int64)
        self.chance = np.zeros((count, table.max_moves))
        for row, number in enumerate(numbers.tolist()):
            drawn = random_numbers(seed, _DRAW, number * table.max_moves, table.max_moves)
            self.chance[row] = (drawn >> np.uint64(11)) / float(1 << 53)
        self.black_to_play = True

    def any_left(self) -> bool:
        """Is a game still going on?"""
        self.left = np.flatnonzero((self.histories["finished"] == 0) & (self.length < self.table.max_moves))
        return len(self.left) > 0

    def play_round(self) -> None:
        """One move in every game that goes on; in all of them the same side is to move."""
        firsts = self.first_black[self.left] == self.black_to_play
        for seat, rows in zip(self.players, (self.left[firsts], self.left[~firsts]), strict=True):
            if len(rows):
                self._move(seat, rows)
        self.black_to_play = not self.black_to_play

    def _move(self, seat: _Seat, rows: NDArray[np.int64]) -> None:
        logits = seat.logits(pick(self.boards, rows), pick(self.histories, rows), self.symmetry[rows])
        chance = self.chance[rows, self.length[rows]]
        places = policy_places(self.table.size, self.table.size)
        _draw_and_play(
            self.boards,
            self.histories,
            rows,
            logits,
            places,
            self.symmetry,
            1.0 / self.table.temperature,
            seat.passes,
            chance,
            self.moves,
            self.length,
        )

    def finish(self) -> Played:
        """Count the games."""
        scores = np.empty(len(self.numbers), np.float32)
        _count(self.boards, self.histories, scores)
        moves = [row[:length] for row, length in zip(self.moves, self.length.tolist(), strict=True)]
        start = np.concatenate([[0], np.cumsum(self.length)]).astype(np.int64)
        games = _flat(self.table, np.concatenate(moves), start, np.sign(scores).astype(np.int8), scores)
        return Played(games, self.first_black, self.symmetry)


class _Seat:
    """A player and how it sees boards."""

    def __init__(self, player: Player, table: Table) -> None:
        self.player = player
        self.shape = (table.size, table.size)
        self.encoding: Encoding = player.network.encoding
        self.fill = go_filler(self.encoding)
        self.passes = player.network.has_pass

    def logits(self, boards: Array, histories: Array, symmetries: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64 [N, H · W + 1] for N positions."""
        encoding, n = self.encoding, len(boards)
        inputs = {"planes": np.empty((n, encoding.planes, *self.shape), np.float32)}
        if encoding.globals:
            inputs["globals"] = np.empty((n, encoding.globals), np.float32)
        self.fill(boards, histories, symmetries, inputs["planes"], inputs.get("globals"))
        context = decoding_context(histories["to_play"] == BLACK, histories["ko_rule"] == KO_SIMPLE)
        return self.player.logits(Batch(inputs, context)).astype(np.float64)


def pick(records: Array, rows: NDArray[np.int64]) -> Array:
    """These rows of records, copied as bytes: NumPy copies structured arrays field by field."""
    found: Array = records.view(np.uint8).reshape(len(records), -1)[rows].reshape(-1).view(records.dtype)
    return found


def _start(table: Table, count: int) -> tuple[Array, Array]:
    """The empty board `count` times: as replaying a stored game begins, so that positions are made anew the same."""
    empty = _flat(table, np.zeros(0, np.uint16), np.zeros(2, np.int64), np.zeros(1, np.int8), np.zeros(1, np.float32))
    boards, histories = np.zeros(count, BOARD), np.zeros(count, HISTORY)
    replay_game(go_games(empty), 0, 0, boards[0], histories[0], np.zeros(1, np.int16), np.zeros(1, np.int8))
    for records in (boards, histories):
        rows = records.view(np.uint8).reshape(count, -1)
        rows[1:] = rows[0]
    return boards, histories


def _flat(
    table: Table,
    moves: NDArray[np.uint16],
    start: NDArray[np.int64],
    winner: NDArray[np.int8],
    score: NDArray[np.float32],
) -> FlatGames:
    """Games of one table as a store has them."""
    count = len(winner)
    side = np.full(count, table.size, np.uint8)
    none = np.zeros(count, np.uint16)
    return FlatGames(
        game="go",
        moves=moves,
        start=start,
        winner=winner,
        key=np.arange(count, dtype=np.uint64),
        setup_start=np.zeros(count + 1, np.int64),
        to_play_first=np.zeros(count, np.uint8),
        xsize=side,
        ysize=side,
        rules_index=none,
        rules=(table.rules,),
        komi=np.full(count, table.komi, np.float32),
        handicap=np.zeros(count, np.uint8),
        score=score,
        black_rank=none,
        white_rank=none,
        ranks=("",),
    )


# --- Kernels ----------------------------------------------------------------------------------------------------------


@njit
def _draw(
    moves: NDArray[np.int16],
    count: int,
    logits: NDArray[np.float64],
    places: NDArray[np.int32],
    sharpness: float,
    chance: float,
) -> int:
    """One of the moves by the softmax of their logits · sharpness; `chance` in [0, 1) decides."""
    odds = np.empty(count)
    best = -np.inf
    for m in range(count):
        odds[m] = logits[places[moves[m]]] * sharpness
        best = max(best, odds[m])
    total = 0.0
    for m in range(count):
        odds[m] = np.exp(odds[m] - best)
        total += odds[m]
    left = chance * total
    for m in range(count):
        left -= odds[m]
        if left < 0:
            return int(moves[m])
    return int(moves[count - 1])


@njit
def _draw_and_play(
    boards: Any,
    histories: Any,
    rows: NDArray[np.int64],
    logits: NDArray[np.float64],
    places: NDArray[np.int32],
    symmetry: NDArray[np.int64],
    sharpness: float,
    passes: bool,
    chance: NDArray[np.float64],
    moves: NDArray[np.uint16],
    length: NDArray[np.int64],
) -> None:
    """Draw and make one move in each of these games.

    Args:
        boards: BOARD [G].
        histories: HISTORY [G].
        rows: int64 [n], the games.
        logits: float64 [n, H · W + 1], pass last.
        places: int32 [8, MAX_POINTS], of `policy_places`.
        symmetry: int64 [G].
        sharpness: 1 / temperature.
        passes: the policy has a pass.
        chance: float64 [n] in [0, 1).
        moves: uint16 [G, most], written: packed as in a store.
        length: int64 [G], moves made, counted up.
    """
    path = np.empty(MAX_POINTS, np.int16)
    found = np.empty(MAX_MOVES, np.int16)
    for k in range(len(rows)):
        g = rows[k]
        b, h = boards[g], histories[g]
        colour = int(h.to_play)
        turned = symmetry[g]
        count = sensible_moves(b, h, passes, path, found)
        loc = _draw(found, count, logits[k], places[turned], sharpness, chance[k])
        point = int(places[0, loc])
        moves[g, length[g]] = point | WHITE_BIT if colour == WHITE else point
        length[g] += 1
        play_move(b, h, loc, colour)


@njit
def _count(boards: Any, histories: Any, scores: NDArray[np.float32]) -> None:
    """Write Black's lead in points at the end of each game, every stone alive; 0 where there is no result."""
    area = np.empty(MAX_POINTS, np.int8)
    for g in range(len(scores)):
        ended = is_over(histories[g]) and histories[g].no_result
        scores[g] = 0.0 if ended else -score_now(boards[g], histories[g], area)


@njit
def mark_sensible(
    boards: Any,
    histories: Any,
    symmetry: NDArray[np.int64],
    places: NDArray[np.int32],
    passes: bool,
    allowed: NDArray[np.bool_],
) -> None:
    """Write which moves of a policy are asked about in N positions: bool [N, A], A = H · W, or one more with a pass."""
    path = np.empty(MAX_POINTS, np.int16)
    moves = np.empty(MAX_MOVES, np.int16)
    for i in range(len(symmetry)):
        allowed[i] = False
        count = sensible_moves(boards[i], histories[i], passes, path, moves)
        for m in range(count):
            place = places[symmetry[i], moves[m]]
            if place < allowed.shape[1]:
                allowed[i, place] = True


# --- Keeping ----------------------------------------------------------------------------------------------------------


def write_played(path: Path, played: Played) -> None:
    """Keep games in a NumPy archive, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    games = played.games
    with replacing(path) as stream:
        np.savez(
            stream,
            moves=games.moves,
            start=games.start,
            winner=games.winner,
            score=games.score,
            symmetry=played.symmetry,
            first_black=played.first_black,
        )


def read_played(path: Path, table: Table) -> Played:
    """Games that `write_played` kept.

    Raises:
        BadRecord: the file is damaged.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            moves, start, winner, score, symmetry, first_black = (stored[name] for name in _ARRAYS)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise BadRecord(f"not games kept by a run: {error}", source=str(path)) from error
    return Played(_flat(table, moves, start, winner, score), first_black, symmetry)
