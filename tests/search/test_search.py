"""The driver: limits, repeatability, reuse from move to move, stopping, memory, and what a result says."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np
import pytest

import keima
from keima.errors import BadRequest, IllegalMove, UnsupportedPosition
from keima.games import chess, go
from keima.games.game import GAMES
from keima.search import Clock, Limits, Search, SearchResult, search_batch
from keima.search.tree import OPEN, PENDING
from tests.search.fakes import Answer, Fake, random_answer, uniform_answer


def go_fake(**options: Any) -> Fake:
    return Fake("go", random_answer(26, score=True), **options)


def go_search(**options: Any) -> Search:
    search = Search(go_fake(), **options)
    search.set_position(go.Position.start(5, komi=0.5))
    return search


def summary(result: SearchResult) -> list[tuple[str, int, float]]:
    return [(info.move, info.visits, info.utility) for info in result.moves]


def check_tree(search: Search) -> None:
    """Every node has its own visits and its children's, nothing is under way, and links agree."""
    nodes = search.tree.nodes[: int(search.tree.heads["nodes"][0])]
    assert not nodes["pending"].any()
    assert not (nodes["state"] == PENDING).any()
    below = np.zeros(len(nodes), np.int64)
    np.add.at(below, nodes["parent"][1:], nodes["visits"][1:])
    np.testing.assert_array_equal(nodes["visits"], below + nodes["own"])
    opened = nodes["state"] == OPEN
    opened[0] &= search.tree.roots["count"][0] > 0  # the root's moves are set up by the next run
    assert (nodes["opened"][opened] <= nodes["edges"][opened]).all()
    for i in range(len(nodes)):
        c, children = int(nodes["child"][i]), 0
        while c >= 0:
            assert nodes["parent"][c] == i
            children += 1
            c = int(nodes["sibling"][c])
        assert children == nodes["opened"][i]


@pytest.mark.parametrize("batch_size", [1, 4, 16])
def test_visits_add_up(batch_size: int) -> None:
    search = go_search(batch_size=batch_size)
    result = search.run(Limits(visits=500))
    assert result.visits == 500
    assert result.stopped_by == "visits"
    assert sum(info.visits for info in result.moves) == 499  # the first visit is the root's own
    check_tree(search)
    assert result.win + result.draw + result.loss == pytest.approx(1)
    assert sum(result.policy.values()) == pytest.approx(1)


def test_one_visit_is_the_network_alone() -> None:
    search = go_search()
    result = search.run(Limits(visits=1))
    assert (result.visits, result.moves) == (1, ())
    assert result.best == max(result.policy, key=lambda move: result.policy[move])
    assert result.value == pytest.approx(result.raw_value)
    assert search.choose() == result.best


def test_seeded_searches_repeat_exactly() -> None:
    options = {"root_noise": 0.25, "batch_size": 8}
    first, second = (go_search(seed=3, **options).run(Limits(visits=300)) for _ in range(2))
    assert summary(first) == summary(second)
    other = go_search(seed=4, **options).run(Limits(visits=300))
    assert summary(first) != summary(other)


@pytest.mark.parametrize("delay", [0.0, 0.003])
def test_another_device_searches_the_same_tree(delay: float) -> None:
    """A thread encodes and submits its batches then, one after the other."""
    found = []
    for device in ("cpu", "cuda"):
        search = Search(go_fake(device=device, delay=delay), seed=3, batch_size=8, root_noise=0.25)
        search.set_position(go.Position.start(5, komi=0.5))
        search.run(Limits(visits=200))
        found.append(summary(search.run(Limits(visits=400))))
        check_tree(search)
    assert found[0] == found[1]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_batch_that_fails_is_taken_back(device: str) -> None:
    fake = go_fake(device=device)
    search = Search(fake, batch_size=8)
    search.set_position(go.Position.start(5))
    search.run(Limits(visits=100))
    write, fake.encoding.write = fake.encoding.write, failing  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="out of memory"):
        search.run(Limits(visits=200))
    check_tree(search)
    fake.encoding.write = write  # type: ignore[method-assign]
    assert search.run(Limits(visits=200)).visits == 200
    check_tree(search)


def failing(*_: Any) -> None:
    raise RuntimeError("out of memory")


def test_runs_can_be_continued() -> None:
    """Visits count from the root's: two runs to 100 and 200 make 200."""
    search = go_search()
    search.run(Limits(visits=100))
    assert search.run(Limits(visits=200)).visits == 200
    assert search.run(Limits(visits=50)).visits == 200
    check_tree(search)


def test_few_leaves_are_under_way_at_few_visits() -> None:
    """With a share of 1/12, the first batches hold one leaf; later ones grow to the batch size."""
    fake = go_fake(batch_size=16)
    search = Search(fake, in_flight_share=1 / 12)
    search.set_position(go.Position.start(5))
    search.run(Limits(visits=600))
    assert fake.batches[:20] == [1] * 20
    assert max(fake.batches) == 16
    assert fake.most_under_way == 2


def test_the_tree_is_kept_from_move_to_move() -> None:
    search = go_search()
    result = search.run(Limits(visits=400))
    best, reply = result.moves[0].pv[:2]
    kept = search.tree.nodes["visits"][search.tree.child(0, GAMES["go"].kernels.code(result.position, best))]
    after = result.position.play(best)
    search.set_position(after)
    assert search.result().visits == kept
    check_tree(search)
    again = search.run(Limits(visits=kept + 50))
    assert again.visits == kept + 50
    assert again.position is after
    check_tree(search)
    search.set_position(after.play(reply, "pass"))
    check_tree(search)
    search.run(Limits(visits=200))
    check_tree(search)


def test_a_kept_tree_holds_the_same_numbers() -> None:
    """What hangs below the move played is the same before and after, shared edges and all."""
    search = go_search(batch_size=1)
    result = search.run(Limits(visits=600))
    before = result.moves[0]
    search.set_position(result.position.play(before.move))
    after = search.run(Limits(visits=search.tree.visits))
    assert after.visits == before.visits
    assert after.value == pytest.approx(-before.value)
    assert (after.moves[0].pv)[:1] == before.pv[1:2] or after.moves[0].visits > 0
    assert sum(info.visits for info in after.moves) == before.visits - 1


def test_other_games_start_afresh() -> None:
    search = go_search()
    search.run(Limits(visits=100))
    search.set_position(go.Position.start(5, komi=1.5).play("C3"))
    assert search.tree.visits == 0
    search.run(Limits(visits=100))
    search.set_position(go.Position.start(4, komi=1.5))
    assert search.tree.is_fresh


def test_a_move_out_of_turn_starts_afresh() -> None:
    search = go_search()
    position = go.Position.start(5, komi=0.5)
    search.run(Limits(visits=100))
    search.set_position(position.play_as("W", "C3"))
    assert search.tree.is_fresh


def test_the_same_position_again_keeps_everything() -> None:
    search = go_search()
    first = search.run(Limits(visits=120))
    search.set_position(go.Position.start(5, komi=0.5))
    assert summary(search.result()) == summary(first)


def test_chess_trees_are_kept_too() -> None:
    search = Search(Fake("chess", random_answer(1858)))
    position = chess.Position.start()
    search.set_position(position)
    result = search.run(Limits(visits=300))
    search.set_position(position.play(*result.principal_variation[:2]))
    assert search.tree.visits > 0
    assert search.run(Limits(visits=300)).visits == 300
    check_tree(search)


def test_allowed_and_avoided_moves() -> None:
    search = go_search()
    result = search.run(Limits(visits=100), allow_moves=["A1", "B2"])
    assert {info.move for info in result.moves} <= {"A1", "B2"}
    assert len(result.policy) == 26
    result = search.run(Limits(visits=200), avoid_moves=["A1"])
    assert "A1" not in {info.move for info in result.moves}
    with pytest.raises(BadRequest, match="not a legal move"):
        search.run(Limits(visits=300), allow_moves=["Z9"])
    with pytest.raises(BadRequest, match="no legal move is left"):
        search.run(Limits(visits=300), allow_moves=["A1"], avoid_moves=["A1"])


def test_seconds_end_a_search() -> None:
    search = Search(go_fake(delay=0.002))
    search.set_position(go.Position.start(5))
    start = time.perf_counter()
    result = search.run(Limits(seconds=0.2))
    assert result.stopped_by == "seconds"
    assert result.visits > 1
    assert time.perf_counter() - start < 5
    check_tree(search)


def test_a_clock_ends_a_search() -> None:
    search = Search(go_fake(delay=0.001))
    search.set_position(go.Position.start(5))
    result = search.run(Limits(clock=Clock(main=1.0)))
    assert result.stopped_by == "clock"
    assert result.seconds < 1.0


@pytest.mark.parametrize(("delay", "device"), [(0.001, "cpu"), (1.5, "cpu"), (1.5, "cuda")])
def test_stop_from_another_thread(delay: float, device: str) -> None:
    """Also while a batch takes long: it is not waited for, and its leaves can be chosen anew."""
    fake = go_fake(device=device)
    search = Search(fake)
    search.set_position(go.Position.start(5))
    search.run(Limits(visits=1))
    fake.delay = delay
    stopped: list[float] = []

    def stop() -> None:
        time.sleep(0.2)
        stopped.append(time.perf_counter())
        search.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    result = search.run(Limits())
    waited = time.perf_counter() - stopped[0]
    thread.join()
    assert result.stopped_by == "stopped"
    assert delay < 1 or waited < delay - 0.2
    check_stopped_tree(search)
    fake.delay = 0.0
    assert search.run(Limits(visits=result.visits + 2)).visits == result.visits + 2


def check_stopped_tree(search: Search) -> None:
    nodes = search.tree.nodes[: int(search.tree.heads["nodes"][0])]
    assert not nodes["pending"].any()
    assert not (nodes["state"] == PENDING).any()


def test_stop_before_run_is_not_lost() -> None:
    search = go_search()
    search.stop()
    assert search.run(Limits()).stopped_by == "stopped"
    assert search.run(Limits(visits=10)).stopped_by == "visits"


def test_updates_come_while_running() -> None:
    search = Search(go_fake(delay=0.001))
    search.set_position(go.Position.start(5))
    seen: list[SearchResult] = []
    search.run(Limits(seconds=0.3), on_update=seen.append, update_seconds=0.05)
    assert seen
    assert [one.visits for one in seen] == sorted(one.visits for one in seen)
    assert all(one.stopped_by == "running" for one in seen)


def test_result_from_another_thread_while_running() -> None:
    search = Search(go_fake(delay=0.001))
    search.set_position(go.Position.start(5))
    results: list[SearchResult] = []

    def watch() -> None:
        for _ in range(20):
            results.append(search.result())
            time.sleep(0.005)
        search.stop()

    thread = threading.Thread(target=watch)
    thread.start()
    search.run(Limits())
    thread.join()
    assert [one.visits for one in results] == sorted(one.visits for one in results)
    with pytest.raises(BadRequest, match="set_position"):
        Search(go_fake()).result()


def test_two_runs_at_once_are_refused() -> None:
    search = Search(go_fake(delay=0.001))
    search.set_position(go.Position.start(5))
    thread = threading.Thread(target=search.run, args=(Limits(),))
    thread.start()
    time.sleep(0.1)
    with pytest.raises(BadRequest, match="running"):
        search.run(Limits(visits=10))
    with pytest.raises(BadRequest, match="running"):
        search.set_position(go.Position.start(5))
    search.stop()
    thread.join()


def test_early_stop_when_nothing_can_change() -> None:
    """One move wins, all others lose: once it is ahead by more than what is left, the search ends."""
    position = go.Position.start(5, komi=0.5)

    def answer(view: Any) -> Answer:
        good = view.board[0]["stones"][go_loc("C3")] == 1
        mine = view.history[0]["to_play"] == 1
        return Answer(np.zeros(26, np.float32), value=0.9 if good == mine else -0.9)

    search = Search(Fake("go", answer), "alphago-zero")
    search.set_position(position)
    result = search.run(Limits(visits=2000, early_stop=True))
    assert result.stopped_by == "early"
    assert result.best == "C3"
    ahead = result.moves[0].visits - result.moves[1].visits
    assert ahead > 2000 - result.visits
    search = Search(Fake("go", answer), "alphago-zero")
    search.set_position(position)
    assert search.run(Limits(visits=600)).stopped_by == "visits"


def go_loc(vertex: str) -> int:
    from keima.games.go.vertices import vertex_to_loc

    return vertex_to_loc(vertex, 5, 5)


def test_a_forced_move_is_played_at_once() -> None:
    position = chess.Position.from_fen("k7/8/8/8/8/8/1r6/K7 w - - 0 1")  # the rook can be taken, nothing else
    search = Search(Fake("chess", random_answer(1858)))
    search.set_position(position)
    result = search.run(Limits(visits=10_000, early_stop=True))
    assert result.best == "a1b2"
    assert result.visits < 10


def test_memory_ends_a_search() -> None:
    search = Search(Fake("go", random_answer(362)), memory=1 << 22)
    search.set_position(go.Position.start(19))
    result = search.run(Limits(visits=1_000_000))
    assert result.stopped_by == "memory"
    assert search.tree.bytes <= 1 << 22
    assert result.visits > 1000
    check_tree(search)
    with pytest.raises(BadRequest, match="memory"):
        Search(go_fake(), memory=1000)


def test_temperature_of_the_choice() -> None:
    search = go_search(preset="alphago-zero")
    result = search.run(Limits(visits=300))
    assert search.choose() == result.best
    drawn = [search.choose(1.0) for _ in range(300)]
    visits = {info.move: info.visits / 299 for info in result.moves}
    often = drawn.count(result.best) / 300
    assert often == pytest.approx(visits[result.best], abs=0.1)
    assert search.choose(0.01) == result.best
    with pytest.raises(BadRequest):
        search.choose(-1)


def test_ownership_is_averaged_for_the_side_to_move_at_the_root() -> None:
    """Black owns everything in every position: +1 for Black at the root, whoever moves at the leaf."""

    def answer(view: Any) -> Answer:
        black = view.history[0]["to_play"] == 1
        return Answer(np.zeros(26, np.float32), ownership=np.full((5, 5), 1.0 if black else -1.0))

    for position, wanted in ((go.Position.start(5), 1.0), (go.Position.start(5).play("C3"), -1.0)):
        search = Search(Fake("go", answer))
        search.set_position(position)
        result = search.run(Limits(visits=50), ownership=True)
        np.testing.assert_allclose(result.ownership, np.full((5, 5), wanted))
        assert search.run(Limits(visits=60)).visits == 60
    with pytest.raises(BadRequest, match="no ownership"):
        go_search().run(Limits(visits=10), ownership=True)


def test_root_symmetries_are_averaged(reference: Any) -> None:
    network = keima.load(reference / "nets" / "g170-b6c96-s175395328-d26788732.bin.gz")
    evaluator = keima.Evaluator(network, "openvino", "f32", 8)
    position = go.Position.start(9, komi=7.0).play("E5", "C3")
    search = Search(evaluator, root_symmetries=8)
    search.set_position(position)
    found = search.run(Limits(visits=1))
    wanted = evaluator([position], symmetry="average")[0]
    assert found.raw_value == pytest.approx(wanted.value, abs=1e-4)
    assert found.policy == pytest.approx(wanted.policy, abs=1e-4)


def test_root_noise_changes_priors_only_at_the_root() -> None:
    plain = go_search().run(Limits(visits=200))
    noisy = go_search(root_noise=0.25).run(Limits(visits=200))
    assert plain.policy == noisy.policy
    before = {info.move: info.prior for info in plain.moves}
    after = {info.move: info.prior for info in noisy.moves}
    for move in set(before) & set(after):
        assert after[move] >= 0.75 * plain.policy[move] - 1e-6
    assert any(abs(before[m] - after[m]) > 0.01 for m in set(before) & set(after))


def test_a_finished_chess_game_has_no_move() -> None:
    search = Search(Fake("chess", random_answer(1858)))
    search.set_position(chess.Position.from_fen(None, moves=["f2f3", "e7e5", "g2g4", "d8h4"]))
    result = search.run(Limits(visits=100))
    assert (result.best, result.moves, result.stopped_by) == ("", (), "solved")
    assert search.choose() == ""


def test_a_finished_go_game_can_be_searched() -> None:
    """As KataGo does: after two passes a third may be asked for."""
    search = Search(go_fake())
    search.set_position(go.Position.start(5).play("C3", "pass", "pass"))
    assert search.run(Limits(visits=60)).visits == 60


def test_wrong_requests_say_what_is_wrong() -> None:
    with pytest.raises(BadRequest, match="unknown preset"):
        Search(go_fake(), "alpha")
    with pytest.raises(BadRequest, match="unknown search parameter"):
        Search(go_fake(), cpuckt=1.0)
    with pytest.raises(BadRequest, match="batch_size"):
        Search(go_fake(), batch_size=0)
    with pytest.raises(BadRequest, match="set_position"):
        Search(go_fake()).run(Limits(visits=1))
    with pytest.raises(BadRequest, match="visits"):
        Limits(visits=0)
    with pytest.raises(BadRequest, match="run the search first"):
        go_search().choose()
    with pytest.raises(IllegalMove):
        go.Position.start(5).play("C9")


def test_unsupported_positions_are_refused(reference: Any) -> None:
    network = keima.load(reference / "nets" / "maia-1900.pb.gz")
    with pytest.raises(UnsupportedPosition):
        Search(keima.Evaluator(network, "openvino", "f32", 8)).set_position(go.Position.start(9))


def test_many_positions_share_batches() -> None:
    """Each tree is searched as far as alone, while the batches are full from the start."""
    fake = go_fake(batch_size=8)
    positions = [go.Position.start(5, komi=0.5).play(v) for v in ("C3", "B2", "A1", "D4", "C2", "pass", "E5", "A5")]
    results = search_batch(fake, positions, visits=100)
    assert [one.visits for one in results] == [100] * 8
    assert [one.position for one in results] == positions
    assert np.mean(fake.batches) > 3
    again = search_batch(go_fake(batch_size=8), positions, visits=100)
    assert [summary(one) for one in results] == [summary(one) for one in again]


def test_many_positions_of_several_sizes() -> None:
    def answer(view: Any) -> Answer:
        return random_answer(int(view.board[0]["xsize"]) * int(view.board[0]["ysize"]) + 1)(view)

    positions = [go.Position.start(5), go.Position.start((3, 4)), go.Position.start(5).play("C3")]
    results = search_batch(Fake("go", answer), positions, visits=40)
    assert [(one.position.xsize, one.visits) for one in results] == [(5, 40), (3, 40), (5, 40)]
    assert search_batch(Fake("go", answer), [], visits=40) == []


def test_the_package_is_the_front_door() -> None:
    result = keima.search(go_fake(), go.Position.start(5), visits=30)
    assert result.visits == 30
    timed = keima.search(go_fake(delay=0.002), go.Position.start(5), seconds=0.1)
    assert timed.stopped_by == "seconds"
    both = keima.search(go_fake(), go.Position.start(5), visits=30, seconds=60)
    assert both.visits == 30
    assert keima.search.Limits is Limits


def test_uniform_networks_are_searched() -> None:
    result = keima.search(Fake("go", uniform_answer(26)), go.Position.start(5), visits=60)
    assert math.isclose(result.value, 0.0, abs_tol=1e-9)
