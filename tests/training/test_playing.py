"""Games of policies as a store: the games that were played, counted, named and readable as any others."""

from __future__ import annotations

import chess
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import keima
from keima.cli.main import app
from keima.errors import BadRequest
from keima.inference.evaluator import Evaluator
from keima.systems.registry import create
from keima.training.data.export import export
from keima.training.data.store import GameStore
from keima.training.reinforce.games import EvaluatorPlayer, play_games, play_store, set_table
from keima.training.run.recipe import SelfplayRecipe


@pytest.fixture(scope="module")
def networks():
    torch.manual_seed(0)
    return [
        create("alphago-zero", blocks=1, channels=4, board_size=5, value_hidden=4).eval(),
        create("alphago-policy", filters=4, layers=2, board_size=5).eval(),
    ]


def test_the_store_holds_the_games_that_were_played(networks, tmp_path):
    first, second = (Evaluator(network, "torch") for network in networks)
    table = set_table(SelfplayRecipe(komi=0.5), networks[0])
    moves = play_store((first, second), table, 7, tmp_path / "games.parquet", seed=3)
    played = play_games((EvaluatorPlayer(first), EvaluatorPlayer(second)), table, np.arange(7), 3).games
    store = GameStore.open(tmp_path / "games.parquet")
    flat = store.flat()
    assert moves == len(played.moves)
    for name in ("moves", "start", "winner", "score", "komi", "xsize", "ysize", "to_play_first"):
        assert np.array_equal(getattr(flat, name), getattr(played, name)), name
    assert flat.rules == played.rules
    rows = store.table().to_pylist()
    assert [row["black"] for row in rows[:2]] == ["alphago-zero", "alphago-policy"]
    assert [row["white"] for row in rows[:2]] == ["alphago-policy", "alphago-zero"]
    assert [row["source"] for row in rows[:2]] == ["played#1", "played#2"]
    for row in rows:
        lead = row["score"]
        assert row["result"] == (f"B+{lead:g}" if lead > 0 else f"W+{-lead:g}")
    assert len({row["key"] for row in rows}) == 7


def test_what_cannot_play_is_refused(networks, tmp_path):
    evaluator = Evaluator(create("alphago-value", filters=4, layers=2, hidden=4, board_size=5).eval(), "torch")
    table = set_table(SelfplayRecipe(), networks[0])
    with pytest.raises(BadRequest, match=r"a policy of their own, which alphago-value \(alphago\) has not"):
        play_store((evaluator, evaluator), table, 1, tmp_path / "games.parquet")
    with pytest.raises(BadRequest, match=r"must end in \.parquet"):
        play_store((evaluator, evaluator), table, 1, tmp_path / "games.txt")


def test_chess_is_played_by_its_rules_to_its_end(tmp_path):
    """Every game, replayed by python-chess: legal moves, no ending passed over, the result that the rules give."""
    torch.manual_seed(1)
    evaluator = Evaluator(create("lc0-10x128", blocks=1, channels=8, se_channels=4).eval(), "torch")
    table = set_table(SelfplayRecipe(), evaluator.network)
    play_store((evaluator, evaluator), table, 16, tmp_path / "games.parquet", seed=5)
    ended = 0
    for _, record, _ in export(GameStore.open(tmp_path / "games.parquet")):
        board = chess.Board()
        for _, move in record.turns:
            assert not board.is_checkmate()
            assert not board.is_stalemate()
            assert not board.is_insufficient_material()
            assert not board.is_repetition(3)
            assert not board.is_fifty_moves()
            board.push(board.parse_uci(move))  # raises where it is illegal
        assert len(record.turns) <= 400
        outcome = board.outcome()
        ended += outcome is not None or board.is_repetition(3) or board.is_fifty_moves()
        assert record.result == (outcome.result() if outcome is not None else "1/2-1/2")
    assert ended
    with pytest.raises(BadRequest, match="board of chess is 8×8"):
        set_table(SelfplayRecipe(size=9), evaluator.network)


def test_the_command(networks, tmp_path):
    net, out = str(tmp_path / "net.safetensors"), str(tmp_path / "games.parquet")
    keima.save(networks[0], net)
    run = CliRunner().invoke
    found = run(app, ["data", "play", net, "-o", out, "--games", "3", "--backend", "torch"])
    assert found.exit_code == 0, found.output
    assert len(GameStore.open(out)) == 3
    other = run(app, ["data", "play", net, "-o", out, "--size", "9"])
    assert other.exit_code == 2
    assert "5×5 boards, not 9×9" in other.output
