"""Mates and draws that a search must prove, with networks that know nothing at all."""

from __future__ import annotations

from typing import Any

import chess as python_chess
import pytest

from keima.games import chess
from keima.search import Limits, Search, SearchResult
from tests.search.fakes import Answer, Fake, random_answer, uniform_answer

MATES = [
    # (name, FEN, moves to mate)
    ("back rank", "6k1/5ppp/8/8/8/8/5PPP/3Q2K1 w - - 0 1", 1),
    ("smothered", "6rk/6pp/7N/8/8/8/8/6K1 w - - 0 1", 1),
    ("fool's mate", "rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 2", 1),
    ("promotion", "7k/P7/5KR1/8/8/8/8/8 w - - 0 1", 2),
    ("quiet rook", "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", 2),
    ("quiet king", "7k/8/8/5K2/8/8/8/6Q1 w - - 0 1", 2),
    ("queen's sacrifice", "r1bq2r1/b4pk1/p1pp1p2/1p2pP2/1P2P1PB/3P4/1PPQ2P1/R3K2R w - - 0 1", 2),
    ("opera", "4kb1r/p2n1ppp/4q3/4p1B1/4P3/1Q6/PPP2PPP/2KR4 w k - 1 1", 2),
    ("Black's rooks", "6k1/pp4p1/2p5/2bp4/8/P5Pb/1P3rrP/2BRRN1K b - - 0 1", 2),
    ("long diagonal", "r5rk/5p1p/5R2/4B3/8/8/7P/7K w - - 0 1", 3),
    ("two knights and queen", "3r1r1k/1p3p1p/p2p4/4n1NN/6bQ/1BPq4/P3p1PP/1R5K w - - 0 1", 3),
]

NETWORKS = {"uniform": uniform_answer(1858), "random": random_answer(1858, spread=2.0)}


def run(fen: str, network: str, visits: int = 400, **options: Any) -> SearchResult:
    search = Search(Fake("chess", NETWORKS[network], batch_size=8), "lc0", **options)
    search.set_position(chess.Position.from_fen(fen))
    return search.run(Limits(visits=visits))


def mates_in(board: python_chess.Board, n: int) -> bool:
    """Can the side to move force mate in n moves? Plain brute force with python-chess."""
    return any(mates_after(board, move, n) for move in list(board.legal_moves))


def mates_after(board: python_chess.Board, move: python_chess.Move, n: int) -> bool:
    board.push(move)
    if board.is_checkmate():
        found = True
    elif n == 1 or board.is_game_over() or (n == 3 and not board.is_check()):
        found = False
    else:
        found = True
        for reply in list(board.legal_moves):
            board.push(reply)
            found = mates_in(board, n - 1)
            board.pop()
            if not found:
                break
    board.pop()
    return found


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("name", "fen", "moves"), MATES, ids=[mate[0] for mate in MATES])
def test_mates_are_proven(name: str, fen: str, moves: int, network: str) -> None:
    """Found within 400 visits, proven, and the move played keeps the mate."""
    result = run(fen, network)
    assert result.stopped_by == "solved"
    distance = result.moves[0].mate
    assert distance is not None
    assert distance >= 2 * moves - 1
    assert result.moves[0].order == 0
    board = python_chess.Board(fen)
    if distance <= 5:
        assert mates_after(board, python_chess.Move.from_uci(result.best), (distance + 1) // 2)


@pytest.mark.parametrize("fen", [mate[1] for mate in MATES])
def test_mates_are_played_out(fen: str) -> None:
    """From move to move, against the longest defence the search sees, the mate is never lost."""
    search = Search(Fake("chess", NETWORKS["random"], batch_size=8), "lc0")
    position = chess.Position.from_fen(fen)
    for _ in range(12):
        search.set_position(position)
        result = search.run(Limits(visits=400))
        if not result.best:
            break
        position = position.play(result.best)
    assert position.outcome is not None
    assert position.outcome.reason == "checkmate"


def test_a_loss_is_proven_and_put_off() -> None:
    """Every move loses; the one that lasts longest is chosen."""
    result = run("7k/8/5KQ1/8/8/8/8/8 b - - 0 1", "uniform", visits=50)
    assert result.best == ""  # stalemate: no move at all
    lost = run("7k/8/5K2/8/8/8/8/6Q1 b - - 0 1", "uniform")
    assert lost.stopped_by == "solved"
    assert all(info.mate is not None and info.mate < 0 for info in lost.moves)
    assert lost.moves[0].mate == min(info.mate for info in lost.moves)
    assert lost.value == -1


def test_the_only_drawing_move_is_proven() -> None:
    """White's king takes the last pawn: bare kings, a proven draw."""
    result = run("8/8/8/8/8/4k3/4p3/4K3 b - - 0 1", "uniform")
    assert result.moves
    taken = run("8/8/8/8/8/2k5/4p3/4K3 w - - 0 1", "uniform")
    assert taken.best == "e1e2"
    assert taken.moves[0].mate == 0


def test_repetition_within_the_search_is_a_draw() -> None:
    """A winning side whose network is blind still sees that going back and forth gains nothing."""

    def losing(view: Any) -> Answer:
        white = view.record[0]["side"] == 0
        answer = NETWORKS["uniform"](view)
        answer.value = -0.9 if white else 0.9
        return answer

    search = Search(Fake("chess", losing), "lc0")
    search.set_position(chess.Position.from_fen("6k1/6p1/8/6KQ/8/8/8/q7 w - - 0 1"))
    result = search.run(Limits(visits=800))
    kinds = search.tree.nodes["kind"][: int(search.tree.heads["nodes"][0])]
    assert kinds.any()
    assert result.value > -0.9


def test_two_fold_draws_are_taken_back_when_the_root_moves_on() -> None:
    position = chess.Position.from_fen("8/8/7k/8/8/8/8/K5R1 w - - 0 1")
    search = Search(Fake("chess", NETWORKS["random"]), "lc0", solve=0.0)
    search.set_position(position)
    result = search.run(Limits(visits=1500))
    for move in result.principal_variation[:4]:
        position = position.play(move)
    search.set_position(position)
    search.run(Limits(visits=search.tree.visits + 300))
    nodes = search.tree.nodes[: int(search.tree.heads["nodes"][0])]
    depth = [0] * len(nodes)
    for i in range(1, len(nodes)):
        depth[i] = depth[nodes["parent"][i]] + 1
    late = [i for i in range(len(nodes)) if nodes["kind"][i] == 1 and depth[i] < nodes["plies"][i]]
    assert not [i for i in late if nodes["visits"][i] > 1000]


def test_castling_is_named_as_the_position_names_it() -> None:
    fen = "4k3/8/8/8/8/8/8/4K2R w K - 0 1"
    for chess960, name in ((False, "e1g1"), (True, "e1h1")):
        search = Search(Fake("chess", NETWORKS["uniform"]), "lc0")
        search.set_position(chess.Position.from_fen(fen, chess960=chess960))
        result = search.run(Limits(visits=60), allow_moves=[name])
        assert result.best == name
        search.set_position(result.position.play(*result.principal_variation[:2]))
        assert search.tree.visits > 0
