"""Leela Chess Zero's residual networks: input convolution, residual tower with squeeze-and-excitation, three heads.

Sources: lc0 v0.33, `src/neural/network_legacy.cc` (layers) and `src/neural/backends/blas/network_blas.cc` (order of
operations); lczero.org, "Neural network topology" (2020). Where that page and the engine differ, the engine decides:
the first convolutions of the classical policy, value and moves-left heads are 1×1, not 3×3; the value head's hidden
layer of 128 is fully connected; mish, where a network has it, also replaces ReLU inside squeeze-and-excitation.

    input      112 × 8 × 8 planes (`keima.systems.lc0.inputs`)
    stem       convolution 3×3 to C, activation
    tower      B × [convolution 3×3, activation, convolution 3×3, squeeze-and-excitation, + skip, activation]
    policy     convolution: 3×3 to C, activation, 3×3 to 80 planes, gather 1858 (73 planes are used)
               classical:   1×1 to P, activation, fully connected to 1858
               attention:   each square embedded (SELU), query(from) · key(to)
    value      1×1 to 32, activation, fully connected to 128, activation, fully connected to 3 (WDL) or 1 (tanh)
    moves left 1×1 to 8, activation, fully connected to 128, activation, fully connected to 1, ReLU

Square a1 is row 0, column 0 of a plane, always seen from the side to move. Networks whose body is a transformer stand
in `transformer.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keima.errors import BadRequest
from keima.plain import Data
from keima.systems.lc0.attention import SQUARES, AttentionPolicy, AttentionPolicyConfig, activate_rows, activation
from keima.systems.lc0.inputs import PLANES, Lc0Encoding
from keima.systems.lc0.moves import CONVOLUTION_INDEX, MOVES
from keima.systems.network import Array, Heads, Network, NetworkEntry, NetworkKind, NetworkTable, Pedigree, softmax

BATCH_NORM_EPSILON = 1e-5  # network_legacy.cc
_POLICIES = ("convolution", "classical", "attention")
_CHOICES = {"policy": _POLICIES, "value": ("wdl", "classical"), "activation": ("relu", "mish")}


@dataclass(frozen=True)
class Lc0Config:
    """What fixes the shape of a residual Lc0 network.

    `batch_norm` True: every convolution but the policy's last is followed by batch norm, as networks are trained;
    False: none, as in files with folded batch norm; or the names of those that are, of `convolutions()`.

    Raises:
        BadRequest: a size or a name that cannot be.
    """

    blocks: int = 10  # B
    channels: int = 128  # C
    se_channels: int | Sequence[int] = 32  # width of squeeze-and-excitation, 0 for none; B widths where blocks differ
    input_format: str = "classical"  # of the planes, as `Lc0Encoding` names it
    policy: str = "convolution"  # or "classical", "attention"
    policy_channels: int = 80  # at least 73 for convolution; P for classical
    attention_policy: AttentionPolicyConfig | None = None  # for policy "attention" only
    value: str = "wdl"  # win, draw, loss; or "classical", one number
    value_channels: int = 32
    value_hidden: int = 128
    moves_left: bool = True
    moves_left_channels: int = 8
    moves_left_hidden: int = 128
    activation: str = "relu"  # or "mish", everywhere but at the heads' ends
    batch_norm: bool | Sequence[str] = True

    def __post_init__(self) -> None:
        if isinstance(self.attention_policy, dict):
            object.__setattr__(self, "attention_policy", AttentionPolicyConfig(**self.attention_policy))
        for name in ("blocks", "channels", "policy_channels", "value_channels", "value_hidden"):
            if getattr(self, name) < 1:
                raise BadRequest(f"{name} must be at least 1, got {getattr(self, name)}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise BadRequest(f"unknown {name} {getattr(self, name)!r}; choose one of {', '.join(choices)}")
        if self.policy == "convolution" and self.policy_channels < 73:
            raise BadRequest(f"a convolution policy has at least 73 planes, got {self.policy_channels}")
        if (self.policy == "attention") != (self.attention_policy is not None):
            raise BadRequest("attention_policy is given with policy='attention' and only then")
        if len(self.se_widths) != self.blocks:
            raise BadRequest(f"se_channels names {len(self.se_widths)} blocks of {self.blocks}")
        object.__setattr__(self, "se_channels", tuple(self.se_widths))
        object.__setattr__(self, "batch_norm", self._norm_names())

    @property
    def se_widths(self) -> Sequence[int]:
        """Width of squeeze-and-excitation in each block."""
        return [self.se_channels] * self.blocks if isinstance(self.se_channels, int) else self.se_channels

    def has_norm(self, name: str) -> bool:
        """Whether batch norm follows the convolution of that name."""
        return not isinstance(self.batch_norm, bool) and name in self.batch_norm

    def convolutions(self) -> list[str]:
        """Names of the network's convolutions, in the order of the file format's description."""
        names = ["input"]
        for block in range(self.blocks):
            names += [f"residual.{block}.conv1", f"residual.{block}.conv2"]
        names += {"convolution": ["policy1", "policy"], "classical": ["policy"], "attention": []}[self.policy]
        return [*names, "value", *(["moves_left"] if self.moves_left else [])]

    def _norm_names(self) -> tuple[str, ...]:
        names = self.convolutions()
        if isinstance(self.batch_norm, bool):
            last = "policy" if self.policy == "convolution" else None
            return tuple(name for name in names if self.batch_norm and name != last)
        unknown = set(self.batch_norm) - set(names)
        if unknown:
            raise BadRequest(f"batch_norm names no convolution of this network: {', '.join(sorted(unknown))}")
        return tuple(name for name in names if name in self.batch_norm)


@dataclass(frozen=True)
class Lc0Output:
    """Raw outputs for N positions, for the side to move, float32."""

    policy: Tensor  # [N, 1858], logits in the order of Lc0's moves (`keima.systems.lc0.moves`)
    value: Tensor  # [N, 3], logits of win, draw, loss; or [N, 1], before tanh
    moves_left: Tensor | None = None  # [N], plies


class ConvBlock(nn.Module):
    """Convolution with bias, and batch norm where the network has it unfolded."""

    def __init__(self, inputs: int, outputs: int, kernel: int, batch_norm: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)
        self.norm = nn.BatchNorm2d(outputs, eps=BATCH_NORM_EPSILON) if batch_norm else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """[N, in, 8, 8] → [N, out, 8, 8]."""
        out: Tensor = self.norm(self.conv(x))
        return out


class SqueezeExcitation(nn.Module):
    """sigmoid(W) · x + B, W and B made by a perceptron of the channels' means (arXiv:1709.01507; `se_unit.cc`)."""

    def __init__(self, channels: int, squeezed: int, activate: str) -> None:
        super().__init__()
        self.activate = activation(activate)
        self.fc1 = nn.Linear(channels, squeezed)
        self.fc2 = nn.Linear(squeezed, 2 * channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, 8, 8] → [N, C, 8, 8]."""
        squeezed = activate_rows(self.activate, self.fc1(x.mean(dim=(2, 3))))
        # one linear layer a half: OpenVINO then needs no node that splits them (6 % of a 6×64 network's time)
        halves = zip(self.fc2.weight.chunk(2), self.fc2.bias.chunk(2), strict=True)
        w, b = (F.linear(squeezed, *half)[:, :, None, None] for half in halves)
        return torch.sigmoid(w) * x + b


class ResidualBlock(nn.Module):
    """Two convolutions, squeeze-and-excitation where it has one, the skip, the activation."""

    def __init__(self, config: Lc0Config, index: int) -> None:
        super().__init__()
        channels, squeezed = config.channels, config.se_widths[index]
        self.activate = activation(config.activation)
        self.conv1 = ConvBlock(channels, channels, 3, config.has_norm(f"residual.{index}.conv1"))
        self.conv2 = ConvBlock(channels, channels, 3, config.has_norm(f"residual.{index}.conv2"))
        self.se = SqueezeExcitation(channels, squeezed, config.activation) if squeezed else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, 8, 8] → [N, C, 8, 8]."""
        return self.activate(self.se(self.conv2(self.activate(self.conv1(x)))) + x)


class ConvolutionPolicy(nn.Module):
    """Two convolutions to 80 planes, of which the 1858 moves are gathered."""

    def __init__(self, config: Lc0Config) -> None:
        super().__init__()
        self.activate = activation(config.activation)
        self.policy1 = ConvBlock(config.channels, config.channels, 3, config.has_norm("policy1"))
        self.policy = ConvBlock(config.channels, config.policy_channels, 3, config.has_norm("policy"))
        self.register_buffer("gather", torch.from_numpy(CONVOLUTION_INDEX.copy()), persistent=False)
        self.gather: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, 8, 8] → logits [N, 1858]."""
        planes: Tensor = self.policy(self.activate(self.policy1(x)))
        return planes.flatten(1).index_select(1, self.gather)


class ClassicalPolicy(nn.Module):
    """A 1×1 convolution and one fully connected layer."""

    def __init__(self, config: Lc0Config) -> None:
        super().__init__()
        self.activate = activation(config.activation)
        self.policy = ConvBlock(config.channels, config.policy_channels, 1, config.has_norm("policy"))
        self.fc = nn.Linear(config.policy_channels * SQUARES, MOVES)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, 8, 8] → logits [N, 1858]."""
        logits: Tensor = self.fc(self.activate(self.policy(x)).flatten(1))
        return logits


class SquareAttentionPolicy(nn.Module):
    """Attention policy over a residual tower's squares; SELU whatever the network's own activation."""

    def __init__(self, config: Lc0Config) -> None:
        super().__init__()
        sizes = config.attention_policy or AttentionPolicyConfig(config.channels, config.channels)
        self.embedding = nn.Linear(config.channels, sizes.embedding)
        self.attention = AttentionPolicy(sizes, smolgen="none", ffn="selu")

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, 8, 8] → logits [N, 1858]."""
        logits: Tensor = self.attention(F.selu(self.embedding(x.flatten(2).transpose(1, 2))))
        return logits


class ValueHead(nn.Module):
    """Planes → hidden layer → 3 logits (win, draw, loss) or 1 number before tanh."""

    def __init__(self, config: Lc0Config) -> None:
        super().__init__()
        self.activate = activation(config.activation)
        self.value = ConvBlock(config.channels, config.value_channels, 1, config.has_norm("value"))
        self.fc1 = nn.Linear(config.value_channels * SQUARES, config.value_hidden)
        self.fc2 = nn.Linear(config.value_hidden, 3 if config.value == "wdl" else 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, 8, 8] → [N, 3] or [N, 1]."""
        hidden = activate_rows(self.activate, self.fc1(self.activate(self.value(x)).flatten(1)))
        out: Tensor = self.fc2(hidden)
        return out


class MovesLeftHead(nn.Module):
    """Planes → hidden layer → plies to the end of the game, never negative."""

    def __init__(self, config: Lc0Config) -> None:
        super().__init__()
        self.activate = activation(config.activation)
        self.moves_left = ConvBlock(config.channels, config.moves_left_channels, 1, config.has_norm("moves_left"))
        self.fc1 = nn.Linear(config.moves_left_channels * SQUARES, config.moves_left_hidden)
        self.fc2 = nn.Linear(config.moves_left_hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, 8, 8] → [N]."""
        hidden = activate_rows(self.activate, self.fc1(self.activate(self.moves_left(x)).flatten(1)))
        return F.relu(self.fc2(hidden)).squeeze(1)


_POLICY_HEADS = {"convolution": ConvolutionPolicy, "classical": ClassicalPolicy, "attention": SquareAttentionPolicy}


class Lc0Base(Network):
    """What residual networks and transformers share.

    `file_notes` is what the reader of its file remembers so that the writer can give the same file back.
    """

    system = "lc0"

    def __init__(self, config: Any, name: str) -> None:
        super().__init__()
        self.config = config
        self.encoding = Lc0Encoding(config.input_format)
        self.pedigree = Pedigree(name)
        self.file_notes: Data = {}
        self.output_names = ("policy", "value", "moves_left") if config.moves_left else ("policy", "value")
        self.activate = activation(config.activation)

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Logits as they are; the value as win, draw, loss.

        With a classical value head a draw has no probability, as Lc0 reports it: win = (1 + q) / 2, loss = (1 − q) / 2.
        """
        raw = np.asarray(outputs["value"], dtype=np.float32)
        if raw.shape[1] == 1:
            q = np.tanh(raw[:, 0])
            wdl = np.stack([(1 + q) / 2, np.zeros_like(q), (1 - q) / 2], axis=1)
        else:
            wdl = softmax(raw)
            q = wdl[:, 0] - wdl[:, 2]
        return Heads(policy=outputs["policy"], wdl=wdl, value=q, moves_left=outputs.get("moves_left"))


class Lc0Network(Lc0Base):
    """A residual Lc0 network (also Maia's): NETWORK_CLASSICAL and NETWORK_SE of the file format.

    Args:
        config: its shape; the default is 10×128 with squeeze-and-excitation, convolution policy, WDL and moves left.
    """

    def __init__(self, config: Lc0Config | None = None) -> None:
        config = config or Lc0Config()
        super().__init__(config, f"lc0-{config.blocks}x{config.channels}")
        self.stem = ConvBlock(PLANES, config.channels, 3, config.has_norm("input"))
        self.tower = nn.Sequential(*(ResidualBlock(config, index) for index in range(config.blocks)))
        self.policy_head = _POLICY_HEADS[config.policy](config)
        self.value_head = ValueHead(config)
        self.moves_left_head = MovesLeftHead(config) if config.moves_left else None

    def forward(self, planes: Tensor) -> Lc0Output:
        """Evaluate planes float32 [N, 112, 8, 8] (`keima.systems.lc0.inputs`)."""
        x = self.tower(self.activate(self.stem(planes)))
        moves_left = self.moves_left_head(x) if self.moves_left_head is not None else None
        return Lc0Output(policy=self.policy_head(x), value=self.value_head(x), moves_left=moves_left)


_SMALL = {"blocks": 2, "channels": 16, "se_channels": 8}

NETWORKS = NetworkTable(
    kinds=(NetworkKind("lc0", Lc0Network, ("stem", "tower"), "squeeze-and-excitation", config=Lc0Config),),
    entries=(
        *(
            NetworkEntry(
                f"lc0-{blocks}x{channels}",
                "lc0",
                "Leela Chess Zero 0.33, after Silver et al., Science 362 (2018)",
                {"blocks": blocks, "channels": channels, "se_channels": 32},
                _SMALL,
                "squeeze-and-excitation; convolution policy, win/draw/loss, moves left",
            )
            for blocks, channels in ((10, 128), (20, 256), (24, 320))
        ),
        NetworkEntry(
            "maia-6x64",
            "lc0",
            "McIlroy-Young et al., KDD 2020, in Lc0's format",
            {"blocks": 6, "channels": 64, "se_channels": 8, "moves_left": False},
            _SMALL,
            "the shape of Maia's networks of human play",
        ),
    ),
    aliases={"lc0": "lc0-10x128", "maia": "maia-6x64"},
)
