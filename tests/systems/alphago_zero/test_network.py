"""AlphaGo Zero's four networks and Leela Zero's, against the paper and against Leela Zero's own answers."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from keima.games.go.position import Position
from keima.systems.alphago_zero.file import read_leela_zero
from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork
from keima.systems.alphago_zero.network import AlphaGoZeroNetwork, AlphaGoZeroSeparateNetworks
from keima.systems.layers import ConvolutionBlock, PolicyHead, ResidualBlock
from keima.systems.network import softmax
from tests.systems.laws import answers, lively, random_inputs


def parameters(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize("blocks", [19, 39])
def test_the_parameters_are_what_the_paper_s_layers_add_up_to(blocks):
    with torch.device("meta"):
        network = AlphaGoZeroNetwork(blocks=blocks)
    stem = 17 * 256 * 9 + 2 * 256
    block = 2 * (256 * 256 * 9 + 2 * 256)
    policy = 2 * 256 + 2 * 2 + 722 * 362 + 362
    value = 256 + 2 + 361 * 256 + 256 + 256 + 1
    assert parameters(network) == stem + blocks * block + policy + value


def test_a_residual_block_with_zero_weights_passes_its_input_through_the_rectifier():
    block = ResidualBlock(3).eval()
    nn.init.zeros_(block.convolution2.weight)
    x = torch.randn(2, 3, 5, 5)
    torch.testing.assert_close(block(x), x.relu())


def test_a_plain_tower_has_no_skip_connections():
    network = AlphaGoZeroNetwork(blocks=11, channels=4, tower="convolution", board_size=5)
    assert [type(block) for block in network.tower] == [ConvolutionBlock] * 11
    assert sum(m.kernel_size == (3, 3) for m in network.modules() if isinstance(m, nn.Conv2d)) == 12


def test_a_fresh_policy_head_gives_each_point_the_difference_of_its_own_two_planes():
    head = PolicyHead(3, 5).eval()
    x = torch.randn(2, 3, 5, 5)
    first, second = head.norm(head.convolution(x)).relu().flatten(2).unbind(1)
    torch.testing.assert_close(head(x)[:, :25], first - second + head.linear.bias[:25])


@pytest.mark.parametrize("tower", ["residual", "convolution"])
def test_separate_networks_share_nothing(tower):
    """The value does not feel the policy network's weights, nor the policy the value network's."""
    network = lively(AlphaGoZeroSeparateNetworks(2, 4, tower, board_size=5, value_hidden=8))
    inputs = random_inputs(network, 2)
    before = answers(network, inputs)
    with torch.no_grad():
        network.policy_stem.convolution.weight.zero_()
    after = answers(network, inputs)
    np.testing.assert_array_equal(after["value"], before["value"])
    assert np.abs(after["policy"] - before["policy"]).max() > 1e-3
    with torch.no_grad():
        network.value_stem.convolution.weight.zero_()
    assert np.abs(answers(network, inputs)["value"] - before["value"]).max() > 0


def test_the_dual_network_shares_its_tower():
    network = lively(AlphaGoZeroNetwork(2, 4, board_size=5, value_hidden=8))
    inputs = random_inputs(network, 2)
    before = answers(network, inputs)
    with torch.no_grad():
        network.tower[0].convolution1.weight.neg_()
    after = answers(network, inputs)
    assert all(np.abs(after[name] - before[name]).max() > 0 for name in ("policy", "value"))


def test_value_becomes_win_and_loss():
    network = AlphaGoZeroNetwork(1, 4, board_size=5, value_hidden=8)
    heads = network.decode({"policy": np.zeros((2, 26), np.float32), "value": np.float32([1, -0.5])}, {})
    np.testing.assert_allclose(heads.wdl, [[1, 0, 0], [0.25, 0, 0.75]])
    np.testing.assert_allclose(heads.value, [1, -0.5])


def test_a_version_2_value_is_black_s():
    network = LeelaZeroNetwork(1, 4, board_size=5, value_for_black=True, value_hidden=8)
    outputs = {"policy": np.zeros((2, 26), np.float32), "value": np.float32([0.5, 0.5])}
    heads = network.decode(outputs, {"black_to_play": np.array([True, False])})
    np.testing.assert_allclose(heads.value, [0.5, -0.5])
    np.testing.assert_allclose(heads.wdl[:, 0], [0.75, 0.25])


def heatmap(network: Any, positions: list[Position], symmetries: list[int]) -> tuple[Any, Any]:
    """What leelaz prints: probabilities in ‰ over all moves, legal or not (board [N, 19, 19], pass [N]), win rates."""
    batch = network.encoding.encode(positions, symmetries)
    outputs = answers(network, {"planes": torch.from_numpy(batch.inputs["planes"])})
    heads = network.decode(outputs, batch.context)
    permille = 1000 * softmax(heads.policy)
    boards = [
        network.encoding.restore(row[:-1].reshape(19, 19), position, symmetry)
        for row, position, symmetry in zip(permille, positions, symmetries, strict=True)
    ]
    return np.stack(boards), permille[:, -1], heads.wdl[:, 0]


def test_leela_zero_s_own_answers(reference, golden):
    """Sixty positions, six symmetries: every probability within its rounding (leelaz cuts to ‰), win rate to 1e-4."""
    lines = golden("leela-zero-random-3x32")
    network = read_leela_zero(reference / "nets" / "leela-zero-random-3x32.txt.gz")
    positions = [Position.from_json(line) for line in lines]
    boards, passes, win_rates = heatmap(network, positions, [line["symmetry"] for line in lines])
    for line, position, board, on_pass, win_rate in zip(lines, positions, boards, passes, win_rates, strict=True):
        empty = position.stones == 0  # leelaz prints 0 on stones
        for found, printed in ((board * empty, np.array(line["policy_permille"])), (on_pass, line["pass_permille"])):
            assert np.all(found > printed - 0.01), line["id"]
            assert np.all(found < printed + 1.01), line["id"]
        assert abs(win_rate - line["winrate_to_play"]) < 1e-4, line["id"]


def test_the_reference_file_itself_is_text_of_version_1(reference):
    with gzip.open(reference / "nets" / "leela-zero-random-3x32.txt.gz", "rt") as file:
        assert file.readline().strip() == "1"
