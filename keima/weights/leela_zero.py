"""Leela Zero's text files, versions 1 and 2, read and written.

Source: Leela Zero 0.17, `src/Network.cpp` (`load_network_file`, `load_v1_network`, `initialize`) and `src/CPUPipe.cpp`.
The first line is the version; every further line is one array of numbers with spaces between:

    input convolution        4 lines: weights [C, 18, 3, 3], biases [C], means [C], variances [C]
    each residual block      8 lines: the same for weights [C, C, 3, 3], twice
    policy head              6 lines: weights [2, C, 1, 1], biases, means, variances [2], linear [A, 2·H·W] and
                             biases [A]
    value head               8 lines: weights [1, C, 1, 1], biases, means, variances [1], linear [256, H·W] and
                             biases [256], linear [1, 256] and bias [1]

A layer computes (conv(x) + bias − mean) / sqrt(variance + 1e-5): batch norm without scale, its shift stored as a
convolution bias. Reading turns the bias into batch norm's β = bias / sqrt(variance + 1e-5) with γ = 1; writing folds γ
into the weights and the mean, so networks trained with a scale can be written too.

Version 2 (ELF OpenGo) is the same, with a value for Black in place of the side to move.

Leela Zero's rows run from the bottom of the board to the top, keima's from the top down. The arrays are turned over on
the way in and out (every 3×3 kernel top to bottom, the linear layers' points by row), which leaves the answers as
they are.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from keima.encodings.alphago_zero import LEELA_ZERO_PLANES
from keima.errors import BadWeights, UnsupportedNetwork
from keima.networks.alphago_zero import ConvolutionBlock, PolicyHead, ResidualBlock, ValueHead
from keima.networks.leela_zero import LeelaZeroNetwork
from keima.networks.network import Pedigree
from keima.weights.files import atomic_write, read_bytes, sha256_of

Floats = NDArray[np.float32]

EPSILON = 1e-5
STEM_LINES, BLOCK_LINES, HEAD_LINES = 4, 8, 14
MAX_BOARD_SIZE = 19
MAX_CHANNELS = 4096


def looks_like_leela_zero(data: bytes) -> bool:
    """Is this the beginning of a Leela Zero file: a whole number alone, then a line of several numbers?

    Args:
        data: the first bytes of the decompressed file.
    """
    return re.match(rb"\d{1,3}[ \t]*\r?\n\s*[-+]?[\d.][-+\d.eE]*[ \t]+[-+]?[\d.]", data) is not None


def read_leela_zero(path: str | os.PathLike[str]) -> LeelaZeroNetwork:
    """Read a Leela Zero network (plain text or gzip).

    Returns:
        The network in evaluation mode.

    Raises:
        BadWeights: a line that is missing, of the wrong length or not all finite numbers; the message names it.
        UnsupportedNetwork: another version of the format, or a board larger than 19.
    """
    source = os.fspath(path)
    lines = _split(read_bytes(path), source)
    version = lines[0].strip().decode("ascii", "replace")
    if version not in ("1", "2"):
        message = f"version {version[:20]!r} of Leela Zero's format; keima reads versions 1 and 2"
        raise UnsupportedNetwork(message, source=source, place="line 1")
    sizes = _sizes(lines, source)
    network = LeelaZeroNetwork(
        blocks=sizes.blocks,
        channels=sizes.channels,
        board_size=sizes.board_size,
        value_for_black=version == "2",
        value_hidden=sizes.value_hidden,
    )
    _fill(network, _Lines(lines, source))
    name = os.path.basename(source).removesuffix(".gz").removesuffix(".txt")
    network.pedigree = Pedigree(
        name=name, origin=source, format=f"Leela Zero version {version}", sha256=sha256_of(path)
    )
    return network.eval()


def write_leela_zero(network: LeelaZeroNetwork, path: str | os.PathLike[str]) -> None:
    """Write a network that Leela Zero loads; gzipped where the name ends in .gz, whole or not at all.

    Version 2 for a network with `value_for_black`, else version 1. Numbers are written with nine significant digits,
    which read back as the same float32.

    Raises:
        UnsupportedNetwork: not a Leela Zero network, or a value head's hidden layer of a width other than 256.
        BadWeights: weights that are not finite, or a file that cannot be written.
    """
    source = os.fspath(path)
    if not isinstance(network, LeelaZeroNetwork):
        found = type(network).__name__
        raise UnsupportedNetwork(f"Leela Zero's format holds a LeelaZeroNetwork, not a {found}", source=source)
    hidden = network.value_head.linear1.out_features
    if hidden != 256:
        message = f"Leela Zero's value head has 256 hidden units, this network {hidden}"
        raise UnsupportedNetwork(message, source=source)
    text = [b"2" if network.value_for_black else b"1"]
    for name, values in _arrays(network):
        if not np.isfinite(values).all():
            raise BadWeights("a weight is not finite; the network cannot be written", source=source, place=name)
        text.append(" ".join([f"{value:.9g}" for value in values.ravel().tolist()]).encode("ascii"))
    atomic_write(path, b"\n".join(text) + b"\n")


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sizes:
    blocks: int
    channels: int
    board_size: int
    value_hidden: int


def _split(data: bytes, source: str) -> list[bytes]:
    """The file's lines, without empty ones at the end."""
    lines = data.rstrip().split(b"\n")
    if lines == [b""]:
        raise BadWeights("the file is empty", source=source)
    return lines


def _sizes(lines: list[bytes], source: str) -> _Sizes:
    """The network's sizes, from the number of lines and how many numbers stand on four of them."""
    tower = len(lines) - (1 + STEM_LINES + HEAD_LINES)
    if tower < 0 or tower % BLOCK_LINES:
        message = (
            f"{len(lines)} lines; a Leela Zero file has 19 and 8 for each residual block: "
            "the file is cut short, or not a network"
        )
        raise BadWeights(message, source=source)
    head = 1 + STEM_LINES + tower
    channels, moves, hidden = (len(lines[i].split()) for i in (2, head + 5, head + 11))
    if not 1 <= channels <= MAX_CHANNELS:
        raise BadWeights(f"{channels} numbers, expected one bias a channel", source=source, place="line 3")
    board_size = math.isqrt(max(moves - 1, 0))
    place = f"line {head + 6}"
    if board_size < 1 or board_size * board_size + 1 != moves:
        raise BadWeights(f"{moves} numbers, expected one a move of a square board", source=source, place=place)
    if board_size > MAX_BOARD_SIZE:
        message = f"a network for {board_size}×{board_size} boards; keima's go up to {MAX_BOARD_SIZE}"
        raise UnsupportedNetwork(message, source=source, place=place)
    if hidden < 1 or len(lines[head + 11]) > len(lines[head + 10]):
        place = f"line {head + 12}"
        raise BadWeights(f"{hidden} numbers, expected the value head's hidden biases", source=source, place=place)
    expected = _sizes_of_lines(tower // BLOCK_LINES, channels, board_size, hidden)
    _check_lengths(lines, expected, source)
    return _Sizes(tower // BLOCK_LINES, channels, board_size, hidden)


def _sizes_of_lines(blocks: int, channels: int, board_size: int, hidden: int) -> list[int]:
    """How many numbers stand on each line after the first."""
    points = board_size * board_size
    vectors = [channels] * 3
    stem = [channels * len(LEELA_ZERO_PLANES) * 9, *vectors]
    block = [channels * channels * 9, *vectors] * 2
    policy = [2 * channels, 2, 2, 2, (points + 1) * 2 * points, points + 1]
    value = [channels, 1, 1, 1, hidden * points, hidden, hidden, 1]
    return [*stem, *block * blocks, *policy, *value]


def _check_lengths(lines: list[bytes], expected: list[int], source: str) -> None:
    """Refuse, before any network is built, a file with a line too short to hold its numbers."""
    for i, count in enumerate(expected, start=1):
        if len(lines[i]) < 2 * count - 1:
            message = f"{len(lines[i])} characters cannot hold the {count} numbers expected"
            raise BadWeights(message, source=source, place=f"line {i + 1}")


class _Lines:
    """Hands out the file's arrays one after the other."""

    def __init__(self, lines: list[bytes], source: str) -> None:
        self._lines = lines
        self._source = source
        self._next = 1

    def take(self, *shape: int) -> torch.Tensor:
        """The next line as float32 of that shape."""
        place = f"line {self._next + 1}"
        words = self._lines[self._next].split()
        self._next += 1
        count = math.prod(shape)
        if len(words) != count:
            raise BadWeights(f"{len(words)} numbers, expected {count}", source=self._source, place=place)
        try:
            values = np.array([float(word) for word in words])
        except ValueError as error:
            raise BadWeights(f"not all numbers: {error}", source=self._source, place=place) from error
        with np.errstate(over="ignore"):
            single = values.astype(np.float32)
        if not np.isfinite(single).all():
            raise BadWeights("a number is not finite as float32", source=self._source, place=place)
        return torch.from_numpy(single.reshape(shape))

    def error(self, message: str) -> BadWeights:
        """An error about the line last taken."""
        return BadWeights(message, source=self._source, place=f"line {self._next}")


@torch.no_grad()
def _fill(network: LeelaZeroNetwork, lines: _Lines) -> None:
    """Set all of the network's weights from the file's arrays, in the file's order."""
    for convolution, norm in _convolutions(network.stem, network.tower):
        _read_convolution(convolution, norm, lines)
    policy, value = network.policy_head, network.value_head
    points = value.linear1.in_features
    side = math.isqrt(points)

    _read_convolution(policy.convolution, policy.norm, lines)
    moves = lines.take(points + 1, 2, side, side).flip(2).flatten(1)
    policy.linear.weight.copy_(_turn_moves(moves))
    policy.linear.bias.copy_(_turn_moves(lines.take(points + 1)))

    _read_convolution(value.convolution, value.norm, lines)
    value.linear1.weight.copy_(lines.take(value.linear1.out_features, side, side).flip(1).flatten(1))
    value.linear1.bias.copy_(lines.take(value.linear1.out_features))
    value.linear2.weight.copy_(lines.take(1, value.linear2.in_features))
    value.linear2.bias.copy_(lines.take(1))


def _read_convolution(convolution: nn.Conv2d, norm: nn.BatchNorm2d, lines: _Lines) -> None:
    """Set a convolution and its batch norm from the next four lines."""
    convolution.weight.copy_(lines.take(*convolution.weight.shape).flip(2))
    bias, mean, variance = (lines.take(norm.num_features).double() for _ in range(3))
    if (variance < 0).any():
        raise lines.error("a variance below 0")
    norm.weight.fill_(1)
    norm.bias.copy_(bias / torch.sqrt(variance + EPSILON))
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.copy_(mean)
    norm.running_var.copy_(variance)


# --- both ways --------------------------------------------------------------------------------------------------------


def _convolutions(stem: ConvolutionBlock, tower: nn.Sequential) -> Iterator[tuple[nn.Conv2d, nn.BatchNorm2d]]:
    """The trunk's convolutions with their batch norms, in the file's order."""
    yield stem.convolution, stem.norm
    for block in tower:
        assert isinstance(block, ResidualBlock)
        yield block.convolution1, block.norm1
        yield block.convolution2, block.norm2


def _turn_moves(rows: torch.Tensor) -> torch.Tensor:
    """Reverse the board's rows in the first axis, which holds H·W points and the pass."""
    side = math.isqrt(len(rows) - 1)
    points = rows[:-1].unflatten(0, (side, side)).flip(0).flatten(0, 1)
    return torch.cat([points, rows[-1:]])


# --- writing ----------------------------------------------------------------------------------------------------------


def _arrays(network: LeelaZeroNetwork) -> Iterator[tuple[str, Floats]]:
    """All arrays of the file in order, each with a name for messages."""
    for i, (convolution, norm) in enumerate(_convolutions(network.stem, network.tower)):
        yield from _convolution_arrays(f"convolution {i} of the trunk", convolution, norm)
    yield from _policy_arrays(network.policy_head)
    yield from _value_arrays(network.value_head)


def _policy_arrays(head: PolicyHead) -> Iterator[tuple[str, Floats]]:
    yield from _convolution_arrays("the policy head's convolution", head.convolution, head.norm)
    weight = _turn_moves(head.linear.weight.detach())
    side = math.isqrt(len(weight) - 1)
    yield "the policy head's linear layer", weight.unflatten(1, (-1, side, side)).flip(2).numpy()
    yield "the policy head's linear biases", _turn_moves(head.linear.bias.detach()).numpy()


def _value_arrays(head: ValueHead) -> Iterator[tuple[str, Floats]]:
    yield from _convolution_arrays("the value head's convolution", head.convolution, head.norm)
    weight = head.linear1.weight.detach()
    side = math.isqrt(weight.shape[1])
    yield "the value head's first linear layer", weight.unflatten(1, (side, side)).flip(1).numpy()
    yield "the value head's first biases", head.linear1.bias.detach().numpy()
    yield "the value head's second linear layer", head.linear2.weight.detach().numpy()
    yield "the value head's last bias", head.linear2.bias.detach().numpy()


def _convolution_arrays(name: str, convolution: nn.Conv2d, norm: nn.Module) -> Iterator[tuple[str, Floats]]:
    """Weights, biases, means and variances, with batch norm's scale folded into weights and means.

    Where the norm itself was folded into the convolution (`keima.compress.fold`), the mean is 0 and the variance
    1 − ε, which leave the convolution's own bias as it is.
    """
    weight = convolution.weight.detach()
    ones = torch.ones(convolution.out_channels)
    if isinstance(norm, nn.BatchNorm2d):
        assert norm.running_mean is not None
        assert norm.running_var is not None
        scale, mean, variance = norm.weight.detach(), norm.running_mean, norm.running_var
        bias = norm.bias.detach().double() * torch.sqrt(variance.double() + EPSILON)
    else:
        scale, mean, variance = ones, torch.zeros_like(ones), ones - EPSILON
        bias = ones.double() * 0 if convolution.bias is None else convolution.bias.detach().double()
    yield name, (weight * scale[:, None, None, None]).flip(2).numpy()
    yield f"{name}, biases", bias.float().numpy()
    yield f"{name}, means", (mean * scale).numpy()
    yield f"{name}, variances", variance.numpy()
