"""AlphaGo's two networks against the paper's own figures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from keima.errors import UnsupportedPosition
from keima.games.go.position import Position
from keima.systems.alphago.network import NO_PASS_LOGIT, AlphaGoPolicyNetwork, AlphaGoValueNetwork
from tests.systems.laws import answers, random_inputs


def convolutions(network):
    return [m for m in network.modules() if isinstance(m, nn.Conv2d)]


def test_the_policy_network_is_the_paper_s():
    """48 planes; layer 1 is 5×5, layers 2–12 3×3, 192 filters; layer 13 is 1×1 with one filter and 361 biases."""
    with torch.device("meta"):
        network = AlphaGoPolicyNetwork()
    found = [(c.in_channels, c.out_channels, c.kernel_size[0], c.bias is not None) for c in convolutions(network)]
    assert found == [(48, 192, 5, True), *[(192, 192, 3, True)] * 11, (192, 1, 1, False)]
    first, middle = 5 * 5 * 48 * 192 + 192, 3 * 3 * 192 * 192 + 192
    assert first == 230_592
    assert sum(p.numel() for p in network.parameters()) == first + 11 * middle + 192 + 361


def test_the_value_network_is_the_paper_s():
    """49 planes; 12 convolutions, a 1×1 one to one plane, 256 rectifier units, one tanh unit."""
    with torch.device("meta"):
        network = AlphaGoValueNetwork()
    found = [(c.in_channels, c.out_channels, c.kernel_size[0]) for c in convolutions(network)]
    assert found == [(49, 192, 5), *[(192, 192, 3)] * 11, (192, 1, 1)]
    assert (network.linear1.in_features, network.linear1.out_features, network.linear2.out_features) == (361, 256, 1)


def test_each_point_has_a_bias_of_its_own():
    network = AlphaGoPolicyNetwork(filters=4, layers=2, board_size=5).eval()
    inputs = random_inputs(network, 1)
    before = answers(network, inputs)["policy"]
    with torch.no_grad():
        network.point_bias[7] = 3
    difference = answers(network, inputs)["policy"] - before
    np.testing.assert_allclose(difference, 3 * (np.arange(25) == 7)[None], atol=1e-5)


def test_without_a_pass_logit_pass_has_no_probability():
    network = AlphaGoPolicyNetwork(filters=4, layers=2, board_size=5).eval()
    outputs = answers(network, random_inputs(network, 2))
    assert outputs["policy"].shape == (2, 25)
    policy = network.decode(outputs, {}).policy
    np.testing.assert_array_equal(policy[:, :25], outputs["policy"])
    np.testing.assert_array_equal(policy[:, 25], NO_PASS_LOGIT)


def test_the_pass_logit_is_the_last():
    network = AlphaGoPolicyNetwork(filters=4, layers=2, pass_logit=True, board_size=5).eval()
    inputs = random_inputs(network, 2)
    before = answers(network, inputs)["policy"]
    assert before.shape == (2, 26)
    with torch.no_grad():
        network.pass_output.bias += 1
    difference = answers(network, inputs)["policy"] - before
    np.testing.assert_allclose(difference, np.eye(26)[[25, 25]], atol=1e-5)


def test_the_value_is_for_the_side_to_move_and_the_policy_flat():
    network = AlphaGoValueNetwork(filters=4, layers=2, hidden=8, board_size=5).eval()
    heads = network.decode({"value": np.float32([0.5, -1.0])}, {})
    np.testing.assert_allclose(heads.wdl, [[0.75, 0, 0.25], [0, 0, 1]])
    np.testing.assert_array_equal(heads.policy, np.zeros((2, 26)))


@pytest.mark.parametrize("make", [AlphaGoPolicyNetwork, AlphaGoValueNetwork])
def test_a_board_of_another_size_is_refused_before_the_network_sees_it(make):
    network = make(filters=4, layers=1, board_size=9)
    network.encoding.check(Position.start(size=9))
    with pytest.raises(UnsupportedPosition, match="for 9×9 boards, not 13×13"):
        network.encoding.check(Position.start(size=13))
