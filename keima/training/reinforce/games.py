"""Games that policies play against each other, many at once and without a search.

Every move is drawn from a policy's softmax, as AlphaGo's reinforcement learning plays its games (Silver et al. 2016,
Methods, "Policy network: reinforcement learning"), among the moves that the game has it asked about
(`keima.games.archive.PolicyGames`): in Go those that fill no own true eye.

All games go on side by side, one move each a round; each round asks either player once, for all the positions it is to
move in. Game g is a function of the players, the seed and its number, whatever else is played beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keima.atomic import replacing
from keima.errors import BadRecord, BadRequest, UnsupportedPosition
from keima.games.archive import FlatGames, PolicyGames
from keima.games.game import GAMES
from keima.games.position import Position
from keima.inference.evaluator import Evaluator
from keima.jit import Records, njit
from keima.systems.encoding import Batch
from keima.systems.network import Network
from keima.training.data.sampling import random_numbers
from keima.training.data.store import check_output, writing
from keima.training.run.recipe import SelfplayRecipe

Ints = NDArray[np.int64]

_DRAW, _SYMMETRY = 11, 12
"""Purposes of random numbers."""
_TOGETHER = 256
"""Games of a store that are played side by side."""
_ARRAYS = ("moves", "start", "score", "symmetry", "first_black")


class Player(Protocol):
    """A network as a policy that plays."""

    network: Network

    def logits(self, batch: Batch) -> NDArray[np.float32]:
        """float32 [N, A], in the orientation of the planes; of a policy without a pass as if it had one."""
        ...


class EvaluatorPlayer:
    """A network that does not change, in its evaluator."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator, self.network = evaluator, evaluator.network

    def logits(self, batch: Batch) -> NDArray[np.float32]:
        """See `Player`."""
        policy: NDArray[np.float32] = self._evaluator.infer(batch).policy
        return policy


@dataclass(frozen=True)
class Table:
    """What games are played by: where they begin, the policies' temperature, the moves after which a game is ended."""

    begin: Position
    temperature: float
    max_moves: int

    @property
    def rules(self) -> PolicyGames:
        """How policies play the game."""
        return GAMES[self.begin.game].archive.policy_games


class Played(NamedTuple):
    """G games that were played, results included.

    Attributes:
        games: as a store has them.
        first_black: bool [G]: the first player has the first of the game's sides.
        symmetry: int64 [G]: the orientation both players saw the board in.
    """

    games: FlatGames
    first_black: NDArray[np.bool_]
    symmetry: Ints


def check_player(network: Network) -> None:
    """Refuse a network that cannot play so.

    Raises:
        BadRequest: without a policy, for playouts only, or a human network.
    """
    if "policy" not in network.output_names or network.for_playouts or "metadata" in network.input_names:
        name = f"{network.pedigree.name} ({network.system})"
        raise BadRequest(f"games are played by networks with a policy of their own, which {name} has not")


def set_table(recipe: SelfplayRecipe, network: Network, *others: Network) -> Table:
    """The table that a recipe describes, of the board of the first network, which the others have to take.

    Raises:
        BadRequest: rules that are none or do not count area, a komi that is none, a size that is not the network's;
            the place is the recipe's key.
    """
    own = getattr(network.encoding, "board_size", None)
    if recipe.size and own is not None and recipe.size != own:
        raise BadRequest(f"the network is for {own}×{own} boards, not {recipe.size}×{recipe.size}", place="size")
    rules = GAMES[network.encoding.game].archive.policy_games
    begin = rules.begin(recipe.size or own or 0, recipe.rules, recipe.komi)
    for other in others:
        try:
            other.encoding.check(begin)
        except UnsupportedPosition as error:
            raise BadRequest(error.message, place="size") from error
    return Table(begin, recipe.temperature, recipe.max_moves or rules.longest(begin))


def play_games(
    players: tuple[Player, Player], table: Table, numbers: Ints, seed: int, symmetries: bool = True
) -> Played:
    """Play games, the first player with the first of the game's sides in those of even number.

    Args:
        players: the first and the second, who may be the same.
        table: where games begin and end.
        numbers: int64 [G], the games' numbers; with the seed everything random follows from them.
        seed: see `numbers`.
        symmetries: each game is seen in an orientation of its own.
    """
    rules, count = table.rules, len(numbers)
    first_black = numbers % 2 == 0
    theirs = [player.network.encoding.symmetries for player in players]
    shared = [one for one in theirs[0] if one in theirs[1]] if symmetries else [0]
    turned = np.array([random_numbers(seed, _SYMMETRY, int(number), 1)[0] for number in numbers], np.uint64)
    symmetry = np.array(shared, np.int64)[(turned >> np.uint64(61)).astype(np.int64) % len(shared)]
    records = beginning(table, count)
    moves = np.zeros((count, table.max_moves), np.uint16)
    length = np.zeros(count, np.int64)
    chance = np.zeros((count, table.max_moves))
    for row, number in enumerate(numbers.tolist()):
        drawn = random_numbers(seed, _DRAW, number * table.max_moves, table.max_moves)
        chance[row] = (drawn >> np.uint64(11)) / float(1 << 53)
    first_to_move = True
    while len(left := np.flatnonzero(~rules.over(records) & (length < table.max_moves))):
        firsts = first_black[left] == first_to_move  # in all games the same side is to move
        for player, rows in zip(players, (left[firsts], left[~firsts]), strict=True):
            if len(rows):
                chosen = _choose(player, table, records_of(records, rows), symmetry[rows], chance[rows, length[rows]])
                packed = np.empty(len(rows), np.uint16)
                rules.play(records, rows, chosen, packed)
                moves[rows, length[rows]] = packed
                length[rows] += 1
        first_to_move = not first_to_move
    played = np.concatenate([row[:end] for row, end in zip(moves, length.tolist(), strict=True)])
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    return Played(rules.games(table.begin, played, start, rules.count(records)), first_black, symmetry)


def _choose(
    player: Player, table: Table, records: Records, symmetries: Ints, chance: NDArray[np.float64]
) -> NDArray[np.int16]:
    """A player's moves in N positions, int16 [N]."""
    encoding = player.network.encoding
    batch = encoding.room(len(records), encoding.shape(table.begin))
    encoding.write(records, symmetries, batch)
    logits = player.logits(batch).astype(np.float64)
    moves, counts, indices = candidates(table.rules, player.network, records, symmetries, batch)
    chosen = np.empty(len(records), np.int16)
    _draw_moves(moves, counts, indices, logits, 1.0 / table.temperature, chance, chosen)
    return chosen


def candidates(
    rules: PolicyGames, network: Network, records: Records, symmetries: Ints, batch: Batch
) -> tuple[NDArray[np.int16], NDArray[np.int32], NDArray[np.int32]]:
    """The moves a network's policy is asked about in N positions, which its encoding has written into `batch`.

    Returns:
        Moves int16 [N, M]; how many of each row they are, int32 [N]; their policy indices, int32 [N, M].
    """
    moves = np.empty((len(records), rules.most_moves), np.int16)
    counts = np.empty(len(records), np.int32)
    indices = np.empty(moves.shape, np.int32)
    rules.candidates(records, network.has_pass, moves, counts)
    network.encoding.write_indices(moves, counts, symmetries, batch, indices)
    return moves, counts, indices


def records_of(records: Records, rows: Ints) -> Records:
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
    """Draw a move in each of N positions by the softmax of the candidates' logits · sharpness (1 / temperature).

    Args:
        moves, indices: int16, int32 [N, M]: the candidates, `counts` (int32 [N]) of a row; where in the policy.
        logits: float64 [N, A].
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


def write_played(path: Path, played: Played) -> None:
    """Keep games in a NumPy archive, whole or not at all. Raises OSError where it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    games, first_black, symmetry = played
    score = games.final_lead(np.arange(len(games), dtype=np.int64))
    with replacing(path) as stream:
        np.savez(stream, moves=games.moves, start=games.start, score=score, symmetry=symmetry, first_black=first_black)


def read_played(path: Path, table: Table) -> Played:
    """Games that `write_played` kept. Raises BadRecord where the file is damaged."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            moves, start, score, symmetry, first_black = (stored[name] for name in _ARRAYS)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise BadRecord(f"not games kept by a run: {error}", source=str(path)) from error
    return Played(table.rules.games(table.begin, moves, start, score), first_black, symmetry)


def play_store(
    evaluators: tuple[Evaluator, Evaluator],
    table: Table,
    games: int,
    out: Path | str,
    *,
    seed: int = 0,
    symmetries: bool = True,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Play games and write them to a store, `*.parquet`; the first player moves first in every other one.

    Everything random follows from the seed; `progress` is told now and then how many have been played.

    Returns:
        Moves played.

    Raises:
        BadRequest: `out` is no `.parquet` or in no folder, or a network that cannot play so.
        BadStore: it cannot be written; nothing is changed then.
    """
    check_output(out)
    for evaluator in evaluators:
        check_player(evaluator.network)
    players = EvaluatorPlayer(evaluators[0]), EvaluatorPlayer(evaluators[1])
    names = (evaluators[0].network.pedigree.name, evaluators[1].network.pedigree.name)
    moves, game = 0, table.begin.game
    with writing(out, game) as writer:
        for first in range(0, games, _TOGETHER):
            numbers = np.arange(first, min(first + _TOGETHER, games), dtype=np.int64)
            played = play_games(players, table, numbers, seed, symmetries)
            firsts = [names[int(not leads)] for leads in played.first_black]
            seconds = [names[int(leads)] for leads in played.first_black]
            rows = list(table.rules.rows(played.games, firsts, seconds, first))
            writer.write(pa.RecordBatch.from_pylist(rows, schema=GAMES[game].archive.schema))
            moves += len(played.games.moves)
            progress(len(numbers) + first)
    return moves
