"""AlphaGo (2016): the policy network and the value network, two plain convolutional networks.

Source: D. Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 529 (2016),
Methods, "Neural network architecture". Twelve hidden convolutions of k filters (192 in the matches; 128, 256 and 384
were tried), the first 5×5, the rest 3×3, each with bias and rectifier, no batch norm and no skip connection.

    policy  48 planes → 12 convolutions → 1×1 convolution to one plane, with a bias of its own for each point → softmax
    value   49 planes → 12 convolutions → 1×1 convolution to one plane → linear 256, rectifier → linear 1, tanh

Counting from the input, the policy network's output layer is its 13th and the value network's its 15th. The paper
calls the value network's 1×1 convolution "hidden layer 13" and says nothing of a rectifier there, so there is none.
AlphaGo's policy has no pass; with `pass_logit` it has one more output, a linear layer over the last hidden planes'
means, for engines and games that need it. (Some documents claim 362 outputs of the 1×1 convolution, which has 361.)

Shapes: N positions, k filters, H × W points with H = W = `board_size`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from keima.errors import BadRequest, UnsupportedNetwork
from keima.games.position import Position
from keima.jit import Records
from keima.systems.alphago.inputs import POLICY_PLANES, VALUE_PLANES, AlphaGoEncoding, sensible_names
from keima.systems.encoding import Batch, Encoding, LegalMoves
from keima.systems.layers import decode_two_heads
from keima.systems.network import Array, Heads, Network, NetworkEntry, NetworkKind, NetworkTable, Pedigree

NO_PASS_LOGIT = -1e4
"""The logit `decode` gives the pass of a network without one: no probability, unless pass is the only legal move."""


@dataclass(frozen=True)
class AlphaGoPolicyOutput:
    """What the policy network computes."""

    policy: Tensor  # float32 [N, H·W], logits of the points in row order; with `pass_logit` [N, H·W + 1], pass last


@dataclass(frozen=True)
class AlphaGoValueOutput:
    """What the value network computes."""

    value: Tensor  # float32 [N] in [−1, 1], the expected outcome for the side to move


@dataclass(frozen=True)
class PolicyAndValueOutput(AlphaGoPolicyOutput, AlphaGoValueOutput):
    """What the two compute together."""


class HiddenLayers(nn.Sequential):
    """Convolutions with bias, each followed by a rectifier: the first 5×5, the rest 3×3.

    Input [N, planes, H, W], output [N, filters, H, W], ≥ 0. Fresh weights are normal with variance 2 / fan-in (He et
    al. 2015, arXiv:1502.01852; the paper does not say how it began): under PyTorch's own, twelve layers without
    normalisation let so little through that they do not begin to learn.
    """

    def __init__(self, planes: int, filters: int, layers: int) -> None:
        if layers < 1 or filters < 1:
            raise BadRequest(f"AlphaGo's networks need layers ≥ 1 and filters ≥ 1, not {layers} and {filters}")
        convolutions = [nn.Conv2d(planes, filters, 5, padding=2)]
        convolutions += [nn.Conv2d(filters, filters, 3, padding=1) for _ in range(layers - 1)]
        for convolution in convolutions:
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            if convolution.bias is not None:
                nn.init.zeros_(convolution.bias)
        super().__init__(*(step for convolution in convolutions for step in (convolution, nn.ReLU())))


class AlphaGoPolicyNetwork(Network):
    """The policy network p(a | s), for the supervised and the reinforced policy alike.

    Args:
        filters, layers: of the hidden convolutions (matches: 192 and 12).
        pass_logit: give pass a logit of its own (paper: no).
        board_size: H = W; the output layer's biases fix it.

    Raises:
        BadRequest: a size that cannot be.
    """

    system = "alphago"
    output_names = ("policy",)

    def __init__(self, filters: int = 192, layers: int = 12, pass_logit: bool = False, board_size: int = 19) -> None:
        super().__init__()
        self.config = {"filters": filters, "layers": layers, "pass_logit": pass_logit, "board_size": board_size}
        self.encoding = AlphaGoEncoding(POLICY_PLANES, pass_move=True, board_size=board_size)
        self.pedigree = Pedigree(name="alphago-policy")
        self.has_pass = pass_logit
        self.hidden = HiddenLayers(self.encoding.planes, filters, layers)
        self.output = nn.Conv2d(filters, 1, 1, bias=False)
        self.point_bias = nn.Parameter(torch.zeros(board_size * board_size))
        self.pass_output = nn.Linear(filters, 1) if pass_logit else None

    def forward(self, planes: Tensor) -> AlphaGoPolicyOutput:
        """Evaluate planes [N, 48, H, W] (`keima.systems.alphago.inputs`)."""
        x = self.hidden(planes)
        logits = self.output(x).flatten(1) + self.point_bias
        if self.pass_output is not None:
            logits = torch.cat([logits, self.pass_output(x.mean(dim=(2, 3)))], dim=1)
        return AlphaGoPolicyOutput(policy=logits)

    def with_value(self, value: Network) -> PolicyAndValue:
        """Both as one network (`PolicyAndValue`)."""
        return PolicyAndValue(self, value)

    def choices(self, position: Position, policy: Mapping[str, float]) -> list[str]:
        """Moves that fill no own true eye; without a pass of its own, it passes when nothing else is left to it."""
        return sensible_names(position, self.has_pass)

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Logits with pass last (`NO_PASS_LOGIT` where the network has none); no value."""
        policy = outputs["policy"]
        if self.pass_output is None:
            policy = np.pad(policy, ((0, 0), (0, 1)), constant_values=NO_PASS_LOGIT)
        return Heads(policy=policy)


class AlphaGoValueNetwork(Network):
    """The value network v(s), trained on the outcomes of the reinforced policy's games.

    Args:
        filters, layers: of the hidden convolutions before the 1×1 one (paper: 192 and 12).
        hidden: rectifier units of the linear layer (paper: 256).
        board_size: H = W; the linear layer fixes it.

    Raises:
        BadRequest: a size that cannot be.
    """

    system = "alphago"
    output_names = ("value",)

    def __init__(self, filters: int = 192, layers: int = 12, hidden: int = 256, board_size: int = 19) -> None:
        super().__init__()
        self.config = {"filters": filters, "layers": layers, "hidden": hidden, "board_size": board_size}
        self.encoding = AlphaGoEncoding(VALUE_PLANES, pass_move=True, board_size=board_size)
        self.pedigree = Pedigree(name="alphago-value")
        self.hidden = HiddenLayers(self.encoding.planes, filters, layers)
        self.one_plane = nn.Conv2d(filters, 1, 1)
        self.linear1 = nn.Linear(board_size * board_size, hidden)
        self.linear2 = nn.Linear(hidden, 1)

    def forward(self, planes: Tensor) -> AlphaGoValueOutput:
        """Evaluate planes [N, 49, H, W]: AlphaGo's 48 and the side to move's colour."""
        x = self.linear1(self.one_plane(self.hidden(planes)).flatten(1)).relu()
        return AlphaGoValueOutput(value=self.linear2(x).flatten().tanh())

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Value and win/draw/loss for the side to move; the policy, which this network lacks, is flat (all zeros)."""
        flat = np.zeros((len(outputs["value"]), self.linear1.in_features + 1), np.float32)
        return decode_two_heads({"policy": flat, "value": outputs["value"]})


# --- Both networks as one --------------------------------------------------------------------------------------------


class _WithFeatures(AlphaGoEncoding):
    """The value network's 49 planes, and as `features` what a policy of other planes sees of the same positions."""

    def __init__(self, features: Encoding, board_size: int) -> None:
        super().__init__(VALUE_PLANES, pass_move=True, board_size=board_size)
        self.features = features
        self.symmetries = features.symmetries

    def room(self, n: int, shape: tuple[int, int]) -> Batch:
        """The planes, and the policy's."""
        features = self.features.room(n, shape).inputs["planes"]
        return Batch({**super().room(n, shape).inputs, "features": features})

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        """Write both."""
        super().write(records, symmetries, batch)
        self.features.write(records, symmetries, Batch({"planes": batch.inputs["features"]}))

    def legal_moves(self, position: Position, symmetry: int = 0) -> LegalMoves:
        """The policy's."""
        return self.features.legal_moves(position, symmetry)


class PolicyAndValue(Network):
    """A policy network and a value network as one: the policy of the first, the value of the second.

    Args:
        policy: AlphaGo's, or the linear rollout policy, whose features stand beside the planes.
        value: AlphaGo's value network, of the policy's board.

    Raises:
        UnsupportedNetwork: another value network, or one for another board.
    """

    system = "alphago"
    output_names = ("policy", "value")

    def __init__(self, policy: Network, value: Network) -> None:
        super().__init__()
        if not isinstance(value, AlphaGoValueNetwork):
            raise UnsupportedNetwork(f"is no value network of AlphaGo's ({VALUE_PLANES} planes)", source=_named(value))
        size = value.config["board_size"]
        if policy.config.get("board_size", size) != size:
            sizes = f"{policy.config['board_size']} points a side, its value network for {size}"
            raise UnsupportedNetwork(f"the policy is for boards of {sizes}", source=_named(value))
        self.config = {"policy": policy.config, "value": value.config}
        self.encoding = value.encoding
        if policy.for_playouts:
            self.input_names = ("planes", "features")
            self.encoding = _WithFeatures(policy.encoding, size)
        own, other = policy.pedigree, value.pedigree
        self.pedigree = Pedigree(
            name=f"{own.name} + {other.name}",
            origin=f"{own.origin} + {other.origin}",
            sha256=f"{own.sha256} + {other.sha256}",
        )
        self.has_pass = policy.has_pass
        self.policy, self.value = policy, value

    def forward(self, planes: Tensor, features: Tensor | None = None) -> PolicyAndValueOutput:
        """Evaluate planes [N, 49, H, W], and the linear policy's features [N, 5, H, W]."""
        policy = self.policy(planes[:, :POLICY_PLANES] if features is None else features).policy
        return PolicyAndValueOutput(policy=policy, value=self.value(planes).value)

    def choices(self, position: Position, policy: Mapping[str, float]) -> list[str]:
        """The policy's."""
        return self.policy.choices(position, policy)

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """The policy's logits with the value network's numbers."""
        value = self.value.decode(outputs, context)
        return replace(self.policy.decode(outputs, context), wdl=value.wdl, value=value.value)


def _named(network: Network) -> str:
    return network.pedigree.origin if network.pedigree.sha256 else network.pedigree.name


# --- By name ----------------------------------------------------------------------------------------------------------

_PAPER = "Silver et al., Nature 529 (2016)"
_SIZES = {"filters": 192, "layers": 12}
_SMALL = {"filters": 8, "layers": 3, "board_size": 9}

NETWORKS = NetworkTable(
    kinds=(
        NetworkKind("alphago-policy", AlphaGoPolicyNetwork, ("hidden",)),
        NetworkKind("alphago-value", AlphaGoValueNetwork, ("hidden",), "the last linear layers"),
    ),
    entries=(
        NetworkEntry(
            "alphago-policy",
            "alphago-policy",
            _PAPER,
            _SIZES,
            _SMALL,
            "AlphaGo's policy network; pass_logit=True adds a pass",
        ),
        NetworkEntry(
            "alphago-value", "alphago-value", _PAPER, _SIZES, {**_SMALL, "hidden": 16}, "AlphaGo's value network"
        ),
    ),
    aliases={"alphago": "alphago-policy"},
)
