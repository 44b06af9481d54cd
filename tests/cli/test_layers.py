"""What a layer knows is what can be read off it: probes against layers whose knowledge is known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import keima
from keima.errors import BadRequest
from keima.games import go
from keima.games.conformance import random_game
from keima.inference.activations import filters
from keima.inference.probes import INPUT, probe
from keima.systems.alphago.network import AlphaGoPolicyNetwork
from keima.systems.network import Network
from keima.systems.system import get_encoding
from tests.cli.conftest import Run

SIDE = 7


def positions(seed: int) -> list[go.Position]:
    game = random_game(go.Position.start(SIDE), np.random.default_rng(seed), 60)
    return [position for position in game if isinstance(position, go.Position)][5:60:3]


def forgetful() -> Network:
    """Its first layer lets own stones through and adds a plane of atari; its second forgets all but the stones."""
    network = AlphaGoPolicyNetwork(filters=2, layers=2, board_size=SIDE)
    first, second = (network.get_submodule(f"hidden.{k}") for k in (0, 2))
    for layer in (first, second):
        nn.init.zeros_(layer.get_parameter("weight"))
    with torch.no_grad():
        first.get_parameter("weight")[0, 0, 2, 2] = 1.0  # own stones
        first.get_parameter("weight")[1, 12, 2, 2] = 1.0  # chains with one liberty
        second.get_parameter("weight")[0, 0, 1, 1] = 1.0
    return network.eval()


def test_a_layer_knows_what_it_was_given_and_no_more() -> None:
    found = probe(forgetful(), get_encoding("alphago"), positions(1) + positions(2), positions(3) + positions(4))
    table = {name: dict(zip(found.concepts, one, strict=True)) for name, one in found.layers.items()}
    assert list(table) == [INPUT, "hidden.1", "hidden.3"]
    for layer, concept in ((INPUT, "in atari"), ("hidden.1", "in atari"), ("hidden.3", "own stone")):
        assert table[layer][concept] == 1.0
    stones = [(colour, p.to_play) for p in positions(3) + positions(4) for colour, _ in p.on_board()]
    assert found.points[found.concepts.index("own stone")] == sum(colour == side for colour, side in stones)
    forgotten = table["hidden.3"]["in atari"]
    assert forgotten is not None
    assert forgotten < 0.8  # a stone of one's own is all that is left to go by
    blind = table["hidden.1"]["sensible"]
    assert blind is not None
    assert 0.5 < blind < 0.8


def test_probes_that_cannot_be_are_refused() -> None:
    network = forgetful()
    with pytest.raises(BadRequest, match="names no concepts"):
        probe(network, get_encoding("leela-zero"), positions(1), positions(2))
    with pytest.raises(BadRequest, match="games, two at least"):
        probe(network, get_encoding("alphago"), positions(1), [])


def test_filters_are_the_weights() -> None:
    network = forgetful()
    np.testing.assert_array_equal(filters(network, "hidden.0"), network.get_parameter("hidden.0.weight").detach())
    with pytest.raises(BadRequest, match=r"'hidden' has no filters; inside it hidden\.0, hidden\.2"):
        filters(network, "hidden")


def test_show_draws_filters_and_what_they_see_and_tells_what_they_know(run: Run) -> None:
    keima.save(forgetful(), "net.safetensors")
    for extra in ((), ("--position", '{"xsize": 7, "moves": [["B", "D4"]]}')):
        result = run("show", "net.safetensors", "--layer", "hidden.0", *extra, "-o", "out.png")
        assert result.exit_code == 0, result.stderr
        assert Path("out.png").read_bytes().startswith(b"\x89PNG")
    letters = "abcdefg"
    for game in range(2):
        places = np.random.default_rng(game).permutation(SIDE * SIDE)[:44]
        moves = (f";{'BW'[k % 2]}[{letters[p // SIDE]}{letters[p % SIDE]}]" for k, p in enumerate(places))
        Path(f"g{game}.sgf").write_text(f"(;GM[1]SZ[{SIDE}]{''.join(moves)})")
    table = run("show", "net.safetensors", "--concepts", "alphago", "--position", ".")
    assert table.exit_code == 0, table.stderr
    rows = {line.split()[0]: line.split()[1:] for line in table.stdout.splitlines()[2:]}
    assert float(rows["hidden.3"][0]) == 100.0
    assert math.isfinite(float(rows["input"][0]))
    assert run("show", "net.safetensors", "--concepts", "alphago").exit_code == 2
