"""The laws a system must keep on its own: its encodings, its networks, their files, its loss.

`keima.check_system` runs these and those of evaluation, folding and search (`keima.conformance`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from keima.errors import BadRequest, ConformanceError, KeimaError
from keima.games.conformance import has_facet, random_game
from keima.games.game import get_game, stack
from keima.games.position import Position
from keima.systems.encoding import Batch, Encoding
from keima.systems.files.load import load, save
from keima.systems.network import Network, NetworkEntry
from keima.systems.registry import create
from keima.systems.system import SYSTEMS, System

ROWS = 4  # positions of a batch
SAME = 1e-5  # between answers that should be equal but for rounding, relative to the largest


def law(kept: object, text: str, where: str, found: object = None) -> None:
    """Raise unless the law is kept."""
    if not kept:
        raise ConformanceError(text if found is None else f"{text}: {found!r:.200}", place=where)


def small_networks(system: System) -> Iterator[Network]:
    """A fresh network of each class the system registers, the smallest it has a name for, its batch norms lively."""
    for table in system.networks:
        for kind in table.kinds:
            if entries := [entry for entry in table.entries if entry.kind == kind.name]:
                smallest = min(entries, key=_parameters)
                torch.manual_seed(0)
                yield lively(create(smallest.name, **smallest.small))


def _parameters(entry: NetworkEntry) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in create(entry.name, **entry.small).parameters())


def lively(network: Network, seed: int = 0) -> Network:
    """The network in evaluation mode, with batch norms that do something."""
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None and module.running_var is not None:
            module.running_mean.normal_(0, 0.2, generator=generator)
            module.running_var.uniform_(0.5, 2.0, generator=generator)
            if module.weight is not None:
                nn.init.uniform_(module.weight, 0.5, 1.5, generator=generator)
                nn.init.normal_(module.bias, 0, 0.2, generator=generator)
    return network.eval()


def positions_for(encoding: Encoding, count: int = ROWS, seed: int = 0) -> list[Position]:
    """Positions along a random game that an encoding takes, none of them over."""
    line = [p for p in random_game(encoding.start(), np.random.default_rng(seed), 4 * count) if not p.is_over]
    return [line[k * (len(line) - 1) // (count - 1)] for k in range(count)]


def check_encoding(encoding: Encoding) -> None:
    """Everything written, rows independent, symmetries turned back, indices distinct; raises ConformanceError."""
    name = f"encoding {encoding.name}"
    law(encoding.symmetries[0] == 0, "the first symmetry is 0", name, encoding.symmetries)
    positions = positions_for(encoding)
    for symmetry in encoding.symmetries:
        where = f"{name}, symmetry {symmetry}"
        together = _written(encoding, positions, symmetry, np.nan)
        for part in (together.inputs, together.context):
            for key, array in part.items():
                law(array.dtype.kind != "f" or not np.isnan(array).any(), f"all of {key} is written", where)
        for row, position in enumerate(positions):
            alone = _written(encoding, [position], symmetry, 7.0)
            for key, array in alone.inputs.items():
                law(np.array_equal(array[0], together.inputs[key][row]), f"{key} depends on its own position", where)
        _check_turned(encoding, positions, symmetry, together, where)
        _check_indices(encoding, positions, symmetry, together, where)
    wrong = max(encoding.symmetries) + 1
    try:
        encoding.encode(positions[:1], wrong)
    except BadRequest:
        return
    law(False, "a symmetry there is not raises BadRequest", name, wrong)


def _written(encoding: Encoding, positions: Sequence[Position], symmetry: int, before: float) -> Batch:
    """A batch written by `write`, over arrays that held something else."""
    for position in positions:
        encoding.check(position)
    batch = encoding.room(len(positions), encoding.shape(positions[0], symmetry))
    for part in (batch.inputs, batch.context):
        for array in part.values():
            if array.dtype.kind == "f":
                array.fill(before)
    encoding.write(stack(positions), np.full(len(positions), symmetry, np.int64), batch)
    return batch


def _check_turned(encoding: Encoding, positions: Sequence[Position], symmetry: int, batch: Batch, where: str) -> None:
    """`restore` turns every plane back to what it makes of it without a symmetry."""
    plain = _written(encoding, positions, 0, np.nan).inputs["planes"]
    for row, position in enumerate(positions):
        for plane in range(encoding.planes):
            back = encoding.restore(batch.inputs["planes"][row, plane], position, symmetry)
            expected = encoding.restore(plain[row, plane], position, 0)
            law(np.array_equal(back, expected), f"restore turns plane {plane} back", where)


def _check_indices(encoding: Encoding, positions: Sequence[Position], symmetry: int, batch: Batch, where: str) -> None:
    """Policy indices: distinct, legal moves only, the same by name and by the kernels' moves."""
    game = get_game(encoding.game)
    kernels = game.kernels
    moves = np.zeros((len(positions), kernels.max_moves), np.int16)
    counts = np.zeros(len(positions), np.int32)
    indices = np.full(moves.shape, -1, np.int32)
    symmetries = np.full(len(positions), symmetry, np.int64)
    for row, position in enumerate(positions):
        scratch = kernels.new_scratch(position.record)[0]
        kernels.result(stack([position])[0], scratch)
        counts[row] = kernels.legal_moves(position.record[0], scratch, moves[row])
    encoding.write_indices(moves, counts, symmetries, batch, indices)
    size = encoding.policy_size(encoding.shape(positions[0], symmetry))
    law((indices < size).all(), "indices are below policy_size", where, (indices.max(), size))
    if has_facet(game, "archive"):
        law((moves < game.archive.codes).all(), "moves are below the archive's codes", where, moves.max())
    for row, position in enumerate(positions):
        legal = encoding.legal_moves(position, symmetry)
        law(len(set(legal.indices.tolist())) == len(legal.names), "legal moves have indices of their own", where)
        law(set(legal.names) <= set(position.legal()), "legal moves are the position's", where)
        side = kernels.side(position.record[0])
        by_kernel = {
            kernels.name(position, int(move), side): int(index)
            for move, index in zip(moves[row, : counts[row]], indices[row, : counts[row]], strict=True)
        }
        for name, index in zip(legal.names, legal.indices.tolist(), strict=True):
            law(by_kernel.get(name) == index, "write_indices and legal_moves agree", where, (name, index))


def check_network(network: Network) -> None:
    """Names, rows independent of their neighbours, the file there and back; raises ConformanceError."""
    name = f"network {network.pedigree.name}"
    batch = network.encoding.encode(positions_for(network.encoding))
    law(set(network.input_names) == set(batch.inputs), "input_names are the encoding's", name, network.input_names)
    outputs = raw_answers(network, batch)
    for key, values in outputs.items():
        law(values.shape[0] == batch.size, f"{key} has a row for each position", name, values.shape)
        law(np.isfinite(values).all(), f"{key} is finite", name)
    for row in range(batch.size):
        alone = raw_answers(network, batch[row : row + 1])
        for key, values in alone.items():
            close = nearly(values[0], outputs[key][row])
            law(close, f"{key} does not depend on what else is in the batch", name, f"row {row}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.safetensors"
        save(network, path)
        again = load(path)
        law(type(again) is type(network), "a saved network is of the same class", name, type(again).__name__)
        for key, values in raw_answers(again, batch).items():
            law(np.array_equal(values, outputs[key]), f"a saved network has the same {key}", name)


def raw_answers(network: Network, batch: Batch) -> dict[str, NDArray[np.float32]]:
    """The outputs of `forward` by name."""
    with torch.no_grad():
        output = network(*(torch.from_numpy(np.ascontiguousarray(batch.inputs[each])) for each in network.input_names))
    return {each: getattr(output, each).numpy() for each in network.output_names}


def nearly(found: NDArray[np.float32], expected: NDArray[np.float32], tolerance: float = SAME) -> bool:
    """Are they equal to within `tolerance` of the largest number, or of 1?"""
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return found.shape == expected.shape and bool(np.abs(found - expected).max(initial=0.0) <= tolerance * scale)


def check_parts(system: System) -> None:
    """The laws of a system without what stands above it: its encodings and networks; raises ConformanceError."""
    for name, encoding in system.encodings.items():
        law(encoding.name == name, "an encoding is called by its name", f"encoding {name}", encoding.name)
        check_encoding(encoding)
    for network in small_networks(system):
        law(network.system in SYSTEMS, "a network names the system it learns and plays as", network.pedigree.name)
        try:
            check_network(network)
        except ConformanceError:
            raise
        except KeimaError as error:
            raise ConformanceError(f"a small network can be evaluated and saved: {error}", place=system.name) from error
