"""Games that policies play against each other, many at once and without a search.

Every move is drawn from a policy's softmax, as AlphaGo's reinforcement learning plays its games (Silver et al. 2016,
Methods, "Policy network: reinforcement learning"), among the moves that the game has it asked about
(`keima.games.archive.PolicyGames`): in Go those that fill no own true eye.

All games go on side by side, one move each a round; each round asks either player once, for all the positions it is to
move in. Game g is a function of the players, the seed and its number, whatever else is played beside it.

    positions → planes → logits → softmax over candidates → drawn move → positions
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from keima.atomic import replacing
from keima.errors import BadRecord, BadRequest, UnsupportedPosition
from keima.games.archive import FlatGames, PolicyGames
from keima.games.game import GAMES
from keima.games.position import Position
from keima.inference.evaluator import Evaluator
from keima.jit import Records, njit
from keima.systems.encoding import Batch, Encoding
from keima.systems.network import Network
from keima.training.data.sampling import random_numbers
from keima.training.run.recipe import SelfplayRecipe

_DRAW, _SYMMETRY = 11, 12
"""Purposes of random numbers."""
_ARRAYS = ("moves", "start", "score", "symmetry", "first_black")


class Player(Protocol):
    """A policy that plays."""

    @property
    def network(self) -> Network:
        """Whose policy it is."""
        ...

    def logits(self, batch: Batch) -> NDArray[np.float32]:
        """float32 [N, A], in the orientation of the planes; of a policy without a pass as if it had one."""
        ...


class EvaluatorPlayer:
    """A network that does not change, in its evaluator.

    Args:
        evaluator: of a network with a policy.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    @property
    def network(self) -> Network:
        """The evaluator's."""
        return self._evaluator.network

    def logits(self, batch: Batch) -> NDArray[np.float32]:
        """See `Player`."""
        policy: NDArray[np.float32] = self._evaluator.infer(batch).policy
        return policy


@dataclass(frozen=True)
class Table:
    """What games are played by.

    Attributes:
        begin: the position they begin from.
        temperature: of the policies.
        max_moves: a game of so many is ended and counted.
    """

    begin: Position
    temperature: float
    max_moves: int

    @property
    def rules(self) -> PolicyGames:
        """How policies play the game."""
        return policy_games(self.begin.game)


class Played(NamedTuple):
    """G games that were played.

    Attributes:
        games: the games, results included.
        first_black: bool [G]: the first player has the first of the game's sides.
        symmetry: int64 [G]: the orientation both players saw the board in.
    """

    games: FlatGames
    first_black: NDArray[np.bool_]
    symmetry: NDArray[np.int64]


def policy_games(game: str) -> PolicyGames:
    """How policies play a game without a search. Raises BadRequest where they do not."""
    found = GAMES[game].archive.policy_games
    if found is None:
        raise BadRequest(f"no games of {GAMES[game].title} are played without a search")
    return found


def check_player(network: Network) -> None:
    """Refuse a network that cannot play so.

    Raises:
        BadRequest: of a game that is not played so, without a policy, for playouts only, or a human network.
    """
    plays = GAMES[network.encoding.game].archive.policy_games is not None and "policy" in network.output_names
    if not plays or network.for_playouts or "metadata" in network.input_names:
        name = f"{network.pedigree.name} ({network.system})"
        titles = " or ".join(game.title for game in GAMES.values() if game.archive.policy_games is not None)
        raise BadRequest(f"games are played by networks of {titles} with a policy, which {name} is not")


def set_table(recipe: SelfplayRecipe, network: Network, *others: Network) -> Table:
    """The table that a recipe describes, of the board of the first network, which the others have to take.

    Raises:
        BadRequest: rules that are none or do not count area, a komi that is none, a size that is not the network's;
            the place is the recipe's key.
    """
    own = getattr(network.encoding, "board_size", None)
    if recipe.size and own is not None and recipe.size != own:
        raise BadRequest(f"the network is for {own}×{own} boards, not {recipe.size}×{recipe.size}", place="size")
    rules = policy_games(network.encoding.game)
    begin = rules.begin(recipe.size or own or 0, recipe.rules, recipe.komi)
    for other in others:
        try:
            other.encoding.check(begin)
        except UnsupportedPosition as error:
            raise BadRequest(error.message, place="size") from error
    return Table(begin, recipe.temperature, recipe.max_moves or rules.longest(begin))


def play_games(
    players: tuple[Player, Player], table: Table, numbers: NDArray[np.int64], seed: int, symmetries: bool = True
) -> Played:
    """Play games, the first player with the first of the game's sides in those of even number.

    Args:
        players: the first and the second, who may be the same.
        table: where games begin and end.
        numbers: int64 [G], the games' numbers.
        seed: everything random follows from it and a game's number.
        symmetries: each game is seen in an orientation of its own.
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
        self.table, self.rules, self.numbers, self.seed = table, table.rules, numbers, seed
        self.players = seats = tuple(_Seat(player, table) for player in players)
        self.first_black = numbers % 2 == 0
        shared = [one for one in seats[0].symmetries if one in seats[1].symmetries] if symmetries else [0]
        chance = np.array([random_numbers(seed, _SYMMETRY, int(number), 1)[0] for number in numbers], np.uint64)
        self.symmetry = np.array(shared, np.int64)[(chance >> np.uint64(61)).astype(np.int64) % len(shared)]
        self.records = beginning(table, count)
        self.moves = np.zeros((count, table.max_moves), np.uint16)
        self.length = np.zeros(count, np.int64)
        self.chance = np.zeros((count, table.max_moves))
        for row, number in enumerate(numbers.tolist()):
            drawn = random_numbers(seed, _DRAW, number * table.max_moves, table.max_moves)
            self.chance[row] = (drawn >> np.uint64(11)) / float(1 << 53)
        self.first_to_move = True

    def any_left(self) -> bool:
        """Is a game still going on?"""
        self.left = np.flatnonzero(~self.rules.over(self.records) & (self.length < self.table.max_moves))
        return len(self.left) > 0

    def play_round(self) -> None:
        """One move in every game that goes on; in all of them the same side is to move."""
        firsts = self.first_black[self.left] == self.first_to_move
        for seat, rows in zip(self.players, (self.left[firsts], self.left[~firsts]), strict=True):
            if len(rows):
                self._move(seat, rows)
        self.first_to_move = not self.first_to_move

    def _move(self, seat: _Seat, rows: NDArray[np.int64]) -> None:
        records, symmetries = records_of(self.records, rows), self.symmetry[rows]
        batch = seat.encode(records, symmetries)
        logits = seat.player.logits(batch).astype(np.float64)
        moves, counts, indices = candidates(self.rules, seat.encoding, seat.passes, records, symmetries, batch)
        chosen = np.empty(len(rows), np.int16)
        chance = self.chance[rows, self.length[rows]]
        _draw_moves(moves, counts, indices, logits, 1.0 / self.table.temperature, chance, chosen)
        packed = np.empty(len(rows), np.uint16)
        self.rules.play(self.records, rows, chosen, packed)
        self.moves[rows, self.length[rows]] = packed
        self.length[rows] += 1

    def finish(self) -> Played:
        """Count the games."""
        moves = [row[:length] for row, length in zip(self.moves, self.length.tolist(), strict=True)]
        start = np.concatenate([[0], np.cumsum(self.length)]).astype(np.int64)
        leads = self.rules.count(self.records)
        games = self.rules.games(self.table.begin, np.concatenate(moves), start, leads)
        return Played(games, self.first_black, self.symmetry)


class _Seat:
    """A player and how it sees positions."""

    def __init__(self, player: Player, table: Table) -> None:
        self.player = player
        self.encoding: Encoding = player.network.encoding
        self.shape = self.encoding.shape(table.begin)
        self.symmetries = self.encoding.symmetries
        self.passes = player.network.has_pass

    def encode(self, records: Records, symmetries: NDArray[np.int64]) -> Batch:
        """The network's inputs."""
        batch = self.encoding.room(len(records), self.shape)
        self.encoding.write(records, symmetries, batch)
        return batch


def candidates(
    rules: PolicyGames,
    encoding: Encoding,
    passes: bool,
    records: Records,
    symmetries: NDArray[np.int64],
    batch: Batch,
) -> tuple[NDArray[np.int16], NDArray[np.int32], NDArray[np.int32]]:
    """The moves a policy is asked about in N positions.

    Args:
        rules: of the game.
        encoding: the network's.
        passes: the policy has a pass.
        records: [N].
        symmetries: int64 [N].
        batch: the positions as the encoding wrote them.

    Returns:
        Moves int16 [N, M]; how many of each row they are, int32 [N]; their policy indices, int32 [N, M].
    """
    moves = np.empty((len(records), rules.most_moves), np.int16)
    counts = np.empty(len(records), np.int32)
    indices = np.empty(moves.shape, np.int32)
    rules.candidates(records, passes, moves, counts)
    encoding.write_indices(moves, counts, symmetries, batch, indices)
    return moves, counts, indices


def records_of(records: Records, rows: NDArray[np.int64]) -> Records:
    """These rows of records, copied as bytes: NumPy copies structured arrays field by field."""
    found: Records = records.view(np.uint8).reshape(len(records), -1)[rows].reshape(-1).view(records.dtype)
    return found


def beginning(table: Table, count: int) -> Records:
    """The first position `count` times: as replaying a stored game begins, so that positions are made anew the same."""
    empty = table.rules.games(table.begin, np.zeros(0, np.uint16), np.zeros(2, np.int64), np.zeros(1, np.float32))
    records = np.zeros(count, GAMES[table.begin.game].kernels.dtype)
    empty.replay(np.zeros(1, np.int64), np.zeros(1, np.int64), records[:1])
    rows = records.view(np.uint8).reshape(count, -1)
    rows[1:] = rows[0]
    return records


@njit
def _draw_moves(
    moves: NDArray[np.int16],
    counts: NDArray[np.int32],
    indices: NDArray[np.int32],
    logits: NDArray[np.float64],
    sharpness: float,
    chance: NDArray[np.float64],
    chosen: NDArray[np.int16],
) -> None:
    """Draw a move in each of N positions by the softmax of the candidates' logits · sharpness.

    Args:
        moves: int16 [N, M].
        counts: int32 [N], how many of each row they are.
        indices: int32 [N, M], of the moves in the policy.
        logits: float64 [N, A].
        sharpness: 1 / temperature.
        chance: float64 [N] in [0, 1), decides.
        chosen: int16 [N], written.
    """
    odds = np.empty(moves.shape[1])
    for k in range(len(counts)):
        best = -np.inf
        for m in range(counts[k]):
            odds[m] = logits[k, indices[k, m]] * sharpness
            best = max(best, odds[m])
        total = 0.0
        for m in range(counts[k]):
            odds[m] = np.exp(odds[m] - best)
            total += odds[m]
        left = chance[k] * total
        chosen[k] = moves[k, counts[k] - 1]
        for m in range(counts[k]):
            left -= odds[m]
            if left < 0:
                chosen[k] = moves[k, m]
                break


# --- Keeping ----------------------------------------------------------------------------------------------------------


def write_played(path: Path, played: Played) -> None:
    """Keep games in a NumPy archive, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    games = played.games
    everything = np.arange(len(games), dtype=np.int64)
    with replacing(path) as stream:
        np.savez(
            stream,
            moves=games.moves,
            start=games.start,
            score=games.final_lead(everything),
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
            moves, start, score, symmetry, first_black = (stored[name] for name in _ARRAYS)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise BadRecord(f"not games kept by a run: {error}", source=str(path)) from error
    return Played(table.rules.games(table.begin, moves, start, score), first_black, symmetry)
