"""AlphaGo's rollout policy as a network, to learn its weights; `RolloutPolicy` plays with what comes out.

Source: Silver et al. 2016, Methods ("Rollout policy"): a linear softmax over the features of Extended Data Table 4,
trained like the policy network to make −log p(move played) small. A move's logit is the sum of the weights of its
features:

    3×3 pattern + response pattern (+ one weight for matching any) + neighbour + nakade + save atari

Moves that the policy never considers (`local_features.py`) have the logit `NOT_CONSIDERED`. Weights are log-odds; a
pattern shares its weight with its turned and mirrored images, and a neighbour with those as near.

Which patterns are known stands in two buffers, empty in a fresh network; `prepare` fills them with the commonest of a
game store.

Shapes: N positions, H × W points of any board.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from keima.errors import BadRequest
from keima.systems.alphago.local_features import NAKADE_PATTERNS
from keima.systems.alphago.network import NO_PASS_LOGIT, PolicyAndValue
from keima.systems.alphago.rollout import MAX_PATTERNS, RolloutPolicy
from keima.systems.alphago.rollout_features import (
    FIRST_PATTERN,
    FIRST_RESPONSE,
    NAKADE,
    NEIGHBOUR,
    PATTERN,
    RESPONSE,
    SAVE_ATARI,
    RolloutEncoding,
    commonest_patterns,
    pattern_images,
    response_images,
)
from keima.systems.network import Array, Heads, Network, NetworkEntry, NetworkKind, NetworkTable, Pedigree

if TYPE_CHECKING:
    from keima.games.archive import FlatGames

NOT_CONSIDERED = -1e3
"""The logit of moves the policy never makes."""

_NO_KEY = -1
_NEAR = (1, 0, 1, 0, 0, 1, 0, 1)
"""Which neighbour weight each of the eight points has: 0 beside the previous move, 1 diagonal from it."""


@dataclass(frozen=True)
class RolloutOutput:
    """What the softmax computes."""

    policy: Tensor  # float32 [N, H·W], logits of the points in row order; `NOT_CONSIDERED` where no move is made


class _Lookup(torch.autograd.Function):
    """weights[numbers] for a vector of weights; the gradient by counting, which is far quicker than scattering."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, numbers: Tensor) -> Tensor:
        ctx.save_for_backward(numbers)
        ctx.size = len(weights)
        return weights[numbers]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (numbers,) = ctx.saved_tensors
        (gradient,) = gradients
        return torch.bincount(numbers.flatten(), gradient.flatten().double(), minlength=ctx.size).float(), None


class RolloutSoftmax(Network):
    """The linear softmax.

    Args:
        patterns, responses: room for so many 3×3 and response patterns, images of one another counted once.

    Raises:
        BadRequest: no room, or more than a policy's tables hold.
    """

    system = "alphago-rollout"
    output_names = ("policy",)
    has_pass = False
    for_playouts = True

    def __init__(self, patterns: int = 16_000, responses: int = 16_000) -> None:
        super().__init__()
        for name, count in (("patterns", patterns), ("responses", responses)):
            if not 1 <= count <= MAX_PATTERNS:
                raise BadRequest(f"{name} must be from 1 to {MAX_PATTERNS}, not {count}")
        self.config = {"patterns": patterns, "responses": responses}
        self.encoding = RolloutEncoding()
        self.pedigree = Pedigree(name="alphago-rollout")
        self.pattern = nn.Parameter(torch.zeros(patterns))
        self.response_pattern = nn.Parameter(torch.zeros(responses))
        self.neighbour = nn.Parameter(torch.zeros(2))
        self.nakade = nn.Parameter(torch.zeros(NAKADE_PATTERNS))
        self.response = nn.Parameter(torch.zeros(1))
        self.save_atari = nn.Parameter(torch.zeros(1))
        self.pattern_keys: Tensor
        self.response_keys: Tensor
        self.register_buffer("pattern_keys", torch.full((patterns,), _NO_KEY, dtype=torch.int64))
        self.register_buffer("response_keys", torch.full((responses,), _NO_KEY, dtype=torch.int64))
        renew = RolloutSoftmax._renew_encoding
        self.register_load_state_dict_post_hook(lambda network, _: renew(network))  # type: ignore[no-untyped-call]

    def prepare(self, games: FlatGames) -> None:
        """Choose the commonest patterns of the games, unless some are known."""
        if not (self.pattern_keys != _NO_KEY).any():
            self.know(*commonest_patterns(games))

    def know(self, patterns: NDArray[np.int64], responses: NDArray[np.int64]) -> None:
        """Choose the 3×3 codes and response keys to know, int64 [n] each, no two images of one another.

        The first ones are kept, as many as there is room for; their weights stay as they are.
        """
        for buffer, keys in ((self.pattern_keys, patterns), (self.response_keys, responses)):
            kept = torch.from_numpy(keys[: len(buffer)].astype(np.int64))
            buffer.fill_(_NO_KEY)
            buffer[: len(kept)] = kept
        self._renew_encoding()

    def _renew_encoding(self) -> None:
        self.encoding = RolloutEncoding(_known(self.pattern_keys), _known(self.response_keys))

    def forward(self, planes: Tensor) -> RolloutOutput:
        """Logits of features [N, 5, H, W] (`keima.systems.alphago.rollout_features`)."""
        look_up = _Lookup.apply if self.training else torch.Tensor.__getitem__
        numbers = planes.flatten(2).long()
        pattern = numbers[:, PATTERN]
        nothing = self.pattern.new_zeros(FIRST_PATTERN)
        none = nothing[:FIRST_RESPONSE]
        logits = look_up(torch.cat([nothing, self.pattern]), pattern)
        matched = torch.cat([none, self.response_pattern + self.response])
        near = torch.cat([none, self.neighbour[list(_NEAR)]])
        nakade = torch.cat([none, self.nakade])
        for plane, weights in ((RESPONSE, matched), (NEIGHBOUR, near), (NAKADE, nakade)):
            logits = logits + look_up(weights, numbers[:, plane])
        logits = logits + planes.flatten(2)[:, SAVE_ATARI] * self.save_atari
        return RolloutOutput(policy=logits.masked_fill(pattern == 0, NOT_CONSIDERED))

    def with_value(self, value: Network) -> PolicyAndValue:
        """Both as one network (`PolicyAndValue`): AlphaGo's value network alone, in want of a policy network."""
        return PolicyAndValue(self, value)

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Logits with pass last, which the policy plays only where there is nothing else."""
        return Heads(policy=np.pad(outputs["policy"], ((0, 0), (0, 1)), constant_values=NO_PASS_LOGIT))

    def to_policy(self) -> RolloutPolicy:
        """What plays: every image of every known pattern with its weight."""
        return RolloutPolicy(
            patterns=_weights(_known(self.pattern_keys), pattern_images, self.pattern),
            responses=_weights(_known(self.response_keys), response_images, self.response_pattern),
            nakade=self.nakade.detach().cpu().numpy(),
            neighbour=self.neighbour.detach().cpu().numpy()[list(_NEAR)],
            response=self.response.item(),
            save_atari=self.save_atari.item(),
        )


def _known(keys: Tensor) -> NDArray[np.int64]:
    """The keys in use; none of a network without memory (on the meta device)."""
    if keys.is_meta:
        return np.zeros(0, np.int64)
    used: NDArray[np.int64] = keys[keys != _NO_KEY].cpu().numpy()
    return used


def _weights(keys: NDArray[np.int64], images_of: Any, weights: Tensor) -> dict[int, float]:
    each = weights.detach().cpu().numpy()[: len(keys)].tolist()
    return {key: weight for images in images_of(keys) for key, weight in zip(images.tolist(), each, strict=True)}


NETWORKS = NetworkTable(
    kinds=(NetworkKind("alphago-rollout", RolloutSoftmax),),
    entries=(
        NetworkEntry(
            "alphago-rollout",
            "alphago-rollout",
            "Silver et al., Nature 529 (2016)",
            {"patterns": 16_000, "responses": 16_000},
            {"patterns": 8, "responses": 8},
            "AlphaGo's rollout policy, a linear softmax, to learn its weights",
        ),
    ),
)
