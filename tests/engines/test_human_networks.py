"""Human networks in the engines: whom they imitate is bound once, and holds for everything that asks the network."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keima
from keima.engines.analysis.engine import AnalysisEngine
from keima.engines.analysis.settings import Settings
from keima.engines.gtp.commands import COMMANDS
from keima.engines.gtp.engine import Engine, Options
from keima.search.search import Search

FIVE = {"moves": [["B", "C3"]], "rules": "chinese", "komi": 7.5, "boardXSize": 5, "boardYSize": 5, "maxVisits": 8}


@pytest.fixture(scope="module")
def human(reference: Path) -> Any:
    """A human network with random weights, ready to answer."""
    network = keima.load(reference / "nets" / "katago-random-meta.bin.gz")
    return keima.Evaluator(network, backend="torch", batch_size=4, threads=1)


def talk(evaluator: Any, *lines: str, profile: str | None = "rank_5k") -> list[str]:
    """What a GTP engine answers."""
    options = Options(visits=8, bound={} if profile is None else {"profile": profile})
    engine = Engine(evaluator, lambda bound, overrides: Search(bound, memory=1 << 26, **overrides), options, COMMANDS)
    out = io.BytesIO()
    engine.run(io.BytesIO("\n".join([*lines, ""]).encode()), out)
    return out.getvalue().decode().split("\n\n")[:-1]


@pytest.mark.parametrize(
    "command",
    [
        "genmove b", "reg_genmove b", "final_score", "final_status_list dead", "kata-raw-nn 0", "kata-raw-nn 3 0.5",
        "heatmap", "keima-ownership", "keima-winrate", "keima-policy", "keima-variation", "gogui-analyze_commands",
        "kata-search_analyze b ownership true rootInfo true movesOwnership true",
    ],
)  # fmt: skip
def test_every_command_that_asks_the_network_knows_the_profile(human: Any, command: str) -> None:
    answers = talk(human, "boardsize 5", "play b c3", "play w b2", command)
    assert answers[-1].startswith("="), answers
    assert "imitate" not in answers[-1]


def test_a_friendly_pass_is_thought_over(human: Any) -> None:
    answers = talk(human, "boardsize 5", "kata-set-rules chinese", "play b c3", "play w pass", "genmove b", "showboard")
    assert all(answer.startswith("=") for answer in answers), answers


def test_free_handicap_is_placed(human: Any) -> None:
    placed = talk(human, "boardsize 9", "place_free_handicap 3")[-1]
    assert placed.startswith("= ")
    assert len(set(placed.split()[1:])) == 3


def test_another_profile_answers_otherwise_and_none_is_refused(human: Any) -> None:
    before, change, after, name = talk(
        human,
        "kata-raw-nn 0",
        "kata-set-param humanSLProfile rank_9d",
        "kata-raw-nn 0",
        "kata-get-param humanSLProfile",
    )
    assert (change, name) == ("=", "= rank_9d")
    assert before != after
    assert talk(human, "kata-raw-nn 0", profile="rank_9d") == [after]
    assert talk(human, "kata-set-param humanSLProfile rank_99k")[0].startswith("? Could not set params")
    assert talk(human, "kata-raw-nn 0", profile=None)[0].startswith("? ")


def ask(evaluator: Any, *queries: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What an analysis engine answers, in order."""
    engine = AnalysisEngine(
        evaluator, lambda bound, parameters: Search(bound, memory=1 << 26, **parameters), Settings(), log=print
    )
    answers: list[dict[str, Any]] = []
    engine.run((json.dumps(query).encode() for query in queries), lambda line: answers.append(json.loads(line)))
    return iter(answers)


def test_analyses_search_with_the_profile_of_the_query(human: Any) -> None:
    include = {"includePolicy": True, "includeOwnership": True, "includeMovesOwnership": True}
    include |= {"includeOwnershipStdev": True, "includeMovesOwnershipStdev": True}
    found = {}
    for profile in ("rank_5k", "rank_9d"):
        settings = {"humanSLProfile": profile}
        answer = next(ask(human, {**FIVE, **include, "id": "q", "overrideSettings": settings}))
        assert "error" not in answer, answer
        assert {"humanWinrate", "rawStWrError", "rawStScoreError", "rawVarTimeLeft"} <= set(answer["rootInfo"])
        assert len(answer["moveInfos"][0]["ownershipStdev"]) == 25
        found[profile] = answer["policy"]
    assert found["rank_5k"] != found["rank_9d"]
    assert "profile" in next(ask(human, {**FIVE, "id": "none"}))["error"]
    bound = next(ask(human.bind(profile="rank_9d"), {**FIVE, "id": "bound", "includePolicy": True}))
    assert bound["policy"] == found["rank_9d"]
