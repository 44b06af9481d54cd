"""GTP commands about the clock and the engine's parameters; see `gtp_commands`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from keima.engines.gtp_clock import UNLIMITED, TimeControl
from keima.engines.gtp_words import Refusal, expect, read_bool, read_colour, read_int, read_number
from keima.search.presets import Parameters

if TYPE_CHECKING:
    from keima.engines.gtp import Command, Engine

TIME_KINDS = ("none", "absolute", "byoyomi", "canadian", "fischer", "fischer-capped")
KGS_TIME_KINDS = TIME_KINDS[:4]
_MOST_STONES = 100_000

KATAGO_NAMES = {
    "cpuctExploration": "cpuct",
    "cpuctExplorationLog": "cpuct_factor",
    "cpuctExplorationBase": "cpuct_base",
    "cpuctUtilityStdevScale": "stdev_scale",
    "cpuctUtilityStdevPrior": "stdev_prior",
    "cpuctUtilityStdevPriorWeight": "stdev_prior_weight",
    "fpuReductionMax": "fpu_reduction",
    "rootFpuReductionMax": "root_fpu_reduction",
    "staticScoreUtilityFactor": "static_score",
    "dynamicScoreUtilityFactor": "dynamic_score",
    "dynamicScoreCenterZeroWeight": "dynamic_center_zero",
    "dynamicScoreCenterScale": "dynamic_scale",
    "nnPolicyTemperature": "policy_temperature",
    "rootPolicyTemperature": "root_policy_temperature",
    "rootNumSymmetriesToSample": "root_symmetries",
    "policyOptimism": "policy_optimism",
    "rootPolicyOptimism": "root_policy_optimism",
    "lcbStdevs": "lcb_stdevs",
    "minVisitPropForLCB": "lcb_min_visits",
}
"""KataGo's name of a search parameter → the one in `keima.search.presets.Parameters`, which is a name here too."""
_SEARCH_NAMES = KATAGO_NAMES | {field.name: field.name for field in fields(Parameters)}


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
    if clock is None or (stones and not clock.periods):
        raise Refusal("stones left in a period, but the time settings know none")
    clock.set_left(seconds, stones)
    return ""


def _set_clocks(engine: Engine, control: tuple[Any, ...] | None) -> None:
    """Both sides' clocks: the arguments of `TimeControl`, None for no limit."""
    for colour in engine.clocks:
        engine.clocks[colour] = None if control is None else TimeControl(*control)


def _seconds(word: str) -> float:
    return read_number(word, "time", 0.0, UNLIMITED)


def _limit(word: str) -> float:
    """A limit in seconds; a negative one is none."""
    seconds = read_number(word, "time limit", -UNLIMITED, UNLIMITED)
    return UNLIMITED if seconds < 0 else seconds


def _none(words: list[str]) -> None:
    expect(words, 0, 0, "none")


def _absolute(words: list[str]) -> tuple[Any, ...]:
    expect(words, 1, 1, "absolute MAIN")
    return (_seconds(words[0]),)


def _byoyomi(words: list[str]) -> tuple[Any, ...]:
    expect(words, 3, 3, "byoyomi MAIN PERIOD PERIODS")
    periods = read_int(words[2], "periods", 0, _MOST_STONES)
    return (_seconds(words[0]), 0.0, _seconds(words[1]) if periods else 0.0, periods)


def _canadian(words: list[str]) -> tuple[Any, ...] | None:
    expect(words, 3, 3, "canadian MAIN BYOYOMI STONES")
    main, period = _seconds(words[0]), _seconds(words[1])
    stones = read_int(words[2], "stones", 0, _MOST_STONES)
    if stones == 0:
        return None if period > 0 else (main,)
    return (main, 0.0, period, 1, stones)


def _fischer(words: list[str]) -> tuple[Any, ...]:
    expect(words, 2, 2, "fischer MAIN INCREMENT")
    return (_seconds(words[0]), _seconds(words[1]))


def _fischer_capped(words: list[str]) -> tuple[Any, ...]:
    expect(words, 4, 4, "fischer-capped MAIN INCREMENT MAIN_LIMIT MOVE_LIMIT")
    main, most = _seconds(words[0]), _limit(words[2])
    if most < main:
        raise Refusal("the limit of main time must not be below the main time")
    return (main, _seconds(words[1]), 0.0, 0, 1, most, _limit(words[3]))


_TIME_READERS: dict[str, Callable[[list[str]], tuple[Any, ...] | None]] = {
    "none": _none,
    "absolute": _absolute,
    "byoyomi": _byoyomi,
    "canadian": _canadian,
    "fischer": _fischer,
    "fischer-capped": _fischer_capped,
}


# Parameters


def _visits(engine: Engine, word: str) -> None:
    engine.options.visits = read_int(word, "maxVisits", 1, 10**12)


def _seconds_a_move(engine: Engine, word: str) -> None:
    engine.options.seconds = read_number(word, "maxTime", 0.0, UNLIMITED)


def _ponder_seconds(engine: Engine, word: str) -> None:
    engine.options.ponder_seconds = read_number(word, "maxTimePondering", 0.0, UNLIMITED)


def _pondering(engine: Engine, word: str) -> None:
    engine.options.ponder = read_bool(word, "ponderingEnabled")


def _resignation(engine: Engine, word: str) -> None:
    engine.resigner.threshold = engine.options.resign_threshold if read_bool(word, "allowResignation") else 0.0


def _resign_threshold(engine: Engine, word: str) -> None:
    engine.resigner.threshold = (read_number(word, "resignThreshold", -1.0, 1.0) + 1) / 2


def _resign_turns(engine: Engine, word: str) -> None:
    engine.resigner.turns = read_int(word, "resignConsecTurns", 1, 1000)


def _profile(engine: Engine, word: str) -> None:
    if word:
        engine.evaluator([engine.game.position], profile=word)  # refuses what it does not know
    engine.options.profile = word or None


_PLAY: dict[str, tuple[Callable[[Engine], Any], Callable[[Engine, str], None]]] = {
    "maxVisits": (lambda engine: engine.options.visits, _visits),
    "maxTime": (lambda engine: engine.options.seconds, _seconds_a_move),
    "maxTimePondering": (lambda engine: engine.options.ponder_seconds, _ponder_seconds),
    "ponderingEnabled": (lambda engine: engine.options.ponder, _pondering),
    "allowResignation": (lambda engine: engine.resigner.threshold > 0, _resignation),
    "resignThreshold": (lambda engine: 2 * engine.resigner.threshold - 1, _resign_threshold),
    "resignConsecTurns": (lambda engine: engine.resigner.turns, _resign_turns),
    "humanSLProfile": (lambda engine: engine.options.profile or "", _profile),
}
"""Parameters of play: how to read and to set them. `resignThreshold` is win − loss, as in KataGo."""


def list_params(engine: Engine, command: Command) -> str:
    """The names `kata-get-param` and `kata-set-param` know."""
    return " ".join([*_PLAY, *_SEARCH_NAMES])


def get_param(engine: Engine, command: Command) -> str:
    """`kata-get-param NAME`; "unlimited" for a limit that is not set."""
    expect(command.words, 1, 1, "kata-get-param NAME")
    return _shown(_value(engine, command.words[0]))


def get_params(engine: Engine, command: Command) -> str:
    """All parameters as JSON; null for a limit that is not set."""
    return json.dumps({name: _value(engine, name) for name in (*_PLAY, *_SEARCH_NAMES)})


def set_param(engine: Engine, command: Command) -> str:
    """`kata-set-param NAME VALUE`; changing the search forgets its tree."""
    expect(command.words, 1, 2, "kata-set-param NAME VALUE")
    _set(engine, {command.words[0]: command.words[1] if len(command.words) > 1 else ""})
    return ""


def set_params(engine: Engine, command: Command) -> str:
    """`kata-set-params {"NAME": VALUE, ...}`."""
    text = " ".join(command.words)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"parameters must be a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise Refusal("parameters must be a JSON object")
    _set(engine, {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()})
    return ""


def _shown(value: Any) -> str:
    if value is None:
        return "unlimited"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _value(engine: Engine, name: str) -> Any:
    if name in _PLAY:
        return _PLAY[name][0](engine)
    if name in _SEARCH_NAMES:
        return float(getattr(engine.search.parameters, _SEARCH_NAMES[name]))
    raise Refusal(f"unknown parameter {name[:60]!r}; kata-list-params tells the known ones")


def _set(engine: Engine, values: dict[str, str]) -> None:
    """Set parameters; the search's own ones by a new search."""
    changes: dict[str, float] = {}
    for name, word in values.items():
        _value(engine, name)
        if name in _SEARCH_NAMES:
            changes[_SEARCH_NAMES[name]] = read_number(word, name, -1e12, 1e12)
    if changes:
        overrides = engine.overrides | changes
        engine.search = engine.make_search(overrides)
        engine.overrides = overrides
    for name, word in values.items():
        if name in _PLAY:
            _PLAY[name][1](engine, word)


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
                "usesHumanSLProfile": "metadata" in network.input_names,
                "version": _model_version(pedigree.format),
                "usingFP16": str(engine.evaluator.precision != "f32").lower(),
            }
        ]
    )


def _model_version(format_name: str) -> int:
    """The number at the end of "KataGo model version 8"; 0 for other formats."""
    last = format_name.split()[-1:] if format_name.startswith("KataGo") else []
    return int(last[0]) if last and last[0].isdecimal() else 0


SETTINGS_COMMANDS: dict[str, Callable[[Engine, Command], str | None]] = {
    "time_settings": time_settings,
    "kgs-time_settings": kind_time_settings,
    "kata-time_settings": kind_time_settings,
    "kata-list_time_settings": list_time_settings,
    "time_left": time_left,
    "kata-list-params": list_params,
    "kata-get-param": get_param,
    "kata-get-params": get_params,
    "kata-set-param": set_param,
    "kata-set-params": set_params,
    "kata-get-models": get_models,
}
"""The commands of this file."""
