"""Gradients of 3×3 convolutions on small boards: those of `nn.Conv2d`, whatever the machine."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import keima
from keima.training.run import small_boards
from keima.training.run.small_boards import WIDEST, SmallBoardConvolution, lay_out_small_boards


@pytest.fixture
def amx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)


@given(
    st.integers(1, 24),
    st.integers(1, 9),
    st.integers(1, WIDEST + 2),
    st.integers(1, 5),
    st.integers(1, 5),
    st.booleans(),
)
@settings(deadline=None)
def test_gradients_are_those_of_a_convolution(n, height, width, inputs, outputs, bias):
    """Of small whole numbers, whose sums bfloat16 products hold exactly in float32."""
    torch.manual_seed(n + 31 * width)
    plain = nn.Conv2d(inputs, outputs, 3, padding=1, bias=bias)
    for parameter in plain.parameters():
        parameter.data = torch.randint(-2, 3, parameter.shape).float()
    ours = copy.deepcopy(plain)
    ours.__class__ = SmallBoardConvolution
    x, gradient = (torch.randint(-1, 2, (n, channels, height, width)).float() for channels in (inputs, outputs))
    found = []
    for layer in (plain, ours):
        given_ = x.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            output = layer(given_)
        output.backward(gradient.to(output.dtype))
        found.append([output.float(), given_.grad, *(parameter.grad for parameter in layer.parameters())])
    for expected, own in zip(*found, strict=True):
        assert (expected - own).abs().max() <= 2**-7 * expected.abs().max()


@pytest.mark.usefixtures("amx")
def test_a_network_laid_out_is_evaluated_saved_and_copied_as_before(tmp_path):
    torch.manual_seed(0)
    network = keima.create("lc0", blocks=1, channels=8)
    x = torch.rand(4, 112, 8, 8)
    expected = network.eval()(x).policy
    lay_out_small_boards(network)
    assert sum(isinstance(module, SmallBoardConvolution) for module in network.modules()) >= 4
    assert torch.equal(copy.deepcopy(network).eval()(x).policy, expected)
    keima.save(network, tmp_path / "network.safetensors")
    assert torch.equal(keima.load(tmp_path / "network.safetensors")(x).policy, expected)


def test_without_amx_nothing_is_laid_out(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    network = keima.create("lc0", blocks=1, channels=8)
    lay_out_small_boards(network)
    assert not any(isinstance(module, SmallBoardConvolution) for module in network.modules())


@pytest.mark.usefixtures("amx")
def test_only_3x3_convolutions_of_a_small_board_in_bfloat16_are(monkeypatch):
    monkeypatch.setattr(small_boards, "_side_by_side", None)  # whoever calls it fails
    network = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3, padding=1, stride=2))
    lay_out_small_boards(network)
    assert [type(module) for module in network] == [SmallBoardConvolution, nn.Conv2d, nn.Conv2d]
    network[0](torch.rand(2, 2, 8, 8)).sum().backward()
    with torch.autocast("cpu", torch.bfloat16):
        network[0](torch.rand(2, 2, WIDEST + 1, WIDEST + 1)).sum().backward()
        with pytest.raises(TypeError):
            network[0](torch.rand(2, 2, 8, 8)).sum().backward()
