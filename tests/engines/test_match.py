"""Matches: the schedule, what is kept, resuming after a kill, faults, openings, the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keima.cli.match import describe
from keima.elo import Sprt
from keima.engines.match.match import Match, MatchOptions, MatchStopped
from keima.engines.match.openings import load_openings
from keima.engines.match.players import Settings
from keima.engines.match.results import GameResult, summarise
from keima.errors import BadRecord, BadRequest
from keima.games import chess, go
from keima.games.files import read_records
from keima.games.go.playing import AREA_RULES
from tests.engines.fakes import gtp_player, random_network, uci_player

STRONG, WEAK = gtp_player("--stones", 15, options=",name=Strong"), gtp_player("--stones", 5, options=",name=Weak")


def options(**changes):
    """A quick match on 5×5 from the empty board, komi ½."""
    timeout = changes.pop("timeout", 20.0)
    usual = {"games": 4, "size": (5, 5), "komi": 0.5, "openings": "none", "parallel": 1}
    return MatchOptions(**{**usual, **changes}, settings=Settings(timeout=timeout))


def test_colours_are_swapped_and_games_kept(tmp_path):
    seen = []
    summary = Match(STRONG, WEAK, options(), tmp_path / "m").run(lambda result, stands: seen.append(result.number))
    assert seen == [1, 2, 3, 4]
    assert [(one.first, one.winner, one.result) for one in summary.results] == [
        ("A", "A", "B+9.5"),
        ("B", "A", "W+10.5"),
    ] * 2
    assert (summary.tally.wins, summary.tally.pairs, summary.as_first) == (4, (0, 0, 0, 0, 2), (2, 0, 0))
    assert summary.names == ("Strong", "Weak")
    records = [next(read_records([tmp_path / "m" / f"000{number}.sgf"])) for number in (1, 2, 3, 4)]
    assert [record.players["B"] for record in records] == ["Strong", "Weak"] * 2
    assert [record.result for record in records] == ["B+9.5", "W+10.5"] * 2
    assert str(records[0].rules) == AREA_RULES
    assert json.loads((tmp_path / "m" / "summary.json").read_text())["elo"] is None


def test_chess(tmp_path):
    summary = Match(uci_player("win"), uci_player("lose"), options(games=2), tmp_path).run()
    assert [(one.first, one.winner, one.result, one.reason) for one in summary.results] == [
        ("A", "A", "1-0", "checkmate"),
        ("B", "A", "0-1", "checkmate"),
    ]
    record = next(read_records([tmp_path / "0002.pgn"]))
    assert record.moves == ("f2f3", "e7e5", "g2g4", "d8h4")
    assert record.headers["Termination"] == "checkmate"
    assert record.headers["Round"] == "2"


def test_finished_games_are_not_played_again(tmp_path):
    log = tmp_path / "log"
    strong = gtp_player("--stones", 15, "--log", log)
    assert Match(strong, WEAK, options(games=2), tmp_path / "m").run().tally.games == 2
    heard = log.read_text().count("clear_board")
    kept = (tmp_path / "m" / "games.jsonl").read_bytes()
    summary = Match(strong, WEAK, options(games=4), tmp_path / "m").run()
    assert summary.tally.games == 4
    assert log.read_text().count("clear_board") == heard + 2
    assert (tmp_path / "m" / "games.jsonl").read_bytes().startswith(kept)
    assert Match(strong, WEAK, options(games=4), tmp_path / "m").run().tally == summary.tally


def test_a_line_cut_off_by_a_kill_is_dropped_and_its_game_played_again(tmp_path):
    Match(STRONG, WEAK, options(games=3), tmp_path).run()
    path = tmp_path / "games.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    summary = Match(STRONG, WEAK, options(games=3), tmp_path).run()
    assert [one.number for one in summary.results] == [1, 2, 3]
    lines = path.read_bytes().splitlines()
    assert lines[:2] == whole.splitlines()[:2]
    assert json.loads(lines[2])["number"] == 3


def test_killed_and_resumed(tmp_path):
    """kill -9 in the middle of a match; the same command then plays only what is missing."""
    folder, log = tmp_path / "m", tmp_path / "log"
    weak = gtp_player("--stones", 5, "--slow", 0.02, "--log", log)
    command = [sys.executable, "-m", "keima", "match", STRONG, weak, "--games", "6", "--size", "5", "--komi", "0.5"]
    command += ["--openings", "none", "--parallel", "1", "-o", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    path = folder / "games.jsonl"
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b"\n") >= 2):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = path.read_bytes()
    before = before[: before.rfind(b"\n") + 1]
    played, begun = before.count(b"\n"), log.read_text().count("clear_board")
    assert 2 <= played < 6
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{played} games of this match are played already" in done.stderr
    assert "games 6: A wins 6" in done.stdout
    assert path.read_bytes().startswith(before)
    assert sorted(json.loads(line)["number"] for line in path.read_text().splitlines()) == [1, 2, 3, 4, 5, 6]
    assert log.read_text().count("clear_board") - begun == 6 - played


def test_another_match_in_the_folder_is_refused(tmp_path):
    Match(STRONG, WEAK, options(games=1), tmp_path).run()
    with pytest.raises(BadRequest, match=r"komi was 0\.5, now 7\.5"):
        Match(STRONG, WEAK, options(komi=7.5), tmp_path)
    (tmp_path / "games.jsonl").write_text("not json\n")
    with pytest.raises(BadRecord, match="line 1"):
        Match(STRONG, WEAK, options(games=1), tmp_path).run()


def test_two_processes_do_not_share_a_folder(tmp_path):
    match, other = Match(STRONG, WEAK, options(), tmp_path), Match(STRONG, WEAK, options(), tmp_path)
    refused = []

    def once(result, summary):
        if not refused:
            with pytest.raises(BadRequest, match="another process") as caught:
                other.run()
            refused.append(caught)

    assert match.run(once).tally.games == 4


def test_games_in_parallel_give_the_same_results(tmp_path):
    one = Match(STRONG, WEAK, options(games=6)).run()
    three = Match(STRONG, WEAK, options(games=6, parallel=3)).run()
    assert [(g.first, g.result) for g in one.results] == [(g.first, g.result) for g in three.results]


@pytest.mark.parametrize("fail", ["crash", "hang", "garbage", "illegal"])
def test_an_engine_is_restarted_after_a_fault(tmp_path, fail):
    """It fails at its second move since it was started: every game."""
    bad = gtp_player("--fail", fail, "--at", 2, options=",name=Bad")
    limit = 2.0 if fail == "hang" else 20.0
    summary = Match(STRONG, bad, options(games=2, timeout=limit), tmp_path).run()
    assert (summary.tally.wins, len(summary.faults)) == (2, 2)
    assert {one.fault["player"] for one in summary.faults} == {"B"}
    assert "Bad" in next(read_records([tmp_path / "0001.sgf"])).comments[3]


def test_too_many_faults_stop_the_match(tmp_path):
    bad = gtp_player("--fail", "crash", "--at", 1, options=",name=Bad")
    with pytest.raises(MatchStopped, match=r"B \(Bad\) was at fault in 3 games \(3 crash\).*out of memory"):
        Match(STRONG, bad, options(games=50, max_faults=2), tmp_path).run()
    assert len((tmp_path / "games.jsonl").read_text().splitlines()) == 3


def test_sprt_ends_the_match():
    match = Match(STRONG, WEAK, options(games=400, sprt=Sprt(0, 400, 0.2, 0.2)))
    summary = match.run()
    assert summary.sprt[2] == "H1"
    assert summary.tally.games < 60
    assert summary.to_json()["sprt"]["verdict"] == "H1"


def test_stop_from_outside(tmp_path):
    slow = gtp_player("--slow", 0.05)
    match = Match(slow, slow, options(games=50), tmp_path)
    summary = match.run(lambda result, stands: match.stop())
    assert summary.tally.games == 1


def test_networks_play_each_other_and_repeat_exactly(tmp_path):
    net = random_network(tmp_path / "go.bin.gz")
    players = (f"{net},visits=6,resign=0", f"policy:{net},temperature=1")
    games = []
    for name in ("one", "two"):
        match = Match(*players, options(games=2, openings="balanced", max_plies=30, seed=5), tmp_path / name)
        assert match.run().tally.games == 2
        games.append([(tmp_path / name / f"000{number}.sgf").read_text().split("PL")[1] for number in (1, 2)])
    assert games[0] == games[1]
    assert games[0][0] != games[0][1]


def test_games_that_repeat_one_another_are_told(tmp_path):
    net = random_network(tmp_path / "go.bin.gz")
    summary = Match(f"policy:{net}", f"policy:{net},symmetry=3", options(games=8, openings="none", max_plies=20)).run()
    assert summary.repeated == summary.to_json()["repeated"] == 6  # one game for each of A's colours
    told = "\n".join(describe(summary))
    assert "6 of the games repeat another move by move" in told
    drawing = f"policy:{net},temperature=5"
    drawn = Match(drawing, f"policy:{net}", options(games=8, openings="none", max_plies=20)).run()
    assert drawn.repeated == 0
    assert "repeat" not in "\n".join(describe(drawn))


def test_what_cannot_be_played_is_said_before_the_first_game(tmp_path):
    net = random_network(tmp_path / "go.bin.gz")
    with pytest.raises(BadRequest, match=r"plays go.*plays chess"):
        Match(str(net), uci_player("win"), options())
    with pytest.raises(BadRequest, match="nodes, depth or seconds"):
        Match(uci_player("win", options=""), uci_player("lose"), options())
    with pytest.raises(BadRequest, match="unknown search parameter"):
        Match(f"{net},cpukt=3", WEAK, options())
    with pytest.raises(BadRequest, match="openings"):
        Match(STRONG, WEAK, options(openings="no-such-file.sgf"))
    with pytest.raises(BadRequest, match="no human profiles"):
        Match(f"{net},profile=rank_5k", WEAK, options())


def test_pairs_are_counted_by_opening():
    def game(number, winner):
        return GameResult(number, "", "AB"[(number - 1) % 2], winner, "", "", None, 1, (0.0, 0.0))

    results = [game(1, "A"), game(2, None), game(4, "B"), game(3, "B"), game(5, "A")]
    assert summarise(results, ("a", "b")).tally.pairs == (1, 0, 0, 1, 0)
    assert summarise(results, ("a", "b"), swap=False).tally.pairs == (0, 0, 0, 0, 0)
    assert summarise(results, ("a", "b")).as_first == (2, 0, 1)


# Openings


def test_go_openings_differ_and_do_not_repeat_under_symmetry():
    start = go.Position.start(9)
    openings = load_openings("balanced", start, seed=3)
    boards = set()
    for index in range(openings.count):
        stones = openings.get(index).position.stones
        images = []
        for turned in (stones, stones[::-1], stones[:, ::-1], stones[::-1, ::-1]):
            images += [turned.tobytes(), turned.T.copy().tobytes()]
        boards.add(min(images))
    assert len(boards) == openings.count == 63
    assert openings.get(63).position == openings.get(0).position
    again = load_openings("balanced", start, seed=3)
    assert [again.get(i).position for i in range(9)] == [openings.get(i).position for i in range(9)]
    assert load_openings("balanced", start, seed=4).get(0).position != openings.get(0).position


def test_large_boards_open_in_four_corners():
    openings = load_openings("balanced", go.Position.start(19))
    assert openings.count == 768
    for index in range(0, 768, 50):
        stones = openings.get(index).position.stones
        corners = [stones[:9, :9], stones[:9, 10:], stones[10:, :9], stones[10:, 10:]]
        assert [int((corner > 0).sum()) for corner in corners] == [1, 1, 1, 1]


def test_chess_openings_are_all_different():
    openings = load_openings("balanced", chess.Position.start())
    fens = {openings.get(index).position.fen() for index in range(openings.count)}
    assert len(fens) == openings.count == 54


def test_random_openings_follow_the_seed():
    start = chess.Position.start()
    one, two = load_openings("random:6", start, seed=1), load_openings("random:6", start, seed=1)
    moves = [one.get(index).position.moves for index in range(5)]
    assert moves == [two.get(index).position.moves for index in range(5)]
    assert len(set(moves)) == 5
    assert {len(each) for each in moves} == {6}
    with pytest.raises(BadRequest, match="fewer"):
        load_openings("random:40", go.Position.start(2)).get(0)


def test_openings_from_files(tmp_path):
    sgf = tmp_path / "a.sgf"
    sgf.write_text("(;GM[1]SZ[5]KM[6.5]RU[Japanese]EV[First];B[cc];W[dd];B[bb])(;GM[1]SZ[5];B[aa])")
    start = go.Position.start(5, AREA_RULES, 0.5)
    found = load_openings(str(sgf), start, plies=2)
    positions = {found.get(index).name: found.get(index).position for index in range(2)}
    assert positions["First"].moves == (("B", "C3"), ("W", "D2"))
    assert (positions["First"].komi, str(positions["First"].rules)) == (0.5, AREA_RULES)
    with pytest.raises(BadRecord, match="5×5; this match's is 9×9"):
        load_openings(str(sgf), go.Position.start(9))
    pgn = tmp_path / "a.pgn"
    pgn.write_text("1. e4 e5 2. Nf3 *\n\n1. d4 d5 *\n")
    found = load_openings(str(pgn), chess.Position.start())
    assert {found.get(index).position.moves for index in range(2)} == {("e2e4", "e7e5", "g1f3"), ("d2d4", "d7d5")}
    fens = tmp_path / "a.epd"
    fens.write_text('# two\n4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\n\nr3k3/8/8/8/8/8/8/4K2R b Kq - id "x"; hmvc 3;\n')
    found = load_openings(str(fens), chess.Position.start())
    assert {found.get(index).position.to_play for index in range(2)} == {"w", "b"}
    fens.write_text("4k3/8/8/8 w - - 0 1\n")
    with pytest.raises(BadRecord, match="line 1"):
        load_openings(str(fens), chess.Position.start())
    with pytest.raises(BadRecord, match="for chess"):
        load_openings(str(fens), start)


# The command


def run(*arguments: object):
    from keima.cli.main import app

    return CliRunner().invoke(app, ["match", *map(str, arguments)])


QUICK = ("--size", "5", "--komi", "0.5", "--openings", "none", "--parallel", "1", "--games", "2")


def test_command_prints_games_and_summary(tmp_path):
    result = run(STRONG, WEAK, *QUICK, "-o", tmp_path / "m", "--sprt", "0,10")
    assert result.exit_code == 0, result.output
    assert "game 1: Strong – Weak: B+9.5, score (agreed)" in result.stderr
    assert "games 2: A wins 2, draws 0, loses 0 (moving first +1 =0 −0, second +1 =0 −0)" in result.stdout
    assert "score 100.0 % (95 %: 34.2 to 100.0)" in result.stdout  # Wilson: 2 / (2 + 1.96²)
    assert "SPRT elo0 0, elo1 10" in result.stdout
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "0001.sgf",
        "0002.sgf",
        "games.jsonl",
        "match.json",
        "summary.json",
    ]


def test_command_writes_json():
    result = run(STRONG, WEAK, *QUICK, "--json", "-")
    summary = json.loads(result.stdout)
    assert (summary["wins"], summary["pairs"], summary["faults"]) == (2, [0, 0, 0, 0, 1], [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--size", "30"), "30"),
        (("--size", "x"), "--size"),
        (("--sprt", "5"), "--sprt"),
        (("--time", "soon"), "--time"),
        (("--rules", "calvinball"), "calvinball"),
    ],
)
def test_command_refuses_with_a_message(arguments, words):
    result = run(STRONG, WEAK, *QUICK, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_command_ends_with_2_when_an_engine_keeps_failing(tmp_path: Path):
    bad = gtp_player("--fail", "crash", "--at", 1)
    result = run(STRONG, bad, *QUICK, "--games", "20", "--max-faults", "1")
    assert result.exit_code == 2
    assert "at fault in 2 games" in result.stderr
