"""Network files of every format, damaged: read or refused, never anything else; what is read answers with numbers."""

from __future__ import annotations

import json
import re
import tempfile
import time
import warnings
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import keima
from keima.compress.quantize import quantize
from keima.errors import KeimaError
from keima.games.game import get_game
from keima.systems.alphago.rollout import RolloutPolicy
from keima.systems.alphago.rollout_file import read_rollout, write_rollout
from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork
from keima.systems.layers import quantized
from keima.systems.network import Network
from keima.systems.registry import create, list_networks
from tests.systems.katago.katago_tiny import CONFIGS, tiny
from tests.systems.laws import random_inputs

FOLDER = Path(tempfile.mkdtemp(prefix="keima-fuzz-"))
SECONDS = 5.0
"""Of the processor's time; no file of these sizes takes longer."""
JSON: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -1, 3.5, 1e400, float("nan"), 10**9, 10**40),
    *("", "x", "9", "relu", "ACTIVATION", [], [0], ["a"], {}, {"kind": "NormConfig"}, {"blocks": []}),
)


@cache
def sources() -> list[bytes]:
    """Small files of every format and kind of network, unpacked."""
    networks: list[tuple[Network, str]] = []
    small = [create(entry.name, **entry.small) for entry in list_networks() if "katago-b" not in entry.name]
    small.append(create("katago-b6c96", blocks=1, channels=4))
    networks += [(network, ".safetensors") for network in {type(network): network for network in small}.values()]
    networks += [(keima.compress.fold(network.eval()), ".safetensors") for network in small[5:6]]
    whole = create("alphago-zero", blocks=1, channels=4, board_size=5)
    networks.append((quantize(whole, [random_inputs(whole, 4)]), ".safetensors"))
    networks += [(tiny(name), ending) for name in CONFIGS for ending in (".bin", ".txt", ".safetensors")]
    networks += [(network, ".pb") for network in small if network.system == "lc0"]
    networks.append((LeelaZeroNetwork(1, 2, board_size=5), ".txt"))
    found = []
    rollout = FOLDER / "source.rollout"
    write_rollout(RolloutPolicy({5: 1.0, 77: -0.5}, {99: 0.25}, np.ones(8192, np.float32), response=0.5), rollout)
    found.append(rollout.read_bytes())
    for number, (network, ending) in enumerate(networks):
        path = FOLDER / f"source-{number}{ending}"
        keima.save(network.eval(), path)
        _open(path)  # compiles the kernels
        found.append(path.read_bytes())
    found += [path.read_bytes() for path in sorted((Path(__file__).parents[1] / "data").glob("*.ckpt"))]
    return found


def one(seed: int) -> None:
    """One damaged file, opened, evaluated and written again."""
    rng = np.random.default_rng(seed)
    data = sources()[rng.integers(len(sources()))]
    own = data[8:9] == b"{"
    data = _other_header(rng, data) if b"keima.network" in data[:20_000] and rng.random() < 0.8 else _damaged(rng, data)
    path = FOLDER / ("damaged" + (".safetensors" if own else ".txt"))
    path.write_bytes(data)
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers beyond measure
            _open(path)
    except KeimaError:
        pass
    assert time.process_time() - began < SECONDS, "too slow"


def _open(path: Path) -> None:
    """What a user does with a file."""
    if b"keima.rollout" in path.read_bytes()[:1000]:
        read_rollout(path)
    network = keima.load(path)
    for name, tensor in network.state_dict().items():
        assert tensor.isfinite().all(), f"{name} is not finite"
    _evaluate(network)
    if network.quantization is not None:
        quantized(network)
    keima.save(network, FOLDER / "again.safetensors")


def _evaluate(network: Network) -> None:
    """Answers are numbers, unless the weights are beyond measure."""
    size = max(float(tensor.abs().max()) for tensor in network.state_dict().values() if tensor.numel())
    position = get_game(network.encoding.game).position
    sizes = {"size": network.encoding.board[0]} if network.encoding.game == "go" else {}
    if network.system == "alphago-rollout":
        return
    options = {"profile": "rank_1d"} if "profile" in network.encoding.options else {}
    answer = keima.Evaluator(network, backend="torch").bind(**options)([position.start(**sizes)])[0]
    if size < 100:
        assert all(np.isfinite(list(answer.policy.values()))), "a policy that is no number"
        assert answer.win is None or np.isfinite(answer.win), "a value that is no number"


def _damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes changed, cut, repeated; numbers that lie; weights that are none."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(changed))) if changed else 0
        if rng.random() < 0.6:
            place %= 600
        match rng.integers(7):
            case 0:
                changed[place : place + 1] = rng.bytes(1)
            case 1:
                del changed[place:]
            case 2:
                changed[place:place] = changed[place : place + int(rng.integers(200))]
            case 3:
                del changed[place : place + int(rng.integers(1, 40))]
            case 4:
                changed[place:place] = rng.bytes(int(rng.integers(1, 20)))
            case 5:
                weights = np.array([np.nan, np.inf, -np.inf, 3e38, -1, 0], "<f4")
                changed[place : place + 4] = rng.choice(weights).tobytes()
            case _:
                numbers = list(re.finditer(rb"(?<![\d.])\d{1,6}(?![\d.])", bytes(changed[:100_000])))
                if numbers:
                    number = numbers[rng.integers(min(len(numbers), int(rng.choice([12, 60, 10**6]))))]
                    lie = rng.choice(["0", "-1", "2", "3", "17", "65536", "16777216", "99999999999", "nan", "1e9", ""])
                    changed[number.start() : number.end()] = str(lie).encode()
    return bytes(changed)


def _other_header(rng: np.random.Generator, data: bytes) -> bytes:
    """A safetensors file whose header says something else, in its own terms."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header["__metadata__"]
    match rng.integers(8):
        case 0:
            _replace(rng, header)
        case 1:
            _replace(rng, metadata)
        case 2:
            pedigree = json.loads(metadata["keima.pedigree"])
            _replace(rng, pedigree)
            metadata["keima.pedigree"] = json.dumps(pedigree)
        case 3:
            name = rng.choice([name for name in header if name != "__metadata__"])
            begin, end = header[name]["data_offsets"]
            at = 8 + length + int(rng.integers(begin, max(end - 4, begin + 1)))
            value = rng.choice(np.array([np.nan, np.inf, 3e38, -1, 0, -5], "<f4"))
            data = data[:at] + value.tobytes() + data[at + 4 :]
        case _:
            network = json.loads(metadata["keima.network"])
            for _ in range(rng.integers(1, 3)):
                _replace(rng, network)
            metadata["keima.network"] = json.dumps(network)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def _replace(rng: np.random.Generator, tree: Any) -> None:
    """One value anywhere in a JSON tree becomes another, or goes."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            places.append((node, key))
            if isinstance(value, (dict, list)):
                walk(value)

    walk(tree)
    if not places:
        return
    node, key = places[rng.integers(len(places))]
    if rng.random() < 0.15:
        del node[key]
    elif rng.random() < 0.2 and places:
        other, name = places[rng.integers(len(places))]
        node[key] = deepcopy(other[name])
    else:
        node[key] = deepcopy(JSON[rng.integers(len(JSON))])


torch.set_num_threads(1)
