"""What keeps the guide's network out of KataGo's files, layer by layer.

The residual blocks fit: KataGo's are the same once the convolutions' biases are in the norms. Nothing else does, so no
network of the guide's can be written, and the refusal says where.
"""

from __future__ import annotations

from collections.abc import Iterator

from keima.errors import UnsupportedNetwork
from keima.systems.forms import Forms
from keima.systems.katago_guide.inputs import AREA, COLOUR, HISTORY, KOMI, LIBERTIES, PLANES, TERRITORY
from keima.systems.katago_guide.network import GlobalPoolingBlock, KataGoGuideNetwork
from keima.systems.network import Network

_ABSENT = (*range(HISTORY + 1, HISTORY + 8), *range(LIBERTIES + 3, LIBERTIES + 6), AREA, TERRITORY, KOMI, COLOUR)
"""Planes of which KataGo's planes tell nothing: its 19 globals tell the rules, at every point alike."""


def _misfits(network: KataGoGuideNetwork) -> Iterator[tuple[str, str]]:
    """Layers that KataGo's network has none for, and why."""
    read = [PLANES[plane] for plane in _ABSENT if network.stem.weight[:, plane].any()]
    if read:
        yield "stem", f"reads planes that KataGo's inputs do not hold ({', '.join(read)})"
    for number, block in enumerate(network.tower):
        if isinstance(block, GlobalPoolingBlock):
            yield f"tower.{number}", "replaces the trunk by a convolution and pooled means, where KataGo adds to it"
    for head, layer in (("policy_head", "linear"), ("value_head", "linear1"), ("score_head", "linear1")):
        yield f"{head}.{layer}", "is fully connected over the points of one board, where KataGo convolves and pools"


def as_katago(network: Network) -> Network:
    """Raises UnsupportedNetwork, which names every layer that does not fit."""
    assert isinstance(network, KataGoGuideNetwork)
    (first, why), *others = _misfits(network)
    rest = "".join(f"; {layer} {reason}" for layer, reason in others)
    raise UnsupportedNetwork(f"{why}{rest}; only the residual blocks fit", place=first)


FORMS: Forms = {"katago": as_katago}
