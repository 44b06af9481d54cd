"""The public checks: every game and system of the house passes, and what breaks a law is caught by its name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import keima
from keima.games.connect_four.kernels import make
from keima.games.connect_four.position import Position
from keima.games.game import GAMES, Game
from keima.jit import Record, Records, njit
from keima.systems.alphago_zero.connect_four import ConnectFourEncoding, ConnectFourNetwork
from keima.systems.conformance import check_encoding, check_network
from keima.systems.encoding import Array, Batch
from keima.systems.layers import PolicyValue
from keima.systems.system import SYSTEMS


@pytest.mark.parametrize("game", GAMES)
def test_every_game(game: str) -> None:
    keima.check_game(game, games=3)


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system(system: str) -> None:
    keima.check_system(system)


def test_a_system_of_one_small_network() -> None:
    """Of the quick tests, the one that runs every law of a system."""
    keima.check_system("katago-guide")


def test_connect_fours_encoding_and_network() -> None:
    check_encoding(ConnectFourEncoding())
    check_network(ConnectFourNetwork(blocks=1, channels=4, value_hidden=4).eval())


def broken(**changes: object) -> Game:
    """Connect four with something changed."""
    game = replace(GAMES["connect_four"])
    for name, value in changes.items():
        game.__dict__[name] = value
    return game


@njit
def _plays_twice(p: Record, scratch: Record, move: int) -> None:
    make(p, move)
    p.ply += 2


@njit
def _one_move(p: Record, scratch: Record, moves: NDArray[np.int16]) -> int:
    moves[0] = 3
    return 1


class Forgetful(Position):
    """Forgets its moves in JSON."""

    def to_json(self) -> dict[str, object]:
        return {"game": self.game, "moves": []}


class Changing(Position):
    """A record that can be written to."""

    def __post_init__(self) -> None:
        """Nothing is frozen."""


@pytest.mark.parametrize(
    ("game", "law"),
    [
        (broken(position=Forgetful), "to_json"),
        (broken(position=Changing), "read-only"),
        (broken(kernels=replace(GAMES["connect_four"].kernels, play=_plays_twice)), "a kernel's record"),
        (broken(kernels=replace(GAMES["connect_four"].kernels, legal_moves=_one_move)), "the same moves"),
        (broken(kernels=replace(GAMES["connect_four"].kernels, code=lambda position, name: 0)), "code"),
        (broken(letters=("1", "1")), "sides differ|one of the letters"),
    ],
)
def test_broken_games_are_caught(game: Game, law: str) -> None:
    with pytest.raises(keima.ConformanceError, match=law):
        keima.check_game(game, games=2)


class Unwritten(ConnectFourEncoding):
    """Leaves the top row as it was."""

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        top = batch.inputs["planes"][:, :, 0].copy()
        super().write(records, symmetries, batch)
        batch.inputs["planes"][:, :, 0] = top


class Unturned(ConnectFourEncoding):
    """Does not turn points back."""

    def restore(self, points: Array, position: object, symmetry: int) -> Array:
        return points


class OneSided(ConnectFourEncoding):
    """Its policy is not mirrored with the planes in `write_indices`."""

    def write_indices(
        self,
        moves: NDArray[np.int16],
        counts: NDArray[np.int32],
        symmetries: NDArray[np.int64],
        batch: Batch,
        indices: NDArray[np.int32],
    ) -> None:
        super().write_indices(moves, counts, symmetries * 0, batch, indices)


class Neighbourly(ConnectFourEncoding):
    """A position's last plane is that of the first of the batch."""

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        super().write(records, symmetries, batch)
        batch.inputs["planes"][:, 2] = batch.inputs["planes"][:1, 2]


@pytest.mark.parametrize(
    ("encoding", "law"),
    [
        (Unwritten, "is written"),
        (Unturned, "restore"),
        (OneSided, "write_indices"),
        (Neighbourly, "its own position"),
    ],
)
def test_broken_encodings_are_caught(encoding: type[ConnectFourEncoding], law: str) -> None:
    with pytest.raises(keima.ConformanceError, match=law):
        check_encoding(encoding())


class Batchwise(ConnectFourNetwork):
    """Its value is measured by the batch."""

    def forward(self, planes: Array) -> PolicyValue:  # type: ignore[override]
        found = super().forward(planes)  # type: ignore[arg-type]
        return PolicyValue(found.policy, found.value - found.policy.mean())


def test_a_network_that_looks_at_its_neighbours_is_caught() -> None:
    with pytest.raises(keima.ConformanceError, match="what else is in the batch"):
        check_network(Batchwise(blocks=1, channels=4, value_hidden=4).eval())


def test_unknown_names() -> None:
    with pytest.raises(keima.BadRequest, match="connect_four"):
        keima.check_game("checkers")
    with pytest.raises(keima.BadRequest, match="katago"):
        keima.check_system("alphastar")
