"""KataGo's networks, model versions 8 to 17: sizes by name, blocks, heads, net, from top to bottom.

To see one: b18c384nbt is a 3×3 convolution plus a linear map of the globals (`KataGoNetwork`), 18 `BottleneckBlock`s of
two `ResidualBlock`s each (the first a `PoolingBlock` in every third), a norm, a `PolicyHead` and a `ValueHead`. What a
configuration says stands in `config.py`; the masked norms, pooling and attention below the blocks in `layers.py`.

Sources: Wu 2019, "Accelerating Self-Play Learning in Go" (arXiv:1902.10565), §4 and appendix A; KataGo's
docs/KataGoMethods.md for what came after; `cpp/neuralnet/desc.cpp` and `eigenbackend.cpp`, which decide.

Letters: N positions, C trunk channels, H × W points, A = H·W + 1 moves with pass last. All from the side to move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from keima.errors import BadRequest
from keima.systems.katago.config import (
    GLOBALS,
    PLANES,
    AttentionConfig,
    BlockConfig,
    BottleneckConfig,
    FeedForwardConfig,
    KataGoConfig,
    NormConfig,
    PolicyConfig,
    PoolingConfig,
    ResidualConfig,
    RmsConfig,
    ValueConfig,
)
from keima.systems.katago.inputs import KataGoEncoding
from keima.systems.katago.layers import (
    AttentionBlock,
    Board,
    FeedForwardBlock,
    MetadataEncoder,
    NormAct,
    RmsNormAct,
    convolution,
    global_pool,
    global_pool_value,
)
from keima.systems.layers import activate_rows, activation_layer, initialise
from keima.systems.network import Array, Heads, Network, NetworkEntry, NetworkKind, NetworkTable, Pedigree

# --- The published sizes (python/katago/train/modelconfigs.py) --------------------------------------------------------


class _Size(NamedTuple):
    """A line of the tables below; `pooling`: which blocks pool, counted from 1; `value`: channels and hidden units."""

    blocks: int
    channels: int
    middle: int
    pooled: int
    pooling: range
    policy: int
    value: tuple[int, int]


_RESIDUAL = {
    "b6c96": _Size(6, 96, 96, 32, range(3, 6, 2), 32, (32, 64)),
    "b10c128": _Size(10, 128, 128, 32, range(5, 9, 3), 32, (32, 80)),
    "b15c192": _Size(15, 192, 192, 64, range(7, 13, 5), 32, (32, 96)),
    "b20c256": _Size(20, 256, 256, 64, range(7, 18, 5), 48, (48, 112)),
    "b40c256": _Size(40, 256, 256, 64, range(6, 37, 5), 48, (96, 128)),
    "b60c320": _Size(60, 320, 320, 96, range(6, 57, 5), 64, (96, 144)),
}

_BOTTLENECK = {
    "b18c384nbt": _Size(18, 384, 192, 64, range(3, 16, 3), 48, (96, 128)),
    "b28c512nbt": _Size(28, 512, 256, 64, range(3, 28, 3), 64, (128, 144)),
}

_TRANSFORMER = {"b7c96h3tfrs": (_Size(7, 96, 96, 32, range(0), 32, (32, 64)), 3, 256)}

PRESETS = (*_RESIDUAL, *_BOTTLENECK, *_TRANSFORMER)  # names that `by_name` takes


def by_name(name: str) -> KataGoConfig:
    """A published architecture for fresh training, by KataGo's name for it.

    `b…c…`: pre-activation residual networks with batch norm and ReLU, as in the paper and the g170 run; counted are
    blocks and trunk channels. `…nbt`: nested bottlenecks with fixed scaling, mish and a single batch norm at the tip,
    as in today's distributed run ("-fson-mish"). `…h3tfrs`: a small transformer with fixed rotary embedding, SiLU and
    an RMS norm at the tip. All take a current format with two policy outputs.

    Raises:
        BadRequest: no such name; lists those there are.
    """
    if name in _RESIDUAL:
        return _residual(_RESIDUAL[name])
    if name in _BOTTLENECK:
        return _bottleneck(_BOTTLENECK[name])
    if name in _TRANSFORMER:
        return _transformer(*_TRANSFORMER[name])
    raise BadRequest(f"no KataGo network is called {name!r}; there are {', '.join(PRESETS)}")


def _plain_and_pooling(size: _Size, norm: NormConfig) -> tuple[BlockConfig, ...]:
    plain = ResidualConfig(size.middle, norm, norm)
    pooling = PoolingConfig(size.middle - size.pooled, size.pooled, norm, norm, norm)
    return tuple(pooling if number in size.pooling else plain for number in range(1, size.blocks + 1))


def _residual(size: _Size) -> KataGoConfig:
    norm = NormConfig("relu", statistics=True, epsilon=1e-4)
    return _network(size, _plain_and_pooling(size, norm), norm, 15)


def _bottleneck(size: _Size) -> KataGoConfig:
    norm, tip = NormConfig("mish"), NormConfig("mish", statistics=True, epsilon=1e-4)
    plain = ResidualConfig(size.middle, norm, norm)
    inner = _plain_and_pooling(size, norm)
    return _network(size, tuple(BottleneckConfig(size.middle, (one, plain), norm, norm) for one in inner), tip, 15)


def _transformer(size: _Size, heads: int, hidden: int) -> KataGoConfig:
    each = size.channels // heads
    layer = (AttentionConfig(heads, heads, each, each), FeedForwardConfig(hidden))
    return _network(size, layer * size.blocks, RmsConfig(), 17)


def _network(size: _Size, blocks: tuple[BlockConfig, ...], tip: NormConfig | RmsConfig, version: int) -> KataGoConfig:
    activation = tip.activation
    norm = NormConfig(activation, scale=False)
    return KataGoConfig(
        version=version,
        channels=size.channels,
        blocks=blocks,
        tip=tip,
        policy=PolicyConfig(size.policy, size.policy, 2, norm, norm, activation),
        value=ValueConfig(size.value[0], size.value[1], norm, activation),
        nominal=(size.middle, size.middle - size.pooled, size.pooled, size.pooled),
    )


def configure(preset: str, **changes: Any) -> KataGoConfig:
    """A published architecture with other values of `KataGoConfig`'s fields; `blocks=n` keeps its first n blocks."""
    config = by_name(preset)
    count = changes.get("blocks")
    if isinstance(count, int):
        if not 1 <= count <= len(config.blocks):
            raise BadRequest(f"katago-{preset} has 1 to {len(config.blocks)} blocks, not {count}")
        changes["blocks"] = config.blocks[:count]
    return replace(config, **changes)


# --- Blocks -----------------------------------------------------------------------------------------------------------


class ResidualBlock(nn.Module):
    """Pre-activation residual block: x + conv(norm(conv(norm(x)))) (He et al. 2016, arXiv:1603.05027)."""

    def __init__(self, channels: int, config: ResidualConfig) -> None:
        super().__init__()
        self.norm1 = NormAct(channels, config.first)
        self.conv1 = convolution(channels, config.channels, config.kernels[0])
        self.norm2 = NormAct(config.channels, config.second)
        self.conv2 = convolution(config.channels, channels, config.kernels[1])

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        out = self.conv1(self.norm1(x, board))
        change: Tensor = self.conv2(self.norm2(out, board))
        return x + change


class PoolingBlock(nn.Module):
    """Residual block in which some channels are pooled over the whole board and become a bias on the others."""

    def __init__(self, channels: int, config: PoolingConfig) -> None:
        super().__init__()
        self.norm1 = NormAct(channels, config.first)
        self.conv1 = convolution(channels, config.channels, config.kernels[0])
        self.pool_conv = convolution(channels, config.pooled, config.kernels[1])
        self.pool_norm = NormAct(config.pooled, config.pool)
        self.pool_linear = nn.Linear(3 * config.pooled, config.channels, bias=False)
        self.norm2 = NormAct(config.channels, config.second)
        self.conv2 = convolution(config.channels, channels, config.kernels[2])

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        out = self.norm1(x, board)
        pooled = global_pool(self.pool_norm(self.pool_conv(out), board), board)
        out = self.conv1(out) + self.pool_linear(pooled)[:, :, None, None]
        change: Tensor = self.conv2(self.norm2(out, board))
        return x + change


class BottleneckBlock(nn.Module):
    """Nested bottleneck: down to fewer channels, a few blocks there, and back up (b18c384nbt and its kin)."""

    def __init__(self, channels: int, config: BottleneckConfig) -> None:
        super().__init__()
        self.norm1 = NormAct(channels, config.first)
        self.conv1 = convolution(channels, config.channels, config.kernels[0])
        self.blocks = nn.ModuleList(build_block(config.channels, inner) for inner in config.blocks)
        self.norm2 = NormAct(config.channels, config.last)
        self.conv2 = convolution(config.channels, channels, config.kernels[1])

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        out = self.conv1(self.norm1(x, board))
        for block in self.blocks:
            out = block(out, board)
        change: Tensor = self.conv2(self.norm2(out, board))
        return x + change


def build_block(channels: int, config: BlockConfig) -> nn.Module:
    """The block that a config describes, on a trunk (or an inner trunk) of `channels`."""
    match config:
        case ResidualConfig():
            return ResidualBlock(channels, config)
        case PoolingConfig():
            return PoolingBlock(channels, config)
        case BottleneckConfig():
            return BottleneckBlock(channels, config)
        case AttentionConfig():
            return AttentionBlock(channels, config)
        case FeedForwardConfig():
            return FeedForwardBlock(channels, config)


# --- Heads ------------------------------------------------------------------------------------------------------------

OFF_BOARD = -5000.0  # policy logit of a point outside the mask (`model_pytorch.py` subtracts as much)


class PolicyHead(nn.Module):
    """Logits of every point and of pass; a pooled branch biases the board and alone decides the pass."""

    def __init__(self, channels: int, config: PolicyConfig) -> None:
        super().__init__()
        self.config = config
        self.conv = convolution(channels, config.channels, config.kernels[0])
        self.pool_conv = convolution(channels, config.pooled, config.kernels[1])
        self.pool_norm = NormAct(config.pooled, config.pool)
        self.pool_linear = nn.Linear(3 * config.pooled, config.channels, bias=False)
        self.norm = NormAct(config.channels, config.board)
        self.out = convolution(config.channels, config.outputs, config.kernels[2])
        self.pass_hidden: nn.Linear | None = None
        if config.pass_activation is not None:
            self.pass_hidden = nn.Linear(3 * config.pooled, config.channels)
            self.pass_act = activation_layer(config.pass_activation)
        inputs = 3 * config.pooled if self.pass_hidden is None else config.channels
        self.pass_out = nn.Linear(inputs, config.outputs, bias=False)

    def forward(self, trunk: Tensor, board: Board) -> Tensor:
        """[N, C, H, W] → logits [N, outputs, A]; points off the board get `OFF_BOARD`."""
        pooled = global_pool(self.pool_norm(self.pool_conv(trunk), board), board)
        out = self.conv(trunk) + self.pool_linear(pooled)[:, :, None, None]
        points = self.out(self.norm(out, board))
        if board.mask is not None:
            points = points.masked_fill(board.mask == 0, OFF_BOARD)
        hidden = pooled if self.pass_hidden is None else activate_rows(self.pass_act, self.pass_hidden(pooled))
        return torch.cat((points.flatten(2), self.pass_out(hidden).unsqueeze(2)), dim=2)


class ValueHead(nn.Module):
    """Who wins, by how much, and who owns each point."""

    def __init__(self, channels: int, config: ValueConfig, scores: int) -> None:
        super().__init__()
        self.config = config
        self.conv = convolution(channels, config.channels, config.kernels[0])
        self.norm = NormAct(config.channels, config.norm)
        self.linear = nn.Linear(3 * config.channels, config.hidden)
        self.act = activation_layer(config.activation)
        self.value = nn.Linear(config.hidden, 3)
        self.score = nn.Linear(config.hidden, scores)
        self.ownership = convolution(config.channels, 1, config.kernels[1])

    def forward(self, trunk: Tensor, board: Board) -> tuple[Tensor, Tensor, Tensor]:
        """[N, C, H, W] → value logits [N, 3], raw scores [N, 4 or 6], ownership before tanh [N, H, W]."""
        out = self.norm(self.conv(trunk), board)
        hidden = activate_rows(self.act, self.linear(global_pool_value(out, board)))
        return self.value(hidden), self.score(hidden), self.ownership(out).squeeze(1)


# --- Net --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KataGoOutputs:
    """Raw outputs, float32, for the side to move."""

    # [N, P, H·W + 1] logits, pass last. P = 1: policy; 2: policy, optimistic policy; 4: those, then the predicted
    # win − loss and score after each move
    policy: Tensor
    value: Tensor  # [N, 3] logits of win, loss, no result (in this order)
    # [N, 6] before scaling: score mean, stdev, lead, time variance, short-term errors of win − loss and of score;
    # [N, 4] in version 8, which lacks the last two
    score: Tensor
    ownership: Tensor  # [N, H, W] before tanh, positive = the side to move owns the point
    reply: Tensor | None = None  # [N, H·W + 1] logits of the opponent's reply, of a network that has them in training


class KataGoNetwork(Network):
    """A whole KataGo network: stem, trunk, policy head, value head; fresh, its weights are random."""

    system = "katago"
    output_names = ("policy", "value", "score", "ownership")

    def __init__(self, config: KataGoConfig, pedigree: Pedigree | None = None) -> None:
        super().__init__()
        self.config = config
        self.pedigree = pedigree or Pedigree("katago", format=f"KataGo model version {config.version}")
        has_metadata = config.metadata is not None
        self.input_names = ("planes", "globals", "metadata") if has_metadata else ("planes", "globals")
        self.encoding = KataGoEncoding(metadata=has_metadata, pass_alive_suicide=config.pass_alive_suicide)

        self.conv = convolution(PLANES, config.channels, config.stem_kernel)
        self.linear = nn.Linear(GLOBALS, config.channels, bias=False)
        self.metadata = None if config.metadata is None else MetadataEncoder(config.channels, config.metadata)
        self.blocks = nn.ModuleList(build_block(config.channels, block) for block in config.blocks)
        tip = config.tip
        self.tip: nn.Module
        self.tip = RmsNormAct(config.channels, tip) if isinstance(tip, RmsConfig) else NormAct(config.channels, tip)
        self.policy = PolicyHead(config.channels, config.policy)
        self.value = ValueHead(config.channels, config.value, config.scores)
        self.reply = PolicyHead(config.channels, replace(config.policy, outputs=1)) if config.reply else None
        _start(self)

    def forward(
        self, planes: Tensor, globals: Tensor, metadata: Tensor | None = None, mask: Tensor | None = None
    ) -> KataGoOutputs:
        """Evaluate N positions.

        Args:
            planes: [N, 22, H, W]; globals: [N, 19]; metadata: [N, 192], for networks with a metadata encoder only.
            mask: [N, 1, H, W] or [N, H, W], 1 on the board; lets boards of any sizes share a batch, each in a corner of
                the planes, with the same answers as alone. Leave it out when every board fills its planes.

        Raises:
            BadRequest: metadata is missing, or given to a network that takes none.
        """
        if (metadata is None) != (self.metadata is None):
            raise BadRequest(f"this network takes {', '.join(self.input_names)}, and each of them is needed")
        board = Board.of(planes, mask)
        bias = self.linear(globals)
        if self.metadata is not None:
            bias = bias + self.metadata(metadata)
        x = self.conv(planes) + bias[:, :, None, None]
        for block in self.blocks:
            x = block(x, board)
        trunk = self.tip(x, board)
        reply = self.reply(trunk, board)[:, 0] if self.reply is not None and self.training else None
        value, score, ownership = self.value(trunk, board)
        return KataGoOutputs(self.policy(trunk, board), value, score, ownership, reply)

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Probabilities and points for the side to move: see `decode` below."""
        return decode(self.config, outputs, context)


# --- How a fresh network begins ---------------------------------------------------------------------------------------
#
# After `initialize` in KataGo's `python/katago/train/model_pytorch.py`: weights that keep the variance of what passes
# through. Batch norm looks after the residual sum by itself. Where there is none ("fixed scaling"), block i of a stack
# starts with its first norm scaled by 1/√i, the norm behind a stack of n blocks by 1/√(n + 1): what batch norm would do
# if every block added unit variance. A batch norm's running variance starts at the same i and n + 1, so that a deep
# network answers sensibly before it has learned.


def _start(network: KataGoNetwork) -> None:
    """Give every weight its starting value, in place; nothing where it has no memory yet (meta)."""
    if network.conv.weight.is_meta:
        return
    activation = network.config.tip.activation
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            initialise(module.weight, activation)
        elif isinstance(module, nn.Linear):
            initialise(module.weight)
    initialise(network.conv.weight, activation, 0.8)
    initialise(network.linear.weight, activation, 0.6)
    if network.metadata is not None:
        for layer in (network.metadata.linear1, network.metadata.linear2):
            initialise(layer.weight, activation, 0.8)
            initialise(layer.bias, activation, 0.2, layer.in_features)
        initialise(network.metadata.linear3.weight, activation, 0.8)
    _start_stack(network.blocks, activation)
    _scale(network.tip, len(network.blocks) + 1)
    for policy in (network.policy, network.reply):
        if policy is not None:
            _start_policy(policy, activation)
    _start_value(network.value, activation)


def _start_stack(blocks: Iterable[Any], activation: str) -> None:
    """The blocks of a trunk, or of a nested bottleneck, in order."""
    for number, block in enumerate(blocks, start=1):
        if isinstance(block, AttentionBlock | FeedForwardBlock):
            initialise(block.out.weight, scale=number**-0.5)
            if isinstance(block, AttentionBlock) and block.config.rotary == "learned":
                nn.init.normal_(block.frequencies, std=0.1)
            continue
        _scale(block.norm1, number)
        if hasattr(block, "pool_linear"):
            initialise(block.conv1.weight, activation, 0.8)
            initialise(block.pool_linear.weight, activation, 0.6)
        if hasattr(block, "blocks"):
            _start_stack(block.blocks, activation)
            _scale(block.norm2, len(block.blocks) + 1)


def _scale(norm: Any, terms: int) -> None:
    """Prepare a norm for a sum of `terms` parts of unit variance: by its running variance, or else by its scale."""
    with torch.no_grad():
        if getattr(norm.config, "statistics", False):
            norm.running_var.fill_(terms)
        elif isinstance(norm.config, NormConfig) and norm.weight is not None:
            norm.weight.fill_(terms**-0.5)


def _start_policy(head: PolicyHead, activation: str) -> None:
    initialise(head.conv.weight, activation, 0.8)
    initialise(head.pool_linear.weight, activation, 0.6)
    initialise(head.out.weight, scale=0.3)
    if head.pass_hidden is not None:
        initialise(head.pass_hidden.weight, activation)
        initialise(head.pass_hidden.bias, activation, 0.2, head.pass_hidden.in_features)
    initialise(head.pass_out.weight, scale=0.3)


def _start_value(head: ValueHead, activation: str) -> None:
    initialise(head.linear.weight, activation)
    initialise(head.linear.bias, activation, 0.2, head.linear.in_features)
    for layer, scale in ((head.value, 1.0), (head.score, 0.3)):
        initialise(layer.weight, scale=scale)
        initialise(layer.bias, scale=0.2 * scale, fan_in=layer.in_features)
    initialise(head.ownership.weight, scale=0.3)


# --- From raw outputs to answers --------------------------------------------------------------------------------------
#
# After `NNEvaluator::evaluate` in KataGo's `cpp/neuralnet/nneval.cpp`, kept in the perspective of the side to move.


def decode(config: KataGoConfig, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
    """Turn raw outputs, by the field names of `KataGoOutputs`, into answers for the side to move; draw = no result.

    The context holds `no_result_allowed`, bool [N]: the rules let a game end without a result (ko SIMPLE or scoring
    TERRITORY); and `policy_optimism`, float32 [N]: how much of the optimistic policy to mix in.

    In `extra`, float32 [N]: `score_mean` and `score_stdev`, points, over all outcomes (no result counts 0); from
    version 9 on `variance_time` (expected turns that still swing the outcome), `shortterm_winloss_error` and
    `shortterm_score_error` (points). Version 8 holds a time variance too, but KataGo does not report it.
    """
    wdl = _win_draw_loss(outputs["value"], context["no_result_allowed"])
    lead, extra = _scores(config, outputs["score"], wdl[:, 1])
    return Heads(
        policy=_policy(config, outputs["policy"], context["policy_optimism"]),
        wdl=wdl.astype(np.float32),
        value=(wdl[:, 0] - wdl[:, 2]).astype(np.float32),
        lead=lead.astype(np.float32),
        ownership=np.tanh(outputs["ownership"]).astype(np.float32),
        extra={name: numbers.astype(np.float32) for name, numbers in extra.items()},
    )


def _policy(config: KataGoConfig, policy: Array, optimism: Array) -> Array:
    """Logits [N, A]: plain + optimism · (optimistic − plain); human networks have no optimism."""
    plain: Array = policy[:, 0].astype(np.float32)
    if policy.shape[1] == 1 or config.metadata is not None:
        return plain
    mixed: Array = plain + np.asarray(optimism, np.float32)[:, None] * (policy[:, 1] - plain)
    return mixed


def _win_draw_loss(value: Array, no_result_allowed: Array) -> Array:
    """Float64 [N, 3]: win, no result (exactly 0 where the rules exclude it), loss."""
    logits = value.astype(np.float64)[:, [0, 2, 1]]
    logits[~np.asarray(no_result_allowed, bool), 1] = -np.inf
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    wdl: Array = odds / odds.sum(axis=1, keepdims=True)
    return wdl


def _scores(config: KataGoConfig, score: Array, no_result: Array) -> tuple[Array, dict[str, Array]]:
    """Lead, and the further numbers by name, float64 [N]."""
    raw, times, played = score.astype(np.float64).T, config.multipliers, 1.0 - no_result
    mean = raw[0] * times.score_mean
    mean_square = (mean**2 + (_softplus(raw[1]) * times.score_stdev) ** 2) * played
    mean = mean * played
    extra = {"score_mean": mean, "score_stdev": np.sqrt(np.maximum(mean_square - mean**2, 0.0))}
    if config.version >= 9:
        extra["variance_time"] = _softplus(raw[3]) * times.variance_time
        extra["shortterm_winloss_error"] = _error(config, raw[4], times.shortterm_winloss_error, before_10=1.0)
        extra["shortterm_score_error"] = _error(config, raw[5], times.shortterm_score_error, before_10=10.0)
    return raw[2] * times.lead * played, extra


def _error(config: KataGoConfig, raw: Array, times: float, before_10: float) -> Array:
    """A short-term error: a squared softplus from version 14 on, a softplus of the square in 10–13, plain in 9."""
    if config.version >= 14:
        return _softplus(0.5 * raw) * float(np.sqrt(times))
    if config.version >= 10:
        root: Array = np.sqrt(_softplus(raw) * times)
        return root
    return _softplus(raw) * before_10


def _softplus(x: Array) -> Array:
    result: Array = np.logaddexp(0.0, x)
    return result


NETWORKS = NetworkTable(
    kinds=(
        NetworkKind(
            "katago", KataGoNetwork, ("conv", "blocks"), "global pooling", (".pool_conv",), KataGoConfig, configure
        ),
    ),
    entries=tuple(
        NetworkEntry(
            f"katago-{name}",
            "katago",
            "Wu, arXiv:1902.10565 (2019), and KataGo's later methods",
            {"preset": name},
            {"blocks": 4},
            "as KataGo's files hold it, any board",
        )
        for name in PRESETS
    ),
    aliases={"katago": "katago-b18c384nbt"},
    own={name: f"katago-{name}" for name in PRESETS},
)
