"""The comparison trunks: each sees the board its own way, under the same heads."""

from __future__ import annotations

import pytest
import torch

from keima.errors import BadRequest
from keima.systems.comparison.trunks import (
    Attention,
    ConvolutionBlock,
    InceptionBlock,
    InceptionNetwork,
    TransformerNetwork,
    VggNetwork,
)
from keima.systems.layers import PolicyHead, ValueHead
from keima.systems.registry import create, find, receptive_field

NAMES = ["comparison-vgg", "comparison-inception", "comparison-transformer"]


@pytest.mark.parametrize("name", NAMES)
def test_the_heads_are_alphago_zero_s(name):
    network = create(name, **find(name).small)
    zero = create("alphago-zero", blocks=1, channels=8, board_size=9, value_hidden=16)
    for head, kind in (("policy_head", PolicyHead), ("value_head", ValueHead)):
        assert type(getattr(network, head)) is kind
        shapes = [{k: v.shape for k, v in getattr(n, head).state_dict().items()} for n in (network, zero)]
        assert shapes[0] == shapes[1]


def test_the_plain_trunk_is_convolutions_only():
    network = VggNetwork(layers=5, channels=4, board_size=5, value_hidden=4)
    assert [type(block) for block in network.trunk] == [ConvolutionBlock] * 5


def test_larger_kernels_see_as_far_with_fewer_layers():
    threes = VggNetwork(layers=4, channels=4, board_size=5, value_hidden=4)
    fives = VggNetwork(layers=2, channels=4, kernel=5, board_size=5, value_hidden=4)
    assert receptive_field(threes) == receptive_field(fives) == 9
    with pytest.raises(BadRequest, match="an odd kernel, not 4"):
        VggNetwork(kernel=4)


def test_the_four_branches_see_1_3_5_and_3_points():
    """From a change at one point, each branch's quarter of the channels changes in its own neighbourhood."""
    torch.manual_seed(0)
    block = InceptionBlock(16).eval()
    for module in block.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.uniform_(module.weight, 0.1, 1.0)
    x = torch.rand(1, 16, 9, 9)
    changed = x.clone()
    changed[:, :, 4, 4] += 1
    with torch.no_grad():
        felt = (block(changed) - block(x)).abs().reshape(4, 4, 9, 9).amax(dim=1) > 1e-6
    assert [int(branch.sum()) for branch in felt] == [1, 9, 25, 9]
    assert InceptionNetwork(1, 16, 9, 8).trunk(torch.zeros(1, 17, 9, 9)).shape == (1, 16, 9, 9)


def test_attention_is_softmax_of_products():
    """Against the formula written out, one head at a time."""
    torch.manual_seed(0)
    attention = Attention(8, 2)
    x = torch.randn(1, 5, 8)
    q, k, v = attention.query_key_value(x)[0].split(8, dim=-1)
    mixed = [
        torch.softmax(q[:, h] @ k[:, h].T / 2.0, dim=-1) @ v[:, h]  # √4 = 2
        for h in (slice(0, 4), slice(4, 8))
    ]
    torch.testing.assert_close(attention(x)[0], attention.output(torch.cat(mixed, dim=-1)), rtol=1e-4, atol=1e-5)


def test_the_transformer_knows_where_a_point_is():
    """On an empty board every point has the same planes; only the position tells them apart."""
    torch.manual_seed(0)
    network = TransformerNetwork(1, 8, 2, board_size=5, value_hidden=4).eval()
    planes = torch.zeros(1, 17, 5, 5)
    with torch.no_grad():
        features = network.trunk(planes)
        assert (features - features[:, :, :1, :1]).abs().max() > 1e-3
        network.trunk.row_position.zero_()
        network.trunk.column_position.zero_()
        features = network.trunk(planes)
        torch.testing.assert_close(features, features[:, :, :1, :1].expand_as(features))
