"""A run's folder, and checkpoints: all a run needs to go on as if it had never stopped, each there whole or not at all.

    RUN/recipe.toml, settings.json   what it was begun with
    RUN/metrics.jsonl, tensorboard/  its numbers; plots/: pictures of them
    RUN/pool/, selfplay/             past selves of reinforcement learning; games played for distillation
    RUN/reserve                      a checkpoint's room, given up when the disk is full; gone at the end
    RUN/network.*                    the result
    RUN/checkpoints/step-000001000/  the last few states:
        network.safetensors          the network, a file that `keima.load` opens
        average.safetensors          its running average (EMA), the same; absent without one
        optimizer.safetensors        the optimizer's tensors, "PARAMETER/NAME" each
        random.safetensors           states of PyTorch's random generators, the first process's
        state.json                   step, sums not yet written to metrics.jsonl, versions

Nothing in it can be executed. A checkpoint is written under another name, forced to the disk and renamed; a process
that is killed meanwhile leaves only a folder whose name begins with a dot, which the next write removes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from keima.atomic import replacing
from keima.errors import BadRequest, BadWeights
from keima.plain import Data, Fields
from keima.systems.files.safetensors import read_safetensors, write_safetensors
from keima.systems.network import Network
from keima.training.run.recipe import Recipe

VERSION = 1
_PREFIX = "step-"
_UNFINISHED = ".step-"


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds: tensors by name, further plain data (JSON) in `state`; `average` is None without one."""

    step: int
    network: Mapping[str, Tensor]
    average: Mapping[str, Tensor] | None
    optimizer: Mapping[str, Tensor]
    random: Mapping[str, Tensor]
    state: Fields = field(default_factory=dict)


def list_checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """The whole checkpoints in a folder as (step, path), oldest first."""
    named = ((path.name.removeprefix(_PREFIX), path) for path in folder.glob(_PREFIX + "*"))
    return sorted((int(number), path) for number, path in named if number.isdecimal() and path.is_dir())


def write_checkpoint(folder: Path, network: Network, checkpoint: Checkpoint, keep: int) -> Path:
    """Write a checkpoint into RUN/checkpoints, then remove all but the newest `keep`; its folder.

    The network gives the files their configuration and pedigree. A checkpoint of that step already there stays.

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
    """Read a checkpoint's folder. Raises BadWeights: a file is missing, cut short or corrupt."""
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


def _write_files(folder: Path, network: Network, checkpoint: Checkpoint) -> None:
    write_safetensors(network, folder / "network.safetensors", checkpoint.network)
    if checkpoint.average is not None:
        write_safetensors(network, folder / "average.safetensors", checkpoint.average)
    for name, tensors in (("optimizer", checkpoint.optimizer), ("random", checkpoint.random)):
        plain = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
        _write(folder / f"{name}.safetensors", save_tensors(plain))
    state = {"version": VERSION, "step": checkpoint.step, **checkpoint.state}
    _write(folder / "state.json", json.dumps(state, indent=1).encode() + b"\n")


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


def optimizer_tensors(optimizer: torch.optim.Optimizer, network: nn.Module) -> dict[str, Tensor]:
    """The state of an optimizer of torch's own kinds, by "PARAMETER/NAME"."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in network.named_parameters()}
    return {
        f"{names[parameter]}/{name}": tensor
        for parameter, entries in optimizer.state.items()
        for name, tensor in entries.items()
        if isinstance(tensor, Tensor)
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimizer the state that `optimizer_tensors` took.

    Raises:
        BadWeights: the state of a parameter the network does not have, or of another shape.
    """
    parameters = dict(network.named_parameters())
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


# --- The run it belongs to --------------------------------------------------------------------------------------------

CHECKPOINTS = "checkpoints"
POOL = "pool"
SELFPLAY = "selfplay"
PLOTS = "plots"
SETTINGS = "settings.json"
RESERVE = "reserve"

MAY_CHANGE: dict[str, set[str] | None] = {
    "data": {"train", "test", "workers"},
    "teacher": {"backend"},
    "schedule": None,
    "run": {
        *("steps", "positions", "checkpoint_every", "keep", "evaluate_every", "evaluate_positions", "log_every"),
        *("device", "devices", "threads", "gradient_checkpointing", "compile"),
    },
    "optimizer": {"learning_rate"},
}
"""Section → keys that may differ when a run goes on (None: all of them)."""


def _settings(recipe: Recipe) -> dict[str, Data]:
    settings = recipe.values()
    if not recipe.teacher.network:
        del settings["teacher"]
    return settings


def check_same_run(recipe: Recipe, folder: Path) -> None:
    """Refuse to go on with another recipe than the folder's run was begun with.

    Raises:
        BadRequest: what cannot change has changed; names the key's line.
    """
    try:
        before = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise BadRequest(f"not a run's settings: {error}", source=str(folder / SETTINGS)) from error
    settings = _settings(recipe)
    for section in sorted({*settings} ^ {*before}):
        found = "was not in" if section in settings else "is missing, and was in"
        raise recipe.error(section, f"{found} the recipe of the run in {folder}: choose another folder with -o")
    check_changes(recipe, before, settings, MAY_CHANGE, str(folder))


def check_changes(
    recipe: Recipe, before: Fields, now: Fields, may_change: Mapping[str, set[str] | None], run: str
) -> None:
    """Refuse what may not change of the settings, by section and key, that the run in `run` was begun with.

    Raises:
        BadRequest: something has; names the line of `recipe`, whose settings are those of now.
    """
    for section, values in now.items():
        free = may_change.get(section, set())
        for key, value in values.items():
            old = before[section].get(key)
            if isinstance(value, list) and isinstance(old, str):  # begun when the key took one
                old = [old]
            if free is not None and key not in free and old != value:
                message = f"is {value!r}; the run in {run} was begun with {old!r}: choose another folder with -o"
                raise recipe.error(f"{section}.{'from' if key == 'source' else key}", message)


def write_settings(recipe: Recipe, folder: Path) -> None:
    """Write the recipe into the run's folder, as text and as the values it came to."""
    with replacing(folder / SETTINGS, "w") as stream:
        stream.write(json.dumps(_settings(recipe), indent=1) + "\n")
    with replacing(folder / "recipe.toml", "w") as stream:
        stream.write(recipe.text)


def take_reserve(folder: Path, size: int) -> None:
    """Take room on the disk for one checkpoint of `size` bytes."""
    path = folder / RESERVE
    if path.exists() and path.stat().st_size >= size:
        return
    with path.open("wb") as stream:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, size)
        else:
            stream.write(bytes(size))


def free_reserve(folder: Path) -> None:
    """Give the room back."""
    (folder / RESERVE).unlink(missing_ok=True)
