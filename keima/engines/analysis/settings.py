"""Settings of an analysis engine, by KataGo's names: in its configuration files, on its command line, in queries.

Names KataGo knows and keima has no use for are told apart from names nobody knows, which are probably mistyped.
Sources: KataGo v1.17.2 `cpp/configs/analysis_example.cfg`, `cpp/program/setup.cpp`, `docs/Analysis_Engine.md`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from keima.engines.named_settings import SETTINGS, Setting, changes_of, is_known, value_of
from keima.errors import BadRequest
from keima.games.game import GAMES
from keima.plain import Data, Fields
from keima.systems.parameters import Number, Parameters

TO_MOVE = ""
"""In a side's place: values are reported for the side to move."""
MOST_VISITS = 1 << 30
"""More than this many visits are as good as no limit."""


@dataclass(frozen=True)
class Settings:
    """What holds for a query unless it says otherwise.

    Attributes:
        visits, seconds: of the root, and of wall-clock time, at which a search ends.
        perspective: for which side values are reported, by one of its names in lower case, or `TO_MOVE`; None, and
            where a game has no such side: the one that moves first.
        pv_length: moves of a variation after its first.
        profile: which human to imitate (KataGo's human networks), or None.
        warn_unused: warn about fields nobody knows.
        workers: positions searched at the same time.
        parameters: search parameters in place of the preset's, as (name, number) pairs in order of their names.
    """

    visits: int = 500
    seconds: float | None = None
    perspective: str | None = None
    pv_length: int = 15
    profile: str | None = None
    warn_unused: bool = True
    workers: int = 1
    parameters: tuple[tuple[str, Number], ...] = ()

    def with_parameters(self, more: Mapping[str, Number]) -> Settings:
        """These settings with some search parameters set."""
        return replace(self, parameters=tuple(sorted({**dict(self.parameters), **more}.items())))


@dataclass(frozen=True)
class Applied:
    """Settings with what could be set, KataGo's names that do nothing here, and names nobody knows."""

    settings: Settings
    idle: tuple[str, ...]
    unknown: tuple[str, ...]


def apply_settings(settings: Settings, changes: Fields) -> Applied:
    """Settings changed by KataGo's or our parameters' names, to text or JSON. Raises BadRequest: a bad value."""
    idle: list[str] = []
    unknown: list[str] = []
    for name, value in changes.items():
        text = value.strip() if isinstance(value, str) else json.dumps(value)
        if name in _ENGINE:
            field, setting = _ENGINE[name]
            found: Data = {field: setting.read(text)}
            if field == "visits":
                found[field] = min(found[field], MOST_VISITS)
            elif field == "perspective":
                found[field] = read_perspective(text)
            elif field == "profile":
                found[field] = text or None
            settings = replace(settings, **found)
        elif name == "nnRandomize":
            settings = settings.with_parameters({"random_symmetry": bool(_RANDOM_SYMMETRY.read(text))})
        elif is_known(name):
            numbers = changes_of(name, text)
            settings = settings.with_parameters(numbers)
            if not numbers and value_of(name, Parameters()) is None:
                idle.append(name)
        elif name in IDLE or name.startswith(_IDLE_PREFIXES):
            idle.append(name)
        else:
            unknown.append(name)
    return Applied(settings, tuple(idle), tuple(unknown))


def read_config(path: str) -> dict[str, str]:
    """A KataGo configuration file's settings: `name = value` a line, # comments. Raises BadRequest: it is none."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=path) from error
    lines = ((f"line {number}", line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1))
    settings = dict(
        _setting(content, "name = value", path, place) for place, content in lines if content and content[0] != "@"
    )
    return {name: value.strip('"') for name, value in settings.items()}


def read_overrides(text: str) -> dict[str, str]:
    """The settings of a command line's `name=value,name=value`. Raises BadRequest: a part is no setting."""
    return dict(_setting(part, "name=value", "-override-config") for part in text.split(",") if part.strip())


def _setting(text: str, form: str, source: str, place: str | None = None) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadRequest(f"expected {form}, found {text[:60]!r}", source=source, place=place)
    return name.strip(), value.strip()


def read_perspective(text: str) -> str | None:
    """`Settings.perspective` from KataGo's word; None for "auto". Raises BadRequest: no such word, nor a side."""
    word = text.lower()
    if word == "sidetomove":
        return TO_MOVE
    if word == "auto":
        return None
    if not any(word in game.analysis.sides for game in GAMES.values()):
        raise BadRequest(f"reportAnalysisWinratesAs must be BLACK, WHITE or SIDETOMOVE, not {text[:40]!r}")
    return word


_ENGINE: Mapping[str, tuple[str, Setting]] = {
    "maxVisits": ("visits", SETTINGS["maxVisits"]),
    "maxPlayouts": ("visits", SETTINGS["maxPlayouts"]),
    "maxTime": ("seconds", Setting("maxTime", 1e20, 0.0, math.inf)),
    "reportAnalysisWinratesAs": ("perspective", Setting("reportAnalysisWinratesAs", "")),
    "analysisPVLen": ("pv_length", Setting("analysisPVLen", 15, 1, 1000)),
    "humanSLProfile": ("profile", Setting("humanSLProfile", "")),
    "warnUnusedFields": ("warn_unused", Setting("warnUnusedFields", True)),
    "numAnalysisThreads": ("workers", Setting("numAnalysisThreads", 1, 1, 16384)),
}
"""Settings of the engine itself, with the field of `Settings` that each is."""
_RANDOM_SYMMETRY = Setting("nnRandomize", True)

_IDLE_NAMES = """
    allowResignation antiMirror assumeMultipleStartingBlackMovesAreHandicap avoidMYTDaggerHack
    avoidRepeatedPatternUtility delayMoveMax delayMoveScale evalCacheMinVisits forDeterministicTesting friendlyPassOk
    homeDataDir maxBoardXSizeForNNBuffer maxBoardYSizeForNNBuffer nodeTableShardsPowerOfTwo numEigenThreadsPerModel
    numNNServerThreadsPerModel numSearchThreadsPerAnalysisThread openclReTunePerBoardSize ponderingEnabled
    preventCleanupPhase requireMaxBoardSize searchFactorWhenWinning searchFactorWhenWinningThreshold useEvalCache
"""
IDLE = frozenset(_IDLE_NAMES.split())
"""Further settings that do nothing here: KataGo's own machinery, or ways of playing that analyses have not."""
_IDLE_PREFIXES = ("avoidSgf", "cuda", "gpu", "humanSL", "log", "metal", "nn", "opencl", "trt")
