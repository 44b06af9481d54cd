"""Players: how they are written, what they play, how their faults are told."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from keima.engines.gtp.client import EngineFault
from keima.engines.match.game import FIRST, SECOND, GameRules, TimeControl, play_game
from keima.engines.match.players import GameState, Settings, parse_player
from keima.engines.match.roster import Networks, PolicyPlayer, SearchPlayer, make_player
from keima.errors import BadRequest, BadWeights
from keima.games import chess, go
from keima.games.go.playing import PLAYING, result_of, score_without, without_history
from keima.inference.evaluation import Evaluation
from keima.inference.evaluator import Evaluator
from keima.search.limits import Clock
from keima.systems.alphago.rollout import RolloutPolicy
from keima.systems.alphago.rollout_file import write_rollout
from keima.systems.registry import create
from tests.engines.fakes import gtp_player, random_network, uci_player

SETTINGS = Settings(timeout=20.0)


@pytest.fixture(scope="module")
def go_net(tmp_path_factory):
    """A KataGo network of one block with random weights."""
    return random_network(tmp_path_factory.mktemp("nets") / "go.bin.gz")


def player(text, **settings):
    return make_player(parse_player(text), Networks(), Settings(**{"timeout": 20.0, **settings}))


def board(text, to_play="B", rules="koSIMPLEscoreAREAtaxNONEsui0", komi=0.5):
    """A position from a drawing: X black, O white."""
    rows = [line.split() for line in text.strip().splitlines()]
    stones = {"X": [], "O": [], ".": []}
    for y, row in enumerate(rows):
        for x, point in enumerate(row):
            stones[point].append(f"{'ABCDEFGHJKLMNOPQRST'[x]}{len(rows) - y}")
    size = (len(rows[0]), len(rows))
    return go.Position.start(size, rules, komi, black=stones["X"], white=stones["O"], to_play=to_play)


class FakeEvaluator:
    """Answers with the policy and ownership it was given."""

    network = SimpleNamespace(choices=lambda position, policy: list(policy))

    def __init__(self, policy=None, ownership=None):
        self.policy, self.ownership = policy or {"pass": 1.0}, ownership

    def __call__(self, positions, **options):
        return [Evaluation(self.policy, {}, value=0.5, ownership=self.ownership) for _ in positions]


# How players are written


@pytest.mark.parametrize(
    ("text", "kind", "target", "options"),
    [
        ("net.bin.gz", "net", "net.bin.gz", {}),
        ("a/net.bin.gz,visits=100,preset=katago", "net", "a/net.bin.gz", {"visits": "100", "preset": "katago"}),
        ("net,visits=5:net.pb.gz", "net", "net.pb.gz", {"visits": "5"}),
        ("a,b.bin.gz,cpuct=1.5", "net", "a,b.bin.gz", {"cpuct": "1.5"}),
        ("C:\\nets\\a.pb.gz,visits=2", "net", "C:\\nets\\a.pb.gz", {"visits": "2"}),
        ("policy:net.pb.gz,temperature=1", "policy", "net.pb.gz", {"temperature": "1"}),
        ("gtp:gnugo --mode gtp --level 10", "gtp", "gnugo --mode gtp --level 10", {}),
        ("gtp,timeout=5,name=GNU Go:gnugo --mode gtp", "gtp", "gnugo --mode gtp", {"timeout": "5", "name": "GNU Go"}),
        ("gtp:katago gtp -override-config a=1,b=2", "gtp", "katago gtp -override-config a=1,b=2", {}),
        ("uci,nodes=9,option.Skill Level=3:fish", "uci", "fish", {"nodes": "9", "option.Skill Level": "3"}),
    ],
)
def test_specs(text, kind, target, options):
    spec = parse_player(text)
    assert (spec.kind, spec.target, dict(spec.options)) == (kind, target, options)


@pytest.mark.parametrize("text", ["gtp:", "", "uci,nodes:fish", "gtp,level=3:gnugo", "policy:n,visits=3", "gtp gnugo"])
def test_bad_specs_are_refused(text):
    with pytest.raises(BadRequest, match="player"):
        parse_player(text)


def test_names():
    assert parse_player("a/kata-b6.bin.gz,visits=9").name == "kata-b6,visits=9"
    assert parse_player("policy:maia-1900.pb.gz").name == "maia-1900 policy"
    assert parse_player("gtp:/usr/games/gnugo --mode gtp").name == "gnugo"
    assert parse_player("uci,nodes=1,name=SF:stockfish").name == "SF"


@pytest.mark.parametrize("text", ["gtp:no-such-program", "uci,nodes=1:no-such-program", "uci,nodes=many:python3"])
def test_players_that_cannot_be_made(text):
    with pytest.raises(BadRequest):
        player(text)


# Networks


def test_policy_plays_its_likeliest_move_and_samples_by_temperature():
    evaluator = FakeEvaluator({"A1": 0.2, "B2": 0.7, "pass": 0.1})
    state = GameState(go.Position.start(5), go.Position.start(5))
    sure = PolicyPlayer(parse_player("policy:n"), evaluator)
    sure.new_game(state, 0)
    assert {sure.move(state).move for _ in range(20)} == {"B2"}
    assert sure.move(state).expects == 0.75
    drawn = PolicyPlayer(parse_player("policy:n,temperature=0.5"), evaluator)
    drawn.new_game(state, 7)
    moves = [drawn.move(state).move for _ in range(3000)]
    squares = {move: p * p / (0.2**2 + 0.7**2 + 0.1**2) for move, p in evaluator.policy.items()}
    for move, share in squares.items():
        assert moves.count(move) / 3000 == pytest.approx(share, abs=0.03)
    drawn.new_game(state, 7)
    assert [drawn.move(state).move for _ in range(3000)] == moves


def test_temperature_ends_with_the_opening():
    evaluator = FakeEvaluator({"A1": 0.4, "B2": 0.6})
    drawn = PolicyPlayer(parse_player("policy:n,temperature=1,plies=2"), evaluator)
    start = go.Position.start(5)
    late = GameState(start, start.play("C3", "D4"))
    drawn.new_game(late, 0)
    assert {drawn.move(late).move for _ in range(30)} == {"B2"}


@pytest.mark.parametrize("with_pass", [False, True])
def test_alphagos_policy_fills_no_eye_and_passes_when_nothing_is_left(with_pass):
    network = create("alphago-policy", filters=2, layers=1, board_size=5, pass_logit=with_pass)
    with torch.no_grad():
        network.point_bias += 10 * torch.arange(25.0)  # it would like best to play at E1, then D1, C1, ...
        if with_pass:
            network.pass_output.bias -= 50
    sure = PolicyPlayer(parse_player("policy:n"), Evaluator(network.eval(), backend="torch"))
    rows = ["X X X X X", "X X X X X", "X X X X {}", "X X X X {}", ". X . X ."]
    for stone, move in ((".", "E1"), ("X", "pass")):
        position = board("\n".join(rows).format(stone, stone))
        sure.new_game(GameState(position, position), 0)
        assert sure.move(GameState(position, position)).move == move


def test_search_player_searches_and_gives_up_when_hopeless(go_net):
    path = str(go_net)
    hopeful = player(f"{path},visits=12,resign=0")
    start = go.Position.start(5, komi=0.5)
    state = GameState(start, start)
    hopeful.new_game(state, 1)
    assert start.is_legal(hopeful.move(state).move)
    hopeless = player(f"{path},visits=12,resign=1")
    hopeless.new_game(state, 1)
    assert [hopeless.move(state).move for _ in range(3)][-1] == "resign"
    assert hopeless.move(GameState(start, start, clean_up=True)).move != "resign"


def test_search_options_are_checked_before_the_first_game(go_net):
    for options in ("cpukt=1", "visits=0", "preset=alphabeta", "visits=many", "temperature=-1"):
        with pytest.raises(BadRequest):
            player(f"{go_net},{options}")


def test_a_rollout_policy_plays_the_playouts(go_net, tmp_path):
    path = tmp_path / "rollout.safetensors"
    write_rollout(RolloutPolicy(neighbour=np.full(8, 3, np.float32)), path)
    start = go.Position.start(5, komi=6.5)
    state = GameState(start, start)
    values = {}
    for name, option in (("plain", ""), ("taught", f",rollout={path}")):
        each = player(f"{go_net},visits=60,preset=alphago,expansion_visits=5{option}")
        each.new_game(state, 1)
        assert start.is_legal(each.move(state).move)
        values[name] = each._search.result().value
    assert values["plain"] != values["taught"]
    with pytest.raises(BadWeights, match=r"none\.safetensors"):
        player(f"{go_net},preset=alphago,rollout={tmp_path / 'none.safetensors'}")


def test_same_network_shares_an_evaluator(go_net):
    networks = Networks()
    one = make_player(parse_player(f"{go_net},visits=2"), networks, SETTINGS)
    two = make_player(parse_player(f"policy:{go_net}"), networks, SETTINGS)
    other = make_player(parse_player(f"{go_net},batch=2"), networks, SETTINGS)
    assert isinstance(one, SearchPlayer)
    assert one.evaluator is two.evaluator
    assert one.evaluator is not other.evaluator


# Programs


def test_gtp_player_follows_the_game_and_is_restarted(tmp_path):
    log = tmp_path / "log"
    engine = player(gtp_player("--log", log, "--fail", "crash", "--at", 2))
    start = go.Position.start(5, komi=6.5).play("C3", "D4")
    state = GameState(start, start)
    engine.new_game(state, 0)
    assert engine.move(state).move == "A1"
    heard = log.read_text().splitlines()
    assert heard[1:] == ["boardsize 5", "clear_board", "komi 6.5", "play B C3", "play W D4", "genmove B"]
    state.moves += [("B", "A1"), ("W", "E5")]
    state.position = start.play("A1", "E5")
    with pytest.raises(EngineFault, match="out of memory"):
        engine.move(state)
    assert log.read_text().splitlines()[-2:] == ["play W E5", "genmove B"]
    engine.close()
    engine.new_game(GameState(start, start), 0)
    assert engine.move(GameState(start, start)).move == "A1"
    engine.close()


def test_gtp_player_is_told_the_clock_and_waited_for():
    engine = player(gtp_player("--slow", 0.05))
    start = go.Position.start(5)
    clocks = {"B": Clock(10.0), "W": Clock(10.0)}
    state = GameState(start, start, clocks=clocks)
    engine.new_game(state, 0)
    assert engine.move(state).move == "A1"
    engine.close()


def test_uci_player_follows_the_game(tmp_path):
    log = tmp_path / "log"
    engine = player(uci_player("win", "--log", log, options=",nodes=7,option.Depth of thought=3"))
    start = chess.Position.start().play("e2e4", "f7f6")
    state = GameState(start, start)
    engine.new_game(state, 0)
    assert engine.move(state).move == "d2d4"
    engine.close()
    heard = log.read_text().splitlines()
    assert "setoption name Depth of thought value 3" in heard
    assert heard[-3:] == ["position startpos moves e2e4 f7f6", "go nodes 7", "quit"]


def test_uci_player_needs_a_limit():
    start = chess.Position.start()
    engine = player(uci_player("win", options=""))
    with pytest.raises(BadRequest, match="nodes, depth or seconds"):
        engine.new_game(GameState(start, start), 0)


# Games


HANG = 2.0
"""Seconds until a program counts as hung, in tests where one does; long enough to start one on a busy machine."""


def go_game(black, white, start=None, most=200, timeout=20.0, **rules):
    start = start or go.Position.start(5, "koSIMPLEscoreAREAtaxNONEsui0", 0.5)
    players = [player(black, timeout=timeout), player(white, timeout=timeout)]
    ending = play_game(players, start, GameRules(most, **rules))
    for one in players:
        one.close()
    return ending


def test_a_game_of_go_ends_by_passes_and_is_counted():
    ending = go_game(gtp_player("--stones", 15), gtp_player("--stones", 5))
    # three columns against one and komi ½; the fourth touches both
    assert (ending.winner, ending.result, ending.reason) == (FIRST, "B+9.5", "score (agreed)")
    assert ending.position.moves[-2:] == (("W", "pass"), ("B", "pass"))


def test_resignation_and_move_limit():
    resigned = go_game(gtp_player("--resign", 2), gtp_player())
    assert (resigned.winner, resigned.result, resigned.reason) == (SECOND, "W+R", "resignation")
    cut = go_game(gtp_player(), gtp_player(), most=3)
    # A1, A2 against E1: the empty points touch both
    assert (cut.plies, cut.result, cut.reason) == (3, "B+0.5", "score at 3 moves")


@pytest.mark.parametrize(
    ("fail", "kind", "words"),
    [
        ("crash", "crash", "status 3"),
        ("hang", "timeout", "no answer to 'genmove W'"),
        ("illegal", "illegal", "illegal move A1"),
        ("garbage", "nonsense", "segmentation"),
        ("vertex", "nonsense", "Z99"),
        ("refuse", "nonsense", "cannot think"),
    ],
)
def test_a_fault_loses_the_game_and_is_named(fail, kind, words):
    bad = gtp_player("--fail", fail, "--at", 2, options=",name=Bad")
    ending = go_game(gtp_player(), bad, timeout=HANG if fail == "hang" else 20.0)
    assert (ending.winner, ending.result, ending.reason) == (FIRST, "B+F", f"{kind} of Bad")
    assert ending.fault.side == SECOND
    assert words in ending.fault.detail
    assert ending.plies == 3


def test_an_engine_that_does_not_start_loses():
    ending = go_game(gtp_player("--deaf", options=",timeout=0.3,name=Deaf"), gtp_player())
    assert (ending.winner, ending.result, ending.reason, ending.plies) == (SECOND, "W+F", "timeout of Deaf", 0)


@pytest.mark.parametrize(
    ("fail", "kind"), [("crash", "crash"), ("hang", "timeout"), ("illegal", "illegal"), ("garbage", "nonsense")]
)
def test_faults_of_chess_programs(fail, kind):
    bad = uci_player("lose", "--fail", fail, "--at", 2)
    players = [player(uci_player("win")), player(bad, timeout=HANG if fail == "hang" else 20.0)]
    ending = play_game(players, chess.Position.start(), GameRules(100))
    for one in players:
        one.close()
    assert (ending.winner, ending.result, ending.fault.kind) == (FIRST, "1-0", kind)
    assert ending.position.moves == ("e2e4", "f7f6", "d2d4")


def test_a_game_of_chess_ends_in_mate():
    players = [player(uci_player("lose")), player(uci_player("win"))]
    ending = play_game(players, chess.Position.start(), GameRules(100))
    for one in players:
        one.close()
    assert (ending.winner, ending.result, ending.reason) == (SECOND, "0-1", "checkmate")


def test_the_clock_decides():
    slow, quick = gtp_player("--slow", 0.3), gtp_player()
    ending = go_game(quick, slow, time=TimeControl.parse("0.5"))
    assert (ending.winner, ending.result, ending.reason) == (FIRST, "B+T", "time")
    assert ending.seconds[1] > 0.5


@pytest.mark.parametrize("text", ["", "0", "x", "5+", "5/3", "-1", "5/0x3"])
def test_bad_time_controls(text):
    with pytest.raises(BadRequest, match="--time"):
        TimeControl.parse(text)


def test_time_controls():
    fischer = TimeControl.parse("10+2")
    assert fischer.after(fischer.start(), 3.0) == Clock(9.0, 2.0)
    assert fischer.after(Clock(1.0, 2.0), 1.5) is None
    periods = TimeControl.parse("10/3x5")
    clock = periods.after(periods.start(), 12.0)
    assert clock == Clock(0.0, 0.0, 5.0, 3)  # two seconds into the first period, which is not used up
    assert periods.after(clock, 4.9) == clock
    assert periods.after(clock, 11.0) == Clock(0.0, 0.0, 5.0, 1)
    assert periods.after(clock, 15.0) is None


# Counting

SEALED = """
    . O . . .
    X X X X X
    X X X X X
    O O O O O
    . . O . .
"""
"""White's stone at B5 is dead in Black's territory, but Black has yet to take it."""


@pytest.mark.parametrize(
    ("rules", "dead", "score"),
    [
        ("chinese", {"B5"}, 0.5 + 10 - 15),
        ("chinese", set(), 0.5 + 11 - 10),
        ("japanese", {"B5"}, 0.5 + 4 - (5 + 1)),
    ],
)
def test_dead_stones_are_taken_off(rules, dead, score):
    assert score_without(board(SEALED, rules=rules), dead) == score


@pytest.mark.parametrize("rules", ["chinese", "japanese", "aga-button"])
def test_without_dead_stones_the_score_is_the_positions_own(rules):
    rng = np.random.default_rng(3)
    for _ in range(10):
        position = go.Position.start(5, rules)
        for _ in range(40):
            moves = [move for move in position.legal() if move != "pass"]
            if not moves:
                break
            position = position.play(str(rng.choice(moves)))
        while not position.is_over:
            position = position.play("pass")
        assert score_without(position) == position.score()


def test_results_in_words():
    assert [result_of(score) for score in (-3.5, 0.0, 12.0)] == ["B+3.5", "0", "W+12"]


def test_a_network_calls_dead_what_it_gives_to_the_other_side():
    position = board(SEALED, to_play="W")
    ownership = np.ones((5, 5), np.float32)  # for White, to move: everything is White's
    ownership[:3, :] = -1
    dead = PLAYING.dead_stones(FakeEvaluator(ownership=ownership), position)
    assert dead == {"B5"}
    assert PLAYING.dead_stones(FakeEvaluator(), position) is None
    assert PLAYING.dead_stones(FakeEvaluator(ownership=0.4 * ownership), position) == frozenset()  # not sure enough


WHITE_GROUP = frozenset({"A2", "B2", "C2", "D2", "E2", "C1"})


class Scripted:
    """A player that plays given moves, then passes, and calls given stones dead."""

    def __init__(self, name, moves=(), dead=None):
        self.name, self.todo, self.dead = name, list(moves), dead
        self.cleaned = False

    def new_game(self, state, seed):
        pass

    def move(self, state):
        from keima.engines.match.players import Choice

        self.cleaned |= state.clean_up
        return Choice(self.todo.pop(0) if self.todo else "pass")

    def dead_stones(self, state):
        return self.dead

    def final_score(self, state):
        return None

    def stop(self):
        pass

    def close(self):
        pass


def test_players_that_agree_are_believed():
    start = board(SEALED)
    dead = frozenset({"B5"})
    ending = play_game([Scripted("X", dead=dead), Scripted("O", dead=dead)], start, GameRules(50))
    assert ending.reason == "score (agreed)"
    assert ending.notes == ("dead: B5",)
    assert ending.result == result_of(score_without(start, dead))


def test_players_that_disagree_play_it_out():
    """Black says a white stone is dead, White does not; Black has to take it, and White may pass meanwhile."""
    start = board(SEALED)
    black = Scripted("X", ["pass", "A5", "C5"], dead=frozenset({"B5"}))
    white = Scripted("O", ["pass"], dead=frozenset())
    ending = play_game([black, white], start, GameRules(50))
    assert black.cleaned
    assert white.cleaned
    assert ending.reason == "score (after clean-up)"
    moves = ["pass", "pass", "A5", "pass", "C5", "pass", "pass"]
    assert ending.position.moves == tuple(zip("BWBWBWB", moves, strict=True))
    assert ending.result == result_of(score_without(start, {"B5"}))
    assert "X counts" in ending.notes[0]
    assert "dead: B5" in ending.notes[0]


def test_a_claim_that_cannot_be_made_good_is_worth_nothing():
    start = board(SEALED)
    liar = Scripted("X", dead=WHITE_GROUP)
    honest = Scripted("O", dead=frozenset())
    ending = play_game([liar, honest], start, GameRules(50))
    assert ending.result == result_of(score_without(start))


def test_territory_counts_what_both_call_dead():
    start = board(SEALED, rules="japanese", komi=6.5)
    ending = play_game(
        [Scripted("X", dead=frozenset({"B5", *WHITE_GROUP})), Scripted("O", dead=frozenset({"B5"}))],
        start,
        GameRules(9),
    )
    assert ending.reason == "score (dead for both)"
    assert ending.result == result_of(score_without(start, {"B5"}))


def test_a_scorer_decides():
    start = board(SEALED)
    black, white = Scripted("X", dead=frozenset()), Scripted("O", dead=frozenset())
    scorer = Scripted("judge", dead=frozenset({"B5"}))
    ending = play_game([black, white], start, GameRules(50, scorer=scorer))
    assert ending.reason == "score (by judge)"
    assert ending.result == result_of(score_without(start, {"B5"}))


def test_a_scorer_that_fails_leaves_it_to_the_players():
    scorer = player(gtp_player("--deaf", options=",timeout=0.2,name=judge"))
    ending = play_game([Scripted("X"), Scripted("O")], board(SEALED), GameRules(50, scorer=scorer))
    assert ending.reason == "score (agreed)"
    assert "scorer judge" in ending.notes[0]


def test_without_history_keeps_board_and_turn():
    position = go.Position.start(5, komi=2.5).play("C3", "B2", "D4")
    bare = without_history(position)
    assert (bare.stones == position.stones).all()
    assert (bare.to_play, bare.komi, bare.moves) == ("W", 2.5, ())


# GNU Go and Stockfish themselves

needs_gnugo = pytest.mark.skipif(
    shutil.which("gnugo", path="/usr/games:/usr/bin") is None, reason="needs GNU Go (apt install gnugo)"
)
needs_stockfish = pytest.mark.skipif(
    shutil.which("stockfish", path="/usr/games:/usr/bin") is None, reason="needs Stockfish (apt install stockfish)"
)
GNUGO = "gtp:gnugo --mode gtp --level 1 --never-resign"


@needs_gnugo
def test_gnugo_names_dead_stones_and_cleans_up():
    """White's stone at D6 is dead in Black's territory; GNU Go says so, and takes it where that is disputed."""
    start = board("""
        . . . . . . .
        . . . . . . .
        X X X X X X X
        O O O O O O O
        . . . . . . .
        . . . . . . .
        . . . . . . .
    """).play("pass", "D6")
    gnugo = player(GNUGO)
    state = GameState(start, start)
    gnugo.new_game(state, 0)
    assert gnugo.dead_stones(state) == {"D6"}
    ending = play_game([gnugo, Scripted("O", dead=frozenset())], start, GameRules(50))
    gnugo.close()
    assert ending.reason == "score (after clean-up)"
    assert ending.result == result_of(score_without(start, {"D6"}))


@needs_gnugo
def test_gnugo_plays_itself_to_an_agreed_score():
    players = [player(GNUGO), player(GNUGO)]
    ending = play_game(players, go.Position.start(7, "koSIMPLEscoreAREAtaxNONEsui0", 9), GameRules(200))
    for one in players:
        one.close()
    assert ending.fault is None
    assert ending.reason.startswith("score")
    assert ending.position.is_over


@needs_stockfish
def test_stockfish_mates():
    start = chess.Position.from_fen("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1")
    players = [player("uci,nodes=200:stockfish"), player("uci,nodes=200:stockfish")]
    ending = play_game(players, start, GameRules(100))
    for one in players:
        one.close()
    assert (ending.winner, ending.reason, ending.position.moves) == (FIRST, "checkmate", ("a1a8",))
