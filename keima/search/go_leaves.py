"""Leaves of Go trees: descending with the rules' own kernels, keys of positions, and the planes of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.encodings.alphago import AlphaGoEncoding, encode_alphago
from keima.encodings.alphago_zero import (
    AlphaGoZeroEncoding,
    LeelaZeroEncoding,
    encode_alphago_zero,
    encode_leela_zero,
)
from keima.encodings.encoding import Array, Batch
from keima.encodings.go_points import SYMMETRIES, policy_places, restore_points
from keima.encodings.katago import GLOBAL_COUNT, PLANE_COUNT, KataGoEncoding, encode_katago
from keima.encodings.katago_metadata import metadata_row, parse_profile
from keima.encodings.rollout import play_out_many
from keima.games.go.board import BLACK, BOARD, EMPTY, MAX_POINTS, WHITE, loc_of, size_hash, stone_hash
from keima.games.go.history import (
    HISTORY,
    KO_SIMPLE,
    RECENT,
    SCORING_TERRITORY,
    is_over,
    legal_moves,
    pass_would_end_phase,
    play_move,
    score_now,
)
from keima.games.go.vertices import loc_to_vertex, vertex_to_loc
from keima.jit import njit
from keima.search.proof import set_result
from keima.search.slots import Slots
from keima.search.tree import (
    FRESH,
    OPEN,
    PENDING,
    TERMINAL,
    back_up,
    back_up_result,
    chain,
    follow,
    look_up,
    mark,
    note_depth,
    pick,
    share,
)

MAX_MOVES = 362
_NO_KEY = np.uint64(0)


@njit
def recent_hashes(b: Any, h: Any, hashes: NDArray[np.uint64]) -> None:
    """The hashes of the last `RECENT` boards, the one t moves ago at index −t modulo `RECENT`."""
    for t in range(RECENT):
        key = size_hash(b.xsize, b.ysize)
        for y in range(b.ysize):
            for x in range(b.xsize):
                loc = loc_of(x, y, b.xsize)
                stone = h.recent_stones[t, loc]
                if stone != EMPTY:
                    key ^= stone_hash(loc, stone)
        hashes[(RECENT - t) % RECENT] = key


@njit
def evaluation_key(b: Any, h: Any, history: int, hashes: Any, depth: int) -> Any:
    """A hash of all that a position's evaluation and legal moves depend on; 0 where evaluations are not shared.

    Stones, side to move, every ko and superko ban, passes, phase, points beside the board, and the last `history`
    moves with the boards before them. In the second encore what stood at its beginning matters too: nothing is shared.
    """
    if h.encore_phase >= 2:
        return _NO_KEY
    key = chain(b.hash, h.to_play)
    key = chain(key, b.ko)
    key = chain(
        key, h.consecutive_passes * 64 + h.encore_phase * 8 + h.has_button * 4 + pass_would_end_phase(b, h, h.to_play)
    )
    key = chain(key, np.int64(4 * (h.white_bonus + h.white_handicap_bonus)) + 100_000)
    if h.encore_phase > 0 or h.ko_rule != KO_SIMPLE:
        key = chain(key ^ h.ko_block_hash, 1)
        for y in range(b.ysize):
            for x in range(b.xsize):
                loc = loc_of(x, y, b.xsize)
                if h.superko_banned[loc]:
                    key = chain(key, loc)
    if history > 0:
        key = chain(key, min(h.turns, RECENT) * 16 + min(h.valid_turns, RECENT))
        for t in range(history):
            key = chain(key, h.recent_loc[t] * 4 + h.recent_colour[t])
            if t > 0:
                key = chain(key ^ hashes[(depth - t) % RECENT], t)
    return key


@njit
def gather_go(
    nodes: Any,
    edge_moves: Any,
    edge_priors: Any,
    table: Any,
    head: Any,
    root: Any,
    p: Any,
    root_board: Any,
    root_history: Any,
    root_hashes: Any,
    boards: Any,
    histories: Any,
    leaves: Any,
    moves: Any,
    counts: Any,
    start: int,
    wanted: int,
    quota: int,
) -> tuple[int, int]:
    """Descend until `wanted` leaves need the network, or `quota` visits are made or under way.

    Args:
        nodes: of the tree, with `edge_moves`, `edge_priors`, `table`, `head`, `root` and `p`.
        root_board: BOARD of the root.
        root_history: HISTORY of the root.
        root_hashes: uint64 [RECENT], of `recent_hashes`.
        boards: BOARD [capacity], written from `start` on.
        histories: HISTORY [capacity], likewise.
        leaves: int32 [capacity], likewise: the pending nodes.
        moves: int16 [capacity, M], likewise: their legal moves.
        counts: int32 [capacity], likewise: how many.
        start: the first free slot.
        wanted: how many leaves.
        quota: how many visits.

    Returns:
        (leaves found, visits made on the way: ends of games, shared evaluations)
    """
    found, done, met = 0, 0, 0
    hashes = np.empty(RECENT, np.uint64)
    history = int(p.cache_history)
    bumped = np.empty(wanted + 1, np.int64)
    attempts = 2 * wanted + 16
    while found < wanted and found + done < quota and attempts > 0:
        attempts -= 1
        slot = start + found
        boards[slot] = root_board
        histories[slot] = root_history
        hashes[:] = root_hashes
        b, h = boards[slot], histories[slot]
        i, depth = 0, 0
        while nodes[i].state == OPEN:
            choice = pick(nodes, edge_priors, root, i, p)
            i = follow(nodes, edge_moves, edge_priors, head, root, i, choice, 3 - h.to_play)
            play_move(b, h, nodes[i].move, h.to_play)
            depth += 1
            hashes[depth % RECENT] = b.hash
        if nodes[i].state == PENDING:
            head.collisions += 1
            if met > wanted:
                break
            mark(nodes, i, 1)
            bumped[met] = i
            met += 1
            continue
        note_depth(head, depth)
        if nodes[i].state == FRESH:
            if is_over(h):
                _finish(nodes, head, p, i, b, h)
            else:
                key = evaluation_key(b, h, history, hashes, depth)
                other = look_up(table, nodes, key) if key != _NO_KEY else -1
                if other < 0:
                    nodes[i].key = key
                    nodes[i].state = PENDING
                    mark(nodes, i, 1)
                    leaves[slot] = i
                    counts[slot] = legal_moves(b, h, moves[slot])
                    found += 1
                    continue
                nodes[i].key = key
                share(nodes, i, other)
                head.hits += 1
        back_up(nodes, i, 0, p)
        done += 1
    for k in range(met):
        mark(nodes, bumped[k], -1)
    return found, done


@njit
def play_out_once(b: Any, h: Any, weights: Any, random: Any) -> float:
    """Play a position out by the rollout policy: 1 a win of the side to move, −1 a loss, 0 a draw."""
    scores = np.empty(1, np.int32)
    play_out_many(b, h, weights, scores, random)
    points = scores[0] - h.komi - h.white_handicap_bonus
    if points == 0:
        return 0.0
    return 1.0 if (points > 0) == (h.to_play == BLACK) else -1.0


@njit
def gather_with_playouts(
    nodes: Any,
    edge_moves: Any,
    edge_priors: Any,
    table: Any,
    head: Any,
    root: Any,
    p: Any,
    root_board: Any,
    root_history: Any,
    weights: Any,
    random: Any,
    boards: Any,
    histories: Any,
    leaves: Any,
    moves: Any,
    counts: Any,
    start: int,
    wanted: int,
    quota: int,
) -> tuple[int, int]:
    """`gather_go` for AlphaGo: every leaf is played out, and only one visited often enough goes to the network.

    Args:
        weights: WEIGHTS of the rollout policy.
        random: uint64 [1], the playouts' generator.
        nodes: this and the others as in `gather_go`. Nothing is shared between equal positions: playouts differ.
    """
    found, done = 0, 0
    attempts = 2 * wanted + 64
    while found < wanted and found + done < quota and attempts > 0:
        attempts -= 1
        slot = start + found
        boards[slot] = root_board
        histories[slot] = root_history
        b, h = boards[slot], histories[slot]
        i, depth = 0, 0
        while nodes[i].state == OPEN:
            choice = pick(nodes, edge_priors, root, i, p)
            i = follow(nodes, edge_moves, edge_priors, head, root, i, choice, 3 - h.to_play)
            play_move(b, h, nodes[i].move, h.to_play)
            depth += 1
        if nodes[i].state == PENDING:
            head.collisions += 1
            break
        note_depth(head, depth)
        if nodes[i].state == FRESH and is_over(h):
            _finish(nodes, head, p, i, b, h)
        if nodes[i].state == TERMINAL:
            back_up(nodes, i, 0, p)
            done += 1
            continue
        result = play_out_once(b, h, weights, random)
        if nodes[i].own + 1 < p.expansion_visits:
            back_up_result(nodes, i, 0, result, 0.0, result)
            done += 1
            continue
        nodes[i].raw_value = result
        nodes[i].state = PENDING
        mark(nodes, i, 1)
        leaves[slot] = i
        counts[slot] = legal_moves(b, h, moves[slot])
        found += 1
    return found, done


@njit
def _finish(nodes: Any, head: Any, p: Any, i: int, b: Any, h: Any) -> None:
    """Make node i, where the game has ended, terminal with its score."""
    if h.no_result:
        set_result(nodes, head, p, i, 0, 0, 0.0, False)
        return
    score = score_now(b, h, np.empty(MAX_POINTS, np.int8))
    if h.to_play != WHITE:
        score = -score
    result = 1 if score > 0 else (-1 if score < 0 else 0)
    set_result(nodes, head, p, i, result, 0, score, True)


@njit
def write_indices(moves: Any, counts: Any, symmetries: Any, places: Any, n: int, indices: Any) -> None:
    """The policy index of every leaf's moves under its symmetry; `places` is int32 [8, MAX_POINTS]."""
    for k in range(n):
        for m in range(counts[k]):
            indices[k, m] = places[symmetries[k], moves[k, m]]


class _View:
    """A position's records as an encoding reads them, without the checks of `Position`."""

    def __init__(self, board: Array, history: Array) -> None:
        self.board = board
        self.history = history
        self.xsize = int(board[0]["xsize"])
        self.ysize = int(board[0]["ysize"])


class GoLeaves:
    """Gathers and encodes the leaves of trees on boards of one size."""

    max_moves = MAX_MOVES

    def __init__(self, encoding: Any, position: Any, capacity: int, profile: str | None = None) -> None:
        """Make room.

        Args:
            encoding: the network's.
            position: any position of the size.
            capacity: most leaves of one batch.
            profile: which human to imitate, for KataGo's human networks.
        """
        self.encoding = encoding
        self.capacity = capacity
        self.xsize, self.ysize = position.xsize, position.ysize
        self.boards = np.zeros(capacity, BOARD)
        self.histories = np.zeros(capacity, HISTORY)
        self.places = policy_places(self.xsize, self.ysize)
        self.profile = profile
        self.weights: Array | None = None
        self.random: NDArray[np.uint64] = np.ones(1, np.uint64)

    def use_playouts(self, weights: Array, random: NDArray[np.uint64]) -> None:
        """Play leaves out, with the weights of a rollout policy and a generator's state."""
        self.weights, self.random = weights, random

    def play_out_root(self, root: tuple[Array, ...]) -> float | None:
        """The result of one playout of a root for its side to move; None without playouts."""
        if self.weights is None:
            return None
        return float(play_out_once(root[0][0], root[1][0], self.weights[0], self.random))

    @property
    def symmetries(self) -> int:
        """How many symmetries keep the board's shape: 8, or 4 of an oblong board; 1 where the encoding has no more."""
        square = SYMMETRIES if self.xsize == self.ysize else SYMMETRIES // 2
        return int(min(square, self.encoding.symmetries))

    def root_of(self, position: Any) -> tuple[Array, ...]:
        """The records a tree's descents start from."""
        hashes = np.empty(RECENT, np.uint64)
        recent_hashes(position.board[0], position.history[0], hashes)
        return position.board, position.history, hashes

    def gather(
        self, tree: Any, root: tuple[Array, ...], slots: Slots, start: int, wanted: int, quota: int
    ) -> tuple[int, int]:
        """Fill slots from `start` on with leaves of one tree; see `gather_go`."""
        board, history, hashes = root
        if self.weights is not None:
            return gather_with_playouts(  # type: ignore[call-arg]
                *tree.arrays,
                board[0],
                history[0],
                self.weights[0],
                self.random,
                self.boards,
                self.histories,
                slots.nodes,
                slots.moves,
                slots.counts,
                start,
                wanted,
                quota,
            )
        return gather_go(  # type: ignore[call-arg]
            *tree.arrays,
            board[0],
            history[0],
            hashes,
            self.boards,
            self.histories,
            slots.nodes,
            slots.moves,
            slots.counts,
            start,
            wanted,
            quota,
        )

    def put_root(self, root: tuple[Array, ...], slots: Slots, row: int) -> None:
        """Fill a slot with a root itself."""
        self.boards[row : row + 1].view(np.uint8)[:] = root[0].view(np.uint8)
        self.histories[row : row + 1].view(np.uint8)[:] = root[1].view(np.uint8)
        slots.counts[row] = legal_moves(root[0][0], root[1][0], slots.moves[row])

    def encode(self, slots: Slots, n: int, symmetries: NDArray[np.int64], optimism: float) -> Batch:
        """The first n slots' planes, and their moves' policy indices."""
        write_indices(slots.moves, slots.counts, symmetries, self.places, n, slots.indices)
        encoding, boards, histories = self.encoding, self.boards[:n], self.histories[:n]
        height, width = (self.xsize, self.ysize) if symmetries[0] & 4 else (self.ysize, self.xsize)
        if isinstance(encoding, KataGoEncoding):
            return self._encode_katago(boards, histories, symmetries, (height, width), optimism)
        if isinstance(encoding, AlphaGoZeroEncoding):
            planes = np.empty((n, encoding.planes, height, width), np.float32)
            if isinstance(encoding, LeelaZeroEncoding):
                encode_leela_zero(histories, symmetries, planes)
            else:
                encode_alphago_zero(histories, symmetries, planes)
            return Batch({"planes": planes}, {"black_to_play": histories["to_play"] == BLACK})
        if isinstance(encoding, AlphaGoEncoding):
            planes = np.empty((n, encoding.planes, height, width), np.float32)
            encode_alphago(boards, histories, symmetries, planes)
            return Batch({"planes": planes})
        views = [_View(self.boards[k : k + 1], self.histories[k : k + 1]) for k in range(n)]
        return encoding.encode(views, symmetries.tolist())

    def _encode_katago(
        self, boards: Array, histories: Array, symmetries: NDArray[np.int64], shape: tuple[int, int], optimism: float
    ) -> Batch:
        n, encoding = len(boards), self.encoding
        planes = np.empty((n, PLANE_COUNT, *shape), np.float32)
        globals_ = np.empty((n, GLOBAL_COUNT), np.float32)
        encode_katago(boards, histories, symmetries, planes, globals_, encoding.pass_alive_suicide, False, False)
        inputs: dict[str, Array] = {"planes": planes, "globals": globals_}
        if encoding.metadata:
            profile = parse_profile(self.profile or "")
            rows = [metadata_row(profile, black, self.xsize * self.ysize) for black in (False, True)]
            inputs["metadata"] = np.stack([rows[int(side == BLACK)] for side in histories["to_play"]])
            optimism = 0.0
        context: dict[str, Array] = {
            "no_result_allowed": (histories["ko_rule"] == KO_SIMPLE) | (histories["scoring"] == SCORING_TERRITORY),
            "policy_optimism": np.full(n, optimism, np.float32),
        }
        return Batch(inputs, context)

    def open_proven(self, tree: Any, root: tuple[Array, ...]) -> None:
        """Nothing in Go is proven by one move."""

    def name(self, move: int, side: int) -> str:
        """The GTP vertex of a move."""
        return loc_to_vertex(move, self.xsize, self.ysize)

    def code(self, name: str, position: Any) -> int:
        """The move of a GTP vertex, −1 if it names none."""
        return vertex_to_loc(name, self.xsize, self.ysize)

    @staticmethod
    def side(position: Any) -> int:
        """The side to move, as nodes hold it."""
        return int(position.history[0]["to_play"])

    def fits(self, position: Any) -> bool:
        """Is the position one of this kind?"""
        return (getattr(position, "xsize", 0), getattr(position, "ysize", 0)) == (self.xsize, self.ysize)

    def restore(self, points: Array, symmetry: int) -> Array:
        """Turn a per-point output [H, W] of planes under a symmetry back to the board [ysize, xsize]."""
        return restore_points(points, symmetry)

    @staticmethod
    def other(side: int) -> int:
        """The side that moves after `side`."""
        return 3 - side

    @property
    def side_length(self) -> float:
        """The square root of the board's area."""
        return float(np.sqrt(self.xsize * self.ysize))
