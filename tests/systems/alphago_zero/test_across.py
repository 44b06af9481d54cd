"""AlphaGo Zero's network in Leela Zero's file: other planes, the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import keima
from keima.errors import UnsupportedNetwork
from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork

MOVES = ("C3", "G7", "C7", "G3", "E5", "D5", "E4", "pass", "A1")


def trained() -> keima.Network:
    """A network whose norms are not the fresh ones."""
    network = keima.create("alphago-zero", blocks=2, channels=8, board_size=9).eval()
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if "norm" in name and tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5)
    return network


@pytest.mark.parametrize("folded", [False, True])
def test_leela_zero_answers_the_same(folded: bool, tmp_path: Path) -> None:
    network = trained()
    keima.save(keima.compress.fold(network) if folded else network, tmp_path / "zero.txt.gz")
    same = keima.load(tmp_path / "zero.txt.gz")
    assert isinstance(same, LeelaZeroNetwork)
    position = keima.go.Position.start(size=9)
    positions = [position, *(position := position.play(move) for move in MOVES)]
    one, two = (keima.Evaluator(each, backend="torch")(positions) for each in (network, same))
    for left, right in zip(one, two, strict=True):
        assert left.value == pytest.approx(right.value, abs=1e-5)
        assert left.logits == pytest.approx(right.logits, abs=1e-4)


def test_what_the_format_cannot_hold_is_refused_by_its_layer(tmp_path: Path) -> None:
    plain = keima.create("alphago-zero-dual-conv", blocks=1, channels=4, board_size=9)
    with pytest.raises(UnsupportedNetwork, match=r"tower\.0: a convolution without a skip connection"):
        keima.save(plain, tmp_path / "x.txt.gz")
    apart = keima.create("alphago-zero-sep-res", blocks=1, channels=4, board_size=9)
    with pytest.raises(UnsupportedNetwork, match="not a AlphaGoZeroSeparateNetworks"):
        keima.save(apart, tmp_path / "x.txt.gz")
    assert list(tmp_path.iterdir()) == []
