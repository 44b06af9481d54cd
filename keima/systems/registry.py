"""Every network of the family by name: make one, list them, describe one.

>>> create("alphago-zero", blocks=2, channels=8, board_size=9).pedigree.name
'alphago-zero'
>>> [entry.name for entry in list_networks() if entry.kind == "alphago-zero-separate"]
['alphago-zero-sep-res', 'alphago-zero-sep-conv']
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from keima.errors import BadRequest, BadWeights, UnsupportedNetwork
from keima.plain import Data, Fields
from keima.systems.network import Network, NetworkEntry, NetworkKind, NetworkTable
from keima.systems.system import SYSTEMS


def _tables(likely: str = "") -> Iterator[NetworkTable]:
    """All tables; first those of the systems whose name `likely` begins with, so that the rest need not be imported."""
    for name in sorted(SYSTEMS, key=lambda name: not likely.startswith(name)):
        yield from SYSTEMS[name].networks


def list_kinds() -> list[NetworkKind]:
    """All classes of networks, in the family's order."""
    return [kind for table in _tables() for kind in table.kinds]


def kind_of(network: Network) -> NetworkKind:
    """The kind of a network; raises UnsupportedNetwork if its class is not registered."""
    for table in _tables(getattr(network, "system", "")):
        for kind in table.kinds:
            if type(network) is kind.network:
                return kind
    known = ", ".join(kind.name for kind in list_kinds())
    raise UnsupportedNetwork(f"{type(network).__name__} is not registered; the registry has {known}")


def config_to_json(network: Network) -> Data:
    """A network's configuration as plain JSON data, read back by `from_config`."""
    return kind_of(network).to_json(network)


def from_config(name: str, data: Fields) -> Network:
    """A fresh network of a kind from `config_to_json`'s data; raises UnsupportedNetwork or BadWeights."""
    kind = next((kind for table in _tables(name) for kind in table.kinds if kind.name == name), None)
    if kind is None:
        known = ", ".join(kind.name for kind in list_kinds())
        raise UnsupportedNetwork(f"a network of the unknown kind {name!r}; keima has {known}")
    try:
        return kind.from_json(data)
    except (BadRequest, TypeError, ValueError, RuntimeError, AttributeError, OverflowError) as error:
        raise BadWeights(f"not a configuration of a {name} network: {error}") from error


def list_networks() -> list[NetworkEntry]:
    """All networks that `create` makes, in the family's order."""
    return [entry for table in _tables() for entry in table.entries]


def list_aliases() -> dict[str, str]:
    """Short names → the entry each stands for."""
    return {alias: name for table in _tables() for alias, name in table.aliases.items()}


def find(name: str) -> NetworkEntry:
    """The entry of that name or alias; raises BadRequest, which lists those there are, if there is none."""
    return _find(name)[0]


def _find(name: str) -> tuple[NetworkEntry, NetworkKind]:
    for table in _tables(name):
        wanted = table.aliases.get(name) or table.own.get(name) or name
        for entry in table.entries:
            if entry.name == wanted:
                return entry, next(kind for kind in table.kinds if kind.name == entry.kind)
    known = ", ".join(entry.name for entry in list_networks())
    raise BadRequest(f"unknown network {name!r}; choose one of {known}")


def create(name: str, **sizes: Any) -> Network:
    """A fresh network by name, its weights random, in training mode.

    Args:
        name: one of `list_networks()`, or an alias ("katago", "lc0", "b18c384nbt", ...).
        sizes: sizes other than the entry's own: `blocks`, `channels`, `board_size`, ... (its class's arguments, or the
            fields of its configuration). For KataGo networks `blocks=n` keeps the first n blocks.

    Raises:
        BadRequest: an unknown name, an unknown size, or sizes that cannot be.
    """
    entry, kind = _find(name)
    unknown = [size for size in sizes if size not in kind.sizes]
    if unknown:
        raise BadRequest(f"{entry.name} has no size {', '.join(unknown)}; it has {', '.join(kind.sizes)}")
    network = kind.build({**entry.sizes, **sizes})
    network.pedigree = replace(network.pedigree, name=entry.name)
    return network


@dataclass(frozen=True)
class Description:
    """What a network is made of."""

    inputs: dict[str, tuple[int, ...]]  # shape of each for one position, by name
    outputs: dict[str, tuple[int, ...]]  # likewise
    parameters: int  # trained numbers, without batch norm's running statistics
    # operations of one evaluation, a multiplication and an addition counting as two; convolutions, linear layers and
    # attention's products are counted, everything point by point (norms, activations, sums) is not
    flops: int
    # side, in points, of the square of input that one point of the trunk's output depends on through its convolutions
    receptive_field: int
    reach: str  # what else sees the whole board at once; empty for nothing


def describe(network: Network | str) -> Description:
    """Count a network, or one of the registry by name, which is made without its weights, so that any size is quick.

    Raises BadRequest for an unknown name, UnsupportedNetwork for a network of a class that is not registered.
    """
    if isinstance(network, str):
        with torch.device("meta"):
            model = create(network).to("meta").eval()
    else:
        model = copy.deepcopy(network).to("meta").eval()
    inputs = example_inputs(model, device="meta")
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        output = model(**inputs)
    return Description(
        inputs={name: tuple(tensor.shape[1:]) for name, tensor in inputs.items()},
        outputs={name: tuple(getattr(output, name).shape[1:]) for name in model.output_names},
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        flops=int(counter.get_total_flops()),
        receptive_field=receptive_field(model),
        reach=_reach(model),
    )


def _reach(network: Network) -> str:
    """What sees the whole board at once; some KataGo networks have attention as well."""
    reach = kind_of(network).reach
    attends = any("Attention" in type(module).__name__ for module in network.modules())
    return f"attention, {reach}" if attends and "attention" not in reach else reach


def receptive_field(network: Network) -> int:
    """1 + the sum of (kernel − 1) over the convolutions on the trunk's path: the side of what one point sees."""
    kind = kind_of(network)
    side = 1
    for name, module in network.named_modules():
        on_path = name.split(".")[0] in kind.trunk and not any(part in f".{name}." for part in kind.beside)
        if on_path and isinstance(module, nn.Conv2d):
            side += int(module.kernel_size[0]) - 1
    return side


def example_inputs(network: Network, n: int = 1, device: str = "cpu") -> dict[str, Tensor]:
    """Zero inputs for `network.forward`, by name and in its order, of its own board or its game's full one."""
    room = network.encoding.room(n, network.encoding.board).inputs
    return {name: torch.zeros(room[name].shape, device=device) for name in network.input_names}
