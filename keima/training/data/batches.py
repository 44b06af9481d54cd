"""Batches of training positions: shuffled, encoded as in inference, turned by symmetries, on worker threads.

Batch k is a function of the games, the seed and k alone (`keima.training.data.sampling`), so a run goes on where it
stopped by `seek(k)`, and W processes of batch size n together see what one process of batch size W · n sees: rank r
takes rows r · n … (r + 1) · n − 1 of it.

Positions are replayed from the packed moves and encoded as in inference (`Encoding.write`), a whole batch a thread; the
kernels hold no lock. A position is the one before each move of each game, so that it has a move to learn; the last
position, after which nothing was played, is not among them.

    with Loader(GameStore.open("train.parquet"), network.encoding, 256, seed=1) as loader:
        for batch in itertools.islice(loader, 1000):
            outputs = network(**batch.torch(device).inputs)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest, UnsupportedPosition
from keima.games.archive import FlatGames
from keima.games.game import GAMES
from keima.games.rows import UNKNOWN_WINNER, rank_number
from keima.jit import Records
from keima.plain import Data
from keima.systems.encoding import Batch, Encoding
from keima.systems.targets import NO_MOVE, TARGETS, ArrayBatch, TrainingBatch
from keima.training.data.sampling import random_numbers, stream
from keima.training.data.store import GameStore

CHUNK = 32
"""Positions replayed, then encoded, at a time: their records stay in the processor's cache."""

_SYMMETRY, _PLY = 1, 2  # purposes of random numbers

Arrays = dict[str, NDArray[Any]]
Ints = NDArray[np.int64]
Asked = tuple[NDArray[np.int16], NDArray[np.int32]]
"""Moves [N, M] whose policy indices are asked for, and how many of each row they are [N]."""


@dataclass(frozen=True)
class PositionFilter:
    """Which positions of a store to take; games left out are counted by reason in `Loader.left_out`.

    Attributes:
        first_ply, last_ply: only positions with so many moves made at least, at most; None: up to the last move.
        lowest_rank: both players have this rank at least ("1k", "6d", "1p", as in Go); a player without one has none.
        lowest_rating: both players have this rating at least, as players of chess have them.
        known_winner: games whose winner is known only.
        one_per_game: every epoch takes one position of each game, another one each time. Neighbouring positions share
            their outcome, which a value network learns by heart (Silver et al. 2016, "Training the value network").

    Raises:
        BadRequest: a range or a rank that cannot be.
    """

    first_ply: int = 0
    last_ply: int | None = None
    lowest_rank: str | None = None
    lowest_rating: int | None = None
    known_winner: bool = False
    one_per_game: bool = False

    def __post_init__(self) -> None:
        if self.first_ply < 0 or (self.last_ply is not None and self.last_ply < self.first_ply):
            raise BadRequest(f"no position has a ply from {self.first_ply} to {self.last_ply}")
        if self.lowest_rank is not None and np.isnan(rank_number(self.lowest_rank)):
            raise BadRequest(f'{self.lowest_rank!r} is no rank; one looks like "5k", "3d" or "9p"')


@dataclass(frozen=True, eq=False)
class Policies:
    """What searches found at the plies of G games, to be learned in place of the moves played: π at some or all."""

    first: Ints  # [G + 1], where each game's plies begin among all
    start: Ints  # [plies + 1], where each ply's moves begin; as many as the next one's where it has none
    moves: NDArray[np.int16]  # [total], as the game's kernels write them
    weights: NDArray[np.uint16]  # [total]; those of a ply sum to `whole`
    whole: int
    values: NDArray[np.float32] | None = None  # [plies], in place of the result, for the first side; NaN: unknown

    def of(self, chosen: Ints, turns: Ints) -> tuple[NDArray[np.int16], NDArray[np.int32], NDArray[np.float32]]:
        """Of N positions, by game and moves made before: moves [N, M], how many (0: no π, or no such ply), weights."""
        plies = self.first[chosen] + turns
        inside = plies < self.first[chosen + 1]
        plies = np.where(inside, plies, 0)
        following = np.minimum(plies + 1, len(self.start) - 1)  # games may have no plies at all
        counts = np.where(inside, self.start[following] - self.start[plies], 0)
        there = np.arange(max(1, int(counts.max(initial=0)))) < counts[:, None]
        places = (self.start[plies][:, None] + np.arange(there.shape[1]))[there]
        moves, weights = np.zeros(there.shape, np.int16), np.zeros(there.shape, np.float32)
        moves[there] = self.moves[places]
        weights[there] = self.weights[places] / np.float32(self.whole)
        return moves, counts.astype(np.int32), weights


class Loader:
    """An endless stream of batches, made ahead of time on threads. Close it, or use it as a context.

    Args:
        games: a `GameStore` or its `FlatGames`.
        encoding: makes the planes (a network's `encoding`).
        batch_size: n, positions of this process's batches.
        seed: everything random follows from it.
        symmetries: turn and mirror each position at random, as far as the encoding does, targets and all.
        workers: threads.
        targets: which of `TARGETS` to make. Ownership costs another replay.
        positions: which positions to take: by a filter, or these, games and moves made before, int64 [n] each.
        policies: of searches, to be learned in place of the moves played.
        rank: which of the `world_size` processes that share the stream this is, from 0.
        ahead: batches made before they are asked for; None: two more than there are threads.
        gpu: batches are for one: pinned, and taught on the threads, for it answers beside what they do.
        also: another encoding, to make the same positions in as well.
        teach: makes the batches that are given out of those made, in the caller's thread where there is no GPU.

    Attributes:
        positions: how many positions an epoch has.
        steps_per_epoch: steps until every position was seen, the last one partly in the next epoch.
        left_out: games left out, by reason.
        board: (columns, rows) of the games taken, or of the planes that hold boards of several sizes.
        step: the number of the batch that comes next.

    Raises:
        BadRequest: the encoding and the games do not fit, nothing is left of them, or an argument that cannot be.
    """

    def __init__(
        self,
        games: GameStore | FlatGames,
        encoding: Encoding,
        batch_size: int,
        *,
        seed: int = 0,
        symmetries: bool = True,
        workers: int = 2,
        targets: Collection[str] = frozenset({"policy", "value"}),
        positions: PositionFilter | tuple[Ints, Ints] | None = None,
        policies: Policies | None = None,
        rank: int = 0,
        world_size: int = 1,
        ahead: int | None = None,
        gpu: bool = False,
        also: Encoding | None = None,
        teach: Callable[[ArrayBatch], ArrayBatch] | None = None,
    ) -> None:
        flat = games if isinstance(games, FlatGames) else games.flat()
        _check_game(flat, encoding)
        ahead = workers + 2 if ahead is None else ahead
        if min(batch_size, workers, ahead) < 1:
            raise BadRequest(f"batch_size, workers and ahead are at least 1, not {batch_size}, {workers}, {ahead}")
        if not 0 <= rank < world_size:
            raise BadRequest(f"rank {rank} of {world_size} processes; ranks count from 0")
        if unknown := {*targets} - TARGETS:
            known = ", ".join(sorted(TARGETS))
            raise BadRequest(f"unknown target {', '.join(sorted(unknown))}; there are {known}")
        self.batch_size = batch_size
        self.seed = seed
        self.rank, self.world_size = rank, world_size
        self._maker = BatchMaker(flat, encoding, targets, policies)
        self.left_out = self._maker.left_out
        self._given: tuple[Ints, Ints] | None = None
        if isinstance(positions, tuple):
            self._games = np.flatnonzero(self._maker.fits)
            fitting = self._maker.fits[positions[0]]
            self._given = positions[0][fitting], positions[1][fitting]
            self.positions = int(fitting.sum())
        else:
            self._choose(flat, positions or PositionFilter())
        if not self.positions:
            why = ", ".join(f"{reason}: {count}" for reason, count in self.left_out.items()) or "the store is empty"
            raise BadRequest(f"no positions to train on ({why})")
        if not symmetries:
            self._maker.symmetries = np.zeros(1, np.int64)
        self._teach = teach
        self._also = None if also is None else self._other_maker(flat, also)
        self.board = self._maker.board
        self.steps_per_epoch = -(-self.positions // (batch_size * world_size))
        self.step = 0
        self._ahead = ahead
        self._gpu = gpu
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(workers, thread_name_prefix="keima-loader")
        self._queue: deque[tuple[int, Future[ArrayBatch]]] = deque()

    def _other_maker(self, flat: FlatGames, encoding: Encoding) -> BatchMaker:
        """Makes the same positions in another encoding, which must take all of these games."""
        _check_game(flat, encoding)
        other = BatchMaker(flat, encoding)
        lost = int((~other.fits[self._games]).sum())
        if lost:
            raise BadRequest(f"the {encoding.name} encoding cannot take {lost:,} of the {len(self._games):,} games")
        if other.board != self._maker.board:
            raise BadRequest(f"the {encoding.name} encoding makes planes of {other.board}, not {self._maker.board}")
        return other

    def _choose(self, flat: FlatGames, wanted: PositionFilter) -> None:
        """Work out which games' positions there are: `_games`, and where each begins in the numbering, `_offsets`."""
        kept = self._maker.fits
        for allowed, reason in _filters(flat, wanted):
            leave_out(kept, allowed, reason, self.left_out)
        lengths = np.diff(flat.start)
        last = lengths if wanted.last_ply is None else np.minimum(lengths, wanted.last_ply + 1)
        counts = last - wanted.first_ply
        leave_out(kept, counts > 0, "too short", self.left_out)
        self._games = np.flatnonzero(kept)
        self._counts = counts[kept]
        self._first_ply = wanted.first_ply
        self._one_per_game = wanted.one_per_game
        self._offsets = np.concatenate([[0], np.cumsum(self._counts)]).astype(np.int64)
        self.positions = len(self._games) if wanted.one_per_game else int(self._offsets[-1])

    def where(self, step: int) -> tuple[Ints, Ints, Ints]:
        """The positions of a step: their games, the moves made in each, their symmetries; int64 [n] each."""
        first = (step * self.world_size + self.rank) * self.batch_size
        numbers = stream(first, self.batch_size, self.positions, self.seed)
        chance = random_numbers(self.seed, _SYMMETRY, first, self.batch_size) >> np.uint64(61)
        symmetries = self._maker.symmetries[chance.astype(np.int64) % len(self._maker.symmetries)]
        if self._given is not None:
            return self._given[0][numbers], self._given[1][numbers], symmetries
        if self._one_per_game:
            rows = numbers
            chance = random_numbers(self.seed, _PLY, first, self.batch_size)
            plies = (chance % self._counts[rows].astype(np.uint64)).astype(np.int64)
        else:
            rows = np.searchsorted(self._offsets, numbers, side="right") - 1
            plies = numbers - self._offsets[rows]
        return self._games[rows], self._first_ply + plies, symmetries

    def batch(self, step: int) -> ArrayBatch:
        """Batch number `step`, made here and now. Raises BadRequest for a negative number."""
        where = self.where(step)
        made = self._maker.make(*where)
        if self._also is not None:
            made = replace(made, also=self._also.encode(*where))
        return self._taught(made).pinned() if self._gpu else made

    def _taught(self, made: ArrayBatch) -> ArrayBatch:
        return made if self._teach is None else self._teach(made)

    def seek(self, step: int) -> None:
        """Let batch number `step` come next. Raises BadRequest for a negative number."""
        if step < 0:
            raise BadRequest(f"there is no step {step}")
        self._forget()
        self.step = step

    def __iter__(self) -> Iterator[ArrayBatch]:
        return self

    def __next__(self) -> ArrayBatch:
        """The next batch. Where making it failed the error is raised, and the same batch comes next again."""
        if self._pool is None:
            raise BadRequest("the loader is closed")
        for step in range(self.step + len(self._queue), self.step + self._ahead):
            self._queue.append((step, self._pool.submit(self.batch, step)))
        try:
            batch = self._queue.popleft()[1].result()
        except BaseException:
            self._forget()
            raise
        self.step += 1
        return batch if self._gpu else self._taught(batch)

    def _forget(self) -> None:
        while self._queue:
            self._queue.popleft()[1].cancel()

    def close(self) -> None:
        """Stop the threads; they finish the batch they are at."""
        self._forget()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def _check_game(flat: FlatGames, encoding: Encoding) -> None:
    if flat.game != encoding.game:
        raise BadRequest(f"the {encoding.name} encoding is for {encoding.game}, the games are of {flat.game}")


def _filters(flat: FlatGames, wanted: PositionFilter) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Which games a filter allows, one condition after another, with the reason that the others are left out for."""
    if wanted.known_winner:
        yield flat.winner != UNKNOWN_WINNER, "winner unknown"
    if wanted.lowest_rank is not None:
        ranks = flat.lower_rank()
        if ranks is None:
            raise BadRequest(f"lowest_rank: players of {flat.game} have no ranks in a store")
        yield ranks >= rank_number(wanted.lowest_rank), f"a player below {wanted.lowest_rank}"  # False for NaN
    if wanted.lowest_rating is not None:
        ratings = flat.lower_rating()
        if ratings is None:
            raise BadRequest(f"lowest_rating: players of {flat.game} have no ratings in a store")
        yield ratings >= wanted.lowest_rating, f"a player below {wanted.lowest_rating}"


class BatchMaker:
    """Makes batches of a game's positions in one encoding, with some of `TARGETS`, for any thread.

    With the `policies` of searches they are what is to be learned, `policy_soft` and `reply_soft`.

    Attributes:
        board: (columns, rows) of the planes; largest ones of boards of several sizes.
        symmetries: int64 [≥ 1], those that keep the board's shape.
        fits: bool [G], the games that the encoding takes; the others are in `left_out`, by reason.

    Raises:
        BadRequest: a target that the game's records do not tell, or inputs that they do not give.
    """

    def __init__(
        self,
        games: FlatGames,
        encoding: Encoding,
        targets: Collection[str] = (),
        policies: Policies | None = None,
    ) -> None:
        for name in sorted(targets):
            if name not in games.tells and (policies is None or name != "reply"):
                raise BadRequest(f"games of {games.game} have no {name}")
        if "profile" in encoding.options:
            message = f"cannot make training positions for {encoding.name}"
            raise BadRequest(f"{message}: it takes a profile with each of them")
        self.games, self.encoding, self.targets = games, encoding, frozenset(targets)
        self.policies = policies
        self.left_out: dict[str, int] = {}
        self._dtype = GAMES[games.game].kernels.dtype
        self._fit()

    def _fit(self) -> None:
        """Games that the encoding takes, of its board size; without one of all sizes, with masks, or the commonest."""
        of, positions = self.games.kinds()
        self.fits = np.ones(len(self.games), np.bool_)
        taken = np.ones(len(positions), np.bool_)
        for number, position in enumerate(positions):
            try:
                self.encoding.check(position)
            except UnsupportedPosition:
                taken[number] = False
        shapes = np.array([self.encoding.shape(position) for position in positions], np.int64).reshape(-1, 2)
        self._shapes = shapes[of]
        only = getattr(self.encoding, "board_size", None)
        if only is not None:
            self._keep((self._shapes == only).all(axis=1), "another board size")
        self._keep(taken[of], "rules the network does not know")
        sizes = self._shapes[:, 1] * 256 + self._shapes[:, 0]
        found, counts = np.unique(sizes[self.fits], return_counts=True)
        self._masked = self.encoding.masked and len(found) > 1
        if self._masked:
            largest = int(self._shapes[self.fits].max())
            self.board = (largest, largest)
        else:
            size = int(found[counts.argmax()]) if len(found) else 0
            self.board = (size // 256, size % 256)
            self._keep(sizes == size, "another board size")
        square = self.board[0] == self.board[1]
        self.symmetries = np.array([one for one in self.encoding.symmetries if square or not one & 4], np.int64)

    def _keep(self, wanted: NDArray[np.bool_], reason: str) -> None:
        leave_out(self.fits, wanted, reason, self.left_out)

    def make(self, chosen: Ints, turns: Ints, symmetries: Ints) -> ArrayBatch:
        """The batch of N positions: of each its game, the moves made before it, its symmetry; int64 [N]."""
        games, targets = self.games, self.targets
        asked: list[Asked] = []
        if "policy" in targets:
            asked.append((games.next_moves(chosen, turns)[:, None], np.ones(len(chosen), np.int32)))
        soft = {}
        if self.policies is not None and "policy" in targets:
            soft["policy_soft"] = self.policies.of(chosen, turns)
        if self.policies is not None and "reply" in targets:
            soft["reply_soft"] = self.policies.of(chosen, turns + 1)
        asked += [(moves, counts) for moves, counts, _ in soft.values()]
        inputs, context, indices = self._encoded(chosen, turns, symmetries, asked)
        first = games.first_to_move(chosen, turns)
        found: Data = {}
        if "policy" in targets:
            found["policy"] = policy = indices.pop(0)[:, 0].astype(np.int64)
            if not getattr(self.encoding, "pass_move", True):
                policy[policy == self.board[0] * self.board[1]] = NO_MOVE
        for (name, (_, counts, weights)), places in zip(soft.items(), indices, strict=True):
            found[name] = self._spread(places, counts, weights)
        if "value" in targets:
            winner = games.winner[chosen]
            known = np.where(winner == UNKNOWN_WINNER, np.float32(np.nan), winner.astype(np.float32))
            if self.policies is not None and self.policies.values is not None:
                known = self.policies.values[games.start[chosen] + turns]
            found["value"] = _for_side(known, first)
        if "moves_left" in targets:
            found["moves_left"] = (games.start[chosen + 1] - games.start[chosen] - turns).astype(np.float32)
        if "score" in targets:
            found["score"] = _for_side(games.final_lead(chosen), first)
        if "ownership" in targets:
            found["ownership"] = np.empty((len(chosen), *inputs["planes"].shape[2:]), np.float32)
            games.fill_ownership(chosen, turns, symmetries, found["ownership"])
        ply = turns.astype(np.int32)
        return TrainingBatch(inputs=inputs, context=context, ply=ply, game=chosen, first_to_move=first, **found)

    def encode(self, chosen: Ints, turns: Ints, symmetries: Ints) -> Batch:
        """The inputs of N positions as in inference, with a mask where the boards are of several sizes."""
        inputs, context, _ = self._encoded(chosen, turns, symmetries, [])
        return Batch(inputs, context)

    def _spread(self, indices: Ints, counts: NDArray[np.int32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Weights [N, M] of moves with these policy indices as a distribution over the policy, [N, A]."""
        found = np.zeros((len(counts), self.encoding.policy_size((self.board[1], self.board[0]))), np.float32)
        there = (np.arange(weights.shape[1]) < counts[:, None]) & (indices >= 0) & (indices < found.shape[1])
        rows = np.nonzero(there)[0]
        found[rows, indices[there]] = weights[there]
        return found

    def _encoded(
        self, chosen: Ints, turns: Ints, symmetries: Ints, asked: Sequence[Asked]
    ) -> tuple[Arrays, Arrays, list[Ints]]:
        """Inputs, context, and the policy indices of the moves asked about."""
        width, height = self.board
        if self._masked:
            return self._masked_batch(chosen, turns, symmetries, asked)
        batch = self.encoding.room(len(chosen), (height, width))
        indices = self._write(chosen, turns, symmetries, batch, asked)
        return batch.inputs, batch.context, indices

    def _write(self, chosen: Ints, turns: Ints, symmetries: Ints, batch: Batch, asked: Sequence[Asked]) -> list[Ints]:
        """Write positions that share a shape; the policy indices of the moves asked about."""
        records: Records = np.zeros(min(CHUNK, len(chosen)), self._dtype)
        for first in range(0, len(chosen), CHUNK):
            part = slice(first, first + CHUNK)
            here = records[: len(chosen[part])]
            self.games.replay(chosen[part], turns[part], here)
            self.encoding.write(here, symmetries[part], batch[part])
        found = []
        for moves, counts in asked:
            indices = np.zeros(moves.shape, np.int32)
            self.encoding.write_indices(moves, counts, symmetries, batch, indices)
            found.append(indices.astype(np.int64))
        return found

    def _masked_batch(
        self, chosen: Ints, turns: Ints, symmetries: Ints, asked: Sequence[Asked]
    ) -> tuple[Arrays, Arrays, list[Ints]]:
        """Positions of several shapes in the top left corners of their planes, with the mask; as `_encoded`."""
        count, (width, height) = len(chosen), self.board
        found, mask = (
            [np.zeros(moves.shape, np.int64) for moves, _ in asked],
            np.zeros((count, height, width), np.float32),
        )
        room = self.encoding.room(count, (height, width))
        room.inputs["planes"][:] = 0
        transposed = (symmetries & 4) != 0
        kinds = np.concatenate([self._shapes[chosen], transposed[:, None]], axis=1)
        for h, w, turned in np.unique(kinds, axis=0).tolist():
            rows = np.flatnonzero((kinds == (h, w, turned)).all(axis=1))
            if turned:
                h, w = w, h
            part = self.encoding.room(len(rows), (h, w))
            here_asked = [(moves[rows], counts[rows]) for moves, counts in asked]
            indices = self._write(chosen[rows], turns[rows], symmetries[rows], part, here_asked)
            for all_rows, index in zip(found, indices, strict=True):
                all_rows[rows] = np.where(index == h * w, height * width, index // w * width + index % w)
            mask[rows, :h, :w] = 1
            for there, here in ((room.inputs, part.inputs), (room.context, part.context)):
                for name, array in here.items():
                    if name == "planes":
                        there[name][rows, :, :h, :w] = array
                    else:
                        there[name][rows] = array
        return {**room.inputs, "mask": mask}, room.context, found


def leave_out(kept: NDArray[np.bool_], wanted: NDArray[np.bool_], reason: str, counts: dict[str, int]) -> None:
    """Take from `kept` the games that are not wanted, and count them by reason."""
    lost = int((kept & ~wanted).sum())
    if lost:
        counts[reason] = counts.get(reason, 0) + lost
    kept &= wanted


def _for_side(numbers: NDArray[np.float32], first_to_move: NDArray[np.bool_]) -> NDArray[np.float32]:
    """A number of the first side, for the side to move; float32 [N], NaN stays."""
    return np.where(first_to_move, numbers, -numbers).astype(np.float32)
