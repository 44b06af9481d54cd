"""The guide's network does not go into KataGo's file, and is told where."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import keima
from keima.errors import UnsupportedNetwork


def test_every_layer_that_does_not_fit_is_named(tmp_path: Path) -> None:
    network = keima.create("katago-guide-b10c128", blocks=6, channels=4, board_size=7)
    with pytest.raises(UnsupportedNetwork) as refusal:
        keima.save(network, tmp_path / "guide.bin.gz")
    assert refusal.value.place == "stem"
    assert refusal.value.source == str(tmp_path / "guide.bin.gz")
    for part in ("the board 7 moves ago", "6 liberties", "tower.6 ", "policy_head.linear ", "score_head.linear1 "):
        assert part in str(refusal.value)
    assert "own stones" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_a_stem_of_stones_alone_fits_and_the_heads_still_do_not() -> None:
    network = keima.create("katago-guide-b10c128", blocks=2, channels=4, board_size=7)
    with torch.no_grad():
        network.stem.weight[:, 3:] = 0
    with pytest.raises(UnsupportedNetwork, match=r"^policy_head\.linear: is fully connected"):
        keima.convert(network, "katago")
