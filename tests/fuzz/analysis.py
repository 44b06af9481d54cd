"""Queries of the JSON analysis protocol, mutated: each line is answered, none with an internal error."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from keima.engines.analysis.engine import AnalysisEngine
from keima.engines.analysis.settings import Settings
from keima.search.search import Search
from tests.engines.scripted import ScriptedEvaluator, ScriptedSearch

_SEARCHED = 8
"""One seed in so many is searched with a real network, the others by a script."""
_PATIENCE = 0.1
"""Seconds after which a search is terminated."""
_BOARD = {"boardXSize": 3, "boardYSize": 4, "rules": "chinese", "komi": 7.5}
_MOVES = [["B", "A1"], ["W", "B2"], ["B", "pass"]]
_QUERIES: list[dict[str, Any]] = [
    {**_BOARD, "moves": []},
    {**_BOARD, "moves": _MOVES, "analyzeTurns": [0, 2, 3], "priorities": [1, 2, 3]},
    {**_BOARD, "moves": [], "initialStones": [["B", "A1"], ["B", "C4"]], "initialPlayer": "W", "priority": 7},
    {**_BOARD, "moves": _MOVES, "whiteHandicapBonus": "N-1", "rules": {"ko": "SIMPLE", "scoring": "TERRITORY"}},
    {**_BOARD, "moves": [], "includePolicy": True, "includeOwnership": True, "includePVVisits": True},
    {**_BOARD, "moves": [], "includeMovesOwnership": True, "includeOwnershipStdev": True, "includeNoResultValue": True},
    {**_BOARD, "moves": [], "avoidMoves": [{"player": "B", "moves": ["A1", "(1,1)"], "untilDepth": 2}]},
    {**_BOARD, "moves": [], "allowMoves": [{"player": "b", "moves": ["A1"], "untilDepth": 1}]},
    {**_BOARD, "moves": [], "maxVisits": 3, "rootPolicyTemperature": 1.5, "rootFpuReductionMax": 0.1},
    {**_BOARD, "moves": [], "reportDuringSearchEvery": 0.01, "firstReportDuringSearchAfter": 1, "analysisPVLen": 3},
    {"game": "chess", "moves": ["e2e4", "e7e5"], "maxVisits": 2, "analyzeTurns": [0, 2]},
    {"game": "chess", "fen": "7k/8/8/8/8/8/8/R3K3 w Q - 0 1", "moves": ["e1c1"], "chess960": False},
    {"game": "connect_four", "moves": ["a", "b", "c"]},
    {"action": "query_version"},
    {"action": "query_models"},
    {"action": "clear_cache"},
    {"action": "terminate", "terminateId": "x", "turnNumbers": [0]},
]
_SETTINGS: dict[str, Any] = {
    "cpuctExploration": 1.0,
    "cpuctExplorationBase": 500.0,
    "cpuctUtilityStdevPrior": 0.4,
    "cpuctUtilityStdevScale": 0.85,
    "staticScoreUtilityFactor": 0.1,
    "dynamicScoreUtilityFactor": 0.3,
    "dynamicScoreCenterScale": 0.75,
    "nnPolicyTemperature": 1.0,
    "rootPolicyTemperature": 1.0,
    "rootNoiseEnabled": True,
    "rootDirichletNoiseTotalConcentration": 10.83,
    "rootNumSymmetriesToSample": 2,
    "lcbStdevs": 5.0,
    "minVisitPropForLCB": 0.05,
    "numVirtualLossesPerThread": 1.0,
    "maxTime": 0.01,
    "maxVisits": 2,
    "analysisPVLen": 2,
    "humanSLProfile": "rank_5k",
    "reportAnalysisWinratesAs": "SIDETOMOVE",
    "value_weight_exponent": 0.25,
    "edge_cap": 16,
    "solve": 1,
}
_ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2, -0.0, 0.5, 1e-300, 1e300, -1e300, 10**18, 2**63, -(10**400), 10**400, 1e16, "", "B",
    "w", "pass", "C3", "(0,0)", "(1,", "\ud800", "\x00", "nan", "inf", "1e999", "∞", "٣", "rank_99k", [], {}, [[]],
    [None], {"player": "B"}, ["B", "A1"], [["B", "A1"]], "chess", "x" * 300, 3.0, "0", "-1", "1" * 400,
]  # fmt: skip


def one(seed: int) -> None:
    """A mutated query, and whether it was answered."""
    rng = random.Random(seed)
    line = _line(rng)
    answers: list[dict[str, Any]] = []
    over = json.dumps({"id": "over", "action": "terminate_all"}).encode()
    engine = _real() if seed % _SEARCHED == 0 else _scripted("lc0" if b"chess" in line else "katago")
    engine.run(_lines(engine, line, over), lambda text: answers.append(json.loads(text)))
    assert any(answer.get("id") == "over" for answer in answers), line
    for answer in answers:
        assert "internal error" not in str(answer.get("error")), (line, answer)


def _lines(engine: AnalysisEngine, *lines: bytes) -> Iterator[bytes]:
    """The lines, each when the engine has nothing open any more, or a little later."""
    for line in lines:
        late = time.monotonic() + _PATIENCE
        while engine._open and time.monotonic() < late:
            time.sleep(0.0002)
        yield line


def _line(rng: random.Random) -> bytes:
    """A query with some of its parts changed, or the bytes of its text."""
    query = json.loads(json.dumps({"id": "x", **rng.choice(_QUERIES)}))
    if rng.random() < 0.5:
        names = rng.sample(sorted(_SETTINGS), rng.randint(1, 4))
        query["overrideSettings"] = {name: _SETTINGS[name] for name in names}
        if rng.random() < 0.5:
            query["overrideSettings"][rng.choice(names)] = rng.choice(_ODD)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        _change(rng, query)
    if rng.random() < 0.1:
        return b'{"id":"x","komi":' + b"[" * rng.choice([10, 900, 5000, 100_000]) + rng.choice([b"", b"1"])
    try:
        text = json.dumps(query)
    except (ValueError, RecursionError):
        return b'{"id":"x","maxVisits":' + b"9" * 5000 + b"}"
    line = bytearray(text.encode())
    for _ in range(rng.choice([0, 0, 0, 0, 0, 1, 3])):
        line[rng.randrange(len(line))] = rng.randrange(256)
    return bytes(line).replace(b"\n", b" ")


def _change(rng: random.Random, value: Any) -> None:
    """Change one part of a JSON value somewhere inside."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys or rng.random() < 0.05:
        if isinstance(value, dict):
            value[rng.choice(["komi", "fen", "id", "game", "moves", "é", "priority"])] = rng.choice(_ODD)
        else:
            value.append(rng.choice(_ODD))
        return
    key = rng.choice(keys)
    if key in ("id", "boardXSize", "boardYSize", "game") and rng.random() < 0.8:
        return
    inner = value[key]
    if isinstance(inner, (dict, list)) and rng.random() < 0.7:
        _change(rng, inner)
    elif rng.random() < 0.1:
        del value[key]
    elif rng.random() < 0.1:
        value[key] = _nested(rng, inner)
    elif isinstance(inner, (int, float)) and not isinstance(inner, bool) and rng.random() < 0.5:
        value[key] = rng.choice([-inner, inner + 1, inner * 10**9, 0, 1e-9, 0.5])
    else:
        value[key] = rng.choice(_ODD)


def _nested(rng: random.Random, inner: Any) -> Any:
    """A value inside many lists or objects."""
    for _ in range(rng.choice([2, 100, 700])):
        inner = [inner] if rng.random() < 0.9 else {"moves": inner}
    return inner


class _Adjusted(ScriptedSearch):
    """A scripted search whose parameters are those asked for."""

    def __init__(self, evaluator: Any, parameters: Mapping[str, float]) -> None:
        from keima.systems.presets import find_preset

        super().__init__(evaluator)
        self.parameters = find_preset("auto", evaluator.network.system, dict(parameters))


def _scripted(system: str) -> AnalysisEngine:
    return AnalysisEngine(ScriptedEvaluator(system), _Adjusted, Settings(visits=2), log=lambda message: None)


def _real() -> AnalysisEngine:
    def open_search(evaluator: Any, parameters: Mapping[str, float]) -> Search:
        return Search(evaluator, memory=1 << 26, **parameters)

    return AnalysisEngine(_tiny(), open_search, Settings(visits=3), log=lambda message: None)


@cache
def _tiny() -> Any:
    """A network of one block with random weights, ready to answer."""
    import torch

    import keima

    torch.manual_seed(3)
    network = keima.create("katago-b6c96", blocks=1, channels=16).eval()
    return keima.Evaluator(network, backend="torch", batch_size=4, threads=1)
