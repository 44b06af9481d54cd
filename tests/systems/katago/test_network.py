"""KataGo's networks: masks, norms, attention and the arithmetic of answers, each against its definition.

Against KataGo's own answers they are held in tests/systems/katago/test_inputs_golden.py.
"""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from keima.errors import BadRequest, BadWeights, UnsupportedNetwork
from keima.systems.katago.config import (
    AttentionConfig,
    BottleneckConfig,
    KataGoConfig,
    NormConfig,
    RmsConfig,
)
from keima.systems.katago.layers import AttentionBlock, Board, NormAct, RmsNormAct, global_pool, global_pool_value
from keima.systems.katago.network import PRESETS, KataGoNetwork, by_name, decode
from keima.systems.layers import initialise
from tests.systems.katago.katago_tiny import CONFIGS, tiny
from tests.systems.laws import answers, assert_learns, assert_rows_independent, assert_same, openvino_answers

SIZES = ((7, 7), (5, 7), (4, 3))


def inputs_of(network, rows, height, width, seed=0):
    """Planes of zeros and ones with the board's plane all ones, as KataGo's are, and normal numbers elsewhere."""
    generator = torch.Generator().manual_seed(seed)
    planes = (torch.rand(rows, 22, height, width, generator=generator) > 0.6).float()
    planes[:, 0] = 1.0
    inputs = {"planes": planes, "globals": torch.randn(rows, 19, generator=generator)}
    if "metadata" in network.input_names:
        inputs["metadata"] = torch.randn(rows, 192, generator=generator)
    return inputs


# --- Whole networks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGS)
def test_boards_of_any_size_share_a_batch(name):
    """Padded to 8×9 and masked, each board answers as it does alone, on its own points."""
    network = tiny(name)
    alone = [inputs_of(network, 1, *size, seed=i) for i, size in enumerate(SIZES)]
    planes, mask = torch.zeros(len(SIZES), 22, 8, 9), torch.zeros(len(SIZES), 8, 9)
    for i, (height, width) in enumerate(SIZES):
        planes[i, :, :height, :width] = alone[i]["planes"][0]
        mask[i, :height, :width] = 1.0
    others = {key: torch.cat([one[key] for one in alone]) for key in alone[0] if key != "planes"}
    with torch.no_grad():
        together = network(planes=planes, mask=mask, **others)
    for i, (height, width) in enumerate(SIZES):
        one = answers(network, alone[i])
        policy = together.policy[i].numpy()
        points = policy[:, :-1].reshape(-1, 8, 9)
        np.testing.assert_allclose(
            points[:, :height, :width].reshape(len(policy), -1), one["policy"][0, :, :-1], atol=2e-5
        )
        assert (points[:, height:] == -5000).all()
        assert (points[:, :, width:] == -5000).all()
        np.testing.assert_allclose(policy[:, -1], one["policy"][0, :, -1], atol=2e-5)
        np.testing.assert_allclose(together.value[i], one["value"][0], atol=2e-5)
        np.testing.assert_allclose(together.score[i], one["score"][0], atol=2e-5)
        np.testing.assert_allclose(together.ownership[i, :height, :width], one["ownership"][0], atol=2e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_rows_do_not_know_each_other(name):
    network = tiny(name)
    assert_rows_independent(network, inputs_of(network, 3, 5, 6))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_weight_learns(name):
    network = tiny(name)
    assert_learns(network, inputs_of(network, 4, 5, 5))


@pytest.mark.parametrize("name", CONFIGS)
def test_openvino_agrees(name):
    """On four rows: there OpenVINO cannot compile mish between two linear layers, were they written plainly."""
    network = tiny(name)
    inputs = inputs_of(network, 4, 5, 6)
    assert_same(openvino_answers(network, inputs), answers(network, inputs), 1e-4)


@pytest.mark.parametrize("name", CONFIGS)
def test_shapes_are_those_promised(name):
    network = tiny(name)
    outputs = answers(network, inputs_of(network, 2, 4, 6))
    assert outputs["policy"].shape == (2, network.config.policy.outputs, 25)
    assert outputs["value"].shape == (2, 3)
    assert outputs["score"].shape == (2, 4 if network.config.version == 8 else 6)
    assert outputs["ownership"].shape == (2, 4, 6)


def test_metadata_goes_to_the_networks_that_take_it():
    network, other = tiny("v15-metadata"), tiny("v14-nested")
    inputs = inputs_of(network, 1, 3, 3)
    with pytest.raises(BadRequest, match="takes planes, globals, metadata, and each"):
        network(inputs["planes"], inputs["globals"])
    with pytest.raises(BadRequest, match="takes planes, globals, and each"):
        other(**inputs)


# --- Parts ------------------------------------------------------------------------------------------------------------


def test_batch_norm_learns_from_the_points_on_the_board_only():
    norm = NormAct(3, NormConfig("identity", statistics=True, epsilon=1e-3)).train()
    x = torch.randn(2, 3, 4, 5) * 3 + 1
    mask = torch.zeros(2, 1, 4, 5)
    mask[0, :, :3, :2] = 1
    mask[1, :, :2, :5] = 1
    on_board = x.permute(1, 0, 2, 3)[:, mask[:, 0] > 0]
    mean, var = on_board.mean(dim=1), on_board.var(dim=1, unbiased=False)
    out = norm(x, Board.of(x, mask))
    expected = (x - mean[:, None, None]) / (var + 1e-3).sqrt()[:, None, None] * mask
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(norm.running_mean, 0.01 * mean)
    torch.testing.assert_close(norm.running_var, 0.99 + 0.01 * var)


def test_batch_norm_is_pytorch_s():
    config = NormConfig("identity", statistics=True, epsilon=1e-3)
    norm = NormAct(3, config)
    with torch.no_grad():
        for tensor in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            tensor.uniform_(0.5, 2.0)
    x = torch.randn(2, 3, 4, 4)
    board = Board.of(x, None)
    expected = F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=1e-3)
    torch.testing.assert_close(norm.eval()(x, board), expected)
    expected = F.batch_norm(x, None, None, norm.weight, norm.bias, training=True, eps=1e-3)
    torch.testing.assert_close(norm.train()(x, board), expected)


@pytest.mark.parametrize("spatial", [False, True])
def test_rms_norm_by_its_definition(spatial):
    norm = RmsNormAct(3, RmsConfig("identity", spatial, 1e-4))
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0, -1.0]))
        norm.bias.copy_(torch.tensor([0.5, 0.0, 1.0]))
    x = torch.randn(1, 3, 2, 3)
    axes = (0, 1, 2) if spatial else (0,)
    square = (x[0].numpy() ** 2).mean(axis=axes, keepdims=True)
    expected = x[0].numpy() / np.sqrt(square + 1e-4)
    expected = expected * np.array([1, 2, -1])[:, None, None] + np.array([0.5, 0, 1])[:, None, None]
    np.testing.assert_allclose(norm(x, Board.of(x, None))[0].detach(), expected, atol=1e-5)


def test_global_pooling_by_hand():
    """One channel holding 1..9 on a 3×3 board: √points − 14 = −11."""
    x = torch.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    board = Board.of(x, None)
    torch.testing.assert_close(global_pool(x, board), torch.tensor([[5.0, 5.0 * -1.1, 9.0]]))
    torch.testing.assert_close(global_pool_value(x, board), torch.tensor([[5.0, 5.0 * -1.1, 5.0 * (1.21 - 0.1)]]))


def test_the_maximum_looks_on_the_board_only():
    x = torch.full((1, 1, 2, 2), -3.0)
    board = Board.of(x, torch.tensor([[[1.0, 1.0], [0.0, 0.0]]]))
    assert global_pool(x * board.mask, board)[0, 2] == -3.0


def attention_by_hand(block, x):
    """One position, head by head and point by point, in NumPy."""
    config = block.config
    weights = {name: value.detach().double().numpy() for name, value in block.state_dict().items()}
    channels, height, width = x.shape
    tokens = x.reshape(channels, -1).T
    normed = tokens / np.sqrt((tokens**2).mean(axis=1, keepdims=True) + config.epsilon) * weights["norm.weight"]
    pairs, group = config.key_channels // 2, config.heads // config.key_value_heads

    def turned(vector, shared_head, y, x):
        out = vector.copy()
        for p in range(pairs if config.rotary != "none" else 0):
            if config.rotary == "learned":
                along_x, along_y = weights["frequencies"][shared_head, p]
                angle = x * along_x + y * along_y
            elif p < pairs // 2:
                angle = y * config.theta ** (-2.0 * p / pairs)
            else:
                angle = x * config.theta ** (-2.0 * (p - pairs // 2) / pairs)
            a, b = vector[2 * p], vector[2 * p + 1]
            out[2 * p] = a * math.cos(angle) - b * math.sin(angle)
            out[2 * p + 1] = a * math.sin(angle) + b * math.cos(angle)
        return out

    places = [(y, x) for y in range(height) for x in range(width)]
    mixed = []
    for head in range(config.heads):
        shared = head // group
        d, v = config.key_channels, config.value_channels
        queries = (normed @ weights["query.weight"].T)[:, head * d : (head + 1) * d]
        keys = (normed @ weights["key.weight"].T)[:, shared * d : (shared + 1) * d]
        values = (normed @ weights["value.weight"].T)[:, shared * v : (shared + 1) * v]
        queries = np.array([turned(q, shared, *place) for q, place in zip(queries, places, strict=True)])
        keys = np.array([turned(k, shared, *place) for k, place in zip(keys, places, strict=True)])
        odds = np.exp(queries @ keys.T / math.sqrt(d))
        mixed.append(odds / odds.sum(axis=1, keepdims=True) @ values)
    out = tokens + np.concatenate(mixed, axis=1) @ weights["out.weight"].T
    return out.T.reshape(x.shape)


@pytest.mark.parametrize(
    "config",
    [
        AttentionConfig(2, 2, 4, 3, "none"),
        AttentionConfig(2, 2, 8, 4, "fixed", theta=20.0),
        AttentionConfig(2, 1, 6, 4, "fixed", theta=100.0),
        AttentionConfig(4, 2, 4, 3, "learned"),
    ],
    ids=lambda config: f"{config.rotary}-{config.heads}-{config.key_value_heads}",
)
def test_attention_by_its_definition(config):
    block = AttentionBlock(5, config)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.normal_()
    x = torch.randn(2, 5, 3, 4)
    out = block(x, Board.of(x, None)).detach().numpy()
    for row in range(2):
        np.testing.assert_allclose(out[row], attention_by_hand(block, x[row].double().numpy()), atol=2e-4)


def test_starting_weights_have_the_spread_asked_for():
    weight = torch.empty(64, 32, 3, 3)
    initialise(weight, "relu", scale=0.5)
    wanted = 0.5 * math.sqrt(2 / (32 * 9))
    assert weight.std().item() == pytest.approx(wanted, rel=0.02)
    assert weight.abs().max().item() < 2.5 * wanted


def test_a_fresh_deep_network_answers_sensibly():
    """Forty blocks: without care each doubles what comes through."""
    torch.manual_seed(0)
    config = dataclasses.replace(by_name("b40c256"), channels=8)
    small = tuple(dataclasses.replace(block, channels=8) for block in config.blocks)
    network = KataGoNetwork(dataclasses.replace(config, blocks=small)).eval()
    outputs = answers(network, inputs_of(network, 2, 9, 9))
    assert max(np.abs(values).max() for values in outputs.values()) < 20


# --- Answers ----------------------------------------------------------------------------------------------------------


def raw(config, **changes):
    """Raw outputs of one 1×2 board, all zero but for the changes."""
    outputs = {
        "policy": np.zeros((1, config.policy.outputs, 3), np.float32),
        "value": np.zeros((1, 3), np.float32),
        "score": np.zeros((1, config.scores), np.float32),
        "ownership": np.zeros((1, 1, 2), np.float32),
    }
    return outputs | {name: np.array([value], np.float32) for name, value in changes.items()}


def context(no_result=False, optimism=0.0):
    return {"no_result_allowed": np.array([no_result]), "policy_optimism": np.array([optimism], np.float32)}


def test_win_loss_and_no_result():
    """Odds 6 : 3 : 1 of win, loss, no result; where the rules exclude the last, 6 : 3."""
    config = CONFIGS["v14-nested"]
    outputs = raw(config, value=np.log([6.0, 3.0, 1.0]))
    heads = decode(config, outputs, context(no_result=True))
    np.testing.assert_allclose(heads.wdl, [[0.6, 0.1, 0.3]], atol=1e-6)
    np.testing.assert_allclose(heads.value, [0.3], atol=1e-6)
    heads = decode(config, outputs, context(no_result=False))
    np.testing.assert_allclose(heads.wdl, [[2 / 3, 0.0, 1 / 3]], atol=1e-6)
    assert heads.wdl[0, 1] == 0.0


def test_scores_are_in_points_over_all_outcomes():
    """No result half the time halves mean, lead and mean square; stdev 20 · ln 2 from a raw 0."""
    config = CONFIGS["v14-nested"]
    outputs = raw(config, value=[0.0, -100.0, 0.0], score=[0.5, 0.0, -0.25, 0.0, 0.0, 0.0])
    heads = decode(config, outputs, context(no_result=True))
    assert heads.extra["score_mean"][0] == pytest.approx(5.0)
    assert heads.lead[0] == pytest.approx(-2.5)
    mean_square = 0.5 * (10.0**2 + (20 * math.log(2)) ** 2)
    assert heads.extra["score_stdev"][0] == pytest.approx(math.sqrt(mean_square - 25.0), rel=1e-6)
    assert heads.extra["variance_time"][0] == pytest.approx(40 * math.log(2))


@pytest.mark.parametrize(
    ("name", "winloss", "score"),
    [
        ("v9-residual", math.log(1 + math.e), 10 * math.log(1 + math.e)),
        ("v12-nested", math.sqrt(0.25 * math.log(1 + math.e)), math.sqrt(30 * math.log(1 + math.e))),
        ("v14-nested", 0.5 * math.log(1 + math.e**0.5), math.sqrt(120.5) * math.log(1 + math.e**0.5)),
    ],
)
def test_short_term_errors_of_each_generation(name, winloss, score):
    config = CONFIGS[name]
    extra = decode(config, raw(config, score=[0, 0, 0, 0, 1.0, 1.0]), context()).extra
    assert extra["shortterm_winloss_error"][0] == pytest.approx(winloss, rel=1e-6)
    assert extra["shortterm_score_error"][0] == pytest.approx(score, rel=1e-6)


def test_version_8_reports_no_errors():
    config = CONFIGS["v8-residual"]
    assert set(decode(config, raw(config), context()).extra) == {"score_mean", "score_stdev"}


def test_optimism_mixes_the_second_policy_in():
    config = CONFIGS["v16-residual"]
    policy = np.zeros((4, 3))
    policy[0], policy[1] = [1.0, 2.0, 3.0], [3.0, 2.0, -1.0]
    heads = decode(config, raw(config, policy=policy), context(optimism=0.25))
    np.testing.assert_allclose(heads.policy, [[1.5, 2.0, 2.0]])


def test_human_networks_have_no_optimism():
    config = CONFIGS["v15-metadata"]
    policy = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, -1.0]])
    heads = decode(config, raw(config, policy=policy), context(optimism=1.0))
    np.testing.assert_allclose(heads.policy, [[1.0, 2.0, 3.0]])


def test_ownership_is_a_tanh():
    config = CONFIGS["v14-nested"]
    heads = decode(config, raw(config, ownership=[[50.0, -0.5]]), context())
    np.testing.assert_allclose(heads.ownership, [[[1.0, math.tanh(-0.5)]]], rtol=1e-6)


# --- Configurations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("b6c96", 998_089), ("b15c192", 9_869_865), ("b18c384nbt", 26_370_713), ("b7c96h3tfrs", 818_953)],
)
def test_presets_have_katago_s_size(name, parameters):
    """KataGo v1.17.2 counts as many parameters when it loads a file written from the preset."""
    with torch.device("meta"):
        network = KataGoNetwork(by_name(name))
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters


def test_b18c384nbt_is_what_its_name_says():
    config = by_name("b18c384nbt")
    assert (len(config.blocks), config.channels) == (18, 384)
    assert all(isinstance(block, BottleneckConfig) and block.channels == 192 for block in config.blocks)
    pooling = [i for i, block in enumerate(config.blocks, 1) if hasattr(block.blocks[0], "pooled")]
    assert pooling == [3, 6, 9, 12, 15]


@pytest.mark.parametrize("config", [*CONFIGS.values(), *map(by_name, PRESETS)], ids=[*CONFIGS, *PRESETS])
def test_configurations_survive_json(config):
    assert KataGoConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize("data", [{}, {"kind": "nonsense"}, {"kind": "NormConfig"}, {"kind": "KataGoConfig", "x": 1}])
def test_json_that_is_no_configuration(data):
    with pytest.raises(BadWeights, match="not a KataGo configuration"):
        KataGoConfig.from_json(data)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("v8-residual", {"version": 7}, "version 7 is not supported; keima runs versions 8 to 17"),
        ("v8-residual", {"version": 18}, "version 18 is not supported"),
        ("v8-residual", {"version": 12}, "1 policy outputs in model version 12, which has 2"),
        ("v14-nested", {"version": 15}, "two layers from model version 15 on"),
        ("v14-nested", {"pass_alive_suicide": True}, "need model version 15"),
        ("v11-nested", {"multipliers": CONFIGS["v14-nested"].multipliers}, "fixed multipliers"),
    ],
)
def test_networks_that_katago_does_not_have(name, change, message):
    with pytest.raises(UnsupportedNetwork, match=message):
        dataclasses.replace(CONFIGS[name], **change)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(BadRequest, match=r"no KataGo network is called 'b99'.*b18c384nbt"):
        by_name("b99")
