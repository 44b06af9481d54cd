"""Residual towers, block against block: each formula against one written out with PyTorch's functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import keima
from keima.compress import fold
from keima.errors import BadRequest
from keima.systems.comparison.residual import BLOCKS, POOL_EVERY, ComparisonResidualNetwork
from keima.systems.registry import create, describe, receptive_field
from tests.systems.laws import (
    TOLERANCE,
    answers,
    assert_learns,
    assert_rows_independent,
    assert_same,
    lively,
    openvino_answers,
    random_inputs,
)

KINDS = list(BLOCKS)
NORMS_LEFT = {"pre": 4, "pre-se": 4, "post-pool": 1, "pre-pool": 5}
"""What no convolution can take over: norms that read a sum (the last one among them)."""


def small(block: str, **sizes: Any) -> ComparisonResidualNetwork:
    torch.manual_seed(0)
    network = create(
        "comparison-residual",
        **{"blocks": 3, "channels": 16, "board_size": 5, "value_hidden": 8, "block": block, **sizes},
    )
    assert isinstance(network, ComparisonResidualNetwork)
    return network


class Twin:
    """A block's arithmetic from its weights by name, layer by layer."""

    def __init__(self, block: nn.Module) -> None:
        self.w = block.state_dict()

    def conv(self, x: Tensor, name: str) -> Tensor:
        weight = self.w[f"{name}.weight"]
        return F.conv2d(x, weight, self.w.get(f"{name}.bias"), padding=weight.shape[-1] // 2)

    def norm(self, x: Tensor, name: str) -> Tensor:
        if f"{name}.weight" not in self.w:
            return x  # post-bare
        mean, var, gamma, beta = (
            self.w[f"{name}.{part}"][None, :, None, None] for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + 1e-5).sqrt() * gamma + beta

    def squeezed(self, x: Tensor) -> Tensor:
        mean = x.flatten(2).sum(2) / x[0, 0].numel()
        hidden = (mean @ self.w["squeeze.squeeze.weight"].T + self.w["squeeze.squeeze.bias"]).clamp(min=0)
        raw = hidden @ self.w["squeeze.excite.weight"].T + self.w["squeeze.excite.bias"]
        return x / (1 + (-raw).exp())[:, :, None, None]

    def pooled(self, x: Tensor) -> Tensor:
        y = self.norm(self.conv(x, "pool_convolution"), "pool.norm").clamp(min=0).flatten(2)
        both = torch.cat([y.sum(2) / y.shape[2], y.max(2).values], dim=1)
        return (both @ self.w["pool.linear.weight"].T + self.w["pool.linear.bias"])[:, :, None, None]

    def post(self, x: Tensor, squeeze: bool = False, pool: bool = False) -> Tensor:
        y = self.conv(x, "convolution1")
        y = self.norm(y + self.pooled(x) if pool else y, "norm1").clamp(min=0)
        y = self.norm(self.conv(y, "convolution2"), "norm2")
        return (x + (self.squeezed(y) if squeeze else y)).clamp(min=0)

    def pre(self, x: Tensor, squeeze: bool = False, pool: bool = False) -> Tensor:
        a = self.norm(x, "norm1").clamp(min=0)
        y = self.conv(a, "convolution1")
        y = self.norm(y + self.pooled(a) if pool else y, "norm2").clamp(min=0)
        y = self.conv(y, "convolution2")
        return x + (self.squeezed(y) if squeeze else y)


@pytest.mark.parametrize("kind", KINDS)
def test_each_block_is_its_formula(kind: str) -> None:
    network = lively(small(kind))
    x = torch.randn(2, 16, 5, 5, generator=torch.Generator().manual_seed(1))
    order, _, extra = kind.partition("-")
    for number, block in enumerate(list(network.trunk)[1:4], 1):
        pools = extra == "pool" and number % POOL_EVERY == 0
        expected = getattr(Twin(block), order)(x, squeeze=extra == "se", pool=pools)
        assert hasattr(block, "pool") == pools
        with torch.no_grad():
            torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_stem_and_tip_put_each_norm_once(kind: str) -> None:
    """Post-activation: norm and rectifier after the stem. Pre-activation: after the last sum instead."""
    network = lively(small(kind, blocks=3))
    inputs = random_inputs(network, 2)["planes"]
    parts = list(network.trunk)
    with torch.no_grad():
        first = parts[0](inputs)
        assert (first.min() >= 0) == kind.startswith("post")
        assert network.trunk(inputs).min() >= 0
        if kind.startswith("pre"):
            before = nn.Sequential(*parts[:-1])(inputs)
            expected = Twin(parts[-1]).norm(before, "norm").clamp(min=0)
            torch.testing.assert_close(network.trunk(inputs), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_is_kept_and_folds(kind: str, tmp_path: Path) -> None:
    network = small(kind)
    inputs = random_inputs(network, 3)
    assert_learns(lively(small(kind)) if kind == "post-zero" else network, inputs)  # what a zero follows waits
    assert_rows_independent(lively(network), inputs)
    keima.save(network, tmp_path / "network.safetensors")
    again = keima.load(tmp_path / "network.safetensors")
    assert again.config == network.config
    assert_same(answers(again, inputs), answers(network, inputs), 0)
    folded = fold(network)
    assert_same(answers(folded, inputs), answers(network, inputs), 1e-5)
    left = [module for module in folded.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(left) == NORMS_LEFT.get(kind, 0)


@pytest.mark.parametrize("kind", ["post-se", "pre-pool"])
def test_pytorch_and_openvino_give_the_same_answer(kind: str) -> None:
    network = lively(small(kind))
    inputs = random_inputs(network, 2)
    assert_same(openvino_answers(network, inputs), answers(network, inputs), TOLERANCE)


def test_the_plain_post_activation_tower_is_alphago_zero_s() -> None:
    ours, zero = small("post"), create("alphago-zero", blocks=3, channels=16, board_size=5, value_hidden=8)
    shapes = [[tuple(tensor.shape) for tensor in network.state_dict().values()] for network in (ours, zero)]
    assert shapes[0] == shapes[1]
    zero.load_state_dict(dict(zip(zero.state_dict(), lively(ours).state_dict().values(), strict=True)))
    inputs = random_inputs(ours, 2)
    assert_same(answers(ours, inputs), answers(zero.eval(), inputs), 0)


def test_a_zero_block_begins_as_the_identity_and_a_bare_tower_has_no_norm() -> None:
    x = torch.rand(2, 16, 5, 5)
    for block in list(small("post-zero").trunk)[1:]:
        torch.testing.assert_close(block(x), x)
    assert not [module for module in small("post-bare").trunk.modules() if isinstance(module, nn.BatchNorm2d)]


def test_what_the_toggles_cost() -> None:
    """Nothing for the order; two linear layers a block for squeeze-and-excitation."""
    counts = {kind: describe(small(kind)).parameters for kind in KINDS}
    assert counts["pre"] == counts["post"]
    assert counts["post-se"] - counts["post"] == 3 * (16 * 2 + 2 + 2 * 16 + 16)
    assert counts["pre-se"] - counts["pre"] == counts["post-se"] - counts["post"]
    assert {receptive_field(small(kind)) for kind in KINDS} == {1 + 2 * 7}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"block": "wide"}, "unknown block 'wide'; choose one of post, pre"),
        ({"blocks": -1}, "blocks ≥ 0 and channels ≥ 1, not -1"),
        ({"block": "post-pool", "blocks": 2}, "post-pool blocks needs blocks ≥ 3 and channels ≥ 4, not 2 and 16"),
    ],
)
def test_what_cannot_be_made_is_refused(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        small(**{"block": "post", **sizes})
