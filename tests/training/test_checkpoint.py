"""A checkpoint is there whole or not at all, and gives back what went in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import keima
from keima.errors import BadWeights
from keima.systems.network import Network
from keima.training.run import checkpoint as module
from keima.training.run.checkpoint import (
    Checkpoint,
    list_checkpoints,
    newest_checkpoint,
    optimizer_tensors,
    random_states,
    read_checkpoint,
    restore_optimizer,
    write_checkpoint,
)
from keima.training.run.optimizer import RunningAverage


@pytest.fixture
def network() -> Network:
    torch.manual_seed(1)
    return keima.create("alphago-policy", filters=4, layers=2, board_size=5)


def a_checkpoint(network: Network, step: int) -> Checkpoint:
    state = network.state_dict()
    average = {name: tensor + 1 for name, tensor in state.items()}
    return Checkpoint(step, state, average, {"output.weight/momentum_buffer": torch.ones(3)}, random_states(), {"a": 1})


class TestFolders:
    def test_what_goes_in_comes_out(self, network: Network, tmp_path: Path) -> None:
        written = a_checkpoint(network, 7)
        path = write_checkpoint(tmp_path, network, written, keep=2)
        read = read_checkpoint(path)
        assert (read.step, read.state) == (7, {"a": 1})
        assert read.average is not None
        for name, tensor in network.state_dict().items():
            assert torch.equal(read.network[name], tensor)
            assert torch.equal(read.average[name], tensor + 1)
        assert torch.equal(read.optimizer["output.weight/momentum_buffer"], torch.ones(3))
        assert torch.equal(read.random["cpu"], written.random["cpu"])

    def test_its_network_is_a_file_that_opens(self, network: Network, tmp_path: Path) -> None:
        path = write_checkpoint(tmp_path, network, a_checkpoint(network, 7), keep=2)
        assert keima.load(path / "network.safetensors").system == "alphago"

    def test_only_the_newest_are_kept(self, network: Network, tmp_path: Path) -> None:
        for step in (9, 10, 100):
            write_checkpoint(tmp_path, network, a_checkpoint(network, step), keep=2)
        assert [step for step, _ in list_checkpoints(tmp_path)] == [10, 100]

    def test_a_full_disk_leaves_the_older_ones(
        self, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_checkpoint(tmp_path, network, a_checkpoint(network, 1), keep=1)

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(module, "_write", full)
        with pytest.raises(OSError, match="No space"):
            write_checkpoint(tmp_path, network, a_checkpoint(network, 2), keep=1)
        assert [step for step, _ in list_checkpoints(tmp_path)] == [1]
        assert len(list(tmp_path.iterdir())) == 1

    def test_what_a_killed_writer_left_is_cleared_away(self, network: Network, tmp_path: Path) -> None:
        (tmp_path / ".step-5.123").mkdir()
        assert newest_checkpoint(tmp_path) == (None, [])
        write_checkpoint(tmp_path, network, a_checkpoint(network, 6), keep=1)
        assert [path.name for path in tmp_path.iterdir()] == ["step-000000006"]

    @pytest.mark.parametrize(
        "file",
        ["network.safetensors", "average.safetensors", "optimizer.safetensors", "random.safetensors", "state.json"],
    )
    def test_a_damaged_one_is_passed_over(self, network: Network, tmp_path: Path, file: str) -> None:
        write_checkpoint(tmp_path, network, a_checkpoint(network, 1), keep=3)
        path = write_checkpoint(tmp_path, network, a_checkpoint(network, 2), keep=3)
        (path / file).write_bytes((path / file).read_bytes()[:-9])
        newest, complaints = newest_checkpoint(tmp_path)
        assert newest is not None
        assert newest.step == 1
        assert len(complaints) == 1
        assert file in complaints[0]


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_an_optimizer_goes_on_as_if_never_stopped(network: Network, kind: Any) -> None:
    options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
    other = keima.create("alphago-policy", filters=4, layers=2, board_size=5)
    planes = torch.rand(3, 48, 5, 5, generator=torch.Generator().manual_seed(2))

    def step(net: Network, optimizer: torch.optim.Optimizer) -> None:
        net(planes).policy.square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    first = kind(network.parameters(), lr=0.01, **options)
    step(network, first)
    kept = {name: tensor.clone() for name, tensor in optimizer_tensors(first, network).items()}
    other.load_state_dict(network.state_dict())
    second = kind(other.parameters(), lr=0.01, **options)
    restore_optimizer(second, other, kept)
    step(network, first)
    step(other, second)
    for a, b in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(BadWeights, match="does not belong"):
        restore_optimizer(second, other, {"nothing/step": torch.ones(())})


class TestRunningAverage:
    def test_it_is_the_weighted_mean(self) -> None:
        layer = torch.nn.Linear(1, 1, bias=False)
        layer.weight.data.fill_(0.0)
        average = RunningAverage(layer, decay=0.5)
        expected = 0.0
        for updates, value in enumerate((1.0, 2.0, 3.0, 4.0)):
            layer.weight.data.fill_(value)
            average.update(layer, updates)
            decay = min(0.5, (1 + updates) / (10 + updates))
            expected = decay * expected + (1 - decay) * value
        assert average.state["weight"].item() == pytest.approx(expected)

    def test_it_takes_the_weights_place_for_a_while(self) -> None:
        layer = torch.nn.Linear(1, 1, bias=False)
        layer.weight.data.fill_(1.0)
        average = RunningAverage(layer, decay=0.9)
        layer.weight.data.fill_(5.0)
        with average.applied(layer):
            assert layer.weight.item() == 1.0
        assert layer.weight.item() == 5.0
