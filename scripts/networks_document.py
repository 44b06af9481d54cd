"""Writes docs/networks.md from the registry: every network's inputs, sizes and costs, beside the published figures.

    python -m scripts.networks_document docs/networks.md      writes the file
    python -m scripts.networks_document                       prints it

`tests/test_networks_document.py` keeps the file true.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from keima.systems.registry import Description, NetworkEntry, describe, list_aliases, list_networks

HEAD = """\
# Networks

Every network that `keima.create(name)` makes, counted from the modules themselves. This file is written by
`python -m scripts.networks_document docs/networks.md`; a test compares the two.

- *Parameters*: trained numbers. Batch norm's running means and variances are not among them.
- *FLOPs*: operations of one evaluation, a multiplication and an addition counting as two, on the board of the input's
  shape (19×19 for Go, 8×8 for chess). Counted by PyTorch's `FlopCounterMode` as the network runs: convolutions,
  linear layers and attention's products. Norms, activations and sums, a few per cent at most, are left out.
- *Sees*: the side of the square of points that one point of the trunk's output depends on through its convolutions,
  1 + Σ (kernel − 1), and what else in the network takes in the whole board at once.

Sizes in the table are arguments of `create` and can be changed: `keima.create("alphago-zero", blocks=20)`.
"""

COLUMNS = ("name", "parameters", "FLOPs", "sees", "inputs", "sizes")

FAMILIES = {
    "AlphaGo, AlphaGo Zero, Leela Zero": ("alphago", "leela-zero"),
    "The KataGo architecture guide": ("katago-guide",),
    "KataGo": ("katago-b",),
    "Leela Chess Zero and Maia": ("lc0", "maia"),
    "Comparison trunks": ("comparison",),
}
"""Title → how the names of its networks begin."""


@dataclass(frozen=True)
class Published:
    """A parameter count found in the literature.

    Attributes:
        name: the registry's name of the network it speaks of.
        claimed: its figure, millions.
        source: who says so.
        within: how far our count may be, as a share of the figure, for the figure to hold.
        remark: what the difference comes from, or how the figure agrees.
    """

    name: str
    claimed: float
    source: str
    within: float
    remark: str


_ZERO = "a document on AlphaGo Zero's dual-head network"
_POLICY = "a document on AlphaGo's policy network"
_GUIDE = "the KataGo architecture guide"

PUBLISHED = (
    Published(
        "alphago-policy",
        3.9,
        _POLICY,
        0.03,
        "Its total is right; its middle line is not: 11 × (3·3·192·192 + 192) is 3,651,648, not 3,633,792. It gives "
        "the 1×1 layer 362 outputs, which a convolution over 361 points cannot have, and leaves out the 361 biases of "
        "the points.",
    ),
    Published(
        "alphago-zero-40",
        48,
        _ZERO,
        0.04,
        "Counts 40 residual blocks where the paper has a convolution and 39 (40 blocks give 47.6 million, as "
        "`leela-zero` shows). Its heads are too large: policy about 1 million (0.26 by its own layers), value about "
        "0.2 (0.09).",
    ),
    Published(
        "katago-guide-b10c128",
        5,
        _GUIDE,
        0.1,
        "20 convolutions of 128·128·9 are 2.9 million; the pooling block and the heads' linear layers bring 0.6 more.",
    ),
    Published(
        "katago-guide-b18c384",
        75,
        _GUIDE,
        0.1,
        "36 convolutions of 384·384·9 are 47.8 million, the three pooling blocks 4.4. KataGo's own `b18c384nbt` "
        "(nested bottlenecks) has about half of that; 75 million is near `b28c512nbt`.",
    ),
    Published(
        "katago-guide-b40c256",
        95,
        _GUIDE,
        0.1,
        "80 convolutions of 256·256·9 are 47.2 million: the figure counts each block about twice. KataGo's own "
        "`b40c256` comes to the same 47.",
    ),
    Published(
        "katago-guide-b60c320",
        200,
        _GUIDE,
        0.1,
        "120 convolutions of 320·320·9 are 110.6 million, the ten pooling blocks 10.2.",
    ),
)

OTHER_REMARKS = """\
## Other places where the documents and the papers part

- "40 blocks" and "20 blocks" count the first convolution: the paper's towers have 39 and 19 residual blocks, and so
  have `alphago-zero-40` and `alphago-zero`. Any other number is `blocks=n`.
- The document on the dual-head network sets 300 Elo for it over two separate networks beside a win rate of 65 %. 300
  Elo is a win rate of 85 %; 65 % is 108 Elo. The paper's own figure for the dual head is about 600 Elo (Fig. 4), as for
  residual blocks.
- AlphaGo's policy is called a network of 13 layers (12 hidden and the 1×1 output, as built here) and of 12 (its hidden
  ones).
- The guide's network (`katago-guide-b…`) is not KataGo's (`katago-b…`). KataGo's files have 22 planes of other meanings
  and 19 globals, pool means and maxima inside some residual blocks, and heads without a fixed board size.
- Lc0's topology page gives SE layers and 112 planes as built here; where it and the engine differ,
  `keima/systems/lc0/network.py` says so.
"""


def millions(count: float) -> str:
    """3,882,793 → "3.88 M"."""
    return f"{count / 1e6:,.2f} M"


def giga(flops: int) -> str:
    """2,800,123,456 → "2.80 G"."""
    return f"{flops / 1e9:,.2f} G"


def shape(sizes: Iterable[int]) -> str:
    """(22, 19, 19) → "22×19×19"."""
    return "×".join(str(size) for size in sizes)


def sees(description: Description) -> str:
    """The receptive field and what reaches further."""
    side = f"{description.receptive_field}×{description.receptive_field}"
    return f"{side}; {description.reach}" if description.reach else side


def _sizes(entry: NetworkEntry) -> str:
    parts = []
    for name, size in entry.sizes.items():
        if isinstance(size, list):
            parts.append(f"{len(size)} {name} of {', '.join(f'{k}={v}' for k, v in size[0].items() if k != 'smolgen')}")
        else:
            parts.append(f"{name}={size}")
    return ", ".join(parts)


def _row(entry: NetworkEntry, description: Description) -> str:
    inputs = ", ".join(f"{name} {shape(sizes)}" for name, sizes in description.inputs.items())
    cells = (
        f"`{entry.name}`",
        millions(description.parameters),
        giga(description.flops),
        sees(description),
        inputs,
        _sizes(entry),
    )
    return f"| {' | '.join(cells)} |"


def _family(title: str, prefixes: tuple[str, ...], descriptions: dict[str, Description]) -> str:
    entries = [entry for entry in list_networks() if entry.name.startswith(prefixes)]
    lines = [f"## {title}", "", f"| {' | '.join(COLUMNS)} |", f"| {' | '.join(['---'] * len(COLUMNS))} |"]
    lines += [_row(entry, descriptions[entry.name]) for entry in entries]
    lines.append("")
    for (note, paper), alike in groupby(entries, key=lambda entry: (entry.note, entry.paper)):
        names = ", ".join(f"`{entry.name}`" for entry in alike)
        lines.append(f"- {names}: {note}. Source: {paper}.")
    return "\n".join(lines)


def verdict(published: Published, counted: int) -> str:
    """ "holds", or by how much the figure is off."""
    ratio = published.claimed * 1e6 / counted
    if abs(ratio - 1) <= published.within:
        return "holds"
    return f"does not hold: {ratio:.2f} times the count"


def _literature(descriptions: dict[str, Description]) -> str:
    lines = [
        "## Beside published counts",
        "",
        "| network | published | counted | | why |",
        "| --- | --- | --- | --- | --- |",
    ]
    for published in PUBLISHED:
        counted = descriptions[published.name].parameters
        cells = (
            f"`{published.name}`",
            f"~{published.claimed:g} M ({published.source})",
            millions(counted),
            verdict(published, counted),
            published.remark,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def document() -> str:
    """The whole of docs/networks.md."""
    descriptions = {entry.name: describe(entry.name) for entry in list_networks()}
    aliases = "Short names: " + ", ".join(f"`{alias}` is `{name}`" for alias, name in list_aliases().items()) + "."
    families = [_family(title, prefixes, descriptions) for title, prefixes in FAMILIES.items()]
    return "\n".join((HEAD, aliases, "", "\n\n".join(families), "", _literature(descriptions), "", OTHER_REMARKS))


def main(arguments: list[str]) -> None:
    """Write the document to the file named, or print it."""
    text = document()
    if arguments:
        Path(arguments[0]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
