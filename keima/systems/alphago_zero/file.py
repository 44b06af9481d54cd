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
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keima.errors import BadWeights, KeimaError, UnsupportedNetwork
from keima.systems.alphago_zero.inputs import LEELA_ZERO_PLANES
from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork
from keima.systems.files.contents import Format, atomic_write, read_bytes, sha256_of
from keima.systems.network import Network, Pedigree

Floats = NDArray[np.float32]

EPSILON = 1e-5
STEM_LINES, BLOCK_LINES, HEAD_LINES = 4, 8, 14
MAX_BOARD_SIZE = 19
MAX_CHANNELS = 4096
MAX_BLOCKS = 256


def looks_like_leela_zero(data: bytes) -> bool:
    """Is this the beginning of a Leela Zero file: a whole number alone, then a line of several numbers?"""
    return re.match(rb"\d{1,3}[ \t]*\r?\n\s*[-+]?[\d.][-+\d.eE]*[ \t]+[-+]?[\d.]", data) is not None


def read_leela_zero(path: str | os.PathLike[str]) -> LeelaZeroNetwork:
    """The Leela Zero network in a file (plain text or gzip), in evaluation mode.

    Raises:
        BadWeights: a line that is missing, of the wrong length or not all finite numbers; the message names it.
        UnsupportedNetwork: another version of the format, or a board larger than 19.
    """
    source = os.fspath(path)
    name = os.path.basename(source).removesuffix(".gz").removesuffix(".txt")
    try:
        network = _decode(_split(read_bytes(path)))
    except KeimaError as error:
        raise error.at(source=source) from error
    version = 2 if network.value_for_black else 1
    network.pedigree = Pedigree(name, source, f"Leela Zero version {version}", sha256_of(path))
    return network


def write_leela_zero(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network that Leela Zero loads; gzipped where the name ends in .gz, whole or not at all.

    Numbers are written with nine significant digits, which read back as the same float32.

    Raises:
        UnsupportedNetwork: not one of these networks, or a value head's hidden layer of a width other than 256.
        BadWeights: a weight is not finite, or the file cannot be written.
    """
    source = os.fspath(path)
    if not isinstance(network, LeelaZeroNetwork):
        kind = type(network).__name__
        raise UnsupportedNetwork(f"the format holds Leela Zero networks, not a {kind}", source=source)
    sizes = _Sizes(**{each.name: network.config[each.name] for each in fields(_Sizes)})
    if sizes.value_hidden != 256:
        message = f"Leela Zero's value head has 256 hidden units, this network {sizes.value_hidden}"
        raise UnsupportedNetwork(message, source=source)
    text = [b"2" if network.value_for_black else b"1"]
    state = network.state_dict()
    for layer in _layers(sizes):
        for values in layer.lines(state):
            if not np.isfinite(values).all():
                message = "a weight is not finite; the network cannot be written"
                raise BadWeights(message, source=source, place=layer.key)
            text.append(" ".join([f"{value:.9g}" for value in values.ravel().tolist()]).encode("ascii"))
    atomic_write(path, b"\n".join(text) + b"\n")


FORMATS = (
    Format("Leela Zero networks version 1–2 (.txt.gz)", looks_like_leela_zero, read_leela_zero, write_leela_zero),
)


# --- The layers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sizes:
    blocks: int
    channels: int
    board_size: int
    value_hidden: int


@dataclass(frozen=True)
class _Convolution:
    """A convolution `key` of that shape and the batch norm after it: weights, biases, means, variances."""

    key: str
    norm: str
    shape: tuple[int, int, int, int]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many numbers stand on each line."""
        return math.prod(self.shape), *[self.shape[0]] * 3

    def tensors(self, weights: Tensor, *vectors: Tensor) -> dict[str, Tensor]:
        bias, mean, variance = (vector.double() for vector in vectors)
        if (variance < 0).any():
            raise BadWeights("a variance below 0")
        beta = (bias / torch.sqrt(variance + EPSILON)).float()
        if not beta.isfinite().all():
            raise BadWeights("a bias too large for its variance")
        return {
            f"{self.key}.weight": weights.reshape(self.shape).flip(2),
            f"{self.norm}.weight": torch.ones(self.shape[0]),
            f"{self.norm}.bias": beta,
            f"{self.norm}.running_mean": mean.float(),
            f"{self.norm}.running_var": variance.float(),
            f"{self.norm}.num_batches_tracked": torch.tensor(0),
        }

    def lines(self, state: Mapping[str, Tensor]) -> list[Floats]:
        """The file's arrays, with batch norm's scale in weights and means.

        Where the norm itself was folded into the convolution (`keima.compress.fold`), the mean is 0 and the variance
        1 − ε, which leave the convolution's own bias as it is.
        """
        weight = state[f"{self.key}.weight"]
        scale = torch.ones(self.shape[0])
        mean, variance = torch.zeros_like(scale), scale - EPSILON
        bias = state.get(f"{self.key}.bias", mean).double()
        if f"{self.norm}.weight" in state:
            scale = state[f"{self.norm}.weight"]
            mean, variance = state[f"{self.norm}.running_mean"] * scale, state[f"{self.norm}.running_var"]
            bias = state[f"{self.norm}.bias"].double() * torch.sqrt(variance.double() + EPSILON)
        weight = (weight * scale[:, None, None, None]).flip(2)
        return [tensor.float().numpy() for tensor in (weight, bias, mean, variance)]


@dataclass(frozen=True)
class _Linear:
    """A linear layer: weights and biases; `inputs` and, for `moves`, outputs are by point of a board of `side`."""

    key: str
    outputs: int
    inputs: int
    side: int = 0
    moves: bool = False

    @property
    def counts(self) -> tuple[int, ...]:
        return self.outputs * self.inputs, self.outputs

    def tensors(self, weights: Tensor, bias: Tensor) -> dict[str, Tensor]:
        return self._turned(weights.reshape(self.outputs, self.inputs), bias)

    def lines(self, state: Mapping[str, Tensor]) -> list[Floats]:
        turned = self._turned(state[f"{self.key}.weight"], state[f"{self.key}.bias"])
        return [tensor.numpy() for tensor in turned.values()]

    def _turned(self, weight: Tensor, bias: Tensor) -> dict[str, Tensor]:
        """With the board's rows the other way up, file to network and back."""
        if self.side:
            weight = weight.reshape(self.outputs, -1, self.side, self.side).flip(2).flatten(1)
        if self.moves:
            weight, bias = self._turned_moves(weight), self._turned_moves(bias)
        return {f"{self.key}.weight": weight, f"{self.key}.bias": bias}

    def _turned_moves(self, rows: Tensor) -> Tensor:
        """Points of the board's rows reversed in the first axis, the pass left at its end."""
        points = rows[:-1].reshape(self.side, self.side, -1).flip(0).reshape_as(rows[:-1])
        return torch.cat([points, rows[-1:]])


_Layer = _Convolution | _Linear


def _layers(sizes: _Sizes) -> list[_Layer]:
    channels, side = sizes.channels, sizes.board_size
    points = side * side
    tower = [
        _Convolution(f"tower.{block}.convolution{i}", f"tower.{block}.norm{i}", (channels, channels, 3, 3))
        for block in range(sizes.blocks)
        for i in (1, 2)
    ]
    return [
        _Convolution("stem.convolution", "stem.norm", (channels, len(LEELA_ZERO_PLANES), 3, 3)),
        *tower,
        _Convolution("policy_head.convolution", "policy_head.norm", (2, channels, 1, 1)),
        _Linear("policy_head.linear", points + 1, 2 * points, side, moves=True),
        _Convolution("value_head.convolution", "value_head.norm", (1, channels, 1, 1)),
        _Linear("value_head.linear1", sizes.value_hidden, points, side),
        _Linear("value_head.linear2", 1, sizes.value_hidden),
    ]


# --- Reading ----------------------------------------------------------------------------------------------------------


def _decode(lines: list[bytes]) -> LeelaZeroNetwork:
    version = lines[0].strip().decode("ascii", "replace")
    if version not in ("1", "2"):
        message = f"version {version[:20]!r} of Leela Zero's format; keima reads versions 1 and 2"
        raise UnsupportedNetwork(message, place="line 1")
    sizes = _sizes(lines)
    state = _tensors(_layers(sizes), lines)
    with torch.device("meta"):
        network = LeelaZeroNetwork(**asdict(sizes), value_for_black=version == "2")
    network.load_state_dict(state, assign=True)
    return network.requires_grad_(True).eval()


def _split(data: bytes) -> list[bytes]:
    """The file's lines, without empty ones at the end."""
    data = data.rstrip()
    if not data:
        raise BadWeights("the file is empty")
    count = data.count(b"\n") + 1
    most = 1 + STEM_LINES + HEAD_LINES + BLOCK_LINES * MAX_BLOCKS
    if count > most:
        raise BadWeights(f"{count:,} lines; a network of {MAX_BLOCKS} blocks has {most:,}")
    return data.split(b"\n")


def _sizes(lines: list[bytes]) -> _Sizes:
    """From the number of lines and how many numbers stand on three of them."""
    tower = len(lines) - (1 + STEM_LINES + HEAD_LINES)
    if tower < 0 or tower % BLOCK_LINES:
        expected = "a Leela Zero file has 19 and 8 for each residual block"
        raise BadWeights(f"{len(lines)} lines; {expected}: the file is cut short, or not a network")
    head = 1 + STEM_LINES + tower
    channels, moves, hidden = (len(lines[i].split()) for i in (2, head + 5, head + 11))
    if not 1 <= channels <= MAX_CHANNELS:
        raise BadWeights(f"{channels} numbers, expected one bias a channel", place="line 3")
    board_size = math.isqrt(max(moves - 1, 0))
    place = f"line {head + 6}"
    if board_size < 1 or board_size * board_size + 1 != moves:
        raise BadWeights(f"{moves} numbers, expected one a move of a square board", place=place)
    if board_size > MAX_BOARD_SIZE:
        message = f"a network for {board_size}×{board_size} boards; keima's go up to {MAX_BOARD_SIZE}"
        raise UnsupportedNetwork(message, place=place)
    if hidden < 1 or len(lines[head + 11]) > len(lines[head + 10]):
        raise BadWeights(f"{hidden} numbers, expected the value head's hidden biases", place=f"line {head + 12}")
    return _Sizes(tower // BLOCK_LINES, channels, board_size, hidden)


def _tensors(layers: list[_Layer], lines: list[bytes]) -> dict[str, Tensor]:
    """The network's tensors from the file's lines, of which none is looked at before all are long enough."""
    for number, count in enumerate((count for layer in layers for count in layer.counts), start=1):
        if len(lines[number]) < 2 * count - 1:
            found = f"{len(lines[number])} characters"
            raise BadWeights(f"{found} cannot hold the {count} numbers expected", place=f"line {number + 1}")
    state: dict[str, Tensor] = {}
    number = 1
    for layer in layers:
        arrays = []
        for count in layer.counts:
            arrays.append(torch.from_numpy(_numbers(lines[number], count, f"line {number + 1}")))
            number += 1
        try:
            state |= layer.tensors(*arrays)
        except BadWeights as error:
            raise error.at(place=f"line {number}") from error
    return state


def _numbers(line: bytes, count: int, place: str) -> Floats:
    words = line.split()
    if len(words) != count:
        raise BadWeights(f"{len(words)} numbers, expected {count}", place=place)
    try:
        values = np.array(list(map(float, words)))
    except ValueError as error:
        raise BadWeights(f"not all numbers: {error}", place=place) from error
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    if not np.isfinite(single).all():
        raise BadWeights("a number is not finite as float32", place=place)
    return single
