"""Rollout policies on disk: what is written is read back, and nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from keima.errors import BadWeights
from keima.games.go import Position
from keima.systems.alphago.rollout import RolloutPolicy
from keima.systems.alphago.rollout_file import read_rollout, write_rollout


@pytest.fixture
def policy() -> RolloutPolicy:
    rng = np.random.default_rng(5)
    return RolloutPolicy(
        patterns={int(key): float(rng.normal()) for key in rng.integers(0, 1 << 24, 300)},
        responses={int(key): float(rng.normal()) for key in rng.integers(0, 1 << 40, 200)},
        nakade=rng.normal(size=8192).astype(np.float32),
        neighbour=rng.normal(size=8).astype(np.float32),
        response=0.5,
        save_atari=1.5,
    )


def test_written_policy_is_read_back(policy: RolloutPolicy, tmp_path: Path) -> None:
    write_rollout(policy, tmp_path / "a.safetensors")
    found = read_rollout(tmp_path / "a.safetensors")
    for keys in ("pattern_keys", "response_keys"):
        assert set(found.weights[keys][0]) == set(policy.weights[keys][0])
    position = Position.start(9).play("E5", "E4", "D4")
    expected = policy.probabilities(position)
    assert found.probabilities(position) == pytest.approx(expected, rel=1e-5)


def test_every_cut_is_refused(policy: RolloutPolicy, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_rollout(policy, path)
    data = path.read_bytes()
    for length in (0, 1, 7, 8, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(BadWeights, match=r"a\.safetensors"):
            read_rollout(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("neighbour", np.zeros(7, np.float32), r"neighbour: float32 \[7\], expected float32 \[8\]"),
        ("nakade", np.full(8192, np.nan, np.float32), "nakade: a number is not finite"),
        ("nakade", np.full(8192, 100, np.float32), "nakade: a weight beyond ±80"),
        ("pattern_keys", np.zeros(3, np.int64), "do not match"),
        ("response_keys", np.full(200, -1, np.int64), "none negative"),
    ],
)
def test_tensors_that_do_not_fit_are_named(
    policy: RolloutPolicy, tmp_path: Path, name: str, value: np.ndarray, message: str
) -> None:
    path = tmp_path / "a.safetensors"
    write_rollout(policy, path)
    tensors = load(path.read_bytes())
    if name == "response_keys":
        value = value[: len(tensors[name])]
    path.write_bytes(save({**tensors, name: value}))
    with pytest.raises(BadWeights, match=message):
        read_rollout(path)
