"""GTP commands about the clock and the engine's parameters; see `commands`."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from keima.engines.gtp.clock import UNLIMITED, TimeControl
from keima.engines.gtp.time_plan import Told
from keima.engines.gtp.words import Refusal, expect, read_colour, read_int, read_number
from keima.engines.named_settings import SETTINGS, Setting, Value, changes_of, is_known, value_of
from keima.errors import KeimaError
from keima.systems.parameters import Number

if TYPE_CHECKING:
    from keima.engines.gtp.engine import Command, Engine, Handler

TIME_KINDS = ("none", "absolute", "byoyomi", "canadian", "fischer", "fischer-capped")
KGS_TIME_KINDS = TIME_KINDS[:4]
_MOST_STONES, _MOST_PERIODS = 100_000, 1_000_000
PROFILE = "profile"
"""The option of an encoding that `humanSLProfile` sets."""


# The clock


def time_settings(engine: Engine, command: Command) -> str:
    """`time_settings MAIN BYOYOMI STONES`: Canadian time; no stones but byo-yomi time: no limit (GTP 2 § 4.2)."""
    expect(command.words, 3, 3, "time_settings MAIN BYOYOMI STONES")
    _set_clocks(engine, _canadian(command.words))
    return ""


def list_time_settings(engine: Engine, command: Command) -> str:
    """What `kata-time_settings` takes."""
    return " ".join(TIME_KINDS)


def kind_time_settings(engine: Engine, command: Command) -> str:
    """`kgs-time_settings KIND ...` (KGS), `kata-time_settings KIND ...` (KataGo)."""
    kinds = TIME_KINDS if command.name.startswith("kata") else KGS_TIME_KINDS
    kind = command.words[0].lower() if command.words else ""
    if kind not in kinds:
        raise Refusal(f"time settings must be {', '.join(kinds)}, not {kind[:40]!r}")
    _set_clocks(engine, _TIME_READERS[kind](command.words[1:]))
    return ""


def time_left(engine: Engine, command: Command) -> str:
    """`time_left COLOUR SECONDS STONES`; for Japanese byo-yomi the periods left stand in the stones' place (KGS)."""
    expect(command.words, 3, 3, "time_left COLOUR SECONDS STONES")
    colour = read_colour(command.words[0])
    seconds = read_number(command.words[1], "time", -10.0, UNLIMITED)
    stones = read_int(command.words[2], "stones", 0, _MOST_STONES)
    clock = engine.clocks[colour]
    if clock is None and stones == 0:
        clock = engine.clocks[colour] = TimeControl(max(seconds, 0.0))
        clock.told = Told()
    if clock is None or (stones and not clock.periods):
        raise Refusal("stones left in a period, but the time settings know none")
    clock.set_left(seconds, stones)
    return ""


def print_clocks(engine: Engine, command: Command) -> str:
    """`kata-debug-print-tc`: both sides' clocks, and what KataGo would take of them for a move (KataGo)."""
    position = engine.game.position
    area, stones = position.xsize * position.ysize, int((position.stones != 0).sum())
    lag = float(_value(engine, "lagBuffer"))
    told = {"Black": engine.clocks["B"], "White": engine.clocks["W"]}
    return "\n".join(
        f"{name} {(Told() if clock is None else clock.told).describe(area, stones, lag)}"
        for name, clock in told.items()
    )


def _set_clocks(engine: Engine, control: TimeControl | None) -> None:
    """Both sides' clocks; None for no limit."""
    for colour in engine.clocks:
        engine.clocks[colour] = copy.copy(control)


def _seconds(word: str) -> float:
    return read_number(word, "time", 0.0, UNLIMITED)


def _limit(word: str) -> float:
    """A limit in seconds; a negative one is none."""
    seconds = read_number(word, "time limit", -UNLIMITED, UNLIMITED)
    return UNLIMITED if seconds < 0 else seconds


def _none(words: list[str]) -> None:
    expect(words, 0, 0, "none")


def _absolute(words: list[str]) -> TimeControl:
    expect(words, 1, 1, "absolute MAIN")
    return TimeControl(_seconds(words[0]))


def _byoyomi(words: list[str]) -> TimeControl:
    expect(words, 3, 3, "byoyomi MAIN PERIOD PERIODS")
    periods = read_int(words[2], "periods", 0, _MOST_PERIODS)
    return TimeControl(_seconds(words[0]), 0.0, _seconds(words[1]) if periods else 0.0, periods)


def _canadian(words: list[str]) -> TimeControl | None:
    expect(words, 3, 3, "canadian MAIN BYOYOMI STONES")
    main, period = _seconds(words[0]), _seconds(words[1])
    stones = read_int(words[2], "stones", 0, _MOST_STONES)
    if stones == 0:
        return None if period > 0 else TimeControl(main)
    return TimeControl(main, 0.0, period, 1, stones)


def _fischer(words: list[str]) -> TimeControl:
    expect(words, 2, 2, "fischer MAIN INCREMENT")
    return TimeControl(_seconds(words[0]), _seconds(words[1]))


def _fischer_capped(words: list[str]) -> TimeControl:
    expect(words, 4, 4, "fischer-capped MAIN INCREMENT MAIN_LIMIT MOVE_LIMIT")
    main, most = _seconds(words[0]), _limit(words[2])
    if most < main:
        raise Refusal("the limit of main time must not be below the main time")
    return TimeControl(main, _seconds(words[1]), 0.0, 0, 1, most, _limit(words[3]))


_TIME_READERS: dict[str, Callable[[list[str]], TimeControl | None]] = {
    "none": _none,
    "absolute": _absolute,
    "byoyomi": _byoyomi,
    "canadian": _canadian,
    "fischer": _fischer,
    "fischer-capped": _fischer_capped,
}


# Parameters

_SPECIAL = {
    "analysisWideRootNoise": Setting("analysisWideRootNoise", 0.04, 0.0, 5.0),
    "analysisIgnorePreRootHistory": Setting("analysisIgnorePreRootHistory", True),
    "genmoveAntiMirror": Setting("genmoveAntiMirror", True),
    "antiMirror": Setting("antiMirror", False),
    "humanSLProfile": Setting("humanSLProfile", ""),
    "allowResignation": Setting("allowResignation", True),
    "ponderingEnabled": Setting("ponderingEnabled", False),
    "delayMoveScale": Setting("delayMoveScale", 0.0, 0.0, 10000.0),
    "delayMoveMax": Setting("delayMoveMax", 1e6, 0.0, 1e6),
}
"""KataGo's parameters of the engine, in its order; those of its search: `SETTINGS`."""
_OURS = {
    "resignThreshold": Setting("resignThreshold", -0.9, -1.0, 1.0),
    "resignConsecTurns": Setting("resignConsecTurns", 3, 1, 1000),
}
"""Parameters of play that KataGo sets in its configuration only; the threshold is win − loss, as there."""
_ALL = {**_SPECIAL, **SETTINGS, **_OURS}
_FIXED = ("dynamicPlayoutDoublingAdvantageCapPerOppLead", "avoidRepeatedPatternUtility")
_UNLIMITED_VISITS, _UNLIMITED_SECONDS = 1 << 50, 1e20


def _set_visits(engine: Engine, value: Value) -> None:
    engine.options.visits = None if value == _UNLIMITED_VISITS else int(value)


def _set_seconds(engine: Engine, value: Value) -> None:
    engine.options.seconds = None if value == _UNLIMITED_SECONDS else float(value)


def _set_resignation(engine: Engine, value: Value) -> None:
    engine.resigner.threshold = engine.options.resign_threshold if value else 0.0


def _set_profile(engine: Engine, value: Value) -> None:
    if value or PROFILE in engine.evaluator.encoding.options:
        engine.bind(**{PROFILE: value or None})


_PLAY: dict[str, tuple[Callable[[Engine], Value], Callable[[Engine, Value], None]]] = {
    "maxVisits": (lambda engine: engine.options.visits or _UNLIMITED_VISITS, _set_visits),
    "maxTime": (
        lambda engine: _UNLIMITED_SECONDS if engine.options.seconds is None else engine.options.seconds,
        _set_seconds,
    ),
    "maxTimePondering": (
        lambda engine: engine.options.ponder_seconds,
        lambda engine, value: setattr(engine.options, "ponder_seconds", value),
    ),
    "ponderingEnabled": (
        lambda engine: engine.options.ponder,
        lambda engine, value: setattr(engine.options, "ponder", value),
    ),
    "allowResignation": (lambda engine: engine.resigner.threshold > 0, _set_resignation),
    "resignThreshold": (
        lambda engine: round(2 * engine.resigner.threshold - 1, 12),
        lambda engine, value: setattr(engine.resigner, "threshold", (float(value) + 1) / 2),
    ),
    "resignConsecTurns": (
        lambda engine: engine.resigner.turns,
        lambda engine, value: setattr(engine.resigner, "turns", value),
    ),
    "humanSLProfile": (lambda engine: str(engine.options.bound.get(PROFILE, "")), _set_profile),
}
"""Parameters of play: how to read and to set them."""


def list_params(engine: Engine, command: Command) -> str:
    """The names of KataGo's parameters; the search's own ones are taken too."""
    return " ".join([*_SPECIAL, *SETTINGS])


def get_param(engine: Engine, command: Command) -> str:
    """`kata-get-param NAME`."""
    expect(command.words, 1, 1, "kata-get-param NAME")
    name = command.words[0]
    value = _value(engine, name)
    return _text(value) if name in _SPECIAL else json.dumps(value)


def get_params(engine: Engine, command: Command) -> str:
    """All of KataGo's parameters as JSON."""
    found = {name: _value(engine, name) for name in SETTINGS} | {name: _text(_value(engine, name)) for name in _SPECIAL}
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def set_param(engine: Engine, command: Command) -> str:
    """`kata-set-param NAME VALUE`; changing the search forgets its tree."""
    words = command.words
    expect(words, 1, 2, "kata-set-param NAME VALUE")
    _set(engine, {words[0]: words[1] if len(words) > 1 else ""})
    return ""


def set_params(engine: Engine, command: Command) -> str:
    """`kata-set-params {"NAME": VALUE, ...}`."""
    try:
        found = json.loads(" ".join(command.words))
        values = [value if isinstance(value, str) else json.dumps(value) for value in found.values()]
    except AttributeError:
        raise Refusal("Could not set params: Argument to kata-set-params must be a json object") from None
    except (ValueError, RecursionError) as error:
        raise Refusal(f"Could not set params: {error}") from error
    _set(engine, dict(zip(found, values, strict=True)))
    return ""


def _text(value: Value) -> str:
    """A value as KataGo's own parameters of the engine are told."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _value(engine: Engine, name: str) -> Value:
    """What a parameter is: of play, of the search, or held for whoever set it."""
    if name in _PLAY:
        return _PLAY[name][0](engine)
    if not (name in _ALL or is_known(name)):
        raise Refusal(f"Invalid parameter: {name[:60]}")
    value = value_of(name, engine.search.parameters) if is_known(name) else None
    return engine.held.get(name, _ALL[name].default) if value is None else value


def _set(engine: Engine, values: dict[str, str]) -> None:
    """Set parameters, or none of them; the search's own ones by a new search."""
    changes: dict[str, Number] = {}
    play: dict[str, Value] = {}
    held: dict[str, Value] = {}
    try:
        for name, word in values.items():
            if name in _FIXED:
                raise Refusal(f"Cannot be overridden in kata-set-param: {name}")
            if name.startswith("humanSL") and name != "humanSLProfile":
                raise Refusal(f"Provided parameter {name[:60]} but there is no human model beside the network")
            if name in _PLAY:
                play[name] = _ALL[name].read(word)
            elif is_known(name):
                changes |= changes_of(name, word)
                if value_of(name, engine.search.parameters) is None:
                    held[name] = SETTINGS[name].read(word)
            elif name in _SPECIAL:
                held[name] = _SPECIAL[name].read(word)
            else:
                raise Refusal(f"Unrecognized or non-overridable parameter in kata-set-params: {name[:60]}")
        if "humanSLProfile" in play:
            _set_profile(engine, play.pop("humanSLProfile"))
        if changes:
            engine.change_search(changes)
    except KeimaError as error:
        raise Refusal(f"Could not set params: {error}") from error
    for name, value in play.items():
        _PLAY[name][1](engine, value)
    engine.held |= held


def get_models(engine: Engine, command: Command) -> str:
    """The network, as KataGo's `kata-get-models` tells it."""
    network = engine.evaluator.network
    pedigree = network.pedigree
    return json.dumps(
        [
            {
                "name": pedigree.origin,
                "internalName": pedigree.name,
                "maxBatchSize": engine.evaluator.batch_size,
                "usesHumanSLProfile": PROFILE in engine.evaluator.encoding.options,
                "version": _model_version(pedigree.format),
                "usingFP16": str(engine.evaluator.precision != "f32").lower(),
            }
        ]
    )


def _model_version(format_name: str) -> int:
    """The number at the end of "KataGo model version 8"; 0 for other formats."""
    last = format_name.split()[-1:] if format_name.startswith("KataGo") else []
    return int(last[0]) if last and last[0].isdecimal() else 0


SETTINGS_COMMANDS: Mapping[str, Handler] = {
    "time_settings": time_settings,
    "kgs-time_settings": kind_time_settings,
    "kata-time_settings": kind_time_settings,
    "kata-list_time_settings": list_time_settings,
    "time_left": time_left,
    "kata-debug-print-tc": print_clocks,
    "kata-list-params": list_params,
    "kata-get-param": get_param,
    "kata-get-params": get_params,
    "kata-set-param": set_param,
    "kata-set-params": set_params,
    "kata-get-models": get_models,
}
"""The commands of this file."""
