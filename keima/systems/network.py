"""The base of every network of the family: what it is called, what it takes, how its raw outputs become answers.

A network is an ordinary `nn.Module`. `forward` takes the encoded inputs and returns a frozen dataclass of raw tensors;
`decode` turns those tensors, as NumPy arrays from any backend, into the system's own probabilities and points. So
PyTorch and OpenVINO share every line after the last matrix product.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray
from torch import nn

from keima.errors import BadWeights
from keima.games.position import Position
from keima.plain import Data, Fields
from keima.systems.encoding import Encoding
from keima.systems.files.typed import mistyped

if TYPE_CHECKING:
    from keima.games.archive import FlatGames

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
        system: a key of `keima.systems.system.SYSTEMS`, whose loss and search are this network's.

    Instance attributes:
        encoding: makes this network's inputs.
        pedigree: where the weights come from.
        config: what it was made of, see `NetworkKind`.
        input_names: names of `forward`'s tensor arguments, in order, as in `Batch.inputs`.
        output_names: names of the fields of `forward`'s result that hold tensors, in order.
        has_pass: the policy has a logit for the pass (Go); AlphaGo's need not have one.
        for_playouts: the policy only plays positions out: it neither plays alone nor teaches.
        folded: norm that was folded away → convolution that took it over (`keima.compress.fold`).
    """

    system: str
    encoding: Encoding
    pedigree: Pedigree
    config: Any
    input_names: tuple[str, ...] = ("planes",)
    output_names: tuple[str, ...]
    has_pass: bool = True
    for_playouts: bool = False
    folded: Mapping[str, str] = MappingProxyType({})

    def choices(self, position: Position, policy: Mapping[str, float]) -> list[str]:
        """The moves that the policy alone, without a search, chooses among: those it has a probability for."""
        return list(policy)

    def prepare(self, games: FlatGames) -> None:
        """Before training on these games: what a fresh network has to know of them."""

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


# --- Networks by name -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NetworkKind:
    """A class of networks, registered beside it in its folder.

    Attributes:
        name: how keima's own files name it.
        network: the class. Its `config` holds what it was made of: keyword arguments of the class, or a `config`.
        trunk: prefixes of its trunk's modules, the path that `receptive_field` follows.
        beside: parts of module names that stand beside that path and not on it.
        reach: what in the network sees the whole board at once; empty for nothing.
        config: the dataclass that is the class's one argument (with `to_json` and `from_json` where a plain one
            would not do); None where it takes its sizes as they are.
        configure: sizes by keyword → configuration, where that is not `config(**sizes)`.
    """

    name: str
    network: type[Network]
    trunk: tuple[str, ...] = ()
    reach: str = ""
    beside: tuple[str, ...] = ()
    config: type[Any] | None = None
    configure: Callable[..., Any] | None = None

    @property
    def sizes(self) -> list[str]:
        """Names of the sizes one may choose."""
        if self.config is not None:
            return [each.name for each in fields(self.config)]
        return list(inspect.signature(self.network).parameters)

    def build(self, sizes: Fields) -> Network:
        """A fresh network of these sizes."""
        make: Callable[..., Network] = self.network
        if self.config is None:
            return make(**sizes)
        return make((self.configure or self.config)(**sizes))

    def to_json(self, network: Network) -> Data:
        """The configuration of one of these networks, as plain JSON data."""
        if isinstance(network.config, Mapping):
            return dict(network.config)
        return network.config.to_json() if hasattr(network.config, "to_json") else asdict(network.config)

    def from_json(self, data: Fields) -> Network:
        """A fresh network from what `to_json` said.

        Raises:
            BadWeights: a value of another type than the configuration's.
        """
        make: Callable[..., Network] = self.network
        if self.config is None:
            hints = get_type_hints(self.network.__init__)
            wrong = [mistyped(value, hints[name], name) for name, value in data.items() if name in hints]
        else:
            config = self.config.from_json(data) if hasattr(self.config, "from_json") else self.config(**data)
            wrong = [mistyped(config, self.config)]
        if any(wrong):
            raise BadWeights(next(filter(None, wrong)))
        return make(**data) if self.config is None else make(config)


@dataclass(frozen=True)
class NetworkEntry:
    """A name `keima.create` takes.

    Attributes:
        name: the name.
        kind: name of its `NetworkKind`.
        paper: where it is described.
        sizes: what the name stands for, as arguments of `create`.
        small: sizes that make it small and quick, for tests and first steps.
        note: one line on what it is.
    """

    name: str
    kind: str
    paper: str
    sizes: Fields
    small: Fields
    note: str


@dataclass(frozen=True)
class NetworkTable:
    """What a file of networks registers: NETWORKS.

    Attributes:
        kinds: its classes.
        entries: the names `create` takes.
        aliases: short names → the entry each stands for.
        own: names its makers use → the entry each stands for ("b18c384nbt").
    """

    kinds: tuple[NetworkKind, ...]
    entries: tuple[NetworkEntry, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)


def softmax(logits: Array, axis: int = -1) -> Array:
    """Softmax of finite logits in float32 along `axis`, stable for any magnitude."""
    shifted = np.exp(logits - logits.max(axis=axis, keepdims=True))
    result: Array = shifted / shifted.sum(axis=axis, keepdims=True)
    return result
