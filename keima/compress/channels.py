"""The part of a network's system that pruning asks (`keima.systems.layout`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from keima.errors import BadRequest, UnsupportedNetwork
from keima.systems.layout import SystemLayout
from keima.systems.network import Network
from keima.systems.system import SYSTEMS, system_of


def layout_of(network: Network) -> SystemLayout[Any]:
    """What its system says of the network's layers.

    Raises:
        UnsupportedNetwork: a network that is not pruned, or one without blocks.
        BadRequest: its batch norms have been folded away, which leaves other layers than its configuration says.
    """
    layout = system_of(network).layout
    blocks = layout and layout.blocks(network)
    name = network.pedigree.name
    if layout is None or blocks is None:
        known = dict.fromkeys(system.layout.prunes for system in SYSTEMS.values() if system.layout is not None)
        kind = type(network).__name__
        raise UnsupportedNetwork(f"cannot prune {name} ({kind}); keima prunes {', '.join(known)}")
    if not blocks:
        raise UnsupportedNetwork(f"cannot prune {name}: it has no blocks")
    if network.folded and not layout.refolds:
        raise BadRequest(f"{name} has been folded; prune first, fold afterwards")
    return layout


def blocks_of(network: Network) -> Sequence[nn.Module]:
    """The blocks of the trunk, in order.

    Raises:
        UnsupportedNetwork, BadRequest: as `layout_of`.
    """
    return layout_of(network).blocks(network) or ()
