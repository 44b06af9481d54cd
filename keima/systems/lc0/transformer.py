"""Leela Chess Zero's transformers: NETWORK_ATTENTIONBODY with one head of each kind or several.

Sources: lc0 v0.33, `src/neural/backends/blas/network_blas.cc` and `src/neural/network_legacy.cc`. The layers stand in
`attention.py`.

    input      112 planes → 64 tokens (a1, b1, ... h8, seen from the side to move) of 112 numbers each
    position   "map": 64 constants a token, +1 where a queen or knight could go, −1 the square itself
               "dense": the first 12 planes (the pieces now), all squares at once, through one dense layer
    embedding  dense to E, activation; dense only: layer norm; gating x · mult + add, per square and channel;
               dense only: feed-forward network, x ← LN(x + α · ffn(x))
    body       L encoder layers with α = (2 L)^(−1/4), most of them with smolgen
    policy     dense to the head's tokens, activation, query(from) · key(to)
    value      dense to 32 a token, activation, flattened, dense to 128, activation, dense to 3 (WDL) or 1 (tanh)
    moves left dense to 8 a token, activation, flattened, dense to 128, activation, dense to 1, ReLU

A file may hold several policy heads ("vanilla", "optimistic", "soft", "opponent") and value heads ("winner", "q",
"st"); `forward` answers with one of each, lc0's defaults unless `select` names others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keima.errors import BadRequest
from keima.plain import Data, Fields
from keima.systems.lc0.attention import (
    SQUARES,
    AttentionPolicy,
    AttentionPolicyConfig,
    EncoderConfig,
    EncoderLayer,
    FeedForward,
    activate_rows,
    activation,
    check_heads,
)
from keima.systems.lc0.inputs import PLANES
from keima.systems.lc0.moves import POLICY_INDEX
from keima.systems.lc0.network import Lc0Base, Lc0Output
from keima.systems.network import NetworkEntry, NetworkKind, NetworkTable

POSITION_CHANNELS = 64
PIECE_PLANES = 12


@dataclass(frozen=True)
class TokenHeadConfig:
    """Sizes of a value or moves-left head."""

    channels: int = 32  # a token
    hidden: int = 128
    outputs: int = 3  # or 1


@dataclass(frozen=True)
class Lc0TransformerConfig:
    """What fixes the shape of an Lc0 transformer. Raises `BadRequest` for a size or a name that cannot be.

    Activations have names of `keima.systems.lc0.attention.ACTIVATIONS`.
    """

    embedding: int  # E
    heads: int  # attention heads of every encoder
    encoders: tuple[EncoderConfig, ...]
    position: str = "map"  # or "dense" (INPUT_EMBEDDING_PE_MAP, _PE_DENSE)
    position_channels: int = POSITION_CHANNELS  # numbers a token the dense position layer makes; 64 for the map
    embedding_ffn: int = 0  # hidden width of the embedding's feed-forward network; 0 for the map, which has none
    gating: bool = True  # the embedding is multiplied and shifted per square and channel
    input_format: str = "classical"  # of the planes, as `Lc0Encoding` names it
    activation: str = "mish"  # or "relu", wherever no other is said
    ffn_activation: str = "mish"
    smolgen_activation: str = "swish"
    policy_heads: Mapping[str, AttentionPolicyConfig] = field(  # "vanilla" at least
        default_factory=lambda: {"vanilla": AttentionPolicyConfig(256, 256)}
    )
    value_heads: Mapping[str, TokenHeadConfig] = field(  # "winner" at least
        default_factory=lambda: {"winner": TokenHeadConfig()}
    )
    moves_left: TokenHeadConfig | None = field(default_factory=lambda: TokenHeadConfig(8, 128, 1))

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "encoders", tuple(EncoderConfig(**e) if isinstance(e, dict) else e for e in self.encoders))
        set_field(self, "policy_heads", _rebuilt(self.policy_heads, AttentionPolicyConfig))
        set_field(self, "value_heads", _rebuilt(self.value_heads, TokenHeadConfig))
        if isinstance(self.moves_left, dict):
            set_field(self, "moves_left", TokenHeadConfig(**self.moves_left))
        if self.position not in ("map", "dense"):
            raise BadRequest(f"unknown position encoding {self.position!r}; choose map or dense")
        if not self.encoders or "vanilla" not in self.policy_heads or "winner" not in self.value_heads:
            raise BadRequest("a transformer needs an encoder, a vanilla policy head and a winner value head")
        check_heads(self.heads, self.encoders)
        if any(head.outputs not in (1, 3) for head in self.value_heads.values()):
            raise BadRequest("a value head has 3 outputs (win, draw, loss) or 1")
        if self.moves_left is not None and self.moves_left.outputs != 1:
            raise BadRequest(f"the moves-left head has 1 output, not {self.moves_left.outputs}")


def _rebuilt(heads: Fields, kind: type) -> Data:
    """Head sizes by name, those given as plain dicts (from JSON) turned to dataclasses."""
    return {name: kind(**sizes) if isinstance(sizes, dict) else sizes for name, sizes in heads.items()}


class Embedding(nn.Module):
    """Planes [N, 112, 8, 8] → tokens [N, 64, E]."""

    def __init__(self, config: Lc0TransformerConfig) -> None:
        super().__init__()
        self.activate = activation(config.activation)
        self.alpha = alpha(config)
        self.dense = nn.Linear(PLANES + config.position_channels, config.embedding)
        self.preprocess: nn.Linear | None = None
        self.norm: nn.Module = nn.Identity()
        self.ffn: FeedForward | None = None
        if config.position == "dense":
            self.preprocess = nn.Linear(SQUARES * PIECE_PLANES, SQUARES * config.position_channels)
            self.norm = nn.LayerNorm(config.embedding, eps=1e-3)
            self.ffn = FeedForward(config.embedding, config.embedding_ffn, config.ffn_activation)
            self.ffn_norm = nn.LayerNorm(config.embedding, eps=1e-3)
        else:
            self.map: Tensor
            reachable = POLICY_INDEX[0] >= 0  # on an empty board, by a queen or a knight
            drawn = torch.from_numpy(reachable - np.eye(SQUARES, dtype=np.float32))
            self.register_buffer("map", drawn, persistent=False)
        self.mult_gate = nn.Parameter(torch.ones(config.embedding, SQUARES)) if config.gating else None
        self.add_gate = nn.Parameter(torch.zeros(config.embedding, SQUARES)) if config.gating else None

    def forward(self, planes: Tensor) -> Tensor:
        """[N, 112, 8, 8] → [N, 64, E]."""
        tokens = planes.flatten(2).transpose(1, 2)
        if self.preprocess is None:
            position = tokens.new_ones(tokens.shape[0], 1, 1) * self.map
        else:
            position = self.preprocess(tokens[:, :, :PIECE_PLANES].flatten(1)).view(tokens.shape[0], SQUARES, -1)
        x: Tensor = self.norm(self.activate(self.dense(torch.cat([tokens, position], dim=2))))
        if self.mult_gate is not None and self.add_gate is not None:
            x = x * self.mult_gate.t() + self.add_gate.t()
        if self.ffn is not None:
            x = self.ffn_norm(x + self.alpha * self.ffn(x))
        return x


class TokenHead(nn.Module):
    """A dense layer on each square → hidden layer → outputs."""

    def __init__(self, embedding: int, config: TokenHeadConfig, activate: str) -> None:
        super().__init__()
        self.activate = activation(activate)
        self.embedding = nn.Linear(embedding, config.channels)
        self.fc1 = nn.Linear(SQUARES * config.channels, config.hidden)
        self.fc2 = nn.Linear(config.hidden, config.outputs)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 64, E] → [N, outputs]."""
        hidden = activate_rows(self.activate, self.fc1(self.activate(self.embedding(x)).flatten(1)))
        out: Tensor = self.fc2(hidden)
        return out


class Lc0Transformer(Lc0Base):
    """An Lc0 network with an attention body; `policy_name` and `value_name` are the heads `forward` answers with."""

    def __init__(self, config: Lc0TransformerConfig) -> None:
        super().__init__(config, f"lc0-transformer-{len(config.encoders)}x{config.embedding}")
        self.policy_name, self.value_name = "vanilla", "winner"
        self.embedding = Embedding(config)
        inner = config.smolgen_activation, config.ffn_activation
        epsilon = 1e-3 if config.position == "dense" else 1e-6
        self.encoders = nn.ModuleList(
            EncoderLayer(config.embedding, config.heads, sizes, *inner, alpha(config), epsilon)
            for sizes in config.encoders
        )
        self.smolgen_maps = _smolgen_maps(config)

        policies, values = config.policy_heads.items(), config.value_heads.items()
        widths = {name if sizes.own_embedding else "shared": sizes.embedding for name, sizes in policies}
        self.policy_embeddings = nn.ModuleDict({n: nn.Linear(config.embedding, width) for n, width in widths.items()})
        self.policy_heads = nn.ModuleDict({name: AttentionPolicy(sizes, *inner) for name, sizes in policies})
        self.value_heads = nn.ModuleDict(
            {name: TokenHead(config.embedding, sizes, config.activation) for name, sizes in values}
        )
        self.moves_left_head: TokenHead | None = None
        if config.moves_left is not None:
            self.moves_left_head = TokenHead(config.embedding, config.moves_left, config.activation)

    def select(self, policy: str | None = None, value: str | None = None) -> Lc0Transformer:
        """Choose the heads that `forward` answers with; returns the network itself.

        Raises:
            BadRequest: this network has no such head; the message lists those it has.
        """
        for kind, name, heads in (("policy", policy, self.policy_heads), ("value", value, self.value_heads)):
            if name is not None and name not in heads:
                raise BadRequest(f"this network has no {kind} head {name!r}; choose one of {', '.join(heads)}")
        self.policy_name = policy or self.policy_name
        self.value_name = value or self.value_name
        return self

    def forward(self, planes: Tensor) -> Lc0Output:
        """Evaluate planes float32 [N, 112, 8, 8] (`keima.systems.lc0.inputs`)."""
        x = self.embedding(planes)
        for encoder in self.encoders:
            x = encoder(x, self.smolgen_maps)
        own = self.policy_name if self.policy_name in self.policy_embeddings else "shared"
        policy = self.policy_heads[self.policy_name](self.activate(self.policy_embeddings[own](x)), self.smolgen_maps)
        value = self.value_heads[self.value_name](x)
        moves_left = F.relu(self.moves_left_head(x)).squeeze(1) if self.moves_left_head is not None else None
        return Lc0Output(policy, value, moves_left)


def alpha(config: Lc0TransformerConfig) -> float:
    """α = (2 L)^(−1/4), what a branch is scaled by before it is added; L the number of encoders."""
    return float(np.float32((2.0 * len(config.encoders)) ** -0.25))


def _smolgen_maps(config: Lc0TransformerConfig) -> nn.Parameter | None:
    """The 64×64 maps all smolgens mix, [4096, generated]; None where no encoder has smolgen."""
    every = [*config.encoders, *(e for head in config.policy_heads.values() for e in head.encoders)]
    widths = {encoder.smolgen.generated for encoder in every if encoder.smolgen is not None}
    if not widths:
        return None
    if len(widths) > 1:
        raise BadRequest(f"all smolgens of a network share one table, but their widths differ: {sorted(widths)}")
    maps = torch.empty(SQUARES * SQUARES, widths.pop())
    if not maps.is_meta:
        nn.init.xavier_normal_(maps)
    return nn.Parameter(maps)


def _encoders(count: int, width: int, feedforward: int) -> list[dict[str, object]]:
    smolgen = {"compressed": 32, "hidden": 256, "generated": 256}
    return [{"d_model": width, "feedforward": feedforward, "smolgen": smolgen}] * count


NETWORKS = NetworkTable(
    kinds=(NetworkKind("lc0-transformer", Lc0Transformer, ("embedding",), "attention", config=Lc0TransformerConfig),),
    entries=(
        NetworkEntry(
            "lc0-transformer-10x256",
            "lc0-transformer",
            "Leela Chess Zero 0.33, after Silver et al., Science 362 (2018)",
            {"embedding": 256, "heads": 8, "encoders": _encoders(10, 256, 1024)},
            {"embedding": 16, "heads": 2, "encoders": _encoders(2, 16, 16)},
            "attention body with smolgen, attention policy",
        ),
    ),
)
