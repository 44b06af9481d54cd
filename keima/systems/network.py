"""The base of every network of the family: what it is called, what it takes, how its raw outputs become answers.

A network is an ordinary `nn.Module`. `forward` takes the encoded inputs and returns a frozen dataclass of raw tensors;
`decode` turns those tensors, as NumPy arrays from any backend, into the system's own probabilities and points. So
PyTorch and OpenVINO share every line after the last matrix product.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from keima.errors import BadWeights, UnsupportedNetwork
from keima.games.position import Position
from keima.plain import Data, Fields
from keima.systems.encoding import Encoding

if TYPE_CHECKING:
    from keima.games.archive import FlatGames

Array = NDArray[Any]


@dataclass(frozen=True)
class Pedigree:
    """Where a network comes from."""

    name: str  # its maker's ("g170-b6c96-s175395328-d26788732"), or the registry's
    origin: str = "created"  # the file it was read from, or "created" for fresh weights
    format: str = ""  # the file format and its version ("KataGo model version 8")
    sha256: str = ""  # of the file as read, hex; empty for fresh weights
    licence: str = "unknown"  # as far as the file says; "unknown" otherwise
    # whatever else the file says of itself (training steps, engine versions)
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OnnxGraph:
    """The graph of the ONNX file that a network was read from."""

    model: bytes = field(repr=False)  # the file
    precision: str  # it computes in: "f32", "f16" or "int8"


@dataclass(frozen=True)
class Heads:
    """Decoded answers for N positions, float32, in the planes' orientation, for the side to move; None: no head."""

    policy: Array  # [N, A], logits (before legality; Go: A = H·W + 1, pass last)
    wdl: Array | None = None  # [N, 3], win, draw (Go: no result), loss
    value: Array | None = None  # [N] in [−1, 1], win − loss
    lead: Array | None = None  # [N], points ahead
    ownership: Array | None = None  # [N, H, W] in [−1, 1], +1 = the side to move owns the point
    moves_left: Array | None = None  # [N], plies to the end of the game
    # further outputs by name, first axis N (KataGo: score_mean, score_stdev, ...)
    extra: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Quantization:
    """What a network's convolutions compute with in int8, beside its float weights (`keima.systems.layers`)."""

    # convolution's name → its tensors: `weight` int8 [O, I, k, k] in steps of `scale` float32 [O], inputs in steps of
    # `input_scale` float32 [I] from level `input_zero` uint8 [1], which stands for 0; `bias` float32 [O]
    layers: Mapping[str, Mapping[str, Tensor]] = field(repr=False)
    weights: str  # `digest` of the float weights they were fitted to


class Network(nn.Module):
    """Base class of the family's networks."""

    system: str  # a key of `keima.systems.system.SYSTEMS`, whose loss and search are this network's
    encoding: Encoding  # makes this network's inputs
    pedigree: Pedigree  # where the weights come from
    config: Any  # what it was made of, see `NetworkKind`
    input_names: tuple[str, ...] = ("planes",)  # names of `forward`'s tensor arguments, in order, as in `Batch.inputs`
    output_names: tuple[str, ...]  # names of the fields of `forward`'s result that hold tensors, in order
    has_pass: bool = True  # the policy has a logit for the pass (Go); AlphaGo's need not have one
    for_playouts: bool = False  # the policy only plays positions out: it neither plays alone nor teaches
    # norm that was folded away → convolution that took it over (`keima.compress.fold`)
    folded: Mapping[str, str] = MappingProxyType({})
    onnx: OnnxGraph | None = None  # of a network read from an ONNX file
    quantization: Quantization | None = None  # for the precision "int8"

    def choices(self, position: Position, policy: Mapping[str, float]) -> list[str]:
        """The moves that the policy alone, without a search, chooses among: those it has a probability for."""
        return list(policy)

    def with_value(self, value: Network) -> Network:
        """One network of this one's policy and another's value; raises UnsupportedNetwork where they do not pair."""
        raise UnsupportedNetwork(f"a network of {self.system} takes no value network beside it")

    def prepare(self, games: FlatGames) -> None:
        """Before training on these games: what a fresh network has to know of them."""

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """Turn raw outputs (float32 [N, ...] by `output_names`) and the `Batch.context` into answers."""
        raise TypeError(f"{type(self).__name__} does not define decode()")

    def answers(self, output: Any, context: Mapping[str, Array]) -> Heads:
        """`decode` what `forward` returned, on any device and in any precision."""
        arrays = {name: getattr(output, name).float().cpu().numpy() for name in self.output_names}
        return self.decode(arrays, context)


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """The network in evaluation mode for the duration, every module's own mode afterwards."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


# --- Networks by name -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NetworkKind:
    """A class of networks, registered beside it in its folder."""

    name: str  # how keima's own files name it
    # the class. Its `config` holds what it was made of: keyword arguments of the class, or a `config`
    network: type[Network]
    trunk: tuple[str, ...] = ()  # prefixes of its trunk's modules, the path that `receptive_field` follows
    reach: str = ""  # what in the network sees the whole board at once; empty for nothing
    beside: tuple[str, ...] = ()  # parts of module names that stand beside that path and not on it
    # the dataclass that is the class's one argument (with `to_json` and `from_json` where a plain one would not do);
    # None where it takes its sizes as they are
    config: type[Any] | None = None
    configure: Callable[..., Any] | None = None  # sizes by keyword → configuration, where that is not `config(**sizes)`

    @property
    def sizes(self) -> list[str]:
        """Names of the sizes one may choose."""
        if self.config is not None:
            return [each.name for each in fields(self.config)]
        return list(inspect.signature(self.network).parameters)

    def build(self, sizes: Fields) -> Network:
        """A fresh network of these sizes."""
        make: Callable[..., Network] = self.network
        return make(**sizes) if self.config is None else make((self.configure or self.config)(**sizes))

    def to_json(self, network: Network) -> Data:
        """The configuration of one of these networks, as plain JSON data."""
        if isinstance(network.config, Mapping):
            return dict(network.config)
        return network.config.to_json() if hasattr(network.config, "to_json") else asdict(network.config)

    def from_json(self, data: Fields) -> Network:
        """A fresh network from what `to_json` said; raises BadWeights for a value of another type than it has."""
        make: Callable[..., Network] = self.network
        if self.config is None:
            hints = get_type_hints(self.network.__init__)
            wrong = [_mistyped(value, hints[name], name) for name, value in data.items() if name in hints]
        else:
            config = self.config.from_json(data) if hasattr(self.config, "from_json") else self.config(**data)
            wrong = [_mistyped(config, self.config)]
        if any(wrong):
            raise BadWeights(next(filter(None, wrong)))
        return make(**data) if self.config is None else make(config)


@dataclass(frozen=True)
class NetworkEntry:
    """A name `keima.create` takes."""

    name: str
    kind: str  # name of its `NetworkKind`
    paper: str  # where it is described
    sizes: Fields  # what the name stands for, as arguments of `create`
    small: Fields  # sizes that make it small and quick, for tests and first steps
    note: str


@dataclass(frozen=True)
class NetworkTable:
    """What a file of networks registers as NETWORKS: its classes, and the names `create` takes."""

    kinds: tuple[NetworkKind, ...]
    entries: tuple[NetworkEntry, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)  # short names → the entry each stands for
    # names its makers use → the entry each stands for ("b18c384nbt")
    own: Mapping[str, str] = field(default_factory=dict)


_MAX_FLOAT = 3e38  # beyond it, float32 has no numbers


def _mistyped(value: object, hint: Any, place: str = "") -> str:
    """Where a value departs from a type hint ("blocks.0.channels"), with what stands there; empty if nowhere.

    Whole numbers must be below 2^31 in size, others finite and above 0, as epsilons and scales are.
    """
    found = f"{place or 'the whole'} is {repr(value)[:40]}"
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return ""
    if origin in (Union, UnionType):
        each = [_mistyped(value, one, place) for one in inner]
        return "" if not all(each) else max(each, key=lambda where: where.partition(" is ")[0].count("."))
    if hint in (int, float):
        if isinstance(value, bool) or not isinstance(value, (int, hint)):
            return found
        return "" if (abs(value) < 2**31 if hint is int else 0 < value < _MAX_FLOAT) else found
    if hint in (str, bool, NoneType):
        return "" if isinstance(value, hint) else found
    if is_dataclass(hint) and isinstance(value, hint if isinstance(hint, type) else type(hint)):
        hints = get_type_hints(hint)
        parts = [(getattr(value, each.name), hints[each.name], each.name) for each in fields(hint)]
    elif origin is tuple and isinstance(value, tuple) and (inner[-1] is ... or len(inner) == len(value)):
        each_hint = inner[:1] * len(value) if inner[-1] is ... else inner
        parts = [(item, one, str(number)) for number, (item, one) in enumerate(zip(value, each_hint, strict=True))]
    elif origin is Sequence and isinstance(value, Sequence) and not isinstance(value, str):
        parts = [(item, inner[0], str(number)) for number, item in enumerate(value)]
    elif origin is Mapping and isinstance(value, Mapping):
        parts = [(item, inner[1], str(key)) for key, item in value.items()]
    else:
        return found
    deeper = (_mistyped(item, one, f"{place}.{name}".lstrip(".")) for item, one, name in parts)
    return next((where for where in deeper if where), "")


def softmax(logits: Array, axis: int = -1) -> Array:
    """Softmax of finite logits along `axis`, stable for any magnitude."""
    shifted = np.exp(logits - logits.max(axis=axis, keepdims=True))
    result: Array = shifted / shifted.sum(axis=axis, keepdims=True)
    return result
