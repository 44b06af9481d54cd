"""Checkpoints: all a run needs to go on as if it had never stopped, in a folder that appears whole or not at all.

    RUN/checkpoints/step-000001000/
        network.safetensors      the network, a file that `keima.load` opens
        average.safetensors      its running average (EMA), the same; absent without one
        optimizer.safetensors    the optimizer's tensors, "PARAMETER/NAME" each
        random.safetensors       states of PyTorch's random generators, the first process's
        state.json               step, sums not yet written to metrics.jsonl, versions

Nothing in it can be executed. The folder is written under another name, forced to the disk and renamed; a process that
is killed meanwhile leaves only a folder whose name begins with a dot, which the next write removes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from keima.atomic import replacing
from keima.errors import BadWeights
from keima.plain import Fields
from keima.systems.files.safetensors import read_safetensors, write_safetensors
from keima.systems.network import Network

VERSION = 1
_PREFIX = "step-"
_UNFINISHED = ".step-"


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds.

    Attributes:
        step: optimizer steps done.
        network: state of the network, by its own names.
        average: state of its running average; None without one.
        optimizer: the optimizer's tensors by "PARAMETER/NAME".
        random: states of the random generators by name, uint8.
        state: further plain data (JSON).
    """

    step: int
    network: Mapping[str, Tensor]
    average: Mapping[str, Tensor] | None
    optimizer: Mapping[str, Tensor]
    random: Mapping[str, Tensor]
    state: Fields = field(default_factory=dict)


def list_checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """The whole checkpoints in a folder as (step, path), oldest first."""
    found = []
    for path in folder.glob(_PREFIX + "*"):
        number = path.name.removeprefix(_PREFIX)
        if number.isdecimal() and path.is_dir():
            found.append((int(number), path))
    return sorted(found)


def write_checkpoint(
    folder: Path,
    network: Network,
    checkpoint: Checkpoint,
    keep: int,
) -> Path:
    """Write a checkpoint, then remove all but the newest `keep`.

    Args:
        folder: RUN/checkpoints; made if missing.
        network: gives the files their configuration and pedigree; its weights are not looked at.
        checkpoint: what to write.
        keep: how many to keep, the new one among them.

    Returns:
        The checkpoint's folder; one of that step already there stays as it is.

    Raises:
        OSError, BadWeights: it cannot be written; the older ones are untouched.
    """
    target = folder / f"{_PREFIX}{checkpoint.step:09d}"
    if target.is_dir():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    for unfinished in folder.glob(_UNFINISHED + "*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    building = folder / f"{_UNFINISHED}{checkpoint.step}.{os.getpid()}"
    building.mkdir()
    try:
        _write_files(building, network, checkpoint)
        _sync(building)
        building.rename(target)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    _sync(folder)
    for _, old in list_checkpoints(folder)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint's folder.

    Raises:
        BadWeights: a file is missing, cut short or corrupt.
    """
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        version, step = state.pop("version"), state.pop("step")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BadWeights(f"not a checkpoint's state: {error}", source=str(path / "state.json")) from error
    if version != VERSION or not isinstance(step, int):
        raise BadWeights(f"a checkpoint of version {version!r}, not {VERSION}", source=str(path / "state.json"))
    average = path / "average.safetensors"
    return Checkpoint(
        step=step,
        network=read_safetensors(path / "network.safetensors").state_dict(),
        average=read_safetensors(average).state_dict() if average.exists() else None,
        optimizer=_read_tensors(path / "optimizer.safetensors"),
        random=_read_tensors(path / "random.safetensors"),
        state=state,
    )


def newest_checkpoint(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that can be read (None where there is none), and what is wrong with newer ones."""
    complaints: list[str] = []
    for _, path in reversed(list_checkpoints(folder)):
        try:
            return read_checkpoint(path), complaints
        except BadWeights as error:
            complaints.append(str(error))
    return None, complaints


def remove_after(folder: Path, step: int) -> None:
    """Remove checkpoints of later steps: they could not be read, and their names are needed again."""
    for number, path in list_checkpoints(folder):
        if number > step:
            shutil.rmtree(path, ignore_errors=True)


# --- Files ------------------------------------------------------------------------------------------------------------


def _write_files(folder: Path, network: Network, checkpoint: Checkpoint) -> None:
    write_safetensors(network, folder / "network.safetensors", checkpoint.network)
    if checkpoint.average is not None:
        write_safetensors(network, folder / "average.safetensors", checkpoint.average)
    _write(folder / "optimizer.safetensors", save_tensors(_on_cpu(checkpoint.optimizer)))
    _write(folder / "random.safetensors", save_tensors(_on_cpu(checkpoint.random)))
    state = {"version": VERSION, "step": checkpoint.step, **checkpoint.state}
    _write(folder / "state.json", json.dumps(state, indent=1).encode() + b"\n")


def _on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as stream:
        stream.write(data)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = load_tensors(path.read_bytes())
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise BadWeights(f"not a safetensors file: {error}", source=str(path)) from error
    return tensors


def _sync(folder: Path) -> None:
    """Force a folder's entries to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- Optimizer and random generators ----------------------------------------------------------------------------------


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> dict[str, Tensor]:
    """The optimizer's state by "PARAMETER/NAME".

    Args:
        optimizer: of torch's own kinds, whose state is tensors only (SGD, AdamW).
        names: id of each parameter → its name.
    """
    return dict(_optimizer_entries(optimizer, names))


def _optimizer_entries(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> Iterator[tuple[str, Tensor]]:
    for parameter, entries in optimizer.state.items():
        for name, tensor in entries.items():
            if isinstance(tensor, Tensor):
                yield f"{names[id(parameter)]}/{name}", tensor


def restore_optimizer(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, torch.nn.Parameter], tensors: Mapping[str, Tensor]
) -> None:
    """Give an optimizer the state that `optimizer_tensors` took.

    Raises:
        BadWeights: the state of a parameter the network does not have, or of another shape.
    """
    for key, tensor in tensors.items():
        parameter_name, _, name = key.rpartition("/")
        parameter = parameters.get(parameter_name)
        if parameter is None or (tensor.dim() and tensor.shape != parameter.shape):
            raise BadWeights("does not belong to this network", source="optimizer.safetensors", place=key)
        if tensor.dim():  # on the parameter's device, in its memory layout
            optimizer.state[parameter][name] = torch.empty_like(parameter, requires_grad=False).copy_(tensor)
        else:  # the step count, which torch's AdamW keeps on the CPU
            optimizer.state[parameter][name] = tensor.clone()


def random_states() -> dict[str, Tensor]:
    """States of PyTorch's random generators: the CPU's, and each CUDA device's."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda.{index}": state for index, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def restore_random(states: Mapping[str, Tensor]) -> None:
    """Set the generators that are here to the states kept of them."""
    for name, state in states.items():
        if name == "cpu":
            torch.set_rng_state(state)
        elif int(name.removeprefix("cuda.")) < torch.cuda.device_count():
            torch.cuda.set_rng_state(state, int(name.removeprefix("cuda.")))
