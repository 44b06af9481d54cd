"""What two systems or more really share: activations by name, fresh weights, int8, AlphaGo Zero's blocks and heads."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from keima.errors import BadRequest
from keima.systems.network import Array, Heads, Network


class Mish(nn.Mish):
    """x · tanh(log(1 + eˣ)) (Misra 2019); compiled, with one exponential and one division."""

    def forward(self, x: Tensor) -> Tensor:
        """Of each number."""
        if not torch.compiler.is_dynamo_compiling():
            return super().forward(x)
        power = x.clamp(max=20.0).exp()
        part = power * (power + 2.0)
        return x * (part / (part + 2.0))


_ACTIVATIONS: dict[str, tuple[type[nn.Module], float]] = {
    "identity": (nn.Identity, 1.0),
    "relu": (nn.ReLU, math.sqrt(2.0)),
    "mish": (Mish, math.sqrt(2.210277)),
    "silu": (nn.SiLU, math.sqrt(2.0)),
}
"""Layer, and the gain that keeps the variance of what passes through it (He et al. 2015; KataGo's `compute_gain`)."""

_TRUNCATED_STD = 0.87962566103423978  # standard deviation of a unit normal cut off at ±2


Moments = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor, Tensor]]
"""(x [N, C, H, W], mask [N, 1, H, W] or None) → mean [C] and variance [C] over the points, and how many they are."""


class BatchStatistics:
    """A layer that normalises by its batch, as `nn.BatchNorm2d` does; beside `nn.Module` among its bases."""

    momentum: float  # share of the newest batch in the running statistics
    # works them out where the batch is spread over several processes; None for a batch of its own
    moments: Moments | None = None


class Pointwise:
    """A layer that works on each number by itself, beside `nn.Module` among its bases.

    Attributes:
        compute: the work, a function of tensors, in whose place a backend may put what `torch.compile` makes of it.
    """

    compute: Callable[..., Tensor]


def activation_layer(name: str) -> nn.Module:
    """The layer of an activation by name: "identity", "relu", "mish" or "silu"."""
    return _ACTIVATIONS[name][0]()


def activate_rows(activation: nn.Module, rows: Tensor) -> Tensor:
    """activation(rows) for rows [N, C] between two linear layers, with a third axis for the while.

    OpenVINO 2026.4 fails to compile linear → mish → linear for 4 to 15 rows of two axes ("Supported precisions set is
    not available for Mish operation").
    """
    activated: Tensor = activation(rows.unsqueeze(2)).squeeze(2)
    return activated


@torch.no_grad()
def initialise(weight: Tensor, activation: str = "identity", scale: float = 1.0, fan_in: int | None = None) -> None:
    """Fill a weight [out, in, ...] from a normal cut off at ±2σ, with σ = scale · gain(activation) / √fan_in.

    `activation` comes after the layer; `fan_in`, inputs of one output, is counted from the shape unless given (for
    biases); a scale of 0 fills with zeros.
    """
    inputs = weight[0].numel() if fan_in is None else fan_in
    std = scale * _ACTIVATIONS[activation][1] / math.sqrt(inputs) / _TRUNCATED_STD
    if std == 0.0:
        nn.init.zeros_(weight)
    else:
        nn.init.trunc_normal_(weight, 0.0, std, -2.0 * std, 2.0 * std)


# --- Convolutions in int8 ---------------------------------------------------------------------------------------------
#
# What a convolution reads and its weights are rounded to whole steps: inputs 0 to 255, weights −127 to 127. Processors
# without instructions for int8 (VNNI) add the products of two neighbouring input channels in 16 bits, silently cut off
# at 2^15. So the weights of channels 2i and 2i + 1 are at most 128 steps together, as nearly all are anyhow, and all
# processors compute the same sums.

INPUT_LEVELS = 255
WEIGHT_LEVELS = 127
PAIR_LEVELS = 128


class QuantizedConvolution(nn.Module):
    """A convolution that rounds what it reads and its weights; gradients pass the rounding unchanged.

    Who changes its weights calls `restrain` afterwards.

    Args:
        convolution: whose place it takes.
        layer: its tensors of a `Quantization`.
    """

    scale: Tensor
    input_scale: Tensor
    zeros: Tensor

    def __init__(self, convolution: nn.Conv2d, layer: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.kernel_size, self.padding = convolution.kernel_size, convolution.padding
        self.weight = nn.Parameter(layer["weight"].float())  # in steps
        self.bias = nn.Parameter(layer["bias"].clone())
        self.register_buffer("scale", layer["scale"].clone())
        self.register_buffer("input_scale", layer["input_scale"].clone())
        self.register_buffer("zeros", torch.zeros(len(self.weight), dtype=torch.int32))
        self.input_zero = int(layer["input_zero"])

    def forward(self, x: Tensor) -> Tensor:
        """[N, I, H, W] → [N, O, H, W]."""
        x = x * (1 / self.input_scale)[:, None, None]
        x = torch.fake_quantize_per_tensor_affine(x, 1.0, self.input_zero, 0, INPUT_LEVELS)
        weight = self.weight * self.scale[:, None, None, None]
        limits = (-WEIGHT_LEVELS, WEIGHT_LEVELS)
        weight = torch.fake_quantize_per_channel_affine(weight, self.scale, self.zeros, 0, *limits)
        return F.conv2d(x, weight, self.bias, padding=self.padding)

    @torch.no_grad()
    def restrain(self) -> None:
        """Bring the weights back to where int8 can hold them."""
        self.weight.copy_(restrained(self.weight, PAIR_LEVELS - 1))  # rounding may add a half to each

    def layer(self) -> dict[str, Tensor]:
        """Its tensors of a `Quantization`, trained or not."""
        weight = self.weight.detach().round().to(torch.int8)
        zero = torch.tensor([self.input_zero], dtype=torch.uint8)
        layer = {"weight": weight, "scale": self.scale, "input_scale": self.input_scale, "input_zero": zero}
        return {name: tensor.detach().clone() for name, tensor in {**layer, "bias": self.bias}.items()}


def restrained(weight: Tensor, pair: float = PAIR_LEVELS) -> Tensor:
    """Weights in steps [O, I, ...] none beyond `WEIGHT_LEVELS`, neighbouring channels' together not beyond `pair`."""
    weight = weight.clamp(-WEIGHT_LEVELS, WEIGHT_LEVELS)
    size = weight.abs()
    partner = torch.zeros_like(size)
    even = size.shape[1] // 2 * 2
    partner[:, 0:even:2], partner[:, 1:even:2] = size[:, 1:even:2], size[:, 0:even:2]
    return weight.sign() * (size - (size + partner - pair).clamp(min=0) / 2)


def quantized(network: Network) -> Network:
    """A copy that computes in int8 where the network's `quantization` says so.

    Raises:
        BadRequest: it has none, or its weights have changed since.
    """
    made = network.quantization
    if made is None:
        message = "has no numbers for int8; keima compress quantize makes them"
        raise BadRequest(message, source=network.pedigree.name)
    if made.weights != digest(network):
        message = "was changed after it was quantized; quantize it again"
        raise BadRequest(message, source=network.pedigree.name)
    return with_layers(network, made.layers)


def with_layers(network: Network, layers: Mapping[str, Mapping[str, Tensor]]) -> Network:
    """A copy in evaluation mode with these convolutions in int8; it has no `quantization` itself."""
    found = copy.deepcopy(network).eval()
    found.quantization = None
    for name, layer in layers.items():
        convolution = found.get_submodule(name)
        assert isinstance(convolution, nn.Conv2d)
        found.set_submodule(name, QuantizedConvolution(convolution, layer))
    return found


def digest(network: nn.Module) -> str:
    """SHA-256 (hex) of a network's weights, by name; counters of batches are none."""
    found = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        if tensor.is_floating_point():
            found.update(f"{name}: {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


# --- AlphaGo Zero's blocks and heads, under which other trunks are compared -------------------------------------------


class ConvolutionBlock(nn.Module):
    """Convolution → batch norm → rectifier: the tower's first block, and the whole of a plain tower."""

    def __init__(self, in_channels: int, channels: int, kernel_size: int = 3) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(in_channels, channels, kernel_size, padding=kernel_size // 2, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C_in, H, W] → [N, C, H, W], ≥ 0."""
        return F.relu(self.norm(self.convolution(x)))


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions with batch norm; the input is added before the last rectifier."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.convolution2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W], ≥ 0."""
        y = F.relu(self.norm1(self.convolution1(x)))
        y = self.norm2(self.convolution2(y))
        return F.relu(x + y)


@dataclass(frozen=True)
class PolicyValue:
    """For the side to move: logits [N, A], points in row order of the planes, then pass; the outcome [N] in [−1, 1]."""

    policy: Tensor
    value: Tensor


def _points(board: int | tuple[int, int]) -> int:
    return board * board if isinstance(board, int) else board[0] * board[1]


@torch.no_grad()
def begin_pointwise(linear: nn.Linear, points: int) -> None:
    """Let a policy's linear layer over planes [K, points], K ≥ 2, begin as each point's first plane less its second.

    With random weights it must learn of every point which input is its own, from games where it was played: a network
    of 4 blocks of 32 guesses 9.6 % of 4,096 human moves after 90,000 positions, with this beginning 31.3 %.
    """
    nn.init.zeros_(linear.weight)
    linear.weight[:points, :points].fill_diagonal_(1.0)
    linear.weight[:points, points : 2 * points].fill_diagonal_(-1.0)


class PolicyHead(nn.Module):
    """1×1 convolution to 2 planes, batch norm, rectifier, linear layer to one logit per move.

    `board` is H = W, or (H, W); there are as many moves as points and the pass last, unless `moves` says A.
    """

    def __init__(self, channels: int, board: int | tuple[int, int], moves: int | None = None, filters: int = 2) -> None:
        super().__init__()
        points = _points(board)
        self.convolution = nn.Conv2d(channels, filters, 1, bias=False)
        self.norm = nn.BatchNorm2d(filters)
        self.linear = nn.Linear(filters * points, points + 1 if moves is None else moves)
        if moves is None:
            begin_pointwise(self.linear, points)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → logits [N, A]."""
        y = F.relu(self.norm(self.convolution(x)))
        logits: Tensor = self.linear(y.flatten(1))
        return logits


class ValueHead(nn.Module):
    """1×1 convolution to 1 plane, batch norm, rectifier, linear layer to 256, rectifier, linear layer, tanh."""

    def __init__(self, channels: int, board: int | tuple[int, int], hidden: int = 256, filters: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, filters, 1, bias=False)
        self.norm = nn.BatchNorm2d(filters)
        self.linear1 = nn.Linear(filters * _points(board), hidden)
        self.linear2 = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] → the outcome for the side to move, [N] in [−1, 1]."""
        y = F.relu(self.norm(self.convolution(x)))
        y = F.relu(self.linear1(y.flatten(1)))
        outcome: Tensor = self.linear2(y).flatten().tanh()
        return outcome


class TwoHeadNetwork(Network):
    """A network that takes planes and answers a `PolicyValue`."""

    output_names = ("policy", "value")

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Logits as they are; value and win/draw/loss for the side to move."""
        return decode_two_heads(outputs)


def decode_two_heads(outputs: Mapping[str, Array]) -> Heads:
    """Answers of any network whose outputs are `policy` logits [N, A] and a tanh `value` [N] for the side to move.

    Such a network knows no drawn game: draw is 0, win and loss are (1 ± value) / 2.
    """
    value = outputs["value"].astype(np.float32, copy=False)
    wdl = np.stack([(1 + value) / 2, np.zeros_like(value), (1 - value) / 2], axis=1)
    return Heads(policy=outputs["policy"], wdl=wdl, value=value)
