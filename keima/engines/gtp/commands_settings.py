"""GTP commands about the clock and the engine's parameters; see `commands`."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping

from keima.engines.gtp.clock import UNLIMITED, TimeControl, Told
from keima.engines.gtp.engine import Command, Engine, Handler
from keima.engines.gtp.words import Refusal, expect, read_colour, read_int, read_number
from keima.engines.named_settings import SETTINGS, Value, changes_of, is_known, settings_of, value_of
from keima.errors import KeimaError
from keima.systems.parameters import Number

_TIME_USAGE = {
    "none": "none",
    "absolute": "absolute MAIN",
    "byoyomi": "byoyomi MAIN PERIOD PERIODS",
    "canadian": "canadian MAIN BYOYOMI STONES",
    "fischer": "fischer MAIN INCREMENT",
    "fischer-capped": "fischer-capped MAIN INCREMENT MAIN_LIMIT MOVE_LIMIT",
}
_MOST_STONES, _MOST_PERIODS = 100_000, 1_000_000
PROFILE = "profile"
"""The option of an encoding that `humanSLProfile` sets."""


def time_settings(engine: Engine, command: Command) -> None:
    """`time_settings MAIN BYOYOMI STONES`: Canadian time; no stones but byo-yomi time: no limit (GTP 2 § 4.2)."""
    expect(command.words, 3, 3, "time_settings MAIN BYOYOMI STONES")
    _set_clocks(engine, _read_time("canadian", command.words))


def list_time_settings(engine: Engine, command: Command) -> str:
    """What `kata-time_settings` takes."""
    return " ".join(_TIME_USAGE)


def kind_time_settings(engine: Engine, command: Command) -> None:
    """`kgs-time_settings KIND ...` (KGS), `kata-time_settings KIND ...` (KataGo)."""
    kinds = list(_TIME_USAGE)[: 4 if command.name.startswith("kgs") else None]
    kind = command.words[0].lower() if command.words else ""
    if kind not in kinds:
        raise Refusal(f"time settings must be {', '.join(kinds)}, not {kind[:40]!r}")
    _set_clocks(engine, _read_time(kind, command.words[1:]))


def time_left(engine: Engine, command: Command) -> None:
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


def print_clocks(engine: Engine, command: Command) -> str:
    """`kata-debug-print-tc`: both sides' clocks, and what KataGo would take of them for a move (KataGo)."""
    position = engine.game.position
    area, stones = position.xsize * position.ysize, int((position.stones != 0).sum())
    lag = float(_value(engine, "lagBuffer"))
    told = {side: Told() if clock is None else clock.told for side, clock in engine.clocks.items()}
    return "\n".join(f"{side} {told[side[0]].describe(area, stones, lag)}" for side in ("Black", "White"))


def _set_clocks(engine: Engine, control: TimeControl | None) -> None:
    for colour in engine.clocks:
        engine.clocks[colour] = copy.copy(control)


def _read_time(kind: str, words: list[str]) -> TimeControl | None:
    """The clock of a kind of time settings; None for no limit."""
    usage = _TIME_USAGE[kind]
    expect(words, len(usage.split()) - 1, len(usage.split()) - 1, usage)
    if kind == "none":
        return None
    main, *more = (read_number(word, "time", 0.0, UNLIMITED) for word in words[:2])
    if kind == "absolute":
        return TimeControl(main)
    if kind == "fischer":
        return TimeControl(main, more[0])
    if kind == "fischer-capped":
        limits = [read_number(word, "time limit", -UNLIMITED, UNLIMITED) for word in words[2:]]
        most, most_of_move = (UNLIMITED if limit < 0 else limit for limit in limits)
        if most < main:
            raise Refusal("the limit of main time must not be below the main time")
        return TimeControl(main, more[0], 0.0, 0, 1, most, most_of_move)
    if kind == "byoyomi":
        periods = read_int(words[2], "periods", 0, _MOST_PERIODS)
        return TimeControl(main, 0.0, more[0] if periods else 0.0, periods)
    stones = read_int(words[2], "stones", 0, _MOST_STONES)
    if stones == 0:
        return None if more[0] > 0 else TimeControl(main)
    return TimeControl(main, 0.0, more[0], 1, stones)


_SPECIAL = settings_of("""
    analysisWideRootNoise=0.04:0:5 analysisIgnorePreRootHistory=true genmoveAntiMirror=true antiMirror=false
    humanSLProfile= allowResignation=true ponderingEnabled=false delayMoveScale=0.0:0:10000 delayMoveMax=1e6:0:1e6
""")
"""KataGo's parameters of the engine, in its order; those of its search: `SETTINGS`."""
_OURS = settings_of("resignThreshold=-0.9:-1:1 resignConsecTurns=3:1:1000")
"""Parameters of play that KataGo sets in its configuration only; the threshold is win − loss, as there."""
_ALL = {**_SPECIAL, **SETTINGS, **_OURS}
_FIXED = ("dynamicPlayoutDoublingAdvantageCapPerOppLead", "avoidRepeatedPatternUtility")
_UNLIMITED_VISITS, _UNLIMITED_SECONDS = 1 << 50, 1e20


def _play_values(engine: Engine) -> dict[str, Value]:
    """The parameters of play as they are."""
    options, resigner = engine.options, engine.resigner
    return {
        "maxVisits": options.visits or _UNLIMITED_VISITS,
        "maxTime": _UNLIMITED_SECONDS if options.seconds is None else options.seconds,
        "maxTimePondering": options.ponder_seconds,
        "ponderingEnabled": options.ponder,
        "allowResignation": resigner.threshold > 0,
        "resignThreshold": round(2 * resigner.threshold - 1, 12),
        "resignConsecTurns": resigner.turns,
        "humanSLProfile": str(options.bound.get(PROFILE, "")),
    }


def _set_play(engine: Engine, name: str, value: Value) -> None:
    """Set one of them."""
    options, resigner = engine.options, engine.resigner
    if name == "maxVisits":
        options.visits = None if value == _UNLIMITED_VISITS else int(value)
    elif name == "maxTime":
        options.seconds = None if value == _UNLIMITED_SECONDS else float(value)
    elif name == "maxTimePondering":
        options.ponder_seconds = float(value)
    elif name == "ponderingEnabled":
        options.ponder = bool(value)
    elif name == "allowResignation":
        resigner.threshold = options.resign_threshold if value else 0.0
    elif name == "resignThreshold":
        resigner.threshold = (float(value) + 1) / 2
    elif name == "resignConsecTurns":
        resigner.turns = int(value)
    elif value or PROFILE in engine.evaluator.encoding.options:
        engine.bind(**{PROFILE: value or None})


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


def set_param(engine: Engine, command: Command) -> None:
    """`kata-set-param NAME VALUE`; changing the search forgets its tree."""
    words = command.words
    expect(words, 1, 2, "kata-set-param NAME VALUE")
    set_values(engine, {words[0]: words[1] if len(words) > 1 else ""})


def set_params(engine: Engine, command: Command) -> None:
    """`kata-set-params {"NAME": VALUE, ...}`."""
    try:
        found = json.loads(" ".join(command.words))
        values = [value if isinstance(value, str) else json.dumps(value) for value in found.values()]
    except AttributeError:
        raise Refusal("Could not set params: Argument to kata-set-params must be a json object") from None
    except (ValueError, RecursionError) as error:
        raise Refusal(f"Could not set params: {error}") from error
    set_values(engine, dict(zip(found, values, strict=True)))


def _text(value: Value) -> str:
    """A value as KataGo's own parameters of the engine are told."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _value(engine: Engine, name: str) -> Value:
    """What a parameter is: of play, of the search, or held for whoever set it."""
    play = _play_values(engine)
    if name in play:
        return play[name]
    if not (name in _ALL or is_known(name)):
        raise Refusal(f"Invalid parameter: {name[:60]}")
    value = value_of(name, engine.search.parameters) if is_known(name) else None
    return engine.held.get(name, _ALL[name].default) if value is None else value


def set_values(engine: Engine, values: dict[str, str]) -> None:
    """Set parameters, or none of them; the search's own ones by a new search. Raises Refusal: a bad name or value."""
    changes: dict[str, Number] = {}
    play: dict[str, Value] = {}
    held: dict[str, Value] = {}
    try:
        for name, word in values.items():
            if name in _FIXED:
                raise Refusal(f"Cannot be overridden in kata-set-param: {name}")
            if name.startswith("humanSL") and name != "humanSLProfile":
                raise Refusal(f"Provided parameter {name[:60]} but there is no human model beside the network")
            if name in _play_values(engine):
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
            _set_play(engine, "humanSLProfile", play.pop("humanSLProfile"))
        if changes:
            engine.change_search(changes)
    except KeimaError as error:
        raise Refusal(f"Could not set params: {error}") from error
    for name, value in play.items():
        _set_play(engine, name, value)
    engine.held |= held


def get_models(engine: Engine, command: Command) -> str:
    """The network, as KataGo's `kata-get-models` tells it."""
    evaluator = engine.evaluator
    pedigree = evaluator.network.pedigree
    model = {
        "name": pedigree.origin,
        "internalName": pedigree.name,
        "maxBatchSize": evaluator.batch_size,
        "usesHumanSLProfile": PROFILE in evaluator.encoding.options,
        "version": _model_version(pedigree.format),
        "usingFP16": str(evaluator.precision != "f32").lower(),
    }
    return json.dumps([model])


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
