"""The networks of a run in its store: networks/000012.safetensors, and what is known of it in networks/000012.json.

The second is written after the first, and makes the network valid; what is published is never changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from keima.errors import BadStore, UnsupportedNetwork
from keima.plain import Data
from keima.systems.files.load import load, save
from keima.systems.network import Network
from keima.systems.system import system_of
from keima.training.selfplay.store import Store

FOLDER = "networks"
_OWN = ".safetensors"


@dataclass(frozen=True)
class Published:
    """What the store says of a network beside its weights."""

    step: int  # of the optimizer, after which it was taken
    sha256: str  # of its .safetensors file, hex
    resign: float | None = None  # whoever plays it resigns below minus this Q; None: never
    time: float = 0.0  # when it was published, Unix seconds


def list_networks(store: Store) -> list[int]:
    """The generations whose networks are valid, rising."""
    names = (name.removeprefix(f"{FOLDER}/").partition(".") for name in store.list(FOLDER))
    return sorted(int(number) for number, _, ending in names if ending == "json" and number.isdecimal())


def read_published(store: Store, generation: int) -> Published:
    """What is known of a generation's network. Raises BadStore: there is none, or its file is damaged."""
    name = _name(generation, ".json")
    fields = read_object(store, name)
    try:
        return Published(int(fields["step"]), str(fields["sha256"]), fields["resign"], float(fields["time"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadStore(f"says nothing of a network: {error!r}", source=f"{store.address}/{name}") from error


def read_network(store: Store, generation: int) -> Network:
    """A generation's network, in evaluation mode.

    Raises:
        BadStore: it is missing, or not the one that was published.
        BadWeights, UnsupportedNetwork: as `keima.load`.
    """
    data = store.read(_name(generation, _OWN))
    if sha256(data).hexdigest() != read_published(store, generation).sha256:
        message = "is damaged: its SHA-256 is not the published one"
        raise BadStore(message, source=f"{store.address}/{_name(generation, _OWN)}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{generation:06d}{_OWN}"
        path.write_bytes(data)
        return load(path)


def publish(
    store: Store, generation: int, network: Network, step: int, resign: Callable[[], float | None]
) -> Published | None:
    """Publish a generation's network, in evaluation mode, also as its system's own file; None where it was before.

    `resign` gives the threshold below which it resigns.

    Raises:
        BadStore: the store cannot be written.
        BadWeights: there is no room for a temporary file.
    """
    if store.exists(_name(generation, ".json")):
        return None
    with TemporaryDirectory() as folder:
        digest = ""
        for ending in (_OWN, *system_of(network).endings[:1]):
            path = Path(folder) / f"network{ending}"
            try:
                save(network, path)
            except UnsupportedNetwork:  # the published format cannot hold networks of these sizes
                continue
            data = path.read_bytes()
            digest = digest or sha256(data).hexdigest()
            store.write(_name(generation, ending), data)
    found = Published(step, digest, resign(), round(time.time(), 3))
    store.write_new(_name(generation, ".json"), json.dumps(asdict(found)).encode() + b"\n")
    return found


def _name(generation: int, ending: str) -> str:
    return f"{FOLDER}/{generation:06d}{ending}"


def read_object(store: Store, name: str) -> Data:
    """The JSON object of a file in the store. Raises BadStore: it is missing, or holds something else."""
    try:
        found = json.loads(store.read(name))
    except (ValueError, RecursionError) as error:
        raise BadStore(f"not JSON: {error}", source=f"{store.address}/{name}") from error
    if not isinstance(found, dict):
        raise BadStore(f"a JSON {type(found).__name__} where an object should be", source=f"{store.address}/{name}")
    return found
