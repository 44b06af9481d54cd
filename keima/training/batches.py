"""Batches of training positions: shuffled, encoded as in inference, turned by symmetries, on worker threads.

Batch k is a function of the games, the seed and k alone (`keima.training.sampling`), so a run goes on where it stopped
by `seek(k)`, and W processes of batch size n together see what one process of batch size W · n sees: rank r takes rows
r · n … (r + 1) · n − 1 of it.

Positions are replayed from the packed moves and encoded by the very kernels that inference calls, a whole batch a
thread; the kernels hold no lock. A position is the one before each move of each game, so that it has a move to learn;
the last position, after which nothing was played, is not among them.

    with Loader(GameStore.open("train.parquet"), network.encoding, 256, seed=1) as loader:
        for batch in itertools.islice(loader, 1000):
            outputs = network(**batch.torch(device).inputs())
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keima.encodings.alphago import encode_alphago
from keima.encodings.alphago_zero import encode_alphago_zero, encode_leela_zero
from keima.encodings.encoding import Encoding
from keima.encodings.katago import encode_katago
from keima.encodings.katago_guide import encode_katago_guide
from keima.encodings.lc0 import HISTORY_FILLS, INPUT_FORMATS, encode_lc0
from keima.encodings.lc0_moves import policy_index
from keima.encodings.rollout_features import encode_rollout
from keima.errors import BadRequest
from keima.games.chess.board import STATE
from keima.games.go.board import BOARD
from keima.games.go.history import HISTORY
from keima.jit import njit
from keima.training import targets as target
from keima.training.replay import WHITE_BIT, chess_games, go_games, plain, replay_chess, replay_go
from keima.training.sampling import random_numbers, stream

if TYPE_CHECKING:
    from keima.training.flat import FlatGames

CHUNK = 32
"""Positions replayed, then encoded, at a time: their records stay in the processor's cache."""

_SYMMETRY, _PLY = 1, 2  # purposes of random numbers
_RANK = re.compile(r"\s*(\d+)\s*-?\s*(k|d|p|kyu|dan|pro)\b", re.IGNORECASE)


@dataclass(frozen=True)
class TrainingBatch:
    """N positions with what they teach; NumPy arrays as the loader makes them, tensors after `torch`.

    Everything is for the side to move, in the orientation of the planes. A missing target is −1 in `policy` and NaN
    elsewhere; a target the loader was not asked for is None.

    Attributes:
        planes: float32 [N, C, H, W].
        globals: float32 [N, G]; None where the encoding has none.
        policy: int64 [N], index of the move played; a policy without a pass has one index fewer than its pass here.
        value: float32 [N], the outcome: +1 won, −1 lost, 0 drawn or no result.
        score: float32 [N], the final lead in points.
        ownership: float32 [N, H, W], who owned the point at the end, from −1 to +1.
        moves_left: float32 [N], plies to the end of the game, the next one included.
        ply: int32 [N], moves made before the position.
        mask: float32 [N, H, W], 1 on the board; None where every board fills its planes.
        policy_soft: float32 [N, A], a distribution to learn in place of `policy`; a row of zeros is missing.
        wdl: float32 [N, 3], probabilities of win, draw (Go: no result) and loss to learn in place of `value`; NaN where
            unknown.
        game: int64 [N], the number of the game in the store.
        first_to_move: bool [N], Black (Go) or White (chess) moves next.
        also: the same positions in another encoding, without targets; where the loader was asked for one.
    """

    planes: Any
    globals: Any = None
    policy: Any = None
    value: Any = None
    score: Any = None
    ownership: Any = None
    moves_left: Any = None
    ply: Any = None
    mask: Any = None
    policy_soft: Any = None
    wdl: Any = None
    game: Any = None
    first_to_move: Any = None
    also: Any = None

    def __len__(self) -> int:
        """N."""
        return len(self.planes)

    def inputs(self) -> dict[str, Any]:
        """What a network's `forward` takes, by name: `planes`, and where there are such `globals` and `mask`."""
        named = {"planes": self.planes, "globals": self.globals, "mask": self.mask}
        return {name: array for name, array in named.items() if array is not None}

    def torch(self, device: Any = "cpu") -> TrainingBatch:
        """The same as tensors on a device; to a GPU without waiting for the copy."""
        import torch

        there = torch.device(device)

        def tensor(array: Any) -> Any:
            if array is None or isinstance(array, TrainingBatch):
                return array
            found = array if isinstance(array, torch.Tensor) else torch.from_numpy(array)
            if there.type == "cuda" and found.device.type == "cpu":
                found = found.pin_memory()
            return found.to(there, non_blocking=True)

        return replace(self, **{field.name: tensor(getattr(self, field.name)) for field in fields(self)})


@dataclass(frozen=True)
class PositionFilter:
    """Which positions of a store to take; games left out are counted by reason in `Loader.left_out`.

    Attributes:
        first_ply: the first position of a game is the one with so many moves made.
        last_ply: the last position of a game is the one with so many moves made at most; None: up to the last move.
        lowest_rank: both players have this Go rank at least ("1k", "6d", "1p"); a player without one has none.
        lowest_rating: both players have this chess rating at least.
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


def rank_number(rank: str) -> float:
    """A Go rank as a number that orders them (1k is 0, 1d is 1, 1p is 11); NaN for what is none."""
    found = _RANK.match(rank)
    if not found:
        return float("nan")
    number = int(found[1])
    return {"k": 1 - number, "d": number, "p": 10 + number}[found[2][0].lower()]


class Loader:
    """An endless stream of batches, made ahead of time on threads. Close it, or use it as a context.

    Args:
        games: a `GameStore` or its `FlatGames`.
        encoding: makes the planes (a network's `encoding`).
        batch_size: n, positions of this process's batches.
        seed: everything random follows from it.
        symmetries: turn and mirror each position of Go at random, targets and all.
        workers: threads.
        targets: which of `targets.TARGETS` to make. Ownership costs another replay.
        positions: which positions to take.
        rank: which of the processes this is, from 0.
        world_size: how many processes share the stream.
        ahead: batches made before they are asked for.
        also: another encoding, to make the same positions in as well.

    Attributes:
        positions: how many positions an epoch has.
        steps_per_epoch: steps until every position was seen, the last one partly in the next epoch.
        left_out: games left out, by reason.
        board: (xsize, ysize) of the games taken, or of the planes that hold boards of several sizes; (8, 8) for chess.
        step: the number of the batch that comes next.

    Raises:
        BadRequest: the encoding and the games do not fit, nothing is left of them, or an argument that cannot be.
    """

    def __init__(
        self,
        games: Any,
        encoding: Encoding,
        batch_size: int,
        *,
        seed: int = 0,
        symmetries: bool = True,
        workers: int = 2,
        targets: Collection[str] = frozenset({"policy", "value"}),
        positions: PositionFilter | None = None,
        rank: int = 0,
        world_size: int = 1,
        ahead: int = 4,
        also: Encoding | None = None,
    ) -> None:
        flat: FlatGames = games.flat() if hasattr(games, "flat") else games
        _check_arguments(flat, encoding, batch_size, frozenset(targets), (rank, world_size), (workers, ahead))
        self.batch_size = batch_size
        self.seed = seed
        self.rank, self.world_size = rank, world_size
        self.left_out: dict[str, int] = {}
        wanted = positions or PositionFilter()
        maker = _GoMaker if flat.game == "go" else _ChessMaker
        self._maker: _Maker = maker(flat, encoding, frozenset(targets), self._leave_out)
        self._choose(flat, wanted)
        if not symmetries:
            self._maker.symmetries = 0
        self._also = None if also is None else self._other_maker(maker, flat, also)
        self.board = self._maker.board
        self.steps_per_epoch = -(-self.positions // (batch_size * world_size))
        self.step = 0
        self._ahead = max(ahead, 1)
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(workers, thread_name_prefix="keima-loader")
        self._queue: deque[tuple[int, Future[TrainingBatch]]] = deque()

    def _leave_out(self, kept: NDArray[np.bool_], wanted: NDArray[np.bool_], reason: str) -> None:
        """Take from `kept` the games that are not wanted, and count them."""
        lost = int((kept & ~wanted).sum())
        if lost:
            self.left_out[reason] = self.left_out.get(reason, 0) + lost
        kept &= wanted

    def _other_maker(self, kind: type[_Maker], flat: FlatGames, encoding: Encoding) -> _Maker:
        """Makes the same positions in another encoding, which must take all of these games."""
        if encoding.game != flat.game:
            raise BadRequest(f"the {encoding.name} encoding is for {encoding.game}, the games are of {flat.game}")
        other = kind(flat, encoding, frozenset(), lambda kept, wanted, _reason: np.logical_and(kept, wanted, out=kept))
        lost = int((~other.fitting()[self._games]).sum())
        if lost:
            raise BadRequest(f"the {encoding.name} encoding cannot take {lost:,} of the {len(self._games):,} games")
        if other.board != self._maker.board:
            raise BadRequest(f"the {encoding.name} encoding makes planes of {other.board}, not {self._maker.board}")
        return other

    def _choose(self, flat: FlatGames, wanted: PositionFilter) -> None:
        """Work out which games' positions there are: `_games`, and where each begins in the numbering, `_offsets`."""
        kept = self._maker.fitting()
        for allowed, reason in _filters(flat, wanted):
            self._leave_out(kept, allowed, reason)
        lengths = np.diff(flat.start)
        last = lengths if wanted.last_ply is None else np.minimum(lengths, wanted.last_ply + 1)
        counts = last - wanted.first_ply
        self._leave_out(kept, counts > 0, "too short")
        self._games = np.flatnonzero(kept)
        self._counts = counts[kept]
        self._first_ply = wanted.first_ply
        self._one_per_game = wanted.one_per_game
        self._offsets = np.concatenate([[0], np.cumsum(self._counts)]).astype(np.int64)
        self.positions = len(self._games) if wanted.one_per_game else int(self._offsets[-1])
        if not self.positions:
            why = ", ".join(f"{reason}: {count}" for reason, count in self.left_out.items()) or "the store is empty"
            raise BadRequest(f"no positions to train on ({why})")

    def where(self, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The positions of a step: their games, the moves made in each, their symmetries; int64 [n] each.

        Raises:
            BadRequest: a negative number.
        """
        first = (step * self.world_size + self.rank) * self.batch_size
        numbers = stream(first, self.batch_size, self.positions, self.seed)
        if self._one_per_game:
            rows = numbers
            chance = random_numbers(self.seed, _PLY, first, self.batch_size)
            plies = (chance % self._counts[rows].astype(np.uint64)).astype(np.int64)
        else:
            rows = np.searchsorted(self._offsets, numbers, side="right") - 1
            plies = numbers - self._offsets[rows]
        chance = random_numbers(self.seed, _SYMMETRY, first, self.batch_size) >> np.uint64(61)
        symmetries = chance.astype(np.int64) & self._maker.symmetries
        return self._games[rows], self._first_ply + plies, symmetries

    def batch(self, step: int) -> TrainingBatch:
        """Batch number `step`, made here and now.

        Raises:
            BadRequest: a negative number.
        """
        where = self.where(step)
        made = self._maker.make(*where)
        return made if self._also is None else replace(made, also=self._also.make(*where))

    def no_result_allowed(self, games: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Bool [n]: may these games, by their numbers, end without a result by their rules (simple ko, territory)?"""
        flat = self._maker.flat
        if flat.game != "go":
            return np.zeros(len(games), np.bool_)
        allowed = [rules.ko == "SIMPLE" or rules.scoring == "TERRITORY" for rules in flat.rules]
        return np.array(allowed, np.bool_)[flat.rules_index[games]]

    def seek(self, step: int) -> None:
        """Let batch number `step` come next.

        Raises:
            BadRequest: a negative number.
        """
        if step < 0:
            raise BadRequest(f"there is no step {step}")
        self._forget()
        self.step = step

    def __iter__(self) -> Iterator[TrainingBatch]:
        return self

    def __next__(self) -> TrainingBatch:
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
        return batch

    def _forget(self) -> None:
        """Drop the batches made or being made."""
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


def _check_arguments(
    flat: FlatGames,
    encoding: Encoding,
    batch_size: int,
    targets: frozenset[str],
    ranks: tuple[int, int],
    threads: tuple[int, int],
) -> None:
    """Refuse what cannot be, before any work."""
    if flat.game != encoding.game:
        raise BadRequest(f"the {encoding.name} encoding is for {encoding.game}, the games are of {flat.game}")
    if batch_size < 1 or min(threads) < 1:
        raise BadRequest(f"batch_size, workers and ahead are at least 1, not {batch_size}, {threads[0]}, {threads[1]}")
    if not 0 <= ranks[0] < ranks[1]:
        raise BadRequest(f"rank {ranks[0]} of {ranks[1]} processes; ranks count from 0")
    unknown = targets - target.TARGETS
    if unknown:
        known = ", ".join(sorted(target.TARGETS))
        raise BadRequest(f"unknown target {', '.join(sorted(unknown))}; there are {known}")


def _filters(flat: FlatGames, wanted: PositionFilter) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Which games a filter allows, one condition after another, with the reason that the others are left out for."""
    if wanted.known_winner:
        yield flat.winner != target.UNKNOWN_WINNER, "winner unknown"
    if wanted.lowest_rank is not None:
        if flat.game != "go":
            raise BadRequest("lowest_rank is for Go; chess players have ratings (lowest_rating)")
        numbers = np.array([rank_number(rank) for rank in flat.ranks] or [np.nan])
        enough = numbers >= rank_number(wanted.lowest_rank)  # False for NaN
        yield enough[flat.black_rank] & enough[flat.white_rank], f"a player below {wanted.lowest_rank}"
    if wanted.lowest_rating is not None:
        if flat.game != "chess":
            raise BadRequest("lowest_rating is for chess; Go players have ranks (lowest_rank)")
        lower = np.minimum(flat.white_elo, flat.black_elo)
        yield lower >= wanted.lowest_rating, f"a player below {wanted.lowest_rating}"


class _Maker(ABC):
    """Makes batches of one game's positions, for any thread; what the two games share."""

    board: tuple[int, int]
    symmetries: int
    """Which bits of a symmetry may be set."""

    def __init__(self, flat: FlatGames, encoding: Any, targets: frozenset[str], leave_out: Callable[..., None]) -> None:
        self.flat = flat
        self.encoding = encoding
        self.targets = targets
        self.leave_out = leave_out

    @abstractmethod
    def fitting(self) -> NDArray[np.bool_]:
        """Bool [G]: games that the encoding takes; the others are counted."""

    @abstractmethod
    def make(self, games: NDArray[np.int64], turns: NDArray[np.int64], symmetries: NDArray[np.int64]) -> TrainingBatch:
        """The batch of these positions under these symmetries."""

    def shared(self, games: NDArray[np.int64], turns: NDArray[np.int64], first: NDArray[np.bool_]) -> dict[str, Any]:
        """The fields that come from the record alone; `first`: Black (Go) or White (chess) moves next."""
        found: dict[str, Any] = {"ply": turns.astype(np.int32), "game": games, "first_to_move": first}
        if "value" in self.targets:
            found["value"] = target.for_side(target.winners(self.flat.winner[games]), first)
        if "moves_left" in self.targets:
            found["moves_left"] = (self.flat.start[games + 1] - self.flat.start[games] - turns).astype(np.float32)
        return found


class _GoMaker(_Maker):
    def __init__(self, flat: FlatGames, encoding: Any, *rest: Any) -> None:
        super().__init__(flat, encoding, *rest)
        self.games = go_games(flat)
        self.score, self.winner = plain(flat.score), plain(flat.winner)
        self.fill = go_filler(encoding)
        self.masked = False
        self.symmetries = 7

    def fitting(self) -> NDArray[np.bool_]:
        """Games of the encoding's board size; without one all sizes (KataGo: with masks) or the commonest."""
        flat = self.flat
        kept = np.ones(len(flat), np.bool_)
        if self.encoding.name == "katago":
            self.leave_out(kept, _known_rules(flat), "rules KataGo's networks do not know")
        only = getattr(self.encoding, "board_size", None)
        sizes = flat.xsize.astype(np.int64) * 256 + flat.ysize
        found, counts = np.unique(sizes[kept], return_counts=True)
        if only is None and self.encoding.name == "katago" and len(found) > 1:
            self.masked = True
            largest = int(max(flat.xsize[kept].max(), flat.ysize[kept].max()))
            self.board = (largest, largest)
            return kept
        size = only * 257 if only is not None else int(found[counts.argmax()]) if len(found) else 0
        self.board = (size // 256, size % 256)
        self.symmetries = 0 if self.encoding.symmetries == 1 else 7 if size // 256 == size % 256 else 3
        self.leave_out(kept, sizes == size, "another board size")
        return kept

    def make(self, games: NDArray[np.int64], turns: NDArray[np.int64], symmetries: NDArray[np.int64]) -> TrainingBatch:
        flat, (width, height) = self.flat, self.board
        moves = flat.moves[flat.start[games] + turns]
        black = (moves & WHITE_BIT) == 0
        found = self.shared(games, turns, black)
        planes = np.empty((len(games), self.encoding.planes, height, width), np.float32)
        globals_ = np.empty((len(games), self.encoding.globals), np.float32) if self.encoding.globals else None
        if self.masked:
            found["mask"] = self._encode_masked(games, turns, symmetries, planes, globals_)
        else:
            self._encode(games, turns, symmetries, planes, globals_)
        if "policy" in self.targets:
            sizes = (flat.xsize[games], flat.ysize[games])
            found["policy"] = target.go_policy(moves, sizes, symmetries, (height, width))
            if not getattr(self.encoding, "pass_move", True):
                found["policy"][found["policy"] == height * width] = target.NO_MOVE
        if "score" in self.targets:
            found["score"] = target.for_side(flat.score[games], black)
        if "ownership" in self.targets:
            found["ownership"] = np.empty((len(games), height, width), np.float32)
            results = (self.games, self.score, self.winner)
            target.fill_ownership(*results, games, turns, symmetries, found["ownership"])
        return TrainingBatch(planes=planes, globals=globals_, **found)

    def _encode(self, games: Any, turns: Any, symmetries: Any, planes: Any, globals_: Any) -> None:
        """Write the planes (and globals) of positions that share a shape."""
        boards, histories = np.zeros(CHUNK, BOARD), np.zeros(CHUNK, HISTORY)
        for first in range(0, len(games), CHUNK):
            part = slice(first, first + CHUNK)
            count = len(games[part])
            replay_go(self.games, games[part], turns[part], boards, histories)
            row = None if globals_ is None else globals_[part]
            self.fill(boards[:count], histories[:count], symmetries[part], planes[part], row)

    def _encode_masked(self, games: Any, turns: Any, symmetries: Any, planes: Any, globals_: Any) -> Any:
        """Write positions of several shapes into the top left corners of their planes; returns the mask."""
        xsize, ysize = self.flat.xsize[games].astype(np.int64), self.flat.ysize[games].astype(np.int64)
        transposed = (symmetries & 4) != 0
        height, width = np.where(transposed, xsize, ysize), np.where(transposed, ysize, xsize)
        planes[:] = 0
        mask = np.zeros((len(games), *planes.shape[2:]), np.float32)
        shapes = height * 256 + width
        for shape in np.unique(shapes).tolist():
            h, w = divmod(shape, 256)
            rows = np.flatnonzero(shapes == shape)
            part = np.empty((len(rows), planes.shape[1], h, w), np.float32)
            row_globals = np.empty((len(rows), globals_.shape[1]), np.float32)
            self._encode(games[rows], turns[rows], symmetries[rows], part, row_globals)
            planes[rows, :, :h, :w] = part
            globals_[rows] = row_globals
            mask[rows, :h, :w] = 1
        return mask


class _ChessMaker(_Maker):
    board = (8, 8)
    symmetries = 0

    def __init__(self, flat: FlatGames, encoding: Any, *rest: Any) -> None:
        super().__init__(flat, encoding, *rest)
        for name in ("score", "ownership"):
            if name in self.targets:
                raise BadRequest(f"games of chess have no {name}")
        self.games = chess_games(flat)
        self.format = INPUT_FORMATS[encoding.input_format]
        self.history_fill = HISTORY_FILLS[encoding.history_fill]

    def fitting(self) -> NDArray[np.bool_]:
        """All games."""
        return np.ones(len(self.flat), np.bool_)

    def make(self, games: NDArray[np.int64], turns: NDArray[np.int64], symmetries: NDArray[np.int64]) -> TrainingBatch:
        flat, count = self.flat, len(games)
        planes = np.empty((count, self.encoding.planes, 8, 8), np.float32)
        transforms, white = np.empty(count, np.int64), np.empty(count, np.bool_)
        states = np.zeros(min(CHUNK, count), STATE)
        for first in range(0, count, CHUNK):
            part = slice(first, min(first + CHUNK, count))
            here = states[: part.stop - first]
            replay_chess(self.games, games[part], turns[part], here)
            encode_lc0(here, self.format, self.history_fill, planes[part], transforms[part])
            white[part] = here["side"] == 0
        found = self.shared(games, turns, white)
        if "policy" in self.targets:
            moves = flat.moves[flat.start[games] + turns].astype(np.int64)
            if self.encoding.policy_frame != "planes":
                transforms[:] = 0
            found["policy"] = np.empty(count, np.int64)
            _chess_policy(moves, transforms, found["policy"])
        return TrainingBatch(planes=planes, **found)


@njit
def _chess_policy(moves: NDArray[np.int64], transforms: NDArray[np.int64], policy: NDArray[np.int64]) -> None:
    """Write the policy index of each kernel move in planes turned by `transforms`."""
    for i in range(len(moves)):
        policy[i] = policy_index(moves[i], transforms[i])


def _known_rules(flat: FlatGames) -> NDArray[np.bool_]:
    """Games under rules that KataGo's networks know (`KataGoEncoding.check`)."""
    known = [rules.ko != "SPIGHT" and (rules.scoring == "AREA" or not rules.has_button) for rules in flat.rules]
    return np.array(known or [True], np.bool_)[flat.rules_index]


def maker_of(games: FlatGames, encoding: Encoding, targets: frozenset[str]) -> _Maker:
    """What makes chosen positions of games of Go that all fit the encoding: `make(games, turns, symmetries)`."""
    maker = _GoMaker(games, encoding, targets, lambda kept, wanted, _reason: np.logical_and(kept, wanted, out=kept))
    maker.fitting()
    return maker


def go_filler(encoding: Any) -> Callable[[Any, Any, Any, Any, Any], None]:
    """What writes planes [N, C, H, W] and globals from boards, histories and symmetries, for an encoding of Go.

    Raises:
        BadRequest: no training on this encoding.
    """
    name = encoding.name
    if name == "alphago":
        return lambda boards, histories, each, planes, _: encode_alphago(boards, histories, each, planes)
    if name == "alphago-zero":
        return lambda boards, histories, each, planes, _: encode_alphago_zero(histories, each, planes)
    if name == "leela-zero":
        return lambda boards, histories, each, planes, _: encode_leela_zero(histories, each, planes)
    if name == "rollout":
        tables = encoding.tables[0]
        return lambda boards, histories, _each, planes, _: encode_rollout(boards, histories, tables, planes)
    if name == "katago-guide":
        return lambda boards, histories, each, planes, _: encode_katago_guide(
            boards, histories, each, planes.reshape(*planes.shape[:2], -1)
        )
    if name == "katago" and not encoding.metadata:
        suicide = encoding.pass_alive_suicide
        return lambda boards, histories, each, planes, row: encode_katago(
            boards, histories, each, planes, row, suicide, False, False
        )
    raise BadRequest(
        f"cannot make training positions for {name}{' with metadata (a human network)' * (name == 'katago')}"
    )
