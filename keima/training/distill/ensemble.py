"""Several networks as one teacher.

Source: Hinton, Vinyals, Dean, arXiv:1503.02531: the knowledge of an ensemble in one network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from torch import Tensor, nn

from keima.errors import BadRequest
from keima.systems.network import Array, Heads, Network, Pedigree

_MEANS = ("policy", "wdl", "value", "lead", "ownership", "moves_left")


class Ensemble(Network):
    """Networks that see the same planes, answering together: for every head the mean of those that have it.

    Of the policy the mean of the logits, of win, draw and loss that of the probabilities.

    Raises:
        BadRequest: networks that see positions in different planes.
    """

    def __init__(self, networks: Sequence[Network]) -> None:
        super().__init__()
        first = networks[0]
        for other in networks[1:]:
            same = type(other.encoding) is type(first.encoding) and vars(other.encoding) == vars(first.encoding)
            if not same or other.input_names != first.input_names:
                names = " and ".join(each.pedigree.name for each in (first, other))
                raise BadRequest(f"{names} see positions in different planes: they cannot answer together")
        self.system, self.encoding, self.input_names = first.system, first.encoding, first.input_names
        self.config = [each.config for each in networks]
        self.output_names = tuple(
            _numbered(name, index) for index, each in enumerate(networks) for name in each.output_names
        )
        self.pedigree = Pedigree(name=" + ".join(each.pedigree.name for each in networks))
        self.has_pass = any(each.has_pass for each in networks)
        self.networks = nn.ModuleList(networks)

    @property
    def _each(self) -> list[Network]:
        return cast("list[Network]", list(self.networks))

    def forward(self, *inputs: Tensor, **named: Tensor) -> SimpleNamespace:
        """The outputs of each, as `output_names` names them."""
        found: dict[str, Tensor] = {}
        for index, each in enumerate(self._each):
            output = each(*inputs, **named)
            found |= {_numbered(name, index): getattr(output, name) for name in each.output_names}
        return SimpleNamespace(**found)

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        """The mean of their answers."""
        heads = [
            each.decode({name: outputs[_numbered(name, index)] for name in each.output_names}, context)
            for index, each in enumerate(self._each)
        ]
        found = {name: [array for each in heads if (array := getattr(each, name)) is not None] for name in _MEANS}
        means = {name: sum(arrays[1:], arrays[0]) / len(arrays) for name, arrays in found.items() if arrays}
        return replace(heads[0], **means, extra={})


def _numbered(name: str, index: int) -> str:
    return f"{name}_{index}" if index else name
