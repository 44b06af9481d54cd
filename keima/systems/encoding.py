"""What every encoding offers: the bridge between a game's positions and a network's tensors."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest, UnsupportedPosition
from keima.games.game import GAMES, stack
from keima.games.position import Position
from keima.jit import Records

if TYPE_CHECKING:
    from typing_extensions import Self

Array = NDArray[Any]


@dataclass(frozen=True)
class Batch:
    """The encoded form of N positions that share one board shape."""

    # what the network's `forward` takes, by name and in its order, float32: `planes` [N, C, H, W], then where the
    # system has them `globals` [N, G], `metadata` [N, M], `mask`
    inputs: dict[str, Array]
    # facts [N, ...] that decoding needs and the network does not see
    context: dict[str, Array] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """N, the number of positions."""
        return int(self.inputs["planes"].shape[0])

    def __getitem__(self, rows: slice) -> Batch:
        """Some of its positions, as views: what is written into them is written here."""
        inputs, context = ({name: array[rows] for name, array in part.items()} for part in (self.inputs, self.context))
        return Batch(inputs, context)


def decoding_context(first_to_move: Array, no_result_allowed: Array | None = None) -> dict[str, Array]:
    """What `Network.decode` needs of N positions besides a network's outputs.

    Args:
        first_to_move: bool [N], Black (Go) or White (chess) moves next.
        no_result_allowed: bool [N], the game may end without a result by its rules; nowhere if not given.
    """
    n = len(first_to_move)
    return {
        "black_to_play": np.asarray(first_to_move, np.bool_),
        "no_result_allowed": np.zeros(n, np.bool_) if no_result_allowed is None else no_result_allowed,
        "policy_optimism": np.zeros(n, np.float32),
    }


@dataclass(frozen=True)
class LegalMoves:
    """The k legal moves of one position in a network's policy."""

    indices: NDArray[np.int64]  # int64 [k], in the orientation the planes were encoded in
    names: list[str]  # in the board's own orientation: GTP vertices and "pass", or UCI


class Encoding(ABC):
    """Position → planes, policy index ↔ move, for one system.

    `write` is the one way to encode: evaluator, search, training and self-play call it with the game's records.
    Positions are checked in `check` and `encode`; `write` and `write_indices` trust what they are given.
    """

    name: str  # the name `keima planes` takes or prints: "katago", "lc0", "alphago", ...
    game: str  # A key of `keima.games.game.GAMES`
    planes: int  # C, the number of input planes
    globals: int = 0  # G, the number of global inputs; 0 where the system has none
    board: tuple[int, int]  # (H, W) of the planes of a full board, or of the one size it takes
    symmetries: tuple[int, ...] = (0,)
    """The symmetries a position may be encoded in, 0 first: 0–7 for Go, 0 alone for chess, 0 and 2 for connect four."""
    options: tuple[str, ...] = ()
    """Names of what it takes beside the position ("profile", "policy_optimism"); bound by `bind`."""
    choices: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Of options that take names, some to choose from, by the option."""
    policy_frame: str = "board"
    """Encodings of a game number their moves alike where this is equal: "board", or "planes" turned by the position."""
    concepts: Mapping[str, Sequence[int]] = MappingProxyType({})
    """What its planes tell of single points, by name: such planes, on one of which a point stands that has it."""
    masked: bool = False
    """Planes may be larger than the board in their top left corner; an input `mask` [N, H, W] tells the network."""

    def bind(self, **options: object) -> Self:
        """The same encoding with these options fixed, those bound before as they were; None takes one back.

        Raises:
            BadRequest: an option it does not take, or a value out of range; the message lists those there are.
        """
        for option in options:
            if option not in self.options:
                there = f"it takes {', '.join(self.options)}" if self.options else "it takes none"
                raise BadRequest(f"the {self.name} encoding of this network has no option {option!r}; {there}")
        return copy.copy(self)

    def check(self, position: Position) -> None:
        """Raise `UnsupportedPosition` unless this encoding can take the position (game, size, rules)."""
        check_game(position, self.game, f"the {self.name} encoding")

    def start(self) -> Position:
        """The position the game begins with, on the one board this encoding takes where it takes but one."""
        game = GAMES[self.game]
        position = game.from_json({})
        try:
            self.check(position)
        except UnsupportedPosition:
            height, width = self.board
            position = game.playing.start((width, height))
        return position

    @abstractmethod
    def shape(self, position: Position, symmetry: int = 0) -> tuple[int, int]:
        """(H, W) of the planes of this position under this symmetry; positions of one batch share it."""

    def policy_size(self, shape: tuple[int, int]) -> int:
        """A, the moves of a policy for planes [H, W]: here the points, and the pass after them."""
        return shape[0] * shape[1] + 1

    def room(self, n: int, shape: tuple[int, int]) -> Batch:
        """A batch to be written: uninitialised inputs and context for N positions whose planes are [H, W]."""
        inputs: dict[str, Array] = {"planes": np.empty((n, self.planes, *shape), np.float32)}
        if self.globals:
            inputs["globals"] = np.empty((n, self.globals), np.float32)
        return Batch(inputs)

    @abstractmethod
    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        """Write N positions of one shape into a batch made by `room`, `context` too, bound options and all.

        Args:
            records: [N] of the game's `Kernels.dtype`; trusted.
            symmetries: int64 [N], 0–7 by bits: 1 flips rows, 2 flips columns, 4 transposes.
            batch: written.
        """

    @abstractmethod
    def write_indices(self, moves: Array, counts: Array, symmetries: Array, batch: Batch, indices: Array) -> None:
        """Write the policy index of every move of N positions that were written into `batch`.

        Args:
            moves: int16 [N, M], moves as the game's kernels write them; the first `counts[k]` of row k.
            counts: int32 [N].
            symmetries: int64 [N], as for `write`.
            batch: what `write` wrote of the same positions.
            indices: int32 [N, M], written.
        """

    def encode(self, positions: Sequence[Position], symmetries: Sequence[int] | int = 0) -> Batch:
        """`check`, `room` and `write` for N positions that share one shape under their symmetries.

        Raises:
            UnsupportedPosition: a position this encoding cannot take.
            BadRequest: no positions, several shapes, a symmetry there is not, or as many as do not fit; an option that
                has to be bound is not.
        """
        for position in positions:
            self.check(position)
        each = symmetry_list(symmetries, len(positions), self.symmetries)
        shapes = {self.shape(position, turn) for position, turn in zip(positions, each.tolist(), strict=True)}
        if len(shapes) != 1:
            found = ", ".join(f"{height}×{width}" for height, width in sorted(shapes)) or "no positions"
            raise BadRequest(f"a batch holds planes of one shape, not {found}")
        batch = self.room(len(positions), shapes.pop())
        self.write(stack(positions), each, batch)
        return batch

    @abstractmethod
    def legal_moves(self, position: Position, symmetry: int = 0) -> LegalMoves:
        """The legal moves with their policy indices under this symmetry."""

    @abstractmethod
    def restore(self, points: Array, position: Position, symmetry: int) -> Array:
        """Turn a per-point output [H, W] of planes encoded under `symmetry` back to the board [ysize, xsize]."""


BaseEncoding = Encoding  # the name it is derived by in docs/extending.md


def check_game(position: object, game: str, taker: str) -> None:
    """Raise `UnsupportedPosition` unless this is a position of that game; the message says what `taker` takes."""
    found = getattr(position, "game", None)
    if found != game:
        named = isinstance(found, str) and found in GAMES
        what = f"{GAMES[str(found)].title} positions" if named else type(position).__name__
        raise UnsupportedPosition(f"{taker} takes {GAMES[game].title} positions, not {what}")


def symmetries_of(encoding: Encoding, position: Position) -> NDArray[np.int64]:
    """The symmetries that keep the shape of a position's planes, int64 [k]."""
    shape = encoding.shape(position)
    return np.array([turn for turn in encoding.symmetries if encoding.shape(position, turn) == shape], np.int64)


def symmetry_names(available: Sequence[int]) -> str:
    """The symmetries of an encoding in words, for messages: "0 to 7"."""
    if len(available) > 2 and list(available) == list(range(len(available))):
        return f"0 to {available[-1]}"
    return " or ".join(map(str, available)) if len(available) > 1 else "0 alone"


def symmetry_list(symmetries: Sequence[int] | int, n: int, available: Sequence[int]) -> NDArray[np.int64]:
    """Symmetries as int64 [n]; raises BadRequest for one that is not available, or too few or many."""
    each = np.full(n, symmetries) if isinstance(symmetries, int | np.integer) else np.asarray(list(symmetries))
    if each.shape != (n,):
        raise BadRequest(f"{n} positions need {n} symmetries, not {each.size}")
    if n and (each.dtype.kind not in "iu" or not np.isin(each, available).all()):
        raise BadRequest(f"the symmetries of this encoding are {symmetry_names(available)}, not {symmetries!r}")
    return each.astype(np.int64)
