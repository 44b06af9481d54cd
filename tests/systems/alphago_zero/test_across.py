"""AlphaGo Zero's network as Leela Zero's and back: other planes, the same answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import keima
from keima.errors import BadRequest, UnsupportedNetwork
from keima.games.game import stack
from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork
from keima.systems.alphago_zero.network import AlphaGoZeroNetwork
from tests.systems.laws import answers, assert_same, lively

MOVES = ("C3", "G7", "C7", "G3", "E5", "D5", "E4", "pass", "A1", "J9", "A9")


def positions(size: int = 9) -> list[keima.go.Position]:
    position = keima.go.Position.start(size=size)
    return [position, *(position := position.play(move) for move in MOVES)]


def all_answers(network: keima.Network, size: int) -> dict[str, np.ndarray]:
    """Raw answers to the positions in all eight symmetries (ours: Leela Zero numbers them otherwise)."""
    games, encoding = positions(size), network.encoding
    found = []
    for symmetry in range(8):
        batch = encoding.room(len(games), (size, size))
        encoding.write(stack(games), np.full(len(games), symmetry), batch)
        found.append(answers(network, {"planes": torch.from_numpy(batch.inputs["planes"])}))
    return {name: np.concatenate([each[name] for each in found]) for name in found[0]}


def trained(name: str = "alphago-zero") -> keima.Network:
    """A network whose norms are not the fresh ones."""
    torch.manual_seed(1)
    return lively(keima.create(name, blocks=2, channels=8, board_size=9))


@pytest.mark.parametrize("folded", [False, True])
def test_leela_zero_answers_the_same(folded: bool, tmp_path: Path) -> None:
    network = trained()
    keima.save(keima.compress.fold(network) if folded else network, tmp_path / "zero.txt.gz")
    same = keima.load(tmp_path / "zero.txt.gz")
    assert isinstance(same, LeelaZeroNetwork)
    assert_same(all_answers(same, 9), all_answers(network, 9), 1e-6)


@pytest.mark.parametrize("folded", [False, True])
def test_alphago_zero_answers_the_same(folded: bool, tmp_path: Path) -> None:
    """White's plane becomes a block in front of the tower: the edges, where no bias could stand for it, included."""
    network = trained("leela-zero")
    assert network.stem.convolution.weight[:, 17].abs().min() > 0
    network = keima.compress.fold(network) if folded else network
    same = keima.convert(network, "alphago-zero")
    assert isinstance(same, AlphaGoZeroNetwork)
    assert same.config["blocks"] == 3
    assert same.pedigree.details["converted"] == "from Leela Zero to alphago-zero"
    assert_same(all_answers(same, 9), all_answers(network, 9), 1e-6)
    keima.save(same, tmp_path / "zero.safetensors")
    assert_same(all_answers(keima.load(tmp_path / "zero.safetensors"), 9), all_answers(network, 9), 1e-6)


def test_a_published_format_s_file_becomes_alphago_zero_s(reference: Path) -> None:
    network = keima.load(reference / "nets" / "leela-zero-random-3x32.txt.gz")
    assert_same(all_answers(keima.convert(network, "alphago-zero"), 19), all_answers(network, 19), 2e-6)


def test_there_and_back_is_the_same_network() -> None:
    network = trained()
    back = keima.convert(keima.convert(network, "leela-zero"), "alphago-zero")
    assert back.config == network.config  # White's plane has no weights: no block is needed
    for name, tensor in network.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor), name
    assert keima.convert(network, "alphago-zero") is network


def test_what_a_form_cannot_express_is_refused_by_its_layer(tmp_path: Path) -> None:
    plain = keima.create("alphago-zero-dual-conv", blocks=1, channels=4, board_size=9)
    with pytest.raises(UnsupportedNetwork, match=r"tower\.0: a convolution without a skip connection"):
        keima.save(plain, tmp_path / "x.txt.gz")
    apart = keima.create("alphago-zero-sep-res", blocks=1, channels=4, board_size=9)
    with pytest.raises(UnsupportedNetwork, match=r"x\.txt\.gz: policy_stem\.convolution: Leela Zero has no layer"):
        keima.save(apart, tmp_path / "x.txt.gz")
    with pytest.raises(UnsupportedNetwork, match=r"stem\.convolution: .* ConnectFourNetwork"):
        keima.convert(keima.create("connect-four", blocks=1, channels=4), "leela-zero")
    black = LeelaZeroNetwork(1, 4, board_size=9, value_for_black=True)
    with pytest.raises(UnsupportedNetwork, match=r"value_head\.linear2: the value is Black's"):
        keima.convert(black, "alphago-zero")
    with pytest.raises(BadRequest, match=r"Leela Zero has no other form 'katago'; it has leela-zero, alphago-zero"):
        keima.convert(black, "katago")
    assert list(tmp_path.iterdir()) == []
