"""What must be right before a run begins: device, network, games, room on the disk. Errors name the recipe's line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import torch

from keima.errors import BadRequest, KeimaError
from keima.systems.files.contents import sha256_of
from keima.systems.files.defaults import find_network
from keima.systems.files.load import load
from keima.systems.network import Network, Pedigree
from keima.systems.registry import create
from keima.training.data.batches import PositionFilter
from keima.training.data.store import GameStore
from keima.training.run.checkpoint import CHECKPOINTS, POOL, RESERVE
from keima.training.run.recipe import Recipe

_FLOAT = 4
_MARGIN = 64 << 20
"""Bytes beyond what is counted: metrics, plots, TensorBoard's files."""


@dataclass(frozen=True)
class World:
    """The processes that train together on "cpu" or "cuda", `local` on each of `machines`; this one is `rank`."""

    device: str
    local: int
    machines: int
    rank: int = 0

    @property
    def size(self) -> int:
        """All processes."""
        return self.local * self.machines


def find_world(recipe: Recipe, environment: Mapping[str, str] = os.environ) -> World:
    """The device and the processes, from the recipe and torchrun's variables.

    Raises:
        BadRequest: no such device here, or a batch that does not divide.
    """
    run = recipe.run
    device = run.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    launched = "LOCAL_WORLD_SIZE" in environment and "WORLD_SIZE" in environment
    local = int(environment["LOCAL_WORLD_SIZE"]) if launched else run.devices
    machines = int(environment["WORLD_SIZE"]) // local if launched else 1
    world = World(device, local, machines)
    if device == "cuda":
        there = torch.cuda.device_count()
        if there < local:
            raise recipe.error("run.device", f"{local} CUDA devices are wanted; PyTorch finds {there} here")
    if device == "cpu" and run.precision in ("tf32", "f16"):
        raise recipe.error("run.precision", f"{run.precision} needs a CUDA device; on a CPU use f32 or bf16")
    if run.batch_size % (run.accumulate * world.size):
        message = f"{run.batch_size} positions do not go into {run.accumulate} × {world.size} equal parts"
        raise recipe.error("run.batch_size", f"{message} (accumulate × processes)")
    return world


def load_network(recipe: Recipe, key: str, name: str) -> Network:
    """The network of a file that the recipe names at that key. Raises BadRequest: it cannot be read."""
    try:
        return load(find_network(name))
    except KeimaError as error:
        raise recipe.error(key, str(error)) from error


def build_network(recipe: Recipe) -> Network:
    """The network that the recipe names, fresh with its seed or from its file, in training mode.

    Raises:
        BadRequest: no such network, sizes that cannot be, or a file that cannot be read.
    """
    source = recipe.network.source
    network = load_network(recipe, "network.from", source) if source else _create(recipe)
    if source:
        file = sha256_of(find_network(source))
        network.pedigree = descendant(network.pedigree, file, recipe.run.total_steps)
    if "metadata" in network.input_names:
        key = "network.from" if source else "network.name"
        raise recipe.error(key, "takes a player's profile with each position, which games in a store do not have")
    for name, parameter in network.named_parameters():
        if name.startswith(recipe.network.freeze):
            parameter.requires_grad_(False)
    for prefix in recipe.network.freeze:
        if not any(name.startswith(prefix) for name, _ in network.named_parameters()):
            first = ", ".join(name for name, _ in list(network.named_parameters())[:4])
            raise recipe.error("network.freeze", f"no parameter's name begins with {prefix!r}; they are {first}, …")
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise recipe.error("network.freeze", "freezes every parameter; nothing is left to train")
    return network.train()


def descendant(parent: Pedigree, sha256: str, steps: int) -> Pedigree:
    """Of a network trained on from another: its licence stays; what its file says of its own training does not."""
    details = {"parent": parent.name, "parent_sha256": sha256, "training_steps": str(steps)}
    return Pedigree(f"{parent.name}-finetuned", "trained", licence=parent.licence, details=details)


def _create(recipe: Recipe) -> Network:
    """A fresh network; its outline first, which takes no memory whatever the sizes."""
    name, sizes = recipe.network.name, recipe.network.sizes
    try:
        with torch.device("meta"):
            create(name, **sizes)
        torch.manual_seed(recipe.run.seed)
        return create(name, **sizes)
    except (KeimaError, TypeError, ValueError, RuntimeError, AttributeError, OverflowError, MemoryError) as error:
        message = str(error) or "out of memory"
        blamed = min((size for size in sizes if size in message), key=message.index, default="")
        key = f"network.{blamed}" if blamed else "network.name" if not sizes else "network"
        raise recipe.error(key, f"cannot be made: {message}") from error


def check_room(recipe: Recipe, folder: Path, network: Network) -> int:
    """Bytes of one checkpoint, after a look whether checkpoints, past selves, reserve and result fit on the disk."""
    size = checkpoint_bytes(recipe, network)
    reserve = folder / RESERVE
    kept = [*folder.glob(f"{CHECKPOINTS}/*/*"), *folder.glob(f"{POOL}/*")] if folder.exists() else []
    there = sum(path.stat().st_size for path in kept) + (reserve.stat().st_size if reserve.exists() else 0)
    selves = _FLOAT * _weights(network) * pool_size(recipe)
    wanted = (recipe.run.keep + 3) * size + selves + _MARGIN - there
    parent = folder
    while not parent.exists():
        parent = parent.parent
    free = shutil.disk_usage(parent).free
    if wanted > free:
        pool = f"past selves of {selves / 1e6:,.1f} MB, " if selves else ""
        message = f"{recipe.run.keep} checkpoints of {size / 1e6:,.1f} MB, {pool}a reserve and the result want"
        message += f" {wanted / 1e6:,.0f} MB; {parent} has {free / 1e6:,.0f} MB free"
        raise recipe.error("run.keep", message)
    return size


def checkpoint_bytes(recipe: Recipe, network: Network) -> int:
    """About how many bytes a checkpoint takes."""
    weights = _weights(network)
    trained = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    moments = 2 if recipe.optimizer.kind == "adamw" else 1 if recipe.optimizer.momentum else 0
    return _FLOAT * (weights * (2 if recipe.run.ema else 1) + trained * moments) + (1 << 20)


def pool_size(recipe: Recipe) -> int:
    """How many past selves a whole run of reinforcement learning keeps; 0 without it."""
    return 0 if recipe.reinforce is None else -(-recipe.run.total_steps // recipe.reinforce.pool_every)


def _weights(network: Network) -> int:
    return sum(tensor.numel() for tensor in network.state_dict().values())


def check_folder(folder: Path) -> None:
    """Make the run's folder and see that it can be written. Raises BadRequest where it cannot."""
    probe = folder / f".probe.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise BadRequest(f"cannot be written: {error.strerror or error}", source=str(folder)) from error


def check_store(recipe: Recipe, key: str, network: Network) -> GameStore:
    """Open a game store that the recipe names.

    Raises:
        BadRequest: missing, unreadable, empty, or of another game than the network's.
    """
    path = getattr(recipe.data, key)
    try:
        store = GameStore.open(path)
    except (KeimaError, OSError) as error:
        raise recipe.error(f"data.{key}", str(error)) from error
    if store.game != network.encoding.game:
        message = f"{path} holds games of {store.game}; a {network.system} network plays {network.encoding.game}"
        raise recipe.error(f"data.{key}", message)
    if not len(store):
        raise recipe.error(f"data.{key}", f"{path} holds no games")
    return store


def position_filter(recipe: Recipe) -> PositionFilter:
    """Which positions of the stores to take. Raises BadRequest where a rank is none."""
    try:
        return PositionFilter(**{each.name: getattr(recipe.data, each.name) for each in fields(PositionFilter)})
    except BadRequest as error:
        raise recipe.error("data.lowest_rank", error.message) from error
