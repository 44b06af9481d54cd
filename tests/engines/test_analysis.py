"""KataGo's JSON analysis protocol: written conversations, order and termination of queries, floods, real networks."""

from __future__ import annotations

import fnmatch
import io
import json
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.engines.analysis.answer import Findings, make_answer, spread
from keima.engines.analysis.engine import AnalysisEngine, read_lines
from keima.engines.analysis.query import Task, read_query
from keima.engines.analysis.settings import (
    IDLE,
    TO_MOVE,
    Settings,
    apply_settings,
    read_config,
    read_overrides,
    read_perspective,
)
from keima.errors import BadRequest
from keima.games import go
from keima.games.analysis import QueryError
from keima.games.game import GAMES
from keima.games.positions import MAX_LINE
from keima.inference.evaluation import Evaluation
from keima.search.report import MoveInfo, SearchResult
from keima.systems.presets import PRESETS
from tests.engines.scripted import ENDLESS, ScriptedEvaluator, ScriptedSearch

TRANSCRIPTS = Path(__file__).parent / "transcripts"
EMPTY = {"moves": [], "rules": "chinese", "komi": 7.5, "boardXSize": 5, "boardYSize": 5}


class Conversation:
    """An engine on a thread of its own, and the two ends of its pipes."""

    def __init__(self, open_search: Any, wait: bool = True, **options: Any) -> None:
        self.told: list[str] = []
        settings = options.pop("settings", Settings(workers=options.pop("workers", 1)))
        evaluator = options.pop("evaluator", None) or ScriptedEvaluator()
        self.engine = AnalysisEngine(evaluator, open_search, settings, log=self.told.append, **options)
        self._asked: queue.Queue[bytes | None] = queue.Queue()
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._thread = threading.Thread(
            target=self.engine.run,
            args=(iter(self._asked.get, None), lambda line: self._answers.put(json.loads(line)), wait),
        )
        self._thread.start()

    def ask(self, *queries: Mapping[str, Any] | str | bytes) -> None:
        for query in queries:
            text = query if isinstance(query, str | bytes) else json.dumps(query)
            self._asked.put(text.encode() if isinstance(text, str) else text)

    def answer(self) -> dict[str, Any]:
        return self._answers.get(timeout=60)

    def end(self) -> list[dict[str, Any]]:
        """Close the input; the answers not read yet."""
        self._asked.put(None)
        self._thread.join(60)
        assert not self._thread.is_alive()
        return [self._answers.get() for _ in range(self._answers.qsize())]


@pytest.fixture
def journal() -> list[Any]:
    return []


@pytest.fixture
def talk(journal: list[Any]) -> Iterator[Any]:
    """Start a conversation with scripted searches; it is over when the test is."""
    open_ones: list[Conversation] = []

    def start(system: str = "katago", **options: Any) -> Conversation:
        evaluator = ScriptedEvaluator(system)
        conversation = Conversation(
            lambda bound, overrides: ScriptedSearch(bound, journal, **overrides), evaluator=evaluator, **options
        )
        open_ones.append(conversation)
        return conversation

    yield start
    for conversation in open_ones:
        conversation.ask({"id": "over", "action": "terminate_all"})
        conversation.end()


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.001)


def fits(expected: Any, found: Any) -> bool:
    """Does an answer hold what is expected? `*` stands for anything (in texts for any part), objects may hold more."""
    if expected == "*":
        return found is not None
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            key in found and fits(value, found[key]) for key, value in expected.items()
        )
    if isinstance(expected, list):
        same = isinstance(found, list) and len(found) == len(expected)
        return same and all(fits(one, other) for one, other in zip(expected, found, strict=True))
    if isinstance(expected, float):
        return isinstance(found, float) and found == pytest.approx(expected, abs=1e-8)
    if isinstance(expected, str):
        return isinstance(found, str) and fnmatch.fnmatchcase(found, expected.replace("[", "[[]"))
    return type(found) is type(expected) and found == expected


@pytest.mark.parametrize("name", ["go", "errors", "actions", "chess"])
def test_transcript(name: str, talk: Any) -> None:
    lines = (TRANSCRIPTS / f"analysis_{name}.txt").read_text("utf-8").splitlines()
    asked = [line[2:] for line in lines if line.startswith("> ")]
    expected = [json.loads(line[2:]) for line in lines if line.startswith("< ")]
    conversation = talk("lc0" if name == "chess" else "katago", models=[{"name": "scripted"}])
    conversation.ask(*asked)
    answers = conversation.end()
    for one in expected:
        match = next((answer for answer in answers if fits(one, answer)), None)
        assert match is not None, f"not answered: {one}\nleft: {[a for a in answers if a.get('id') == one.get('id')]}"
        answers.remove(match)
    assert answers == []


def test_every_setting_of_a_query_reaches_the_search(talk: Any, journal: list[Any]) -> None:
    conversation = talk()
    changes = {"cpuctExploration": 0.8, "useLcbForSelection": False, "maxTime": 2.5, "fpu_value": "0.25"}
    asked = {"maxVisits": 12, "rootPolicyTemperature": 1.5, "rootFpuReductionMax": 0, "includeOwnership": True}
    conversation.ask({**EMPTY, **asked, "id": "a", "overrideSettings": changes})
    assert conversation.answer()["id"] == "a"
    position, options = journal[0]
    assert (position.xsize, position.komi, position.rules.name) == (5, 7.5, "chinese")
    assert (options["limits"].visits, options["limits"].seconds, options["ownership"]) == (12, 2.5, True)
    expected = {
        "root_policy_temperature": 1.5,
        "root_fpu_reduction": 0.0,
        "cpuct": 0.8,
        "choice": 0.0,
        "fpu_value": 0.25,
    }
    assert {name: options[name] for name in expected} == expected


def test_settings_without_effect_are_told_once_and_not_to_the_client(talk: Any) -> None:
    conversation = talk()
    for identity in "ab":
        conversation.ask({**EMPTY, "id": identity, "overrideSettings": {"wideRootNoise": 0.04}})
    assert [answer["id"] for answer in conversation.end()] == ["a", "b"]
    assert conversation.told == ["the setting wideRootNoise does nothing here"]


def test_the_highest_priority_goes_first_and_ties_in_order(talk: Any, journal: list[Any]) -> None:
    conversation = talk()
    conversation.ask({**EMPTY, "id": "long", "maxVisits": ENDLESS})
    wait_until(lambda: len(journal) == 1)
    moves = [["B", "A1"], ["W", "B2"], ["B", "C3"]]
    conversation.ask(
        {**EMPTY, "id": "low", "priority": -5},
        {**EMPTY, "id": "usual"},
        {**EMPTY, "id": "turns", "moves": moves, "analyzeTurns": [0, 3, 1], "priorities": [1, 3, 2]},
        {**EMPTY, "id": "usual too"},
        {"id": "stop", "action": "terminate", "terminateId": "long"},
    )
    order = [(answer["id"], answer["turnNumber"]) for answer in conversation.end() if "turnNumber" in answer]
    assert order == [("long", 0), ("turns", 3), ("turns", 1), ("turns", 0), ("usual", 0), ("usual too", 0), ("low", 0)]


def test_terminate_ends_the_search_under_way_and_drops_what_waits(talk: Any, journal: list[Any]) -> None:
    conversation = talk()
    conversation.ask({**EMPTY, "id": "a", "moves": [["B", "A1"]], "analyzeTurns": [0, 1], "maxVisits": ENDLESS})
    wait_until(lambda: len(journal) == 1)
    conversation.ask({"id": "t", "action": "terminate", "terminateId": "a", "turnNumbers": [1]})
    assert conversation.answer() == {"id": "a", "isDuringSearch": False, "noResults": True, "turnNumber": 1}
    assert conversation.answer() == {"id": "t", "action": "terminate", "terminateId": "a", "turnNumbers": [1]}
    conversation.ask({"id": "t", "action": "terminate_all"})
    answers = [conversation.answer(), conversation.answer()]
    partial = next(answer for answer in answers if answer["id"] == "a")
    assert (partial["turnNumber"], partial["isDuringSearch"]) == (0, False)
    assert len(partial["moveInfos"]) == 3
    conversation.ask({**EMPTY, "id": "again", "maxVisits": 4})
    assert conversation.answer()["rootInfo"]["visits"] == 4


def test_reports_during_the_search_and_one_at_its_end(talk: Any) -> None:
    conversation = talk()
    conversation.ask({**EMPTY, "id": "r", "maxVisits": ENDLESS, "reportDuringSearchEvery": 0.001})
    partial = [conversation.answer() for _ in range(3)]
    assert all(answer["isDuringSearch"] for answer in partial)
    visits = [answer["rootInfo"]["visits"] for answer in partial]
    assert visits == sorted(set(visits))
    conversation.ask({"id": "t", "action": "terminate", "terminateId": "r"})
    rest = conversation.end()
    assert [answer["isDuringSearch"] for answer in rest if answer["id"] == "r"][-1] is False
    assert sum(not answer["isDuringSearch"] for answer in rest if answer["id"] == "r") == 1


def test_several_positions_at_once(talk: Any, journal: list[Any]) -> None:
    conversation = talk(workers=3)
    conversation.ask(
        {**EMPTY, "id": "a", "moves": [["B", "A1"], ["W", "A2"]], "analyzeTurns": [0, 1, 2], "maxVisits": ENDLESS}
    )
    wait_until(lambda: len(journal) == 3)
    conversation.ask({"id": "t", "action": "terminate_all"})
    answers = conversation.end()
    assert sorted(answer["turnNumber"] for answer in answers if answer["id"] == "a") == [0, 1, 2]


def test_without_waiting_the_end_of_input_ends_the_search(journal: list[Any]) -> None:
    conversation = Conversation(lambda bound, overrides: ScriptedSearch(bound, journal), wait=False)
    conversation.ask({**EMPTY, "id": "a", "maxVisits": ENDLESS}, {**EMPTY, "id": "b"})
    wait_until(lambda: len(journal) == 1)
    conversation.end()
    assert len(journal) == 1


def test_a_tree_is_kept_where_it_can_serve(journal: list[Any]) -> None:
    searches: list[ScriptedSearch] = []

    def open_search(evaluator: Any, overrides: Mapping[str, float]) -> ScriptedSearch:
        searches.append(ScriptedSearch(evaluator, journal, **overrides))
        return searches[-1]

    conversation = Conversation(open_search)

    def cleared(query: Mapping[str, Any]) -> tuple[int, int]:
        conversation.ask({**EMPTY, "id": "q", "maxVisits": 4, **query})
        conversation.answer()
        return len(searches), searches[-1].cleared

    first = cleared({})
    assert cleared({"moves": [["B", "C3"]]}) == first
    assert cleared({"moves": [["B", "C3"]], "maxVisits": 8, "includePolicy": True}) == first
    avoid = {"avoidMoves": [{"player": "B", "moves": ["A1"], "untilDepth": 1}]}
    assert cleared(avoid) == (1, first[1] + 1)
    assert cleared({}) == (1, first[1] + 2)
    assert cleared({"includeOwnership": True}) == (1, first[1] + 3)
    assert cleared({"includeOwnership": True}) == (1, first[1] + 3)
    assert cleared({"rootPolicyTemperature": 2})[0] == 2
    conversation.ask({"id": "c", "action": "clear_cache"})
    assert conversation.answer() == {"id": "c", "action": "clear_cache"}
    assert cleared({"rootPolicyTemperature": 2})[0] == 3
    conversation.end()


def test_a_human_network_beside_the_main_one(talk: Any) -> None:
    conversation = talk(human=ScriptedEvaluator())
    profile = {"overrideSettings": {"humanSLProfile": "rank_5k", "reportAnalysisWinratesAs": "BLACK"}}
    conversation.ask(
        {**EMPTY, "id": "h", "includePolicy": True, **profile}, {**EMPTY, "id": "n", "includePolicy": True}
    )
    human, plain = conversation.end()
    assert human["humanPolicy"] == human["policy"]
    assert human["moveInfos"][0]["humanPrior"] == human["moveInfos"][0]["prior"]
    assert (human["rootInfo"]["humanWinrate"], human["rootInfo"]["humanScoreMean"]) == (0.875, 4.0)
    assert "humanPolicy" not in plain


def test_a_search_that_fails_is_answered_and_the_next_one_works(
    journal: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    class Failing(ScriptedSearch):
        def run(self, limits: Any, **options: Any) -> SearchResult:
            if limits.visits == 13:
                raise ZeroDivisionError("by thirteen")
            return super().run(limits, **options)

    conversation = Conversation(lambda bound, overrides: Failing(bound, journal))
    conversation.ask({**EMPTY, "id": "a", "maxVisits": 13}, {**EMPTY, "id": "b", "maxVisits": 12})
    first, second = conversation.end()
    assert first["id"] == "a"
    assert "by thirteen" in first["error"]
    assert second["rootInfo"]["visits"] == 12
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_bounds_are_katagos() -> None:
    """Winrate, utility and bounds of a move in KataGo's own answer (`cpp/tests/results/analysis/basic.txt.stdout`)."""
    position = go.Position.start(rules="tromp-taylor").play("P5")
    value = 1 - 2 * 0.611029508
    info = MoveInfo("Q5", 0, 9, 0.75, value, 0.4, 0.0, 0.6, -0.232894846, -0.360566676, -7.02, 30.9, pv=("Q5",))
    result = SearchResult(position, "Q5", (info,), 10, value, 0.4, 0.0, 0.6, -0.23)
    task = Task("foo", GAMES["go"].analysis, 1, 0, position, Settings())
    found = make_answer(task, Findings(result, PRESETS["katago"]), during=False)["moveInfos"][0]
    assert found["winrate"] == pytest.approx(0.611029508, abs=1e-8)
    assert found["lcb"] == pytest.approx(0.65662659, abs=1e-7)
    assert found["utilityLcb"] == pytest.approx(0.360566676, abs=1e-8)
    assert found["scoreLead"] == 7.02


def test_errors_a_network_does_not_know_are_told_as_katago_tells_them() -> None:
    """Of a network of version 8: KataGo's own answer in `cpp/tests/results/analysis/basic.txt.stdout`."""
    position = go.Position.start(rules="tromp-taylor")
    raw = Evaluation({}, {}, 0.6, 0.0, 0.4, 0.2, 3.0, extra={"score_mean": 4.0, "score_stdev": 8.0})
    result = SearchResult(position, "", (), 1, 0.2, 0.6, 0.0, 0.4, 0.2)
    task = Task("foo", GAMES["go"].analysis, 0, 0, position, Settings())
    root = make_answer(task, Findings(result, PRESETS["katago"], raw=raw), during=False)["rootInfo"]
    assert (root["rawStWrError"], root["rawStScoreError"], root["rawVarTimeLeft"]) == (-0.5, -1.0, -1.0)


def test_hashes_name_positions() -> None:
    def hashes(*moves: str, size: Any = 5, to_play: str | None = None) -> tuple[str, str]:
        position = go.Position.start(size=size).play(*moves)
        position = position if to_play is None else position.with_to_play(to_play)
        result = SearchResult(position, "", (), 1, 0.0, 0.5, 0.0, 0.5, 0.0)
        root = make_answer(
            Task("", GAMES["go"].analysis, 0, 0, position, Settings()), Findings(result, PRESETS["katago"]), False
        )["rootInfo"]
        return root["thisHash"], root["symHash"]

    corner, mirrored, turned = hashes("B1"), hashes("D1"), hashes("A4")
    assert len({corner[0], mirrored[0], turned[0]}) == 3
    assert corner[1] == mirrored[1] == turned[1]
    assert hashes("B1", "C5", "E5", "pass") == hashes("E5", "C5", "B1", "pass")
    assert hashes("B1")[1] != hashes("B2")[1]
    assert hashes("B1", to_play="B")[1] != corner[1]
    assert hashes("A1", size=(3, 4))[1] == hashes("C4", size=(3, 4))[1]
    ko = ("C4", "D4", "B3", "E3", "C2", "D2", "D3", "C3")
    assert hashes(*ko)[0] != hashes(*ko, "A5", "A4", "pass", "pass")[0]


def test_spread_is_the_weighted_mean_and_deviation() -> None:
    mean, stdev = spread([np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]])], [3.0, 1.0])
    np.testing.assert_allclose(mean, [[0.5, 0.0]])
    np.testing.assert_allclose(stdev, [[np.sqrt(0.75), 0.0]])


def test_configuration_files_and_overrides(tmp_path: Path) -> None:
    path = tmp_path / "analysis.cfg"
    path.write_text(
        "# a comment\nmaxVisits = 77 # per query\n\nreportAnalysisWinratesAs = SIDETOMOVE\nnumAnalysisThreads=3\n"
        'logDir = "logs # not a comment"\nanalysisPVLen=4\n@include other.cfg\nwarnUnusedFields = false\n'
    )
    applied = apply_settings(
        Settings(), {**read_config(str(path)), **read_overrides("homeDataDir=/x,maxTime=2, lcbStdevs=4")}
    )
    assert applied.settings == Settings(77, 2.0, TO_MOVE, 4, None, False, 3, (("lcb_stdevs", 4.0),))
    assert (set(applied.idle), applied.unknown) == ({"logDir", "homeDataDir"}, ())
    path.write_text("maxVisits = 7\nwhat is this\n")
    with pytest.raises(BadRequest, match="line 2"):
        read_config(str(path))
    with pytest.raises(BadRequest, match="name=value"):
        read_overrides("maxVisits")
    with pytest.raises(BadRequest, match="cannot be read"):
        read_config(str(tmp_path / "absent.cfg"))
    with pytest.raises(BadRequest, match="SIDETOMOVE"):
        read_perspective("green")
    assert not IDLE & {"maxVisits", "cpuctExploration", "useLcbForSelection"}


NAMES = """
    id game moves initialStones initialPlayer rules komi whiteHandicapBonus boardXSize boardYSize analyzeTurns maxVisits
    rootPolicyTemperature rootFpuReductionMax analysisPVLen includeOwnership includePolicy avoidMoves allowMoves
    overrideSettings reportDuringSearchEvery firstReportDuringSearchAfter priority priorities fen chess960
"""
WORDS = st.sampled_from(["B", "w", "C3", "pass", "chess", "chinese", "(0,0)", ""])
KEYS = st.sampled_from(["player", "moves", "untilDepth", "ko", "maxVisits"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES.split()), ANYTHING), st.booleans())
def test_any_query_is_read_or_refused(fields: dict[str, Any], whole: bool) -> None:
    try:
        found = len(read_query({**EMPTY, **fields} if whole else fields, "x", Settings()).tasks)
    except QueryError as error:
        found = len(error.field) * len(error.message)
    assert found > 0 or fields.get("analyzeTurns") == []


def random_line(rng: random.Random) -> bytes:
    """Noise, a query cut off, or a query with bytes changed."""
    kind = rng.randrange(3)
    if kind == 0:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 40))).replace(b"\n", b"")
    query = json.dumps(
        {**EMPTY, "id": "f", "maxVisits": 4, "moves": [["B", "C3"], ["W", "A1"]], "analyzeTurns": [0, 2]}
    ).encode()
    if kind == 1:
        return query[: rng.randrange(1, len(query))]
    changed = bytearray(query)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(changed))] = rng.choice(b'0123456789"[]{},:ABCWxyz- ')
    return bytes(changed)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"x","komi":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"id":"x","komi":' + b"[" * 100_000,
        b'{"id":"x","action":"terminate","terminateId":"y","z":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"id":"x","moves":[],"rules":"chinese","boardXSize":5,"boardYSize":5,"rootFpuReductionMax":1'
        + b"0" * 400 + b"}",
        b'{"id":"x","moves":[],"rules":"chinese","boardXSize":5,"boardYSize":5,"priority":1' + b"0" * 5000 + b"}",
        b'{"id":"x","moves":[],"rules":"chinese","boardXSize":5,"boardYSize":5,'
        b'"overrideSettings":{"staticScoreUtilityFactor":-1,"dynamicScoreUtilityFactor":0}}',
        b'{"id":"x","moves":[],"rules":"chinese","boardXSize":5,"boardYSize":5,"overrideSettings":{"maxTime":'
        + b"[" * 900 + b"]" * 900 + b"}}",
    ],
)  # fmt: skip
def test_depth_and_numbers_beyond_reason_are_answered(line: bytes, talk: Any) -> None:
    conversation = talk()
    conversation.ask(line, {"id": "alive", "action": "query_version"})
    answers = conversation.end()
    assert [answer["id"] for answer in answers if "version" in answer] == ["alive"]
    assert len(answers) == 2
    assert "internal error" not in str(answers)


def test_ten_thousand_random_lines_are_answered(talk: Any) -> None:
    rng = random.Random(5)
    lines = [random_line(rng) for _ in range(10_000)]
    conversation = talk(workers=2)
    conversation.ask(*lines, {"id": "alive", "action": "query_version"})
    answers = conversation.end()
    assert sum(answer.get("action") == "query_version" for answer in answers) == 1
    assert len(answers) >= sum(bool(line.strip()) for line in lines)
    kinds = {"error", "warning", "moveInfos", "version", "noResults"}
    assert all(len(kinds & set(answer)) == 1 for answer in answers)
    assert not any("internal error" in str(answer.get("error")) for answer in answers)


def test_lines_are_read_however_long() -> None:
    stream = io.BytesIO(b"one\n" + b"x" * (2 * MAX_LINE) + b"\ntwo\nlast")
    one, long, two, last = read_lines(stream)
    assert (one, two, last) == (b"one\n", b"two\n", b"last")
    assert len(long) > MAX_LINE


class Counting:
    """An evaluator that counts the positions it is given batches of."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator
        self.positions = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._evaluator, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._evaluator(*arguments, **options)

    def submit(self, batch: Any) -> Any:
        self.positions += len(batch.inputs["planes"])
        return self._evaluator.submit(batch)


@pytest.fixture(scope="module")
def tiny() -> Any:
    """A KataGo network of one block with random weights, ready to answer."""
    import torch

    import keima

    torch.manual_seed(3)
    return keima.Evaluator(keima.create("katago-b6c96", blocks=1).eval(), backend="torch", batch_size=4, threads=1)


def test_a_real_search_answers_with_every_field(tiny: Any) -> None:
    from keima.search.search import Search

    evaluator = Counting(tiny)
    conversation = Conversation(lambda bound, overrides: Search(bound, **overrides), evaluator=evaluator)
    asked = {
        **EMPTY, "id": "real", "moves": [["B", "C3"], ["W", "D4"]], "maxVisits": 40, "includePolicy": True,
        "includeOwnership": True, "includeOwnershipStdev": True, "includeMovesOwnership": True, "includePVVisits": True,
        "includeMovesOwnershipStdev": True, "includeNoResultValue": True,
    }  # fmt: skip
    conversation.ask(asked)
    answer = conversation.answer()
    assert "error" not in answer, answer
    moves, root = answer["moveInfos"], answer["rootInfo"]
    assert root["visits"] == 40 == 1 + sum(info["visits"] for info in moves)
    assert [info["order"] for info in moves] == list(range(len(moves)))
    policy = np.array(answer["policy"])
    assert policy.shape == (26,)
    assert [index for index, prior in enumerate(policy) if prior == -1] == [1 * 5 + 3, 2 * 5 + 2]
    assert policy[policy >= 0].sum() == pytest.approx(1, abs=1e-5)
    for points in (answer["ownership"], *(info["ownership"] for info in moves)):
        assert len(points) == 25
        assert max(map(abs, points)) <= 1
    for points in (answer["ownershipStdev"], *(info["ownershipStdev"] for info in moves)):
        assert len(points) == 25
        assert 0 <= min(points) <= max(points) <= 1
    for info in moves:
        assert info["pvVisits"][0] == info["visits"]
        assert len(info["pvVisits"]) == len(info["pv"]) <= 16
        assert info["pvVisits"] == sorted(info["pvVisits"], reverse=True)
    raw = tiny([go.Position.start(5).play("C3", "D4")], policy_optimism=0.2)[0]
    assert root["rawWinrate"] == pytest.approx((1 + raw.value) / 2, abs=1e-6)
    assert root["rawLead"] == pytest.approx(raw.lead, abs=1e-5)
    assert root["rawNoResultProb"] == pytest.approx(raw.draw, abs=1e-6)
    assert root["rawScoreSelfplayStdev"] == pytest.approx(raw.extra["score_stdev"], rel=1e-5)
    errors = [root[name] for name in ("rawStWrError", "rawStScoreError", "rawVarTimeLeft")]
    known = [raw.extra[name] for name in ("shortterm_winloss_error", "shortterm_score_error", "variance_time")]
    assert errors == pytest.approx([known[0] / 2, *known[1:]], rel=1e-5)
    conversation.ask({**EMPTY, "id": "bad", "overrideSettings": {"rootNumSymmetriesToSample": 9}})
    assert conversation.answer()["field"] == "overrideSettings"
    conversation.end()


def test_consecutive_turns_share_evaluations(tiny: Any) -> None:
    from keima.search.search import Search

    evaluator = Counting(tiny)
    conversation = Conversation(lambda bound, overrides: Search(bound, **overrides), evaluator=evaluator)
    conversation.ask({**EMPTY, "id": "first", "maxVisits": 60})
    best = conversation.answer()["moveInfos"][0]["move"]

    def cost(*before: Mapping[str, Any]) -> int:
        for query in before:
            conversation.ask(query)
            conversation.answer()
        count = evaluator.positions
        conversation.ask({**EMPTY, "id": "next", "moves": [["B", best]], "maxVisits": 60})
        assert conversation.answer()["rootInfo"]["visits"] >= 60
        return evaluator.positions - count

    shared, repeated = cost(), cost()
    fresh = cost({"id": "c", "action": "clear_cache"})
    assert repeated == 0 < shared < fresh
    conversation.end()


def test_katrains_game_of_four_handicap_stones(tiny: Any) -> None:
    """What KaTrain asks about it (`core/engine.py`, `request_analysis`), and what it reads (`core/game_node.py`)."""
    from keima.search.search import Search

    stones = ["Q16", "D4", "Q4", "D16"]
    settings = {"reportAnalysisWinratesAs": "BLACK", "wideRootNoise": 0.04, "maxTime": 300.0}
    asked = {
        "rules": "japanese", "priority": 0, "analyzeTurns": [0], "maxVisits": 12, "komi": 6.5, "boardXSize": 19,
        "boardYSize": 19, "includeOwnership": True, "includeMovesOwnership": True, "includePolicy": True,
        "initialStones": [["B", stone] for stone in stones], "initialPlayer": "W", "moves": [],
        "overrideSettings": settings, "reportDuringSearchEvery": 1.0,
    }  # fmt: skip
    conversation = Conversation(lambda bound, overrides: Search(bound, **overrides), evaluator=tiny)

    def answer(**changes: Any) -> dict[str, Any]:
        conversation.ask({**asked, **changes, "id": "QUERY:1"})
        while (found := conversation.answer())["isDuringSearch"]:
            assert {"moveInfos", "rootInfo", "policy"} <= set(found)
        return found

    first = answer()
    moves = [["W", first["moveInfos"][0]["move"]]]
    second = answer(moves=moves, analyzeTurns=[1])
    start = go.Position.start(19, "japanese", 6.5, black=stones, to_play="W")
    for found, position, sign in ((first, start, -1), (second, start.play(moves[0][1]), 1)):
        occupied = len(stones) + len(position.moves)
        root, infos, raw = found["rootInfo"], found["moveInfos"], tiny([position], policy_optimism=0.2)[0]
        assert (found["turnNumber"], root["currentPlayer"]) == (len(position.moves), position.to_play)
        assert root["visits"] == 12
        assert root["rawWinrate"] == pytest.approx((1 + sign * raw.value) / 2, abs=1e-5)
        assert root["rawLead"] == pytest.approx(sign * raw.lead, abs=1e-4)
        assert (len(found["policy"]), found["policy"].count(-1), len(found["ownership"])) == (362, occupied, 361)
        assert sum(p for p in found["policy"] if p >= 0) == pytest.approx(1, abs=1e-5)
        assert [info["order"] for info in infos] == list(range(len(infos)))
        for info in infos:
            assert info["pv"][0] == info["move"]
            assert position.is_legal(info["move"])
            assert {"visits", "prior", "scoreLead", "winrate"} <= set(info)
            assert len(info["ownership"]) == 361
    avoided = [info["move"] for info in first["moveInfos"]]
    others = answer(avoidMoves=[{"moves": avoided, "player": "W", "untilDepth": 1}])["moveInfos"]
    assert others
    assert not {info["move"] for info in others} & set(avoided)
    handicap = {"playoutDoublingAdvantage": -1.138, "playoutDoublingAdvantagePla": "BLACK"}  # its AI for handicaps
    without = answer(overrideSettings={**settings, **handicap}, includeOwnership=False, includeMovesOwnership=False)
    assert without["moveInfos"]
    assert "ownership" not in without
    assert conversation.end() == []


def test_katagos_command_line(tmp_path: Path) -> None:
    """The command KaTrain starts, with keima in katago's place."""
    import subprocess
    import sys

    import keima

    net, config = tmp_path / "tiny.bin.gz", tmp_path / "analysis.cfg"
    keima.save(keima.create("katago-b6c96", blocks=1).eval(), net)
    config.write_text("maxVisits = 3\nnumAnalysisThreads = 1\nlogDir = logs\n")
    arguments = ["analysis", "-model", str(net), "-config", str(config), "-override-config", "homeDataDir=/nowhere"]
    command = [sys.executable, "-m", "keima", *arguments, "--backend", "torch", "--threads", "1"]
    queries = [{"id": "m", "action": "query_models"}, {**EMPTY, "id": "q"}]
    done = subprocess.run(
        command, input="\n".join(map(json.dumps, queries)), capture_output=True, timeout=300, check=True, text=True
    )
    models, answer = map(json.loads, done.stdout.splitlines())
    assert [model["name"] for model in models["models"]] == ["tiny.bin.gz"]
    assert answer["rootInfo"]["visits"] == 3
    assert "ready to begin" in done.stderr
    assert "homeDataDir" in done.stderr
