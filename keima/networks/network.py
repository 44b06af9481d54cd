"""The base of every network of the family: what it is called, what it takes, how its raw outputs become answers.

A network is an ordinary `nn.Module`. `forward` takes the encoded inputs and returns a frozen dataclass of raw tensors;
`decode` turns those tensors, as NumPy arrays from any backend, into the system's own probabilities and points. So
PyTorch and OpenVINO share every line after the last matrix product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from keima.encodings.encoding import Encoding

Array = NDArray[Any]


@dataclass(frozen=True)
class Pedigree:
    """Where a network comes from.

    Attributes:
        name: the name its maker gave it ("g170-b6c96-s175395328-d26788732"), or the registry's name.
        origin: the file it was read from, or "created" for fresh weights.
        format: the file format and its version ("KataGo model version 8").
        sha256: of the file as read, hex; empty for fresh weights.
        licence: as far as the file says; "unknown" otherwise.
        details: whatever else the file says of itself (training steps, engine versions).
    """

    name: str
    origin: str = "created"
    format: str = ""
    sha256: str = ""
    licence: str = "unknown"
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Heads:
    """Decoded answers for a batch of N positions, in the orientation of the planes, for the side to move.

    Attributes:
        policy: float32 [N, A], logits (before legality; Go: A = H·W + 1, pass last).
        wdl: float32 [N, 3], win, draw (Go: no result), loss; None for a network without a value head.
        value: float32 [N] in [−1, 1], win − loss; None for a network without a value head.
        lead: float32 [N], points ahead; None where the network has no such head.
        ownership: float32 [N, H, W] in [−1, 1], +1 = the side to move owns the point; None where absent.
        moves_left: float32 [N], plies to the end of the game; None where absent.
        extra: further per-position outputs by name, first axis N (KataGo: score_mean, score_stdev, ...).
    """

    policy: Array
    wdl: Array | None = None
    value: Array | None = None
    lead: Array | None = None
    ownership: Array | None = None
    moves_left: Array | None = None
    extra: Mapping[str, Array] = field(default_factory=dict)


class Network(nn.Module):
    """Base class of the family's networks.

    Class attributes:
        system: "alphago", "alphago-rollout", "alphago-zero", "leela-zero", "katago", "katago-guide" or "lc0".

    Instance attributes:
        encoding: makes this network's inputs.
        pedigree: where the weights come from.
        input_names: names of `forward`'s tensor arguments, in order, as in `Batch.inputs`.
        output_names: names of the fields of `forward`'s result that hold tensors, in order.
        has_pass: the policy has a logit for the pass (Go); AlphaGo's need not have one.
    """

    system: ClassVar[str]
    encoding: Encoding
    pedigree: Pedigree
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    has_pass: bool = True

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Turn raw outputs (NumPy, by `output_names`) into answers for the side to move.

        Args:
            outputs: float32 arrays, first axis N.
            context: `Batch.context` of the same batch.
        """
        raise TypeError(f"{type(self).__name__} does not define decode()")

    def answers(self, output: Any, context: Mapping[str, Array]) -> Heads:
        """`decode` what `forward` returned, on any device and in any precision."""
        arrays = {name: getattr(output, name).float().cpu().numpy() for name in self.output_names}
        return self.decode(arrays, context)


def softmax(logits: Array, axis: int = -1) -> Array:
    """Softmax of finite logits in float32 along `axis`, stable for any magnitude."""
    shifted = np.exp(logits - logits.max(axis=axis, keepdims=True))
    result: Array = shifted / shifted.sum(axis=axis, keepdims=True)
    return result
