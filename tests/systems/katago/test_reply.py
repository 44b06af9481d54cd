"""The head for the opponent's reply: learned in training, absent from answers and from KataGo's files."""

from pathlib import Path

import numpy as np
import pytest
import torch

import keima
from keima.compress.fold import fold
from keima.systems.files.load import save
from keima.systems.loss import loss_for
from keima.systems.targets import TrainingBatch

SIZE = 5


def with_reply() -> keima.Network:
    torch.manual_seed(1)
    return keima.create("katago-b6c96", blocks=1, channels=16, reply=True)


def a_batch() -> TrainingBatch[np.ndarray]:
    rng = np.random.default_rng(2)
    reply = rng.dirichlet(np.ones(SIZE * SIZE + 1), 3).astype(np.float32)
    reply[1] = 0  # unknown
    planes = rng.random((3, 22, SIZE, SIZE), np.float32)
    planes[:, 0] = 1
    inputs = {"planes": planes, "globals": rng.random((3, 19), np.float32)}
    return TrainingBatch(inputs=inputs, reply_soft=reply)


def test_the_term_is_the_cross_entropy_of_known_replies():
    network, batch = with_reply(), a_batch().torch()
    network.train()
    outputs = network(**batch.inputs)
    loss = loss_for(network)
    assert "reply" in loss.targets
    logits = outputs.reply.detach().double().numpy()
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert batch.reply_soft is not None
    target = batch.reply_soft.double().numpy()
    expected = -(target * log_p).sum(axis=1)[[0, 2]].mean()
    found = loss(outputs, batch)
    assert found.named["reply"].item() == pytest.approx(expected, rel=1e-5)
    assert found.total.item() == pytest.approx(0.15 * expected, rel=1e-5)
    assert found.present["reply"].item() == 2
    found.total.backward()
    assert all(parameter.grad is not None for parameter in network.reply.parameters())


def test_answers_and_katagos_file_are_those_without_it(tmp_path: Path):
    network = with_reply().eval()
    save(network, tmp_path / "net.bin.gz")
    plain = keima.load(tmp_path / "net.bin.gz")
    assert plain.reply is None
    assert "reply" not in loss_for(plain).terms
    assert keima.load(_saved(network, tmp_path)).config.reply
    position = keima.go.Position.start(9).play("E5")
    for other in (plain, fold(network)):
        values = [keima.Evaluator(each, "torch")([position])[0].value for each in (network, other)]
        assert values[0] == pytest.approx(values[1], abs=1e-5)
    with torch.no_grad():
        assert network(**a_batch().torch().inputs).reply is None


def _saved(network: keima.Network, folder: Path) -> Path:
    save(network, folder / "net.safetensors")
    return folder / "net.safetensors"
