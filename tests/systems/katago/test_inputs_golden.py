"""KataGo's own answers, position by position: encode → forward → decode must give what `kata-raw-nn` printed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from keima.games.go.position import Position
from keima.systems.encoding import Batch
from keima.systems.katago.file import read_katago
from keima.systems.network import softmax

GOLDEN_TO_NET = {
    "g170-b6c96": "g170-b6c96-s175395328-d26788732",
    "b7c96h3tfrs-test5-cnorm": "b7c96h3tfrs-test5-cnorm",
    "random-meta": "katago-random-meta",
    "random-nbt": "katago-random-nbt",
    "random-nbt-fson": "katago-random-nbt-fson",
    "random-nbt-v12": "katago-random-nbt-v12",
    "random-nbttf": "katago-random-nbttf",
    "random-res-v16": "katago-random-res-v16",
    "random-res-v17": "katago-random-res-v17",
    "random-res-v17-passalive": "katago-random-res-v17",
}
LEAD_TOLERANCE = 0.01  # points


def batch_of(encoding: Any, positions: list[Position], symmetries: list[int], lines: list[dict[str, Any]]) -> Batch:
    """The lines' batch, each position encoded with its own options."""
    parts = []
    for position, symmetry, line in zip(positions, symmetries, lines, strict=True):
        options = {"policy_optimism": line.get("policy_optimism"), "profile": line.get("human_profile")}
        given = {name: value for name, value in options.items() if value is not None}
        parts.append(encoding.bind(**given).encode([position], symmetry))
    return Batch(
        {name: np.concatenate([part.inputs[name] for part in parts]) for name in parts[0].inputs},
        {name: np.concatenate([part.context[name] for part in parts]) for name in parts[0].context},
    )


class Answers:
    """A network's answers to golden lines that share a shape, in the golden files' terms."""

    def __init__(self, network: Any, lines: list[dict[str, Any]]) -> None:
        self.encoding = network.encoding
        self.positions = [Position.from_json(line) for line in lines]
        self.symmetries = [line["symmetry"] for line in lines]
        batch = batch_of(network.encoding, self.positions, self.symmetries, lines)
        with torch.inference_mode():
            raw = network(**{name: torch.from_numpy(values) for name, values in batch.inputs.items()})
        outputs = {name: getattr(raw, name).numpy() for name in network.output_names}
        self.heads = network.decode(outputs, batch.context)
        self.at_optimism = {
            level: network.decode(outputs, {**batch.context, "policy_optimism": np.full(len(lines), float(level))})
            for level in ("0", "1")
        }

    def white_outcome(self, i: int) -> dict[str, float]:
        win, draw, loss = self.heads.wdl[i]
        if self.positions[i].to_play == "B":
            win, loss = loss, win
        return {"whiteWin": win, "whiteLoss": loss, "noResult": draw}

    def white_lead(self, i: int) -> float:
        return self.heads.lead[i] if self.positions[i].to_play == "W" else -self.heads.lead[i]

    def white_ownership(self, i: int) -> np.ndarray:
        board = self.encoding.restore(self.heads.ownership[i], self.positions[i], self.symmetries[i])
        return board if self.positions[i].to_play == "W" else -board

    def policy(self, i: int, level: str | None = None) -> dict[str, float]:
        heads = self.heads if level is None else self.at_optimism[level]
        moves = self.encoding.legal_moves(self.positions[i], self.symmetries[i])
        return dict(zip(moves.names, softmax(heads.policy[i, moves.indices]).tolist(), strict=True))


def expected_policy(out: dict[str, Any]) -> dict[str, float]:
    """A golden policy by vertex; its illegal points are null."""
    policy = {"pass": out["policyPass"]}
    height = len(out["policy"])
    for y, row in enumerate(out["policy"]):
        for x, probability in enumerate(row):
            if probability is not None:
                policy[f"{'ABCDEFGHJKLMNOPQRST'[x]}{height - y}"] = probability
    return policy


def assert_same_policy(ours: dict[str, float], out: dict[str, Any], tolerance: float, name: str) -> None:
    theirs = expected_policy(out)
    assert ours.keys() == theirs.keys(), f"{name}: legal in one only: {sorted(ours.keys() ^ theirs.keys())}"
    worst = max(ours, key=lambda move: abs(ours[move] - theirs[move]))
    assert abs(ours[worst] - theirs[worst]) <= tolerance, f"{name}: {worst} {ours[worst]}, KataGo {theirs[worst]}"


def assert_same_answer(answers: Answers, i: int, line: dict[str, Any], tolerance: float) -> None:
    name, out = f"position {line['id']} ({line['kind']})", line["out"]
    for field, probability in answers.white_outcome(i).items():
        assert probability == pytest.approx(out[field], abs=tolerance), f"{name}: {field}"
    assert answers.white_lead(i) == pytest.approx(out["whiteLead"], abs=LEAD_TOLERANCE), f"{name}: lead"
    ownership = np.abs(answers.white_ownership(i) - np.array(out["whiteOwnership"]))
    assert ownership.max() <= tolerance, f"{name}: ownership differs by {ownership.max()}"
    assert_same_policy(answers.policy(i), out, tolerance, name)
    for level, policy in (line.get("out_optimism") or {}).items():
        assert_same_policy(answers.policy(i, level), policy, tolerance, f"{name}, optimism {level}")


@pytest.mark.reference
@pytest.mark.parametrize("name", GOLDEN_TO_NET)
def test_answers_are_those_of_katago(name: str, reference: Path, golden: Callable[[str], list[dict[str, Any]]]) -> None:
    network = read_katago(reference / "nets" / f"{GOLDEN_TO_NET[name]}.bin.gz")
    tolerance = 1e-3 if name == "g170-b6c96" else 2e-3
    by_shape = defaultdict(list)
    for line in golden(f"katago-{name}"):
        by_shape[network.encoding.shape(Position.from_json(line), line["symmetry"])].append(line)
    for lines in by_shape.values():
        answers = Answers(network, lines)
        for i, line in enumerate(lines):
            assert_same_answer(answers, i, line, tolerance)
