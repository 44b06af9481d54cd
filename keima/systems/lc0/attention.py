"""Lc0's attention layers: encoder with smolgen, and the attention policy.

Source: lc0 v0.33, `src/neural/backends/blas/network_blas.cc` (`ForwardEncoderLayer`, policy head) and
`src/neural/network_legacy.h`. The squares of the board are the tokens: 64 of them, a1, b1, ... h8 seen from the side to
move. Tensors are [N, 64, E] throughout, E the embedding size.

An encoder differs from the usual transformer's in three points. Normalisation follows the sum (post-norm), and what a
branch adds is scaled by α: x ← LN(x + α · branch(x)). Smolgen adds to every head's attention logits a 64×64 map made
from the whole position. Layer norm's ε is 1e-3 or 1e-6, as the network's age has it.

Both `network.py` (residual tower with attention policy) and `transformer.py` (attention body) are made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keima.errors import BadRequest
from keima.systems.lc0.moves import ATTENTION_INDEX

SQUARES = 64
SMOLGEN_EPSILON = 1e-3

Activation = Callable[[Tensor], Tensor]


def _identity(x: Tensor) -> Tensor:
    return x


def _squared_relu(x: Tensor) -> Tensor:
    return F.relu(x).square()


ACTIVATIONS: dict[str, Activation] = {
    "relu": F.relu,
    "mish": F.mish,
    "none": _identity,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "selu": F.selu,
    "swish": F.silu,
    "relu_2": _squared_relu,
}
"""Lc0's activation functions by name (`shared/activation.cc`)."""


def activation(name: str) -> Activation:
    """The activation function of that name; BadRequest if Lc0 has none."""
    if name not in ACTIVATIONS:
        raise BadRequest(f"unknown activation {name!r}; choose one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def activate_rows(activate: Activation, rows: Tensor) -> Tensor:
    """activate(rows) for rows [N, C] between two linear layers; mish sees a third axis (why: `systems/layers.py`)."""
    return activate(rows.unsqueeze(2)).squeeze(2) if activate is F.mish else activate(rows)


@dataclass(frozen=True)
class SmolgenConfig:
    """Sizes of an encoder's smolgen."""

    compressed: int = 32  # channels kept of each square
    hidden: int = 256  # width of the position's summary
    generated: int = 256  # numbers per head from which its 64×64 map is made


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of one encoder layer."""

    d_model: int  # width of queries, keys and values, all heads together
    feedforward: int  # hidden width of the feed-forward network
    smolgen: SmolgenConfig | None = None

    def __post_init__(self) -> None:
        if isinstance(self.smolgen, dict):
            object.__setattr__(self, "smolgen", SmolgenConfig(**self.smolgen))


@dataclass(frozen=True)
class AttentionPolicyConfig:
    """Sizes of an attention policy head. Raises `BadRequest` where an encoder's width is not a multiple of `heads`."""

    embedding: int  # E of the head's own tokens
    d_model: int  # width of its queries and keys
    encoders: tuple[EncoderConfig, ...] = ()  # between embedding and queries
    heads: int = 1  # attention heads of these encoders
    own_embedding: bool = True  # otherwise the heads of a network share one

    def __post_init__(self) -> None:
        layers = (EncoderConfig(**layer) if isinstance(layer, dict) else layer for layer in self.encoders)
        object.__setattr__(self, "encoders", tuple(layers))
        check_heads(self.heads, self.encoders)


def check_heads(heads: int, encoders: tuple[EncoderConfig, ...]) -> None:
    """Raise `BadRequest` unless every encoder's width divides by the number of attention heads."""
    for number, encoder in enumerate(encoders):
        if heads < 1 or encoder.d_model < heads or encoder.d_model % heads:
            raise BadRequest(f"encoder {number}: {heads} attention heads cannot share a width of {encoder.d_model}")


class Smolgen(nn.Module):
    """The whole position → one 64×64 map of attention logits per head; `activate` follows each dense layer."""

    def __init__(self, embedding: int, heads: int, config: SmolgenConfig, activate: str) -> None:
        super().__init__()
        self.heads = heads
        self.activate = activation(activate)
        self.compress = nn.Linear(embedding, config.compressed, bias=False)
        self.dense1 = nn.Linear(SQUARES * config.compressed, config.hidden)
        self.norm1 = nn.LayerNorm(config.hidden, eps=SMOLGEN_EPSILON)
        self.dense2 = nn.Linear(config.hidden, heads * config.generated)
        self.norm2 = nn.LayerNorm(heads * config.generated, eps=SMOLGEN_EPSILON)

    def forward(self, x: Tensor, maps: Tensor) -> Tensor:
        """Tokens [N, 64, E] and the network's shared maps [4096, generated] → logits [N, heads, 64, 64]."""
        summary = self.norm1(self.activate(self.dense1(self.compress(x).flatten(1))))
        generated = self.norm2(self.activate(self.dense2(summary)))
        logits = F.linear(generated.view(-1, self.heads, maps.shape[1]), maps)
        return logits.view(-1, self.heads, SQUARES, SQUARES)


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention over the 64 squares, with smolgen's logits added where there is one."""

    def __init__(self, embedding: int, heads: int, config: EncoderConfig, smolgen_activation: str) -> None:
        super().__init__()
        self.heads = heads
        self.depth = config.d_model // heads
        self.q = nn.Linear(embedding, config.d_model)
        self.k = nn.Linear(embedding, config.d_model)
        self.v = nn.Linear(embedding, config.d_model)
        self.dense = nn.Linear(config.d_model, embedding)
        sizes = config.smolgen
        self.smolgen = Smolgen(embedding, heads, sizes, smolgen_activation) if sizes is not None else None

    def forward(self, x: Tensor, maps: Tensor | None) -> Tensor:
        """[N, 64, E] → [N, 64, E]."""
        shape = -1, SQUARES, self.heads, self.depth
        q, k, v = (part(x).view(shape).transpose(1, 2) for part in (self.q, self.k, self.v))
        logits = q @ k.transpose(-1, -2) * self.depth**-0.5
        if self.smolgen is not None and maps is not None:
            logits = logits + self.smolgen(x, maps)
        mixed = torch.softmax(logits, dim=-1) @ v
        joined: Tensor = self.dense(mixed.transpose(1, 2).flatten(2))
        return joined


class FeedForward(nn.Module):
    """Two dense layers on each square, the activation between them."""

    def __init__(self, embedding: int, hidden: int, activate: str) -> None:
        super().__init__()
        self.activate = activation(activate)
        self.dense1 = nn.Linear(embedding, hidden)
        self.dense2 = nn.Linear(hidden, embedding)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 64, E] → [N, 64, E]."""
        out: Tensor = self.dense2(self.activate(self.dense1(x)))
        return out


class EncoderLayer(nn.Module):
    """Attention and feed-forward network, each x ← LN(x + α · branch(x)).

    `smolgen` and `ffn` name the activations inside them, `epsilon` is both layer norms'.
    """

    def __init__(
        self, embedding: int, heads: int, config: EncoderConfig, smolgen: str, ffn: str, alpha: float, epsilon: float
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.mha = MultiHeadAttention(embedding, heads, config, smolgen)
        self.norm1 = nn.LayerNorm(embedding, eps=epsilon)
        self.ffn = FeedForward(embedding, config.feedforward, ffn)
        self.norm2 = nn.LayerNorm(embedding, eps=epsilon)

    def forward(self, x: Tensor, maps: Tensor | None) -> Tensor:
        """Tokens [N, 64, E] and the network's smolgen maps (None where it has none) → [N, 64, E]."""
        x = self.norm1(x + self.alpha * self.mha(x, maps))
        out: Tensor = self.norm2(x + self.alpha * self.ffn(x))
        return out


class AttentionPolicy(nn.Module):
    """A move's logit is query(from) · key(to) / √d; promotions add an offset for the piece and the file reached.

    The 1858 logits are gathered from 64×64 pairs of squares and 8×8×3 promotions (file left, file reached, piece).
    Promotion to a knight is the bare pair of squares; queen, rook and bishop add their offset and a common one. The
    embedding layer itself belongs to the network, since heads may share it.
    """

    def __init__(self, config: AttentionPolicyConfig, smolgen: str, ffn: str) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(
            EncoderLayer(config.embedding, config.heads, layer, smolgen, ffn, alpha=1.0, epsilon=1e-6)
            for layer in config.encoders
        )
        self.query = nn.Linear(config.embedding, config.d_model)
        self.key = nn.Linear(config.embedding, config.d_model)
        self.promotion = nn.Linear(config.d_model, 4, bias=False)
        self.scale = config.d_model**-0.5
        self.register_buffer("gather", torch.from_numpy(ATTENTION_INDEX.copy()), persistent=False)
        self.gather: Tensor

    def forward(self, x: Tensor, maps: Tensor | None = None) -> Tensor:
        """Embedded tokens [N, 64, E] → logits [N, 1858]."""
        for encoder in self.encoders:
            x = encoder(x, maps)
        keys = self.key(x)
        pairs = self.query(x) @ keys.transpose(1, 2) * self.scale
        last_rank = self.promotion(keys[:, 56:])  # [N, file reached, (queen, rook, bishop, common)]
        offsets = last_rank[..., :3] + last_rank[..., 3:]
        promotions = pairs[:, 48:56, 56:].unsqueeze(-1) + offsets.unsqueeze(1)
        return torch.cat([pairs.flatten(1), promotions.flatten(1)], dim=1).index_select(1, self.gather)
