"""UCI: written conversations, searches that wait for the GUI, floods, and python-chess driving the real engine."""

from __future__ import annotations

import fnmatch
import math
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chess
import chess.engine
import pytest

import keima
from keima.engines.uci.engine import Go, UciEngine, centipawns, permille, score_of
from keima.engines.uci.options import OPTIONS, Values
from keima.errors import BadRequest, UnsupportedNetwork
from keima.search.limits import Clock, Limits
from keima.search.report import MoveInfo
from tests.engines.scripted import ScriptedEvaluator, ScriptedSearch

TRANSCRIPTS = Path(__file__).parent / "transcripts"


class Gui:
    """An engine with a scripted search, and all that it wrote."""

    def __init__(self, **overrides: Any) -> None:
        self.lines: list[str] = []
        self.search = ScriptedSearch(ScriptedEvaluator("lc0"))
        self.values = Values()
        self.engine = UciEngine(lambda values: self.search, self.values, self.lines.append)

    def say(self, *lines: str) -> None:
        for line in lines:
            assert self.engine.handle(line)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.lines) >= count)

    def hear(self, beginning: str, count: int = 1) -> str:
        """Wait for lines that begin so; the last."""
        wait_until(lambda: sum(line.startswith(beginning) for line in self.lines) >= count)
        return [line for line in self.lines if line.startswith(beginning)][-1]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.001)


def turns(path: Path) -> list[tuple[str, list[str]]]:
    """A transcript: each line in, with the lines that come out of it."""
    found: list[tuple[str, list[str]]] = []
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("> "):
            found.append((line[2:], []))
        elif line.startswith("< "):
            found[-1][1].append(line[2:])
    return found


@pytest.mark.parametrize("name", ["basics", "refusals"])
def test_transcript(name: str) -> None:
    gui = Gui()
    for line, expected in turns(TRANSCRIPTS / f"uci_{name}.txt"):
        gui.lines.clear()
        gui.say(line)
        gui.engine.finish()
        gui.wait_for(len(expected))
        assert len(gui.lines) == len(expected), f"{line}: {gui.lines}"
        for wanted, found in zip(expected, gui.lines, strict=True):
            assert fnmatch.fnmatchcase(found, wanted.replace("[", "[[]")), f"{line}: {found!r}, expected {wanted!r}"


def test_an_infinite_search_speaks_when_it_is_stopped() -> None:
    gui = Gui()
    gui.say("position startpos", "go infinite")
    gui.hear("info depth 5")
    gui.say("isready")
    assert "readyok" in gui.lines
    assert not any(line.startswith("bestmove") for line in gui.lines)
    gui.say("stop")
    gui.hear("bestmove")
    gui.say("stop")
    assert sum(line.startswith("bestmove") for line in gui.lines) == 1


def test_an_infinite_search_that_ends_by_itself_waits_to_be_asked() -> None:
    gui = Gui()
    gui.say("position startpos", "go infinite nodes 8")
    wait_until(lambda: bool(gui.search.journal) and not gui.search.running.is_set())
    assert " nodes 8 " in gui.hear("info depth")
    gui.say("isready")
    assert "readyok" in gui.lines
    assert not any(line.startswith("bestmove") for line in gui.lines)
    gui.say("stop")
    gui.hear("bestmove")


def test_ponderhit_makes_the_clock_count() -> None:
    gui = Gui()
    gui.say("position startpos moves e2e4 e7e5", "go ponder wtime 60000 btime 50000 winc 1000 binc 2000")
    gui.hear("info depth")
    gui.say("ponderhit")
    gui.hear("bestmove")
    (_, pondering), (_, playing) = gui.search.journal
    assert pondering["limits"] == Limits()
    assert playing["limits"] == Limits(clock=Clock(59.8, 1.0), early_stop=True)
    assert sum(line.startswith("bestmove") for line in gui.lines) == 1


def test_pondering_that_missed_ends_with_stop() -> None:
    gui = Gui()
    gui.say("position startpos", "go ponder nodes 10")
    wait_until(gui.search.running.is_set)
    gui.say("stop")
    gui.hear("bestmove")
    assert len(gui.search.journal) == 1


def test_a_new_go_ends_the_old_one_first() -> None:
    gui = Gui()
    gui.say("position startpos", "go infinite", "go nodes 5")
    gui.hear("bestmove", count=2)
    assert [options["limits"].visits for _, options in gui.search.journal] == [None, 5]


def test_a_new_game_is_silent_about_the_old_one() -> None:
    gui = Gui()
    gui.say("position startpos", "go infinite")
    wait_until(gui.search.running.is_set)
    gui.say("ucinewgame", "isready")
    assert gui.lines[-1] == "readyok"
    assert not any(line.startswith("bestmove") for line in gui.lines)
    assert gui.search.cleared == 1


@pytest.mark.parametrize("command", ["go depth 6", "go mate 1"])
def test_depth_and_mate_end_a_search(command: str) -> None:
    gui = Gui()
    gui.say("position fen 6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", f"{command} searchmoves a1a8")
    gui.hear("bestmove a1a8")
    depth = max(int(line.split()[2]) for line in gui.lines if line.startswith("info depth"))
    assert depth >= 6 if "depth" in command else depth <= 5


def test_quit_ends_everything() -> None:
    gui = Gui()
    gui.say("position startpos", "go infinite")
    wait_until(gui.search.running.is_set)
    assert gui.engine.handle("quit") is False
    assert not gui.search.running.is_set()
    assert not any(thread.name == "search" for thread in threading.enumerate())


def test_the_temperature_chooses_the_move() -> None:
    gui = Gui()
    gui.say("setoption name Temperature value 1", "position startpos", "go nodes 4")
    best = gui.hear("bestmove").split()[1]
    assert best == gui.search._position.legal()[1]


def test_a_position_stays_when_the_next_one_is_refused() -> None:
    gui = Gui()
    gui.say("position startpos moves e2e4", "position startpos moves e2e5", "go nodes 4")
    gui.hear("bestmove")
    assert gui.search.journal[0][0].moves == ("e2e4",)


def test_a_network_that_cannot_be_opened() -> None:
    def refuse(values: Values) -> Any:
        raise BadRequest(f"no network\nin {values['WeightsFile']}")

    lines: list[str] = []
    engine = UciEngine(refuse, Values({"WeightsFile": "gone.pb.gz"}), lines.append)
    for line in ("isready", "position startpos", "go nodes 5"):
        engine.handle(line)
    complaint = "info string no network in gone.pb.gz"
    assert sorted(lines) == sorted([complaint, "readyok", complaint, "bestmove (none)"])


def test_a_search_that_fails_says_so() -> None:
    gui = Gui()

    def fail(*arguments: Any, **options: Any) -> Any:
        raise ZeroDivisionError("by zero")

    gui.search.run = fail  # type: ignore[method-assign]
    gui.say("position startpos", "go nodes 5")
    assert gui.hear("bestmove") == "bestmove (none)"
    assert "by zero" in gui.lines[0]


def test_limits_of_go() -> None:
    def limits(words: str, to_play: str = "w", overhead: int = 100) -> Limits:
        return Go.parse(words.split()).limits(to_play, overhead)

    assert limits("wtime 10000 btime 20000 winc 500 movestogo 12", "b") == Limits(
        clock=Clock(19.9, 0.0, moves_to_go=12), early_stop=True
    )
    assert limits("wtime -30 btime 1") == Limits(clock=Clock(0.0), early_stop=True)
    assert limits("movetime 1000") == Limits(seconds=0.9)
    assert limits("movetime 100") == Limits(seconds=0.05)
    assert limits("nodes 0") == Limits(visits=1)
    assert limits("nodes 50 movetime 2000") == Limits(visits=50, seconds=1.9)
    assert limits("infinite wtime 5000") == Limits()
    assert limits("btime 5000") == Limits()
    words = ["searchmoves", "e2e4", "d2d4", "ponder", "depth", "3"]
    assert Go.parse(words) == Go({"depth": 3}, False, True, ("e2e4", "d2d4"))


def test_options_reach_the_search() -> None:
    values = Values()
    assert values.parameters == {}
    for name, text in {"cpuct": "2", "PolicyTemperature": "1.5", "FpuValue": "0.4", "DrawScore": "-0.1"}.items():
        values.set(name, text)
    assert values.parameters == {
        "cpuct": 2.0,
        "policy_temperature": 1.5,
        "root_policy_temperature": 1.5,
        "fpu_reduction": 0.4,
        "root_fpu_reduction": 0.4,
        "draw_score": -0.1,
    }
    values.set("WeightsFile", "a file with spaces.pb.gz")
    assert values["WeightsFile"] == "a file with spaces.pb.gz"
    assert len({option.name.lower() for option in OPTIONS}) == len(OPTIONS)


def test_scores() -> None:
    """Lc0 v0.33 by hand: 90 · tan(1.5637541897 · q) is 0, 37, 89, 546 and 12780 at these q."""
    assert [centipawns(q) for q in (0.0, 0.25, 0.5, 0.9, 1.0)] == [0, 37, 89, 546, 12780]
    assert all(centipawns(-q) == -centipawns(q) for q in (0.1, 0.7, 1.0))
    assert centipawns(1.5) == centipawns(1.0)

    def score(mate: int | None) -> str:
        return score_of(MoveInfo("e2e4", 0, 1, 1.0, 0.5, 0.7, 0.1, 0.2, 0.5, -math.inf, mate=mate))

    assert [score(plies) for plies in (1, 3, 5, -2, -4, 0, None)] == [
        "mate 1",
        "mate 2",
        "mate 3",
        "mate -1",
        "mate -2",
        "cp 89",
        "cp 89",
    ]


def test_thousandths_sum_to_a_thousand() -> None:
    assert permille(0.6504, 0.1496) == (650, 200, 150)
    assert permille(1.0, 0.0) == (1000, 0, 0)
    for win in range(0, 1001, 7):
        parts = permille(win / 1000 + 0.0005, 1 - win / 1000 - 0.0004)
        assert sum(parts) == 1000
        assert min(parts) >= 0


WORDS = """
    uci isready setoption name value MultiPV UCI_Chess960 true false position startpos fen moves e2e4 e7e5 e1g1 go
    nodes 5 depth 2 wtime btime winc movestogo 1 searchmoves mate ponder stop ponderhit debug on off ucinewgame infinite
    movetime 8/8/8/8/8/8/8/8 w KQkq - 0 \x00 ß 棋 -7 99999999999999999999 %s {} "quoted
"""


def test_ten_thousand_random_lines_are_survived() -> None:
    rng = random.Random(11)
    gui = Gui()
    words = WORDS.split()
    for _ in range(10_000):
        gui.say(" ".join(rng.choices(words, k=rng.randrange(1, 7))))
    gui.say("stop", "ucinewgame", "position startpos")
    gui.lines.clear()
    gui.say("go nodes 4")
    gui.hear("bestmove")
    assert all(line.isascii() and "\n" not in line for line in gui.lines)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh Maia of one small block."""
    import torch

    import keima

    torch.manual_seed(1)
    path = tmp_path_factory.mktemp("net") / "tiny network.pb.gz"
    keima.save(keima.create("maia-6x64", blocks=1, channels=16).eval(), path)
    return path


def test_python_chess_drives_the_engine(network: Path) -> None:
    """Play, analysis of several lines, pondering, Chess960, stopping: the real engine, by the client scripts use."""
    command = [sys.executable, "-m", "keima", "uci", "--net", str(network), "--threads", "1", "--backend", "torch"]
    with chess.engine.SimpleEngine.popen_uci(command, timeout=240) as engine:
        assert engine.id["name"].startswith("keima")
        engine.ping()

        board = chess.Board()
        played = engine.play(board, chess.engine.Limit(white_clock=60, black_clock=60, white_inc=1), ponder=True)
        assert played.move in board.legal_moves
        board.push(played.move)
        assert played.ponder in board.legal_moves
        board.push(played.ponder)
        assert engine.play(board, chess.engine.Limit(white_clock=60, black_clock=60)).move in board.legal_moves

        engine.configure({"UCI_ShowWDL": True})
        infos = engine.analyse(board, chess.engine.Limit(nodes=120), multipv=3, game="new")
        assert [info["multipv"] for info in infos] == [1, 2, 3]
        assert len({info["pv"][0] for info in infos}) == 3
        assert infos[0]["nodes"] == 120
        assert sum(infos[0]["wdl"].relative) == 1000
        assert all(info["pv"][0] in board.legal_moves for info in infos)
        assert -1000 < infos[0]["score"].relative.score() < 1000

        mate = chess.Board("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1")
        solved = engine.play(mate, chess.engine.Limit(nodes=400), info=chess.engine.INFO_ALL)
        assert (solved.move, solved.info["score"].relative) == (chess.Move.from_uci("a1a8"), chess.engine.Mate(1))

        only = engine.play(board, chess.engine.Limit(depth=2), root_moves=[chess.Move.from_uci("a2a3")])
        assert only.move == chess.Move.from_uci("a2a3")

        castling = chess.Board("1k6/8/8/8/8/8/8/RK5R w KQ - 0 1", chess960=True)
        king_takes_rook = chess.Move.from_uci("b1h1")
        found = engine.play(castling, chess.engine.Limit(nodes=20), root_moves=[king_takes_rook])
        assert found.move == king_takes_rook

        with engine.analysis(board) as analysis:
            first = analysis.get()
            analysis.stop()
        assert "pv" in first
        assert engine.play(board, chess.engine.Limit(time=0.05)).move in board.legal_moves


def test_the_command_line_ends_with_its_input(network: Path) -> None:
    import subprocess

    script = b"position startpos moves d2d4\ngo nodes 30\n"
    command = [sys.executable, "-m", "keima", "uci", "--net", str(network), "--threads", "1", "--backend", "torch"]
    done = subprocess.run(command, input=script, capture_output=True, timeout=240, check=True)
    *_, info, best = done.stdout.decode("ascii").splitlines()
    assert "nodes 30 " in info
    assert (
        chess.Move.from_uci(best.split()[1])
        in chess.Board("rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1").legal_moves
    )


def test_the_command_line_opens_chess_networks_only(tmp_path: Path) -> None:
    import keima
    from keima.cli.uci import _Opener

    path = tmp_path / "go.bin.gz"
    keima.save(keima.create("katago-b6c96", blocks=1).eval(), path)
    with pytest.raises(UnsupportedNetwork, match="plays go, not chess"):
        _Opener({})(Values({"WeightsFile": str(path), "Backend": "torch"}))


def test_a_file_whose_name_is_not_ascii_is_announced(tmp_path: Path) -> None:
    import subprocess

    keima.save(keima.create("lc0", blocks=1, channels=8), tmp_path / "d\u00e9faut.pb.gz")
    command = [sys.executable, "-m", "keima", "uci", "--net", "d\u00e9faut.pb.gz"]
    done = subprocess.run(command, input=b"uci\nquit\n", capture_output=True, timeout=300, check=True, cwd=tmp_path)
    assert "option name WeightsFile type string default d\u00e9faut.pb.gz" in done.stdout.decode()
    assert done.stdout.endswith(b"uciok\n")
