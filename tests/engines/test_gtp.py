"""GTP held to written conversations, to KataGo's own output, to floods of nonsense, and to a game with GNU Go."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from keima.engines.gtp.clock import TimeControl
from keima.engines.gtp.commands import COMMANDS
from keima.engines.gtp.engine import LONGEST_LINE, Engine, Options
from keima.engines.gtp.words import answer, clean_line
from keima.engines.session import SearchThread
from keima.errors import BadRequest
from keima.games import go
from keima.search.limits import Limits
from keima.systems.alphago_zero.inputs import AlphaGoZeroEncoding
from tests.engines.gtp_fakes import Controller, FakeEvaluator, FakeSearch

TRANSCRIPTS = Path(__file__).parent / "transcripts"


def conversation(path: Path) -> list[tuple[str, list[str]]]:
    """A transcript: lines `> command`, each followed by the lines of its answer."""
    turns: list[tuple[str, list[str]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("> "):
            turns.append((line[2:], []))
        elif turns:
            turns[-1][1].append(line)
    return turns


@pytest.mark.parametrize("name", sorted(path.stem for path in TRANSCRIPTS.glob("*.gtp")))
def test_the_conversation_goes_as_written(name):
    with Controller() as controller:
        for command, expected in conversation(TRANSCRIPTS / f"{name}.gtp"):
            assert controller.ask(command).split("\n") == expected, command


STANDARD = """
    protocol_version name version known_command list_commands quit boardsize clear_board komi play genmove undo
    fixed_handicap place_free_handicap set_free_handicap time_settings time_left final_score final_status_list loadsgf
    reg_genmove showboard
"""
EXTENSIONS = """
    kgs-time_settings kata-time_settings rectangular_boardsize lz-analyze lz-genmove_analyze kata-analyze kata-search
    kata-genmove_analyze kata-search_analyze kata-raw-nn kata-set-rules kata-get-rules kata-set-rule kata-list-params
    kata-get-param kata-set-param printsgf gogui-analyze_commands heatmap cputime stop analyze genmove_analyze
"""


def test_every_command_of_the_standard_and_of_the_clients_is_there():
    assert {*STANDARD.split(), *EXTENSIONS.split()} <= set(COMMANDS)
    with Controller() as controller:
        listed = controller.ask("list_commands")
        assert listed.removeprefix("= ").split("\n") == list(COMMANDS)
        for name in COMMANDS:
            assert controller.ask(f"known_command {name}") == "= true"


def test_every_display_gogui_is_offered_works():
    with Controller() as controller:
        controller.ask("boardsize 5")
        controller.ask("play b c3")
        offered = controller.ask("gogui-analyze_commands").removeprefix("= ").split("\n")
        for kind, label, command in (line.split("/") for line in offered):
            assert kind in ("string", "gfx", "dboard", "plist"), label
            assert controller.ask(command).startswith("="), command


# Lines


def test_lines_are_cleaned_as_the_standard_says():
    assert clean_line(b"  play\tb  d4 # a good move \r\n") == "play b  d4"
    assert clean_line(b"# only a comment") == ""
    assert clean_line(b"na\x07m\x00e\x7f") == "name"
    assert clean_line(b"\xff\xfe") == "��"


def test_answers_hold_no_empty_line():
    assert answer(True, None, "") == "=\n\n"
    assert answer(False, 3, "no") == "?3 no\n\n"
    assert answer(True, None, "a\n\n\nb\r\n\r\nc") == "= a\nb\nc\n\n"
    assert answer(True, 1, "\nboard") == "=1\nboard\n\n"


def talk(text: bytes, **options: Any) -> str:
    """What an engine answers to a whole input; it ends with it."""
    out = io.BytesIO()
    Engine(FakeEvaluator(), lambda bound, overrides: FakeSearch(FakeEvaluator()), Options(**options), COMMANDS).run(
        io.BytesIO(text), out
    )
    return out.getvalue().decode()


def test_empty_lines_comments_and_carriage_returns_are_passed_over():
    text = b"\r\n\n# hello\n   \t\n1\tprotocol_version  # version\r\n2 name\r\n\n3 quit\r\n4 name\n"
    assert talk(text) == "=1 2\n\n=2 keima\n\n=3\n\n"


def test_the_end_of_the_input_ends_the_engine_even_within_a_line():
    assert talk(b"") == ""
    assert talk(b"name\nprotocol_ver") == "= keima\n\n? unknown command\n\n"
    assert talk(b"kata-analyze b 10\n").startswith("=\n")


def test_a_line_without_end_is_refused_and_the_next_one_heard():
    text = b"play b " + b"a" * (3 * LONGEST_LINE) + b"\nname\n" + b"9" * (LONGEST_LINE + 1) + b"\n" + b"version" + b"\n"
    answers = talk(text).split("\n\n")
    assert answers[0].startswith("? line longer than")
    assert answers[1] == "= keima"
    assert answers[2].startswith("? line longer than")
    assert answers[3].startswith("= ")


# Searching


def test_an_analysis_goes_on_until_the_next_line_and_ends_with_an_empty_one():
    with Controller() as controller:
        controller.ask("boardsize 5")
        controller.send("7 kata-analyze w 2")
        assert controller.line() == "=7"
        first = controller.line()
        assert first.startswith("info move C3 visits ")
        controller.send("")  # an empty line ends it, and has no answer of its own
        assert all(line.startswith("info move C3") for line in controller.answer())
        position, limits, _ = controller.search.runs[-1]
        assert (position.to_play, limits.visits, limits.seconds) == ("W", None, None)
        assert controller.ask("name") == "= keima"
        assert controller.ask("showboard").endswith("Black to play, 0 moves made, tromp-taylor rules, komi 7.5\n"
                                                    "stones captured: 0 black, 0 white")  # fmt: skip


def test_a_command_ends_an_analysis_and_is_then_obeyed():
    with Controller() as controller:
        controller.send("lz-analyze b 2", "play b c3", "known_command play")
        answers = [controller.answer(), controller.answer(), controller.answer()]
        assert answers[0][0] == "="
        assert answers[1:] == [["="], ["= true"]]


def test_without_an_interval_nothing_is_reported():
    with Controller() as controller:
        controller.send("lz-analyze", "name")
        assert controller.answer() == ["="]
        assert controller.answer() == ["= keima"]


@pytest.mark.parametrize("word", ["stop", "12 stop", "# interrupt"])
def test_stop_ends_a_genmove_with_the_best_move_so_far(word):
    with Controller() as controller:
        controller.search.slow = True
        controller.ask("boardsize 5")
        controller.send("1 genmove b")
        while not controller.search.runs:
            threading.Event().wait(0.001)
        controller.send(word, "name")
        assert controller.answer() == ["=1 C3"]
        if "stop" in word:
            assert controller.answer() == [f"={word.removesuffix('stop').strip()}"]
        assert controller.answer() == ["= keima"]


def test_a_genmove_is_not_ended_by_the_next_command():
    with Controller() as controller:
        controller.search.slow, controller.search.patience = True, 0.3
        controller.send("genmove b", "name")
        controller.answer()
        assert not controller.engine.worker.asked_to_stop
        assert controller.answer() == ["= keima"]


def test_a_cancellable_search_answers_cancelled_or_its_move():
    with Controller() as controller:
        controller.ask("boardsize 5")
        assert controller.ask("kata-search_cancellable b") == "= C3"
        assert controller.ask("kata-search_analyze_cancellable b 50").split("\n")[-1] == "play C3"
        controller.search.slow = True
        controller.send("3 kata-search_cancellable b", "kata-search_analyze_cancellable b", "undo")
        assert controller.answer() == ["=3 cancelled"]
        assert controller.answer() == ["=", "play cancelled"]
        assert controller.answer() == ["? cannot undo"]


def test_genmove_analyze_reports_at_least_once_and_makes_the_move():
    with Controller() as controller:
        controller.ask("boardsize 5")
        lines = controller.ask("4 lz-genmove_analyze b 100").split("\n")
        assert lines[0] == "=4"
        assert lines[1].startswith("info move C3 visits 400 winrate 6000 prior ")
        assert lines[-1] == "play C3"
        lines = controller.ask("kata-search_analyze w 100").split("\n")
        assert lines[-1] == "play B3"
        assert "1 moves made" in controller.ask("showboard")
        lines = controller.ask("kata-genmove_analyze interval 100").split("\n")
        assert lines[-1] == "play B3", "without a colour it moves for the side to move"


LEELA_ZERO = (
    "info move C3 visits 400 winrate 6000 prior 2499 lcb 5500 order 0 pv C3 pass "
    "info move B3 visits 200 winrate 6000 prior 919 lcb 5500 order 1 pv B3 pass"
)
KATAGO_FIELDS = """move visits edgeVisits utility winrate scoreMean scoreStdev scoreLead scoreSelfplay noResultValue
    prior lcb utilityLcb weight order pv"""
KATAGO_ROOT_FIELDS = """visits utility winrate scoreMean scoreStdev scoreLead scoreSelfplay weight rawStWrError
    rawStScoreError rawVarTimeLeft"""


def test_leela_zeros_line():
    with Controller() as controller:
        controller.ask("boardsize 5")
        assert controller.ask("lz-genmove_analyze b 100 maxmoves 2").split("\n")[1] == LEELA_ZERO


def test_katagos_line_has_katagos_fields_in_katagos_order():
    with Controller() as controller:
        controller.ask("boardsize 5")
        controller.ask("play b c3")
        options = "rootInfo true ownership true movesOwnership true noResultValue true maxmoves 1"
        line = controller.ask(f"kata-search_analyze w 100 {options}").split("\n")[1]
        info, root, owned = re.fullmatch(r"info (.*) rootInfo (.*) ownership (.*)", line).groups()
        info, after = info.split(" movesOwnership ")
        names = re.findall(r"[a-zA-Z]{2,}", info.split(" pv ")[0])
        assert [*names, "pv"] == KATAGO_FIELDS.split()
        assert root.split()[::2] == KATAGO_ROOT_FIELDS.split()
        assert [float(point) for point in owned.split()] == [0] * 12 + [-0.9] + [0] * 12, "for White, to move"
        assert [float(point) for point in after.split()] == [0] * 11 + [0.9, -0.9] + [0] * 12
        numbers = dict(zip(root.split()[::2], map(float, root.split()[1::2]), strict=True))
        assert (numbers["winrate"], numbers["scoreLead"], numbers["scoreStdev"]) == (0.4, -1.6, 3.25)


def test_sabaki_gets_a_decimal_point_in_every_fraction():
    with Controller(FakeEvaluator(value=1.0, lead=2.0)) as controller:
        controller.ask("boardsize 5")
        line = controller.ask("genmove_analyze b 100").split("\n")[1]
        for name in ("winrate", "utility", "scoreLead", "prior", "lcb", "weight"):
            assert re.search(rf" {name} -?\d+\.\d* ", line), name
        assert re.search(r" visits \d+ ", line)


def test_minmoves_shows_unvisited_moves_and_maxmoves_hides():
    with Controller() as controller:
        controller.ask("boardsize 3")
        line = controller.ask("kata-search_analyze b 100 minmoves 9").split("\n")[1]
        assert line.count("info move ") == 9
        assert line.count(" visits 0 ") == 6
        assert controller.ask("kata-search_analyze b 100 maxmoves 2").split("\n")[1].count("info move ") == 2


def test_avoid_and_allow_restrict_the_side_the_analysis_is_for():
    with Controller() as controller:
        controller.ask("boardsize 5")
        assert controller.ask("kata-search_analyze b avoid b C3,b3 5 avoid w D3 1").endswith("\nplay D3")
        assert controller.search.runs[-1][2]["avoid"] == {"C3", "B3"}
        assert controller.ask("kata-search_analyze b allow b a1,pass 5").endswith("\nplay A1")
        assert controller.search.runs[-1][2]["allow"] == {"A1", "pass"}


def test_limits_come_from_options_parameters_and_clock():
    with Controller(options=Options(rules="tromp-taylor")) as controller:
        search = controller.search
        controller.ask("genmove b")
        limits = search.runs[-1][1]
        assert (limits.visits, limits.seconds, limits.clock, limits.early_stop) == (800, None, None, True)
        controller.ask("kata-time_settings fischer-capped 60 5 -1 2.5")
        controller.ask("genmove w")
        limits = search.runs[-1][1]
        assert (limits.visits, limits.seconds, limits.clock.main, limits.clock.increment) == (None, 2.5, 60, 5)
        controller.ask("kata-set-param maxVisits 30")
        controller.ask("kata-set-param maxTime 0.5")
        controller.ask("kgs-time_settings none")
        controller.ask("genmove b")
        limits = search.runs[-1][1]
        assert (limits.visits, limits.seconds, limits.clock) == (30, 0.5, None)


def test_search_parameters_make_a_new_search_and_keep_the_earlier_ones():
    made: list[dict[str, float]] = []

    def make(evaluator: Any, **overrides: float) -> FakeSearch:
        made.append(overrides)
        if overrides.get("cpuct", 0) < 0:
            raise BadRequest("no such search")
        return FakeSearch(evaluator)

    with Controller(make_search=make) as controller:
        controller.ask("kata-set-param cpuctExploration 1.5")
        controller.ask("kata-set-param rootPolicyTemperature 1.1")
        assert controller.ask("kata-set-param cpuct -1") == "? Could not set params: no such search"
        controller.ask("kata-set-param lcbStdevs 4")
    assert made[2] == {"cpuct": 1.5, "root_policy_temperature": 1.1}
    assert made[-1] == {"cpuct": 1.5, "root_policy_temperature": 1.1, "lcb_stdevs": 4.0}


def test_pondering_goes_on_between_commands_and_only_then():
    with Controller(options=Options(rules="tromp-taylor", ponder=True)) as controller:
        controller.ask("boardsize 5")
        assert not controller.engine.worker.running
        assert controller.ask("genmove b") == "= C3"
        controller.ask("name")
        while len(controller.search.runs) < 2:
            threading.Event().wait(0.001)
        position, limits, _ = controller.search.runs[-1]
        assert (position.to_play, limits.seconds, limits.visits) == ("W", 60.0, None)
        assert controller.ask("stop") == "="
        assert not controller.engine.worker.running
        controller.ask("play w a1")
        controller.search.slow = True
        controller.send("kata-search_cancellable b", "")  # KataGo ponders neither during nor after it
        assert controller.answer() == ["= cancelled"]
        assert controller.ask("name") == "= keima"
        assert not controller.engine.worker.running
        assert controller.search.runs[-1][1].visits == 800


# Judgement


def test_it_resigns_after_three_lost_moves_in_a_row_and_can_go_on():
    evaluator = FakeEvaluator(value=-0.95)
    with Controller(evaluator) as controller:
        controller.ask("boardsize 9")
        assert [controller.ask("genmove b") for _ in range(2)] == ["= E5", "= D5"]
        assert controller.ask("genmove b") == "= resign"
        assert "2 moves made" in controller.ask("showboard")
        evaluator.value = -0.5
        assert controller.ask("genmove b") == "= F5"


def test_the_winner_does_not_resign_and_a_threshold_of_nought_never_does():
    with Controller(FakeEvaluator(value=-0.99)) as controller:
        controller.ask("boardsize 9")
        assert "= resign" not in [controller.ask("genmove w") for _ in range(5)]
        controller.ask("clear_board")
        controller.ask("kata-set-param allowResignation false")
        assert "= resign" not in [controller.ask("genmove b") for _ in range(5)]


def test_white_does_not_resign_the_opening_of_a_handicap_game():
    with Controller(FakeEvaluator(value=0.99)) as controller:
        controller.ask("boardsize 9")
        controller.ask("fixed_handicap 4")
        moves = [controller.ask("genmove w") for _ in range(25)]
        assert moves.index("= resign") == 18  # 1 + 81 / 5 moves are made before it


def test_dead_stones_are_told_by_chains():
    with Controller(FakeEvaluator(dead=("A1", "A2"))) as controller:
        controller.ask("boardsize 5")
        controller.ask("set_position w a1 w a2 b b1 b b2 b b3 w e5")
        assert controller.ask("final_status_list dead") in ("= A1 A2", "= A2 A1")
        alive = controller.ask("final_status_list alive").removeprefix("= ").split("\n")
        assert [sorted(chain.split()) for chain in alive] == [["E5"], ["B1", "B2", "B3"]]


@pytest.mark.parametrize(
    ("rules", "score"),
    [
        ("chinese", "= B+0.5"),  # 15 points against 10 and 4.5 komi
        ("tromp-taylor", "= W+10.5"),  # A1 lives: the left side is no one's; 5 points against 11 and komi
        ("japanese", "= B+1.5"),  # 10 points and a prisoner against 5 and komi
    ],
)
def test_a_finished_game_is_counted_by_its_rules(rules, score):
    """A wall on the third column; one dead white stone at A1, White's own wall on the fourth."""
    with Controller(FakeEvaluator(dead=("A1",))) as controller:
        controller.ask("boardsize 5")
        controller.ask(f"kata-set-rules {rules}")
        controller.ask("komi 4.5")
        black, white = [f"c{row}" for row in range(1, 6)], [f"d{row}" for row in range(1, 6)]
        controller.ask("set_position " + " ".join([f"b {v}" for v in black] + [f"w {v}" for v in [*white, "a1"]]))
        controller.ask("play b pass")
        controller.ask("play w pass")
        assert controller.ask("final_score") == score


def test_a_game_under_way_is_scored_by_the_lead_as_its_komi_allows():
    with Controller(FakeEvaluator(lead=3.2)) as controller:
        controller.ask("boardsize 9")
        assert controller.ask("final_score") == "= B+3.5"
        controller.ask("komi 7")
        assert controller.ask("final_score") == "= B+3.0"
    with Controller(FakeEvaluator(lead=None, sure=None)) as controller:
        controller.ask("boardsize 9")
        assert controller.ask("final_score") == "= W+7.5", "no lead, no ownership: the board as it stands"
        assert controller.ask("kata-analyze ownership true") == "? this network tells no ownership"


WALLS = "c1 c2 c3 c4 c5", "d1 d2 d3 d4 d5"


def walls(extra: str = "") -> str:
    """Black's wall on the third column of 5 × 5, White's beside it."""
    black, white = (wall.split() for wall in WALLS)
    return "set_position " + " ".join([f"b {v}" for v in black] + [f"w {v}" for v in white]) + extra


def test_it_passes_after_a_pass_when_nothing_is_left_to_play():
    class Settled(FakeEvaluator):
        def _for_black(self, position: Any) -> Any:
            owned = super()._for_black(position)
            owned[:, :3], owned[:, 3:] = 0.9, -0.9
            return owned

    for rules, expected in (("chinese", "= pass"), ("tromp-taylor", "= B3")):
        with Controller(Settled(likes={"B3": 50.0})) as controller:
            controller.ask("boardsize 5")
            controller.ask(f"kata-set-rules {rules}")
            controller.ask(walls())
            controller.ask("play w pass")
            assert controller.ask("genmove b") == expected, rules


def test_it_plays_on_after_a_pass_where_a_boundary_is_open():
    class Open(FakeEvaluator):
        def _for_black(self, position: Any) -> Any:
            owned = super()._for_black(position)
            owned[:, :2] = 0.9
            return owned

    with Controller(Open(likes={"C1": 50.0})) as controller:
        controller.ask("boardsize 5")
        controller.ask("kata-set-rules chinese")
        controller.ask("set_position b c2 b c3 b c4 b c5 w d2 w d3 w d4 w d5")
        controller.ask("play w pass")
        assert controller.ask("genmove b") == "= C1"


def test_dead_stones_are_captured_before_a_pass_where_the_rules_count_them():
    for rules, expected in (("tromp-taylor", "= B1"), ("chinese", "= pass")):
        with Controller(FakeEvaluator(likes={"pass": 1e6})) as controller:
            controller.ask("boardsize 5")
            controller.ask(f"kata-set-rules {rules}")
            # Black's chain has an eye at A4, and the corner with the white stone in it: it lives whatever White does.
            controller.ask(
                "set_position w a1 "
                + " ".join(f"b {v}" for v in ["a2", "b2", "c1", "c2", "a3", "b3", "b4", "b5", "a5"])
            )
            assert controller.ask("genmove b") == expected, rules


def test_a_finished_game_can_be_played_on():
    with Controller() as controller:
        controller.ask("boardsize 5")
        for colour in "bw":
            controller.ask(f"play {colour} pass")
        assert controller.ask("genmove b") == "= C3"
        position = controller.search.runs[-1][0]
        assert not position.is_over


# Records


def test_records_are_written_and_read_back(tmp_path):
    path = tmp_path / "a game.sgf"
    with Controller() as controller:
        controller.ask("boardsize 9")
        controller.ask("fixed_handicap 2")
        for move in ("w e5", "b c4", "w pass"):
            controller.ask(f"play {move}")
        board = controller.ask("showboard")
        assert controller.ask(f"printsgf {path}") == "="
        controller.ask("boardsize 19")
        assert controller.ask(f"loadsgf {path}") == "="
        assert controller.ask("showboard") == board
        assert controller.ask(f"loadsgf {path} 2") == "="
        assert "1 moves made" in controller.ask("showboard")
        assert controller.ask("printsgf -").startswith("= (;FF[4]AB[cg][gc]")
        assert controller.ask(f"printsgf {tmp_path}/none/x.sgf").startswith("? cannot write")
        path.write_text("(;GM[1]SZ[9];B[zz])")
        assert controller.ask(f"loadsgf {path}").startswith("? cannot load")
        assert "1 moves made" in controller.ask("showboard")


# Floods


WORDS = """
    b w black white pass resign a1 e5 t19 i9 z0 -1 0 1 2 7 9 19 20 3:4 361 1e9 nan inf 0.5 -7.5 6.5 true all average
    chinese japanese martian none byoyomi canadian fischer fischer-capped avoid allow ownership minmoves maxmoves
    interval rootInfo dead alive seki maxVisits maxTime cpuctExploration ko SIMPLE scoring TERRITORY é {} [] " ' =
    {"ko":"SIMPLE"} \\ / ? 99999999999999999999 C3,D4,E5 play genmove
"""


def nonsense(count: int, seed: int) -> list[bytes]:
    """Lines of every kind: known commands with wild arguments, broken ones, and noise."""
    rng = random.Random(seed)
    names = [name for name in COMMANDS if name not in ("quit", "kata-benchmark")] * 2
    words = WORDS.split()
    lines = []
    for _ in range(count):
        kind = rng.random()
        line = " ".join([rng.choice(names), *rng.choices(words, k=rng.randrange(5))]).encode()
        if kind < 0.1:
            line = rng.randbytes(rng.randrange(1, 40))
        elif kind < 0.2:
            line = line[: rng.randrange(1, len(line) + 1)]
        elif kind < 0.3:
            at = rng.randrange(len(line))
            line = line[:at] + rng.randbytes(1) + line[at:]
        elif kind < 0.4:
            line = b"%d %b" % (rng.randrange(100), line)
        lines.append(line.replace(b"\n", b" ") + rng.choice([b"", b"\r", b" # why"]))
    return lines


def test_ten_thousand_lines_of_nonsense_are_answered_one_by_one(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)  # printsgf may write files
    lines = [line for line in nonsense(10_000, seed=5) if clean_line(line) not in ("quit",)]
    lines = [line for line in lines if not re.fullmatch(r"\d*\s*quit.*", clean_line(line))]
    out = io.BytesIO()
    options = Options(rules="tromp-taylor")
    evaluator = FakeEvaluator()
    engine = Engine(evaluator, lambda bound, overrides: FakeSearch(evaluator), options, COMMANDS)
    engine.run(io.BytesIO(b"\n".join([*lines, b"77 protocol_version", b""])), out)
    answers = out.getvalue().decode().split("\n\n")
    assert answers[-2:] == ["=77 2", ""]
    assert len(answers) - 2 == sum(bool(clean_line(line)) for line in lines)
    assert all(answer[0] in "=?" for answer in answers[:-1])
    assert sum(answer[0] == "=" for answer in answers[:-1]) > 1000, "hardly anything was understood"
    assert "internal error" not in out.getvalue().decode(), capfd.readouterr().err


def test_an_error_of_ours_is_an_answer_too(capfd):
    class Broken(FakeEvaluator):
        def __call__(self, positions: Any, **options: Any) -> Any:
            raise RuntimeError("the device is gone\nfor good")

    with Controller(Broken()) as controller:
        assert controller.ask("kata-raw-nn 0") == "? internal error: RuntimeError: the device is gone\nfor good"
        assert controller.ask("genmove b").startswith("? internal error: RuntimeError")
        controller.send("kata-analyze b 10")
        controller.send("name")
        assert controller.answer() == ["="]
        assert controller.answer() == ["= keima"]
    assert "device is gone" in capfd.readouterr().err


def test_a_network_for_one_size_begins_with_that_size():
    evaluator = FakeEvaluator()
    evaluator.network.encoding = AlphaGoZeroEncoding(9)
    with Controller(evaluator) as controller:
        assert controller.ask("genmove b") == "= E5"
        assert controller.ask("boardsize 19") == "? unacceptable size: this network is for 9×9 boards, not 19×19"
        assert controller.ask("boardsize 9") == "="


def test_chess_networks_are_refused():
    evaluator = FakeEvaluator()
    evaluator.network.encoding.game = "chess"
    with pytest.raises(BadRequest, match="GTP is for Go"):
        Engine(evaluator, lambda bound, overrides: FakeSearch(evaluator), Options(), COMMANDS)


# Networks


@pytest.fixture(scope="module")
def tiny_network(tmp_path_factory) -> Path:
    """A KataGo network of two blocks with fresh weights, as a file."""
    import torch

    import keima

    torch.manual_seed(1)
    path = tmp_path_factory.mktemp("nets") / "tiny.bin.gz"
    keima.save(keima.create("katago-b6c96", blocks=2, channels=16), path)
    return path


KATAGOS_ANSWER = """
whiteWin 0.002568 whiteLoss 0.997432 noResult 0.000000 whiteLead -1.074 whiteScoreSelfplay -11.731
whiteScoreSelfplaySq 169.579 varTimeLeft -1.000 shorttermWinlossError -1.000 shorttermScoreError -1.000
policy
0.006541 0.033688 0.024527 0.022029 0.007666
0.020817 0.042565 0.082501 0.042505 0.031214
0.024251 0.148845     NAN 0.083789 0.037404
0.017520 0.036668 0.067529 0.026393 0.036900
0.012826 0.036819 0.028127 0.031396 0.010289
policyPass 0.087189
whiteOwnership
-0.9446505 -0.9775968 -0.9573599 -0.9773342 -0.9758682
-0.9714583 -0.9780167 -0.9744640 -0.9722453 -0.9805978
-0.9210103 -0.9531479 -0.9967112 -0.9639415 -0.9467916
-0.9488610 -0.9720962 -0.9563800 -0.9736056 -0.9735949
-0.9444282 -0.9801440 -0.9600348 -0.9754707 -0.9687725
"""
"""What KataGo v1.17.2 says to `boardsize 5`, `play b c3`, `kata-raw-nn w 3 0.5` (Tromp-Taylor rules, komi 7.5)."""


def test_the_raw_answer_is_katagos(reference):
    import keima
    from keima.search.search import Search

    network = keima.load(reference / "nets" / "g170-b6c96-s175395328-d26788732.bin.gz")
    evaluator = keima.Evaluator(network, backend="torch", batch_size=1, threads=1)
    with Controller(evaluator, make_search=Search) as controller:
        controller.ask("boardsize 5")
        controller.ask("play b c3")
        ours = controller.ask("7 kata-raw-nn w 3 0.5").split()
    assert ours[:3] == ["=7", "symmetry", "3"]
    for found, expected in zip(ours[3:], KATAGOS_ANSWER.split(), strict=True):
        if expected[0].isalpha():
            assert found == expected
        else:
            assert float(found) == pytest.approx(float(expected), abs=2e-3 if abs(float(expected)) > 1 else 2e-6)


def test_a_real_search_thinks_analyses_and_is_interrupted():
    import keima
    from keima.search.search import Search

    network = keima.create("katago-b6c96", blocks=2, channels=16)
    evaluator = keima.Evaluator(network, backend="torch", batch_size=4, threads=1)
    with Controller(evaluator, Options(rules="chinese", visits=12, ponder=True), Search) as controller:
        controller.ask("boardsize 7")
        for colour in "bwbw":
            assert re.fullmatch(r"= ([A-G][1-7]|pass)", controller.ask(f"genmove {colour}"))
        controller.send("kata-analyze w 2 ownership true movesOwnership true rootInfo true minmoves 30")
        assert controller.line() == "="
        line = controller.line()
        assert line.count("info move ") >= 30
        assert len(line.rsplit(" ownership ", 1)[1].split()) == 49
        assert " pvVisits " not in line
        shares = [float(share) for share in re.findall(r" prior (\S+)", line)]
        assert sum(shares) <= 1.001
        controller.send("undo")
        controller.answer()
        assert controller.answer() == ["="]
        avoiding = controller.ask("kata-search_analyze b 100 avoid b D4,C3,E5 1 maxmoves 4")
        line = controller.ask("kata-search_analyze b 100 pvVisits true pvEdgeVisits true maxmoves 1").split("\n")[1]
        visits, pv, along, edges = re.search(r" visits (\d+).* pv (.*) pvVisits (.*) pvEdgeVisits (.*)", line).groups()
        assert (along, along.split()[0], len(along.split())) == (edges, visits, len(pv.split()))
        assert sorted(map(int, along.split()), reverse=True) == list(map(int, along.split()))
        assert not {"D4", "C3", "E5"} & set(re.findall(r"info move (\S+)", avoiding))
        assert re.fullmatch(r"= (0|[BW]\+\d+\.5)", controller.ask("final_score"))
        assert controller.ask("final_status_list dead").startswith("=")
        controller.ask("kata-set-param maxVisits 100000000")
        controller.send("genmove b")
        while not controller.engine.worker.running:
            threading.Event().wait(0.001)
        controller.send("stop")
        assert re.fullmatch(r"= \S+", "\n".join(controller.answer()))
        assert controller.answer() == ["="]


# A real client, and a real opponent


def test_a_game_with_gnu_go(tiny_network):
    """`keima gtp` as a process, driven by our GTP client: each engine takes the other's moves, both see one board."""
    from keima.engines.gtp.client import GtpClient

    gnugo = shutil.which("gnugo", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/games")))
    if gnugo is None:
        pytest.skip("gnugo is not installed (Debian package gnugo)")
    ours = GtpClient([sys.executable, "-m", "keima", "gtp", "--net", str(tiny_network), "--visits", "4", *TORCH], 300)
    theirs = GtpClient([gnugo, "--mode", "gtp", "--level", "1", "--chinese-rules"], 60)
    try:
        assert set(STANDARD.split()) <= ours.commands
        for engine in (ours, theirs):
            for command in ("boardsize 7", "clear_board", "komi 7.5"):
                engine.send(command)
        passes = moves = 0
        while passes < 2 and moves < 60:
            colour, mover, other = ("b", ours, theirs) if moves % 2 == 0 else ("w", theirs, ours)
            move = mover.send(f"genmove {colour}")
            if move.lower() == "resign":
                break
            other.send(f"play {colour} {move}")
            passes = passes + 1 if move.lower() == "pass" else 0
            moves += 1
        assert moves > 10
        # The two list the same stones: GNU Go's list_stones against our record of the board.
        drawn = re.findall(r"^ ?\d+(.*)$", ours.send("showboard"), re.MULTILINE)
        black = {f"{'ABCDEFG'[x]}{7 - y}" for y, row in enumerate(drawn) for x, s in enumerate(row[1::2]) if s == "X"}
        assert black == set(theirs.send("list_stones black").split())
        assert re.fullmatch(r"0|[BW]\+[\d.]+", ours.send("final_score"))
        assert ours.alive
    finally:
        ours.close()
        theirs.close()


TORCH = ("--backend", "torch", "--threads", "1", "--resign-threshold", "0", "--batch", "1")


def test_the_program_ends_with_its_input_and_names_what_is_wrong(tiny_network):
    command = [sys.executable, "-m", "keima", "gtp"]
    done = subprocess.run([*command, "--net", "gone.bin.gz"], input=b"", capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"gone.bin.gz" in done.stderr
    command += ["--net", str(tiny_network), *TORCH, "--name", "KataGo", "--rules", "japanese"]
    done = subprocess.run(
        command, input=b"name\nget_komi\nkata-analyze b 1\n", capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"= KataGo\n\n= 6.5\n\n=\n")
    assert done.stdout.endswith(b"\n\n")


def test_the_manual_tells_every_command_and_no_other():
    text = (Path(__file__).parents[2] / "docs" / "gtp.md").read_text(encoding="utf-8")
    tables = text[text.index("## Commands") : text.index("## Analyses")]
    cells = [line.split("|")[1] for line in tables.replace("\\|", "/").splitlines() if line.startswith("| `")]
    told = {name.split()[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert told == set(COMMANDS)


# Clocks


def left(control: TimeControl) -> tuple[float, float, int, int]:
    clock = control.clock()
    return clock.main, clock.period, clock.periods, clock.period_moves


def test_fischer_time_grows_up_to_its_limit():
    control = TimeControl(60, 5, main_limit=62)
    control.spend(10)
    assert left(control) == (55, 0, 0, 1)
    control.spend(1)
    control.spend(1)
    assert control.clock().main == 62
    control.reset()
    assert control.clock().main == 60


def test_japanese_periods_are_used_up_one_by_one():
    control = TimeControl(10, 0, 30, 3)
    assert left(control) == (10, 30, 3, 1)
    control.spend(15)
    assert left(control) == (0, 30, 3, 1), "a period that is not used up begins anew"
    control.spend(70)
    assert left(control) == (0, 30, 1, 1)
    control.spend(100)
    assert left(control)[2] == 1, "the flag is the controller's business"
    control.set_left(12, 2)
    assert left(control) == (0, 12, 2, 1)


def test_canadian_stones_are_counted_down_and_begin_anew():
    control = TimeControl(0, 0, 60, 1, 3)
    control.spend(10)
    assert left(control) == (0, 50, 1, 2)
    control.set_left(25, 1)
    assert left(control) == (0, 25, 1, 1)
    control.spend(5)
    assert left(control) == (0, 60, 1, 3)
    control.set_left(100, 0)
    assert left(control) == (100, 60, 1, 3)


def test_a_clock_without_time_left_is_still_a_clock():
    control = TimeControl(1)
    control.spend(5)
    assert left(control) == (0, 0, 0, 1)
    control.set_left(-3, 0)
    assert control.clock().main == 0


# The thread of a search


def test_a_stop_that_comes_before_the_search_listens_is_not_lost():
    class Deaf(FakeSearch):
        def run(self, limits: Any, **options: Any) -> Any:
            heard_too_early.wait(10)
            self._stop.clear()  # what a search may do when it begins
            return super().run(limits, **options)

    heard_too_early = threading.Event()
    search = Deaf(FakeEvaluator())
    search.set_position(go.Position.start(5))
    worker = SearchThread()
    worker.start(search, Limits())
    worker.stop()
    heard_too_early.set()
    assert worker.wait().best == "C3"
    assert worker.asked_to_stop
    worker.cancel()
    assert not worker.running


def test_a_failed_search_hands_its_error_on():
    class Broken(FakeSearch):
        def run(self, limits: Any, **options: Any) -> Any:
            raise BadRequest("no")

    seen: list[BaseException | None] = []
    worker = SearchThread()
    worker.start(Broken(FakeEvaluator()), Limits(), on_end=lambda result, error: seen.append(error))
    with pytest.raises(BadRequest, match="no"):
        worker.wait()
    assert isinstance(seen[0], BadRequest)
    worker.cancel()


KATAGOS_CLOCKS = """
> kata-debug-print-tc
= Black originalMainTime 1e+30 mainTimeLeft 1e+30 inOvertime 0 minRecMax 0 5.5104e+27 2e+29 rrec0 5.5104e+27 rreclimit \
5.5104e+27 rreclimit2 5.5104e+27
> time_settings 60 10 3
> time_left black 40 0
> time_left white 15 2
> kata-debug-print-tc
= Black originalMainTime 60 originalNumPeriods 1 numStonesPerPeriod 3 perPeriodTime 10 mainTimeLeft 40 inOvertime 0 \
numPeriodsLeftIncludingCurrent 1 minRecMax 0 4.17768 11 rrec0 4.17768 rreclimit 4.17768 rreclimit2 4.17768
White originalMainTime 60 originalNumPeriods 1 numStonesPerPeriod 3 perPeriodTime 10 mainTimeLeft 0 inOvertime 1 \
numPeriodsLeftIncludingCurrent 1 numStonesLeftInPeriod 2 timeLeftInPeriod 15 minRecMax 0 6.5 7.57143 rrec0 6.5 \
rreclimit 6.5 rreclimit2 6.5
> kgs-time_settings canadian 5 10 3
> kata-debug-print-tc
= Black originalMainTime 5 originalNumPeriods 1 numStonesPerPeriod 3 perPeriodTime 10 mainTimeLeft 5 inOvertime 0 \
numPeriodsLeftIncludingCurrent 1 minRecMax 0 4 8 rrec0 4 rreclimit 6 rreclimit2 6
"""
"""From KataGo's own `cpp/tests/results/gtp/time.txt.stdout`; a backslash continues the line."""


def test_clocks_are_told_as_katago_tells_them():
    with Controller() as controller:
        told = ""
        for line in KATAGOS_CLOCKS.replace("\\\n", "").strip().split("\n"):
            if line.startswith("> "):
                told = controller.ask(line[2:])
                assert told.startswith("=")
            else:
                assert line in told.split("\n")


def test_katagos_parameters_are_read_back_as_katago_writes_them():
    with Controller() as controller:
        for ask, answer in (
            ("kata-get-param analysisWideRootNoise", "= 0.04"),
            ("kata-get-param delayMoveMax", "= 1e+06"),
            ("kata-get-param maxTime", "= 1e+20"),
            ("kata-get-param rootNoiseEnabled", "= false"),
            ('kata-set-params {"wideRootNoise":0.6, "analysisWideRootNoise" :0.9 }', "="),
            ("kata-get-param wideRootNoise", "= 0.6"),
            ("kata-get-param analysisWideRootNoise", "= 0.9"),
            ("kata-set-param numSearchThreads 2", "="),
            ("kata-get-param numSearchThreads", "= 2"),
            ("kata-get-param nothing", "? Invalid parameter: nothing"),
            (
                "kata-set-param dynamicPlayoutDoublingAdvantageCapPerOppLead 0.045",
                "? Could not set params: Cannot be overridden in kata-set-param: "
                "dynamicPlayoutDoublingAdvantageCapPerOppLead",
            ),
        ):
            assert controller.ask(ask) == answer
        assert controller.ask("kata-get-params").startswith('= {"allowResignation":"true",')
        assert controller.ask("genmove_debug b").startswith("= ")
        assert "visits" in controller.ask("debug_moves")
