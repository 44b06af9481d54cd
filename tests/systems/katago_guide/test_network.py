"""The guide's four-head network against the guide's code."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from keima.systems.katago_guide.network import (
    SIZES,
    GlobalPoolingBlock,
    KataGoGuideNetwork,
    ResidualBlock,
)
from keima.systems.registry import find
from tests.systems.laws import answers, lively, random_inputs


@pytest.mark.parametrize(("blocks", "pooling"), [(5, []), (6, [6]), (10, [6]), (18, [6, 13, 20])])
def test_a_pooling_block_follows_every_sixth_residual_block(blocks, pooling):
    network = KataGoGuideNetwork(blocks, 2, board_size=5)
    kinds = [type(block) for block in network.tower]
    assert [i for i, kind in enumerate(kinds) if kind is GlobalPoolingBlock] == pooling
    assert kinds.count(ResidualBlock) == blocks


@pytest.mark.parametrize("name", SIZES)
def test_the_guide_s_sizes_are_registered(name):
    blocks, channels = SIZES[name]
    assert find(f"katago-guide-{name}").sizes == {"blocks": blocks, "channels": channels}


def test_a_pooling_block_adds_the_same_to_every_point():
    block = GlobalPoolingBlock(4)
    x = torch.randn(2, 4, 5, 5)
    rest = block(x) - block.convolution(x)
    torch.testing.assert_close(rest, block.linear(x.mean(dim=(2, 3)))[:, :, None, None].expand_as(rest))


def test_a_residual_block_with_zero_weights_is_the_identity():
    block = ResidualBlock(3).eval()
    torch.nn.init.zeros_(block.convolution2.weight)
    torch.nn.init.zeros_(block.convolution2.bias)
    x = torch.randn(2, 3, 5, 5)
    torch.testing.assert_close(block(x), x)


def test_four_heads_and_what_they_mean():
    network = lively(KataGoGuideNetwork(6, 8, board_size=7))
    outputs = answers(network, random_inputs(network, 3))
    shapes = {name: values.shape for name, values in outputs.items()}
    assert shapes == {"policy": (3, 50), "value": (3,), "score": (3,), "ownership": (3, 7, 7)}
    assert np.abs(outputs["value"]).max() <= 1
    assert np.abs(outputs["ownership"]).max() <= 1
    heads = network.decode(outputs, {})
    assert heads.lead is outputs["score"]
    assert heads.ownership is outputs["ownership"]
    np.testing.assert_allclose(heads.wdl.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(heads.wdl[:, 0] - heads.wdl[:, 2], heads.value, atol=1e-6)
