"""`keima show`: what a network is made of, and what it thinks of a position, as pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from keima.cli import common
from keima.errors import BadRecord, BadRequest
from keima.plain import Data

if TYPE_CHECKING:
    from keima.games.position import Position
    from keima.systems.network import Network

EXAMPLES = """Examples:

\b
  keima show go                                 (keima's own network of that game; chess)
  keima show kata1-b6c96.bin.gz
  keima show alphago-zero                       (a fresh network by its name)
  keima show --list                             (all names)
  keima show maia-1900.pb.gz --json
  keima show kata1-b6c96.bin.gz --position game.sgf --move 57 -o policy.png
  keima show maia-1900.pb.gz --position '{"moves": ["e2e4"], "game": "chess"}' -o policy.svg
  keima show policy.safetensors --layer hidden.0 -o filters.png
  keima show policy.safetensors --layer hidden.5 --position game.sgf --move 57 -o seen.png
  keima show policy.safetensors --concepts alphago --position games/    (what each layer knows of the points)
"""


def show(
    net: Annotated[
        str | None, Argument(metavar="NET|NAME", help="Network file, go, chess, or a registered name.")
    ] = None,
    list_names: Annotated[bool, Option("--list", help="List the registered names.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    position: Annotated[
        str | None, Option(metavar="FILE|JSON", help="SGF, PGN, POSITIONS file or line to draw.")
    ] = None,
    layer: Annotated[
        str | None, Option(metavar="L", help="Draw a layer: its filters, or with --position what it makes of that.")
    ] = None,
    concepts: Annotated[
        str | None,
        Option(metavar="ENCODING", help="Read these planes' facts off each layer, on the games of --position."),
    ] = None,
    move: Annotated[int | None, Option(min=0, help="With a game: after this many moves; the end if absent.")] = None,
    output: Annotated[str, Option("-o", "--output", metavar="FILE", help=".png or .svg picture.")] = "policy.png",
    backend: common.Backend = "auto",
    symmetry: common.Symmetry = "0",
) -> None:
    """Show a network: architecture, parameters, inputs, pedigree; with --position, its policy and ownership drawn.

    With --layer, what a layer is or sees is drawn; with --concepts, what can be read off each layer is told.
    """
    if list_names:
        from keima.systems.registry import list_networks

        for entry in list_networks():
            print(f"{entry.name:28}{entry.note}")
        return
    if net is None:
        raise BadRequest("name a network file, go, chess or connect_four, or a registered network (keima show --list)")
    network = open_or_create(net, weights=any(each is not None for each in (concepts, layer, position)))
    if concepts is not None:
        _probe(network, concepts, position, as_json)
        return
    if layer is not None:
        _draw_layer(network, layer, position, move, output, common.read_symmetry(symmetry))
        return
    if position is not None:
        _draw(network, position, move, output, backend, common.read_symmetry(symmetry))
        return
    facts = network_facts(network)
    print(json.dumps(facts, ensure_ascii=False, indent=2) if as_json else as_text(facts))


def open_or_create(net: str, weights: bool = True) -> Network:
    """A network from a file of that path, else the default one of that game, else a fresh one of that registered name.

    The last without its numbers, in a moment, unless they are wanted.

    Raises:
        BadRequest: none of them; the message lists the names.
        BadWeights, UnsupportedNetwork: a file that cannot be read, or this installation lacks the default network.
    """
    import torch

    from keima.systems.files.defaults import DEFAULT_NETWORKS
    from keima.systems.registry import create

    if Path(net).exists() or net in DEFAULT_NETWORKS:
        return common.open_network(net)
    try:
        with torch.device("cpu" if weights else "meta"):
            return create(net).eval()
    except BadRequest as error:
        raise BadRequest(f"no file {net!r}, and no network of that name: {error.message}") from error


def network_facts(network: Network) -> Data:
    """What `keima show` tells, as plain data: pedigree, inputs, outputs, sizes, modules with their parameters."""
    from dataclasses import asdict

    from keima.systems.registry import config_to_json, describe, kind_of, list_networks

    pedigree = asdict(network.pedigree)
    description = asdict(describe(network))
    kind = kind_of(network)
    entries = [entry for entry in list_networks() if entry.kind == kind.name]
    named = [entry for entry in entries if entry.name == pedigree["name"]]
    return {
        "name": pedigree.pop("name"),
        "system": network.system,
        "source": f"{kind.network.__module__}.{kind.network.__name__}",
        "paper": (named or entries)[0].paper,
        "encoding": network.encoding.name,
        **description,
        "pedigree": {**pedigree, "details": dict(pedigree["details"])},
        "config": config_to_json(network),
        "modules": modules(network),
        "int8": list(network.quantization.layers) if network.quantization else [],
    }


def modules(network: Network) -> list[Data]:
    """The network's parts two levels deep, in order: name, class, parameters."""
    parts: dict[str, Any] = {}
    for name, part in network.named_children():
        parts |= {name: part} | {f"{name}.{inner}": module for inner, module in part.named_children()}
    return [
        {"name": name, "class": type(part).__name__, "parameters": sum(each.numel() for each in part.parameters())}
        for name, part in parts.items()
    ]


def as_text(facts: Data) -> str:
    """`network_facts` as a page of text."""
    pedigree = facts["pedigree"]

    def shapes(named: Data) -> str:
        return ", ".join(f"{name} {'×'.join(map(str, shape)) or '1'}" for name, shape in named.items())

    rows = {
        "system": f"{facts['system']}, encoding {facts['encoding']}",
        "paper": facts["paper"],
        "read it in": facts["source"],
        "from": pedigree["origin"],
        "format": pedigree["format"],
        "sha256": pedigree["sha256"],
        "licence": pedigree["licence"],
        **{name.replace("_", " "): value for name, value in pedigree["details"].items()},
        "inputs": shapes(facts["inputs"]),
        "outputs": shapes(facts["outputs"]),
        "parameters": f"{facts['parameters']:,}",
        "operations": f"{facts['flops'] / 1e6:,.1f} million an evaluation",
        "receptive field": f"{facts['receptive_field']}×{facts['receptive_field']} points"
        + (f"; the whole board through {facts['reach']}" if facts["reach"] else ""),
        "in int8": f"{len(facts['int8'])} convolutions (precision int8)" if facts["int8"] else "",
    }
    width = max(map(len, rows)) + 2
    lines = [facts["name"], ""]
    lines += [f"  {label:{width}}{value}" for label, value in rows.items() if value]
    lines += ["", "  module" + " " * 36 + "class" + " " * 29 + "parameters"]
    for part in facts["modules"]:
        indent = "  " * part["name"].count(".")
        lines.append(f"  {indent + part['name']:40}  {part['class']:28}{part['parameters']:>16,}")
    return "\n".join(lines)


def _draw(network: Network, position: str, move: int | None, output: str, backend: str, symmetry: int | str) -> None:
    from keima.review.pictures import picture, save

    chosen = find_position(position, move)
    evaluation = common.open_evaluator(network, backend, "auto", 1)([chosen], symmetry=symmetry)[0]
    save(picture(chosen, evaluation), output)
    common.say(output)


def _draw_layer(
    network: Network, layer: str, position: str | None, move: int | None, output: str, symmetry: int | str
) -> None:
    from keima.inference.activations import activations, filters
    from keima.review.pictures import activation_grid, filter_grid, save

    name = f"{network.pedigree.name}: {layer}"
    if position is None:
        figure = filter_grid(filters(network, layer), name)
    elif isinstance(symmetry, str):
        raise BadRequest(f"a layer is drawn in one symmetry, not {symmetry}")
    else:
        figure = activation_grid(activations(network, find_position(position, move), layer, symmetry), name)
    save(figure, output)
    common.say(output)


_EVERY, _MOST = 10, 400
"""Probes take every so manyth position of a game, and so many in all."""


def _probe(network: Network, concepts: str, games: str | None, as_json: bool) -> None:
    from dataclasses import asdict
    from itertools import chain, islice

    from keima.games.files import read_records
    from keima.inference.probes import probe
    from keima.systems.system import get_encoding

    if games is None:
        raise BadRequest("--concepts needs games: --position FILE")
    records = (record for record in read_records([games]) if not isinstance(record, BadRecord))
    lines = (list(islice(record.positions(), _EVERY, None, _EVERY)) for record in records)
    board = network.encoding.board
    usable = list(islice((line for line in lines if line and network.encoding.shape(line[0]) == board), _MOST // 4))
    learned, judged = (list(islice(chain.from_iterable(usable[k::2]), _MOST // 2)) for k in (0, 1))
    found = probe(network, get_encoding(concepts), learned, judged)
    if as_json:
        print(json.dumps(asdict(found), indent=2))
        return
    width = max(len(name) for name in (*found.layers, "points")) + 2
    print(
        f"{len(learned)} positions learned from, {len(judged)} of other games judged; balanced accuracy, % (chance 50)"
    )
    columns = [max(len(concept), 5) + 2 for concept in found.concepts]
    rows = {"": list(found.concepts), "points": [f"{n:,}" for n in found.points]}
    rows |= {
        name: ["–" if one is None else f"{100 * one:.1f}" for one in accuracies]
        for name, accuracies in found.layers.items()
    }
    for name, cells in rows.items():
        print(f"{name:{width}}" + "".join(f"{cell:>{room}}" for cell, room in zip(cells, columns, strict=True)))


def find_position(text: str, move: int | None = None) -> Position:
    """The position that `--position` names.

    Args:
        text: a POSITIONS line itself, or a file: a game's record (its first game), or POSITIONS (its first line).
        move: for a game, how many moves are played; None for all. A BadRequest where it has fewer.
    """
    from keima.games.files import game_of, read_records
    from keima.games.positions import BadLine, parse_json, parse_position, read_positions

    if text.lstrip().startswith("{"):
        return parse_position(parse_json(text)).position
    if game_of(text):
        record = next(read_records([text]))
        if isinstance(record, BadRecord):
            raise record
        positions = list(record.positions())
        if move is not None and move >= len(positions):
            raise BadRequest(f"the game has {len(positions) - 1} moves, not {move}", source=text)
        return positions[-1 if move is None else move]
    line = next(read_positions(text), None)
    if line is None:
        raise BadRequest("holds no position", source=text)
    if isinstance(line, BadLine):
        raise line.error
    return line.position
