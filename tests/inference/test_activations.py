"""The activations of a layer are what that layer computes."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from keima.errors import BadRequest, UnsupportedPosition
from keima.inference.activations import activations
from tests.inference.fakes import GridNetwork, grid, turn

POSITION = grid((1, 0, -2), (0.5, 3, 0))


@pytest.mark.parametrize("symmetry", range(8))
def test_the_first_layer_doubles_the_numbers(symmetry: int) -> None:
    seen = activations(GridNetwork(), POSITION, "tower.0", symmetry=symmetry)
    numbers = turn(POSITION.array, symmetry)
    assert seen.dtype == np.float32
    np.testing.assert_array_equal(seen, np.stack([2 * numbers, np.ones_like(numbers), np.zeros_like(numbers)]))


def test_a_container_gives_what_its_last_layer_does() -> None:
    network = GridNetwork()
    np.testing.assert_array_equal(activations(network, POSITION, "tower"), activations(network, POSITION, "tower.1"))
    np.testing.assert_array_equal(activations(network, POSITION, "tower")[0], POSITION.array)


def test_the_network_is_left_as_it_was() -> None:
    network = GridNetwork()
    network.tower.append(nn.BatchNorm2d(1))
    network.train()
    network.tower[1].eval()
    activations(network, POSITION, "tower.2")
    assert network.training
    assert network.tower[2].training
    assert not network.tower[1].training
    assert network.tower[2].num_batches_tracked == 0
    assert not network.tower[2]._forward_hooks


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        ("towr.0", "no layer 'towr.0'; it has 3, among them tower.0"),
        ("", "no layer ''"),
        ("spare", "'spare' is not used for this position"),
        ("pair", "'pair' gives no single tensor; ask for one inside it: inner"),
    ],
)
def test_layers_that_cannot_be_shown_are_refused(layer: str, says: str) -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x: object) -> tuple[object, object]:
            return self.inner(x), x

    network = GridNetwork()
    if layer == "spare":
        network.spare = nn.Identity()
    if layer == "pair":
        network.pair = Pair()
        network.register_forward_pre_hook(lambda module, inputs: network.pair(inputs[0]) and None)
    with pytest.raises(BadRequest, match=says):
        activations(network, POSITION, layer)


def test_other_games_and_symmetries_are_refused() -> None:
    with pytest.raises(UnsupportedPosition):
        activations(GridNetwork(), "e4", "tower.0")
    with pytest.raises(BadRequest, match="choose 0 to 7"):
        activations(GridNetwork(), POSITION, "tower.0", symmetry=8)
