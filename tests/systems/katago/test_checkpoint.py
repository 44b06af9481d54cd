"""KataGo's checkpoints: read as its own exporter writes them, nothing executed, the broken refused by their layer.

`tests/data/katago-random-*.ckpt` are small networks with random weights, made and saved by KataGo's own code (August
2026), and the digests those of the files that its `export_model_pytorch.py` (`-use-swa` where there is an average)
wrote of them: `residual`, batch norms with scales; `nbt-human`, nested bottlenecks with fixed scaling and RepVGG
convolutions, a second head, metadata, a running average, saved by a distributed run; `transformer`, learned rotary
frequencies and a spatial RMS norm.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

import keima
from keima.errors import BadWeights, UnsupportedNetwork
from keima.systems.katago.checkpoint import read_checkpoint
from keima.systems.katago.file import encode_katago

DATA = Path(__file__).parents[2] / "data"
EXPORTED = {
    "residual": "758d282bc5d8ee52cecb7d14fcb229e0deb3937a4d008804427933a30be75359",
    "nbt-human": "75d460c08af462a8051204b3f2f66ddab44642fa9010eb741dd08411fa30242d",
    "transformer": "0c06d3a0559920316144301bc066038484f40063a155d0c8695041049208f846",
}


def contents(name: str = "residual") -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(DATA / f"katago-random-{name}.ckpt", weights_only=True)
    return loaded


def saved(found: object, folder: Path) -> Path:
    torch.save(found, folder / "model.ckpt")
    return folder / "model.ckpt"


@pytest.mark.parametrize("name", EXPORTED)
def test_a_checkpoint_becomes_the_file_of_katago_s_own_exporter(name: str) -> None:
    network = keima.load(DATA / f"katago-random-{name}.ckpt")
    assert hashlib.sha256(encode_katago(network)).hexdigest() == EXPORTED[name]
    assert network.pedigree.name == f"katago-random-{name}"
    average = "swa_model, the running average" if name == "nbt-human" else "model"
    assert network.pedigree.details == {"weights": average, "training_samples": "12345"}
    assert network.pedigree.format.startswith("KataGo training checkpoint, model version 1")


def test_it_converts_plays_and_learns_on(tmp_path: Path) -> None:
    network = keima.load(DATA / "katago-random-residual.ckpt")
    keima.save(network, tmp_path / "net.bin.gz")
    position = keima.go.Position.start(size=9).play("E5", "C3")
    networks = network, keima.load(tmp_path / "net.bin.gz")
    (one,), (two,) = (keima.Evaluator(each, "torch")([position]) for each in networks)
    assert one.logits == pytest.approx(two.logits, abs=1e-6)
    batch = network.encoding.encode([position])
    out = network.train()(**{key: torch.from_numpy(array) for key, array in batch.inputs.items()})
    out.policy.square().mean().backward()
    assert all(p.grad is not None for p in network.policy.parameters())
    with pytest.raises(UnsupportedNetwork, match="unknown ending"):
        keima.save(network, tmp_path / "net.ckpt")


def test_an_older_checkpoint_has_its_config_beside_it(tmp_path: Path) -> None:
    found = contents()
    config = found.pop("config")
    path = saved(found, tmp_path)
    with pytest.raises(BadWeights, match=r"model\.ckpt: the checkpoint holds no config, and there is no model\.config"):
        read_checkpoint(path)
    (tmp_path / "model.config.json").write_text(json.dumps(config))
    assert read_checkpoint(path).config.channels == 8


class Evil:
    """Unpickled, it would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def test_a_pickle_that_would_execute_is_refused_and_nothing_happens(tmp_path: Path) -> None:
    path = saved({**contents(), "metrics": Evil(tmp_path / "made")}, tmp_path)
    with pytest.raises(BadWeights, match=r"more than tensors and plain data \((posix|nt)\.mkdir\).*nothing was loaded"):
        keima.load(path)
    assert not (tmp_path / "made").exists()


def test_counts_that_pytorch_refuses_are_told_with_katago_s_own_remedy(tmp_path: Path) -> None:
    path = saved({**contents(), "running_metrics": {"sums": defaultdict(float, {"loss": 1.0})}}, tmp_path)
    with pytest.raises(BadWeights, match=r"defaultdict.*migrate_defaultdict_to_dict\.py"):
        keima.load(path)


@pytest.mark.parametrize("kept", [0.01, 0.5, 0.999])
def test_a_file_cut_short_is_refused(tmp_path: Path, kept: float) -> None:
    whole = (DATA / "katago-random-residual.ckpt").read_bytes()
    (tmp_path / "model.ckpt").write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(BadWeights, match=r"model\.ckpt: no whole checkpoint"):
        keima.load(tmp_path / "model.ckpt")


def _without(name: str) -> Any:
    return lambda found: found["model"].pop(name)


def _with(name: str, value: Any) -> Any:
    return lambda found: found["model"].update({name: value})


def _config(**changes: Any) -> Any:
    return lambda found: found["config"].update(changes)


CONV = "blocks.0.normactconv1.conv.weight"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (_with("blocks.0.gate", torch.zeros(8)), UnsupportedNetwork, r"blocks\.0\.gate: a layer that keima does not"),
        (_without(CONV), BadWeights, r"blocks\.0\.normactconv1\.conv\.weight: the checkpoint lacks this layer"),
        (_with(CONV, torch.zeros(8, 7, 3, 3)), BadWeights, r"blocks\.0\.normactconv1\.conv: \[8, 7, 3, 3\], but the"),
        (_with(CONV, torch.full((8, 8, 3, 3), torch.inf)), BadWeights, r"normactconv1\.conv: a number is not finite"),
        (_with(CONV, torch.zeros(1).expand(1 << 40, 8, 3, 3)), BadWeights, r"normactconv1\.conv\.weight: not a plain"),
        (_with(CONV, "text"), BadWeights, r"normactconv1\.conv\.weight: not a plain tensor"),
        (_config(activation="gelu"), UnsupportedNetwork, r"config: activation: 'gelu'; keima runs relu, mish"),
        (_config(block_kind=[["a", "bottle2"]]), UnsupportedNetwork, r"blocks\.0: a block of kind 'bottle2'; keima"),
        (_config(use_trunk_channel_gate=True), UnsupportedNetwork, r"config: use_trunk_channel_gate: KataGo's files"),
        (_config(version=18), UnsupportedNetwork, r"KataGo model version 18 is not supported"),
        (_config(version="new"), BadWeights, r"config: version: 'new' is no number"),
        (_config(block_kind=3), BadWeights, r"config: block_kind: no list of blocks"),
        (lambda found: found.update(config=[]), BadWeights, r"config: not a dict"),
        (lambda found: found.pop("model"), UnsupportedNetwork, r"a PyTorch file of another program"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: Any, error: type[Exception], message: str) -> None:
    found = contents()
    change(found)
    with pytest.raises(error, match=message) as refusal:
        read_checkpoint(saved(found, tmp_path))
    assert "model.ckpt: " in str(refusal.value)
