"""The commands of GTP, one function each; `COMMANDS` is their list.

What a function takes, returns and raises: `engine.Handler`. Here are those about the engine, the board and moves,
records, the end of the game, and rules; the other ones: `commands_search`, `commands_settings`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from keima import __version__
from keima.engines.gtp.commands_search import SEARCH_COMMANDS
from keima.engines.gtp.commands_settings import SETTINGS_COMMANDS
from keima.engines.gtp.engine import Command, Engine, Handler
from keima.engines.gtp.game import FEWEST_HANDICAP, MOST_FREE_HANDICAP
from keima.engines.gtp.judge import for_black, result_text, resumed, statuses, white_score
from keima.engines.gtp.words import Refusal, expect, read_colour, read_int, read_number
from keima.errors import KeimaError
from keima.games.go.rules import Rules
from keima.games.go.vertices import PASS
from keima.search.limits import Limits

JUDGING_VISITS = 100
"""Visits behind `final_score` and `final_status_list` (KataGo: 50 and 100 at least)."""


def protocol_version(engine: Engine, command: Command) -> str:
    """2."""
    return "2"


def name(engine: Engine, command: Command) -> str:
    """The engine's name."""
    return engine.options.name


def version(engine: Engine, command: Command) -> str:
    """Keima's version, and the network's name."""
    return f"{__version__}+{engine.evaluator.network.pedigree.name}"


def known_command(engine: Engine, command: Command) -> str:
    """Is there such a command?"""
    return "true" if command.words[:1] and command.words[0] in COMMANDS else "false"


def list_commands(engine: Engine, command: Command) -> str:
    """All commands, one a line."""
    return "\n".join(COMMANDS)


def quit_(engine: Engine, command: Command) -> None:
    """End."""


def stop(engine: Engine, command: Command) -> None:
    """Ponder no more (KataGo); while a move is searched, play the best one now."""
    engine.wants_to_ponder = False


def boardsize(engine: Engine, command: Command) -> None:
    """`boardsize N`, or KataGo's `X Y` and `X:Y`: an empty board."""
    words = command.words[0].split(":") if len(command.words) == 1 else command.words
    expect(words, 1, 2, f"{command.name} SIZE, or {command.name} COLUMNS ROWS")
    sides = [read_int(word, "board size", -(10**9), 10**9) for word in words]
    engine.game.resize(sides[0], sides[-1])
    engine.forget_game()


def clear_board(engine: Engine, command: Command) -> None:
    """An empty board."""
    engine.game.clear()
    engine.forget_game()


def komi(engine: Engine, command: Command) -> None:
    """`komi POINTS`."""
    expect(command.words, 1, 1, "komi POINTS")
    points = read_number(command.words[0], "komi", -(10**9), 10**9)
    if points != engine.game.start.komi:
        engine.game.change(komi=points)


def get_komi(engine: Engine, command: Command) -> str:
    """The komi (KataGo)."""
    return f"{engine.game.start.komi:g}"


def play(engine: Engine, command: Command) -> None:
    """`play COLOUR VERTEX`."""
    expect(command.words, 2, 2, "play COLOUR VERTEX")
    engine.game.play(read_colour(command.words[0]), command.words[1])
    engine.wants_to_ponder = True


def play_sequence(engine: Engine, command: Command) -> None:
    """`gogui-play_sequence COLOUR VERTEX COLOUR VERTEX ...` (GoGui): all of the moves, or none."""
    before = engine.game.position
    pairs = _pairs(command)
    try:
        for colour, vertex in pairs:
            engine.game.play(colour, vertex)
    except KeimaError:
        engine.game.position = before
        raise
    engine.wants_to_ponder = True


def undo(engine: Engine, command: Command) -> None:
    """`undo`, or GNU Go's `gg-undo [MOVES]`."""
    expect(command.words, 0, int(command.name == "gg-undo"), f"{command.name}")
    engine.game.undo(read_int(command.words[0], "moves", 0, 10**6) if command.words else 1)
    engine.resigner.forget()
    engine.wants_to_ponder = False


def set_position(engine: Engine, command: Command) -> None:
    """`set_position COLOUR VERTEX ...`: these stones, Black to play, no history (KataGo; GoGui's `gogui-setup`)."""
    pairs = _pairs(command)
    stones = {side: [vertex for colour, vertex in pairs if colour == side] for side in "BW"}
    engine.game.set_up(stones["B"], stones["W"], "B")
    engine.forget_game()


def setup_player(engine: Engine, command: Command) -> None:
    """`gogui-setup_player COLOUR`: who is to move (GoGui), the history forgotten."""
    expect(command.words, 1, 1, "gogui-setup_player COLOUR")
    game, colour = engine.game, read_colour(command.words[0])
    if game.position.moves:
        raise Refusal("only before the first move")
    game.begin(replace(game.start, to_play=colour))


def fixed_handicap(engine: Engine, command: Command) -> str:
    """`fixed_handicap STONES`: on the customary points."""
    expect(command.words, 1, 1, "fixed_handicap STONES")
    points = engine.game.fixed_handicap(read_int(command.words[0], "handicap", -(10**9), 10**9))
    engine.forget_game()
    return " ".join(points)


def place_free_handicap(engine: Engine, command: Command) -> str:
    """`place_free_handicap STONES`: where the network would play, one by one; 30 or a quarter of the board at most."""
    expect(command.words, 1, 1, "place_free_handicap STONES")
    engine.game.expect_empty()
    xsize, ysize = engine.game.start.size
    wanted = read_int(command.words[0], "handicap", FEWEST_HANDICAP, 10**9)
    points: list[str] = []
    for _ in range(min(wanted, MOST_FREE_HANDICAP, max(xsize * ysize // 4, 1))):
        start = replace(engine.game.start, black=tuple(points), white=(), to_play="B")
        policy = dict(engine.evaluator([start.position()], symmetry="average")[0].policy)
        policy.pop(PASS, None)
        points.append(max(policy, key=lambda vertex: policy[vertex]))
    engine.game.set_up(points)
    engine.forget_game()
    return " ".join(points)


def set_free_handicap(engine: Engine, command: Command) -> None:
    """`set_free_handicap VERTEX VERTEX ...`: the controller's choice of points."""
    expect(command.words, FEWEST_HANDICAP, 361, "set_free_handicap VERTEX VERTEX ...")
    engine.game.expect_empty()
    engine.game.set_up(command.words)
    engine.forget_game()


def _pairs(command: Command) -> list[tuple[str, str]]:
    words = command.words
    if len(words) % 2:
        raise Refusal(f"usage: {command.name} COLOUR VERTEX COLOUR VERTEX ...")
    return [(read_colour(colour), vertex) for colour, vertex in zip(words[::2], words[1::2], strict=True)]


def loadsgf(engine: Engine, command: Command) -> None:
    """`loadsgf FILE [MOVE]`: up to the position before that move; a file's name may hold single spaces."""
    expect(command.words, 1, 10**6, "loadsgf FILE [MOVE]")
    path, before = " ".join(command.words), None
    if len(command.words) > 1 and not os.path.exists(path):
        path, before = " ".join(command.words[:-1]), read_int(command.words[-1], "move number", 1, 10**7)
    engine.game.load(path, before)
    engine.forget_game()


def printsgf(engine: Engine, command: Command) -> str | None:
    """`printsgf [FILE]`: the game as SGF, in the answer or (KataGo) in a file; `-` is the answer too."""
    result = ""
    if engine.game.position.is_over:
        result = final_score(engine, command).replace(".0", "")
    text = engine.game.sgf(result, {"B": "", "W": ""})
    path = " ".join(command.words)
    if path in ("", "-"):
        return text
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    except (OSError, ValueError) as error:
        raise Refusal(f"cannot write file {path!r}: {getattr(error, 'strerror', None) or error}") from error
    return None


def showboard(engine: Engine, command: Command) -> str:
    """The board drawn: X black, O white, the last move in parentheses."""
    position = engine.game.position
    taken = position.captures
    return f"\n{position}\nstones captured: {taken['B']} black, {taken['W']} white"


def final_score(engine: Engine, command: Command) -> str:
    """The score of the finished game, or what the search expects of one under way: `B+3.5`, `0`."""
    return result_text(white_score(engine.game.position, *_judge(engine)))


def final_status_list(engine: Engine, command: Command) -> str:
    """`final_status_list alive|seki|dead`: stones, a chain a line. As for KataGo, stones in seki are alive."""
    expect(command.words, 1, 1, "final_status_list alive|seki|dead")
    status = command.words[0].lower()
    if status not in ("alive", "seki", "dead"):
        raise Refusal("status must be alive, seki or dead")
    if status == "seki":
        return ""
    found = statuses(engine.game.position, _judge(engine)[0])
    return "\n".join(" ".join(chain) for chain in found[status])


def _judge(engine: Engine) -> tuple[NDArray[np.float32] | None, float | None]:
    """Black's ownership and White's lead, by a short search of the position as one that goes on; None where absent.

    None also where the rules alone settle the score: dead stones must be captured, or repetition was endless.
    """
    position, rules = engine.game.position, engine.game.position.rules
    if position.is_no_result or (position.is_over and rules.scoring == "AREA" and not rules.friendly_pass_ok):
        return None, None
    seen = resumed(position) if position.is_over else position
    result = engine.search_here(seen, Limits(visits=JUDGING_VISITS), ownership=engine.has_ownership)
    lead = result.lead if result.lead is None or seen.to_play == "W" else -result.lead
    return None if result.ownership is None else for_black(result.ownership, seen.to_play), lead


def get_rules(engine: Engine, command: Command) -> str:
    """The rules as KataGo's JSON."""
    expect(command.words, 0, 0, "kata-get-rules")
    return json.dumps(engine.game.start.rules.to_json(), separators=(",", ":"))


def set_rules(engine: Engine, command: Command) -> None:
    """`kata-set-rules RULES`: a name, KataGo's JSON or its shorthand; the moves stay."""
    expect(command.words, 1, 10**6, "kata-set-rules RULES")
    engine.game.change(rules=Rules.parse(" ".join(command.words)))
    engine.resigner.forget()


def set_rule(engine: Engine, command: Command) -> None:
    """`kata-set-rule RULE VALUE`: one field of `kata-get-rules`."""
    expect(command.words, 2, 2, "kata-set-rule RULE VALUE")
    key, word = command.words
    fields = engine.game.start.rules.to_json()
    if key not in fields:
        raise Refusal(f"unknown rule {key[:40]!r}; known are {', '.join(fields)}")
    truth = {"true": True, "false": False}
    value = truth.get(word.lower(), word) if isinstance(fields[key], bool) else word
    engine.game.change(rules=Rules.parse({**fields, key: value}))
    engine.resigner.forget()


def kgs_rules(engine: Engine, command: Command) -> None:
    """`kgs-rules chinese|aga|japanese|new_zealand`: the rules as KGS plays them."""
    names = {"chinese": "chinese-kgs", "aga": "aga", "japanese": "japanese", "new_zealand": "new-zealand"}
    expect(command.words, 1, 1, f"kgs-rules {'|'.join(names)}")
    rules = names.get(command.words[0].lower())
    if rules is None:
        raise Refusal(f"unknown rules {command.words[0][:40]!r}; known are {', '.join(names)}")
    engine.game.change(rules=Rules.parse(rules))
    engine.resigner.forget()


def _named(*handlers: Callable[[Engine, Command], str | None]) -> dict[str, Handler]:
    """Commands by the names of their functions."""
    return {handler.__name__: handler for handler in handlers}


COMMANDS: Mapping[str, Handler] = {
    **_named(protocol_version, name, version, known_command, list_commands),
    "quit": quit_,
    "boardsize": boardsize,
    "rectangular_boardsize": boardsize,
    **_named(clear_board, set_position, komi, get_komi, play, undo),
    "gg-undo": undo,
    **_named(fixed_handicap, place_free_handicap, set_free_handicap, loadsgf, printsgf, showboard),
    **_named(final_score, final_status_list, stop),
    "kata-get-rules": get_rules,
    "kata-set-rules": set_rules,
    "kata-set-rule": set_rule,
    "kgs-rules": kgs_rules,
    "gogui-play_sequence": play_sequence,
    "gogui-setup": set_position,
    "gogui-setup_player": setup_player,
    **SEARCH_COMMANDS,
    **SETTINGS_COMMANDS,
}
"""Every command by name, in the order `list_commands` tells them."""
