"""Lc0's networks: each layer against its formula written out in NumPy, shapes, decoding, tracing to OpenVINO."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import openvino
import pytest
import torch

from keima.errors import BadRequest
from keima.inference.openvino_backend import convert
from keima.systems.lc0.attention import (
    ACTIVATIONS,
    AttentionPolicy,
    AttentionPolicyConfig,
    EncoderConfig,
    EncoderLayer,
    SmolgenConfig,
)
from keima.systems.lc0.moves import ATTENTION_INDEX, MOVE_NAMES
from keima.systems.lc0.network import ConvBlock, Lc0Config, Lc0Network, SqueezeExcitation
from keima.systems.lc0.transformer import Lc0Transformer, Lc0TransformerConfig, TokenHeadConfig

SQUARES = [file + rank for rank in "12345678" for file in "abcdefgh"]
SMOLGEN = SmolgenConfig(compressed=2, hidden=5, generated=3)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(11)


def planes(count: int) -> torch.Tensor:
    """Random planes [N, 112, 8, 8], a quarter of the points set."""
    return (torch.rand(count, 112, 8, 8) < 0.25).float()


def residual(**changes: Any) -> Lc0Network:
    shape: dict[str, Any] = {"blocks": 2, "channels": 8, "se_channels": 4, "value_channels": 3, "value_hidden": 7}
    return Lc0Network(Lc0Config(**{**shape, **changes})).eval()


def transformer(**changes: Any) -> Lc0Transformer:
    shape: dict[str, Any] = {
        "embedding": 12,
        "heads": 3,
        "encoders": (EncoderConfig(6, 10, SMOLGEN), EncoderConfig(9, 4)),
        "policy_heads": {"vanilla": AttentionPolicyConfig(8, 5)},
        "value_heads": {"winner": TokenHeadConfig(2, 6, 3)},
        "moves_left": TokenHeadConfig(2, 4, 1),
    }
    return Lc0Transformer(Lc0TransformerConfig(**{**shape, **changes})).eval()


VARIANTS = {
    "convolution, WDL, moves left": residual,
    "classical heads": lambda: residual(policy="classical", policy_channels=2, value="classical", moves_left=False),
    "mish, SE in one block": lambda: residual(activation="mish", se_channels=[0, 3]),
    "no SE, folded": lambda: residual(se_channels=0, batch_norm=False),
    "attention policy": lambda: residual(
        policy="attention", attention_policy=AttentionPolicyConfig(6, 4, (EncoderConfig(4, 5),), heads=2)
    ),
    "transformer, position map": transformer,
    "transformer, dense position": lambda: transformer(position="dense", position_channels=5, embedding_ffn=9),
}


# --- Shapes and whole networks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
def test_shapes_and_independent_rows(name: str) -> None:
    """Every head has its documented shape, and a position's answer does not depend on its neighbours."""
    network = VARIANTS[name]()
    x = planes(3)
    with torch.inference_mode():
        together, alone = network(x), network(x[1:2])
    assert together.policy.shape == (3, 1858)
    assert together.value.shape == (3, 1 if name == "classical heads" else 3)
    if "moves_left" in network.output_names:
        assert together.moves_left.shape == (3,)
        assert (together.moves_left >= 0).all()
    for field in network.output_names:
        torch.testing.assert_close(getattr(together, field)[1:2], getattr(alone, field), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("name", "count"), [*((name, 2) for name in VARIANTS), ("mish, SE in one block", 8)])
def test_openvino_gives_the_same(name: str, count: int) -> None:
    """Traced to OpenVINO in float32, every kind of network answers as in PyTorch, whatever the number of rows."""
    network = VARIANTS[name]()
    x = planes(count)
    compiled = openvino.Core().compile_model(
        convert(network, {"planes": x.numpy()}), "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    )
    result = compiled([x.numpy()])
    with torch.inference_mode():
        expected = network(x)
    for index, field in enumerate(network.output_names):
        np.testing.assert_allclose(result[index], getattr(expected, field).numpy(), atol=2e-5)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_parameter_counts_and_trains(name: str) -> None:
    """A loss on all outputs reaches every parameter, but the convolution planes no move reads."""
    network = VARIANTS[name]().train()
    out = network(planes(4))
    loss = out.policy.square().mean() + out.value.square().mean()
    if out.moves_left is not None:
        loss = loss + (out.moves_left - 5).square().mean()
    loss.backward()
    for field, parameter in network.named_parameters():
        assert parameter.grad is not None, field


@pytest.mark.parametrize("name", VARIANTS)
def test_config_survives_json(name: str) -> None:
    """A config written as JSON and read back makes the same network."""
    config = VARIANTS[name]().config
    assert type(config)(**json.loads(json.dumps(dataclasses.asdict(config)))) == config


def test_published_sizes() -> None:
    """Parameters of 10×128, 20×256 and 24×320 by hand: stem, 2 convolutions and SE a block, heads."""
    for blocks, channels in ((10, 128), (20, 256), (24, 320)):
        with torch.device("meta"):
            network = Lc0Network(Lc0Config(blocks, channels, 32, batch_norm=False))
        c = channels
        tower = blocks * (2 * (9 * c * c + c) + (32 * c + 32) + (64 * c + 2 * c))
        policy = (9 * c * c + c) + (9 * c * 80 + 80)
        value = (32 * c + 32) + (2048 * 128 + 128) + (128 * 3 + 3)
        moves_left = (8 * c + 8) + (512 * 128 + 128) + (128 + 1)
        expected = (9 * 112 * c + c) + tower + policy + value + moves_left
        assert sum(parameter.numel() for parameter in network.parameters()) == expected


# --- Layers against their formulas -------------------------------------------------------------------------------


def test_squeeze_excitation_formula() -> None:
    """sigmoid(W) · x + B, W the first half of the second layer's outputs and B the second."""
    layer = SqueezeExcitation(3, 2, "relu")
    x = torch.randn(2, 3, 8, 8)
    w1, b1, w2, b2 = (p.detach().numpy() for p in (*layer.fc1.parameters(), *layer.fc2.parameters()))
    squeezed = np.maximum(x.numpy().mean(axis=(2, 3)) @ w1.T + b1, 0)
    both = squeezed @ w2.T + b2
    scale, shift = 1 / (1 + np.exp(-both[:, :3])), both[:, 3:]
    expected = scale[..., None, None] * x.numpy() + shift[..., None, None]
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, atol=1e-6)


def test_batch_norm_is_folded_as_lc0_folds_it() -> None:
    """w · γ/√(σ² + 1e-5), and −γ' · (μ − b) + β, as `network_legacy.cc` computes before it convolves."""
    block = ConvBlock(2, 3, 1, batch_norm=True).eval()
    norm: Any = block.norm
    norm.running_mean.copy_(torch.randn(3))
    norm.running_var.copy_(torch.rand(3))
    with torch.no_grad():
        norm.weight.copy_(torch.randn(3))
        norm.bias.copy_(torch.randn(3))
    x = torch.randn(1, 2, 8, 8)
    gamma = norm.weight / torch.sqrt(norm.running_var + 1e-5)
    weights = block.conv.weight[:, :, 0, 0] * gamma[:, None]
    bias = -gamma * (norm.running_mean - block.conv.bias) + norm.bias
    expected = torch.einsum("oi,nihw->nohw", weights, x) + bias[:, None, None]
    torch.testing.assert_close(block(x), expected, atol=1e-5, rtol=1e-5)


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    mean = x.mean(-1, keepdims=True)
    return beta + gamma * (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + epsilon)


def test_encoder_formula() -> None:
    """Attention with smolgen head by head and square by square, post-norm with α, against plain NumPy."""
    alpha, epsilon, heads = 0.7, 1e-3, 2
    layer = EncoderLayer(4, heads, EncoderConfig(6, 5, SMOLGEN), "swish", "relu_2", alpha, epsilon)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    maps = torch.randn(4096, SMOLGEN.generated)
    x = torch.randn(1, 64, 4)
    p = {name: value.detach().numpy().astype(np.float64) for name, value in layer.named_parameters()}
    t = x[0].numpy().astype(np.float64)

    def dense(name: str, value: Any) -> Any:
        return value @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0.0)

    def swish(value: Any) -> Any:
        return value / (1 + np.exp(-value))

    def norm(name: str, value: Any, eps: float) -> Any:
        return layer_norm(value, p[f"{name}.weight"], p[f"{name}.bias"], eps)

    smolgen = "mha.smolgen"
    summary = dense(f"{smolgen}.compress", t).reshape(-1)
    summary = norm(f"{smolgen}.norm1", swish(dense(f"{smolgen}.dense1", summary)), 1e-3)
    summary = norm(f"{smolgen}.norm2", swish(dense(f"{smolgen}.dense2", summary)), 1e-3)
    q, k, v = (dense(f"mha.{part}", t) for part in "qkv")
    mixed = np.zeros((64, 6))
    for head in range(heads):
        part = slice(3 * head, 3 * head + 3)
        logits = q[:, part] @ k[:, part].T / np.sqrt(3)
        logits += (maps.numpy() @ summary.reshape(heads, -1)[head]).reshape(64, 64)
        weights = np.exp(logits - logits.max(1, keepdims=True))
        mixed[:, part] = weights / weights.sum(1, keepdims=True) @ v[:, part]
    t = norm("norm1", t + alpha * dense("mha.dense", mixed), epsilon)
    hidden = np.maximum(dense("ffn.dense1", t), 0) ** 2
    t = norm("norm2", t + alpha * dense("ffn.dense2", hidden), epsilon)
    np.testing.assert_allclose(layer(x, maps)[0].detach().numpy(), t, atol=1e-4)


def test_attention_policy_formula() -> None:
    """Move by move, from its name: query(from) · key(to) / √d, and for q, r, b the offsets of the file reached."""
    head = AttentionPolicy(AttentionPolicyConfig(4, 3), smolgen="none", ffn="selu").eval()
    x = torch.randn(1, 64, 4)
    with torch.no_grad():
        logits = head(x)[0].numpy()
        queries, keys = head.query(x)[0].numpy(), head.key(x)[0].numpy()
        offsets = head.promotion.weight.numpy()
    for index, name in enumerate(MOVE_NAMES):
        start, end = SQUARES.index(name[:2]), SQUARES.index(name[2:4])
        expected = queries[start] @ keys[end] / np.sqrt(3)
        if len(name) == 5:
            expected += keys[end] @ (offsets["qrb".index(name[4])] + offsets[3])
        assert logits[index] == pytest.approx(expected, abs=1e-5), name


def test_attention_index_is_a_table_of_different_places() -> None:
    index = ATTENTION_INDEX
    assert len(set(index.tolist())) == 1858
    assert (index[0], index[1791], index[1792], index[1857]) == (1, 63 * 64 + 62, 4096, 4096 + 24 * 7 + 3 * 7 + 2)


def test_position_map() -> None:
    """A square's row: −1 itself, +1 where a queen or knight goes, drawn for d4."""
    drawn = transformer().embedding.map[SQUARES.index("d4")].reshape(8, 8).numpy()[::-1]
    board = "\n".join("".join({-1: "o", 0: ".", 1: "x"}[int(value)] for value in row) for row in drawn)
    assert board == "\n".join(
        ["...x...x", "x..x..x.", ".xxxxx..", ".xxxxx..", "xxxoxxxx", ".xxxxx..", ".xxxxx..", "x..x..x."]
    )


@pytest.mark.parametrize(
    ("name", "at_minus_one", "at_two"),
    [
        ("relu", 0.0, 2.0),
        ("mish", -0.30340147, 1.94395896),
        ("none", -1.0, 2.0),
        ("tanh", -0.76159416, 0.96402758),
        ("sigmoid", 0.26894142, 0.88079708),
        ("selu", -1.11133074, 2.10140197),
        ("swish", -0.26894142, 1.76159416),
        ("relu_2", 0.0, 4.0),
    ],
)
def test_activations(name: str, at_minus_one: float, at_two: float) -> None:
    """Values computed by hand from lc0's formulas (`shared/activation.cc`)."""
    out = ACTIVATIONS[name](torch.tensor([-1.0, 2.0]))
    np.testing.assert_allclose(out.numpy(), [at_minus_one, at_two], atol=1e-6)


# --- Decoding ----------------------------------------------------------------------------------------------------


def test_decode_wdl() -> None:
    policy = np.zeros((1, 1858), np.float32)
    heads = residual().decode({"policy": policy, "value": np.log(np.array([[0.5, 0.3, 0.2]], np.float32))}, {})
    assert heads.policy is policy
    assert heads.wdl is not None
    assert heads.value is not None
    np.testing.assert_allclose(heads.wdl, [[0.5, 0.3, 0.2]], atol=1e-6)
    np.testing.assert_allclose(heads.value, [0.3], atol=1e-6)
    assert heads.moves_left is None


def test_decode_classical() -> None:
    """q = tanh; lc0 reports no draws for such a network."""
    raw = np.array([[0.0], [100.0], [-0.5]], np.float32)
    outputs = {"policy": np.zeros((3, 1858), np.float32), "value": raw, "moves_left": raw[:, 0]}
    heads = residual().decode(outputs, {})
    assert heads.wdl is not None
    assert heads.value is not None
    np.testing.assert_allclose(heads.value, [0, 1, np.tanh(-0.5)], atol=1e-6)
    np.testing.assert_allclose(heads.wdl[:, 1], 0)
    np.testing.assert_allclose(heads.wdl[:, 0] - heads.wdl[:, 2], heads.value, atol=1e-6)
    np.testing.assert_allclose(heads.wdl.sum(1), 1, atol=1e-6)


# --- Configuration -----------------------------------------------------------------------------------------------


def test_batch_norm_names() -> None:
    """True: everywhere but on the policy's last convolution; False: nowhere; names: exactly there."""
    trained = Lc0Config(blocks=1).batch_norm
    assert trained == ("input", "residual.0.conv1", "residual.0.conv2", "policy1", "value", "moves_left")
    assert Lc0Config(batch_norm=False).batch_norm == ()
    network = residual(batch_norm=["residual.1.conv2"])
    assert [name for name, _ in network.named_buffers() if name.endswith("running_mean")] == [
        "tower.1.conv2.norm.running_mean"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blocks": 0}, "blocks must be at least 1"),
        ({"policy": "dense"}, "choose one of convolution, classical, attention"),
        ({"value": "q"}, "choose one of wdl, classical"),
        ({"activation": "swish"}, "choose one of relu, mish"),
        ({"policy": "attention"}, "attention_policy"),
        ({"policy_channels": 72}, "at least 73"),
        ({"se_channels": [1, 2, 3], "blocks": 2}, "names 3 blocks of 2"),
        ({"batch_norm": ["policy2"]}, "policy2"),
        ({"input_format": "nonsense"}, "nonsense"),
    ],
)
def test_bad_configs(change: dict[str, Any], message: str) -> None:
    """What cannot be is refused, with what can."""
    with pytest.raises(BadRequest, match=message):
        Lc0Network(Lc0Config(**change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 4}, "4 attention heads cannot share a width of 6"),
        ({"heads": 0}, "0 attention heads"),
        ({"position": "rope"}, "choose map or dense"),
        ({"encoders": ()}, "needs an encoder"),
        ({"policy_heads": {"soft": AttentionPolicyConfig(4, 4)}}, "vanilla"),
        ({"value_heads": {"winner": TokenHeadConfig(1, 1, 2)}}, "3 outputs"),
        ({"moves_left": TokenHeadConfig(1, 1, 3)}, "1 output"),
        ({"encoders": (EncoderConfig(6, 1, SMOLGEN), EncoderConfig(6, 1, SmolgenConfig(1, 1, 1)))}, "share one table"),
        ({"ffn_activation": "gelu"}, "unknown activation 'gelu'"),
    ],
)
def test_bad_transformers(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        transformer(**change)


def test_select_heads() -> None:
    """Each policy head answers for itself; an unknown one is refused with the list of those there are."""
    policies = {"vanilla": AttentionPolicyConfig(8, 5), "soft": AttentionPolicyConfig(6, 4)}
    network = transformer(policy_heads=policies, value_heads={"winner": TokenHeadConfig(), "q": TokenHeadConfig()})
    x = planes(1)
    with torch.inference_mode():
        plain = network(x)
        other = network.select(policy="soft", value="q")(x)
        again = network.select("vanilla", "winner")(x)
    assert not torch.allclose(plain.policy, other.policy)
    assert not torch.allclose(plain.value, other.value)
    assert torch.equal(plain.policy, again.policy)
    with pytest.raises(BadRequest, match="no policy head 'opponent'; choose one of vanilla, soft"):
        network.select(policy="opponent")
