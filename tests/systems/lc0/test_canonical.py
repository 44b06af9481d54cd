"""One frame for a canonical network's moves: what it is taught, what it answers and what the search reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import keima
from keima.games.chess.position import Position
from keima.systems.lc0.inputs import Lc0Encoding

POSITIONS = {
    "mirrored files": ("4k3/8/8/8/8/8/4P3/2K5 w - - 0 1", "e2e4"),
    "mirrored files and ranks, reflected": ("8/8/1K6/8/8/5k2/8/2Q5 w - - 0 1", "c1c6"),
    "Black to move": ("2K5/8/8/8/3p4/8/8/1k6 b - - 3 9", "d4d3"),
}


def taught(position: Position, move: str, input_format: str = "canonical") -> keima.Evaluator:
    """A small network that has learned to play this move, by the index that training writes for it."""
    torch.manual_seed(0)
    network = keima.create("lc0-10x128", blocks=1, channels=8, se_channels=4, input_format=input_format)
    batch = network.encoding.encode([position])
    codes = np.zeros((1, 256), np.int16)
    codes[0, : len(position.legal())] = position.legal_codes.view(np.int16)
    counts, indices = np.array([len(position.legal())], np.int32), np.zeros((1, 256), np.int32)
    network.encoding.write_indices(codes, counts, np.zeros(1, np.int64), batch, indices)
    target = torch.tensor([int(indices[0, position.legal().index(move)])])
    planes = torch.from_numpy(batch.inputs["planes"])
    network.eval()  # one position has no statistics of a batch
    optimiser = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(60):
        optimiser.zero_grad()
        F.cross_entropy(network(planes).policy, target).backward()
        optimiser.step()
    return keima.Evaluator(network.eval(), backend="torch", threads=1)


@pytest.mark.parametrize(("fen", "move"), POSITIONS.values(), ids=list(POSITIONS))
def test_what_was_taught_is_answered_and_searched(fen: str, move: str) -> None:
    position = Position.from_fen(fen)
    assert Lc0Encoding("canonical").transform(position) != 0
    evaluator = taught(position, move)
    answered = evaluator([position])[0]
    assert answered.policy[move] > 0.9
    assert answered.best == move
    result = keima.search(evaluator, position, visits=8)
    priors = {found.move: found.prior for found in result.moves}
    assert priors[move] == pytest.approx(answered.policy[move], abs=1e-6)
