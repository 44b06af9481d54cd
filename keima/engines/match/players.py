"""Who plays in a match: our networks with a search or without, and other programs by a protocol of their own.

A player is written as what it is, with its options (`docs/matches.md`):

    NET,visits=100,preset=katago        a network file, with our search
    policy:NET,temperature=0.5          a network file, its policy alone
    NET,visits=40,profile=rank_5k       a network with an option of its own
    NET,value=FILE,rollout=FILE         a policy network with a value network and a rollout policy
    go,visits=100 or policy:chess       the default network of that game, where no file is called so
    gtp:gnugo --mode gtp --level 10     a program that speaks GTP
    uci,nodes=1000:stockfish            a program that speaks UCI

Options of a network stand behind it; those of a command line, which may hold commas itself, before the colon.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from keima.errors import BadRequest
from keima.games.position import Position
from keima.search.limits import Clock

RESIGN, PASS = "resign", "pass"
NETWORK_OPTIONS = ("precision", "backend", "threads", "temperature", "plies", "name")
SEARCH_OPTIONS = (*NETWORK_OPTIONS, "visits", "seconds", "preset", "batch", "memory", "resign", "value", "rollout")
"""What a network with our search takes, beside the parameters of the search."""
POLICY_OPTIONS = (*NETWORK_OPTIONS, "symmetry")
PROGRAM_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "gtp": ("timeout", "name"),
    "uci": ("timeout", "name", "nodes", "depth", "seconds"),
}
"""By protocol; a name with a dot ("option.Threads") is the program's own."""
_KINDS = ("net", "policy", *PROGRAM_OPTIONS)


@dataclass(frozen=True)
class Spec:
    """A player as it was written.

    Attributes:
        text: the whole of it.
        kind: "net", "policy", or the protocol of a program.
        target: the network file, the game whose default network plays, or the command line.
    """

    text: str
    kind: str
    target: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_program(self) -> bool:
        """Another program, by a protocol?"""
        return self.kind in PROGRAM_OPTIONS

    @property
    def name(self) -> str:
        """What records call it, unless the engine tells a better one."""
        if "name" in self.options:
            return self.options["name"]
        if self.is_program:
            return Path(self.target.split()[0]).name
        stem = re.sub(r"(\.(bin|txt|pb|safetensors))?(\.gz)?$", "", Path(self.target).name)
        chosen = [f"{key}={value}" for key, value in self.options.items()]
        return ",".join([f"{stem} policy" if self.kind == "policy" else stem, *chosen])

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Refuse, by a BadRequest, an option that is not among these."""
        for name in self.options:
            if name not in known and not (self.is_program and "." in name):
                raise BadRequest(f"player {self.text!r}: unknown option {name!r}; {self.kind} takes {', '.join(known)}")

    def network_options(self, known: Collection[str]) -> dict[str, object]:
        """The options that are the network's: those it knows, and whatever is a word, as no number of a search is."""
        common = {*SEARCH_OPTIONS, *POLICY_OPTIONS}
        given = {name: _as_value(text) for name, text in self.options.items() if name not in common}
        return {name: value for name, value in given.items() if name in known or isinstance(value, str)}

    def check_limits(self, timed: bool) -> None:
        """Refuse, by a BadRequest, a program that would think for ever: it has no limit, and the match no clock."""
        limits = {"nodes", "depth", "seconds"} & {*PROGRAM_OPTIONS[self.kind]}
        if limits and not timed and not limits & {*self.options}:
            raise BadRequest(f"player {self.text!r}: give it nodes, depth or seconds, or the match a --time")

    def number(self, option: str, default: float | None = None) -> float | None:
        """A number among the options; BadRequest where it is none."""
        if option not in self.options:
            return default
        try:
            return float(self.options[option])
        except ValueError:
            raise BadRequest(f"player {self.text!r}: {option} must be a number") from None


def _as_value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def parse_player(text: str) -> Spec:
    """Read a player as the user wrote it. Raises BadRequest: a bad option, or nothing to play with."""
    kind, target, options = "net", text, ""
    match = re.match(rf"({'|'.join(_KINDS)})((?:,[^,:=]+=[^,:]*)*):", text)
    if match:
        kind, options, target = match[1], match[2], text[match.end() :]
    elif re.match(rf"({'|'.join(_KINDS[1:])})\b(?![./\\])", text):
        raise BadRequest(f"player {text!r}: expected {text.split(',')[0]}[,option=value...]:... ")
    if kind in ("net", "policy"):
        target, *more = re.split(r",(?=[A-Za-z_]+=)", target)
        options += "".join(f",{one}" for one in more)
    pairs = [one.partition("=") for one in options.split(",")[1:]]
    found = {name.strip(): value.strip() for name, _, value in pairs}
    spec = Spec(text, kind, target.strip(), found)
    if not spec.target:
        raise BadRequest(f"player {text!r}: names no {'command' if spec.is_program else 'network (a file, or a game)'}")
    if spec.is_program:
        spec.refuse_unknown(PROGRAM_OPTIONS[kind])
    if kind == "policy":
        spec.refuse_unknown([*POLICY_OPTIONS, *found.keys() - {*SEARCH_OPTIONS}])
    return spec


@dataclass
class GameState:
    """A game under way, as players see it.

    Attributes:
        start: the position after the opening.
        position: the position now; in the clean-up one that begins anew, without the passes before it.
        moves: (side, move) since `start`, those before a clean-up included.
        clocks: by side, or None where time is free.
        clean_up: dead stones are being taken off: passing does not settle them.
    """

    start: Position
    position: Position
    moves: list[tuple[str, str]] = field(default_factory=list)
    clocks: dict[str, Clock] | None = None
    clean_up: bool = False


@dataclass(frozen=True)
class Choice:
    """A player's move by the game's name for it, or "resign"; and its share of the points expected, if it says so."""

    move: str
    expects: float | None = None


class Player(Protocol):
    """One side of a game. Each thread has its own; `stop` may come from another. What goes wrong is an EngineFault."""

    name: str

    def new_game(self, state: GameState, seed: int) -> None:
        """Get ready for a game."""

    def move(self, state: GameState) -> Choice:
        """The move to make for the side to move."""

    def dead_stones(self, state: GameState) -> frozenset[str] | None:
        """At the end, in games that ask: the dead stones of both sides by their points; None without an opinion."""

    def final_score(self, state: GameState) -> float | None:
        """At the end, in games that ask: the second side's points minus the first's; None if it cannot say."""

    def stop(self) -> None:
        """End what is under way, for good."""

    def close(self) -> None:
        """Let go of processes and memory; `new_game` begins again."""


@dataclass(frozen=True)
class Settings:
    """What the match says to all players.

    Attributes:
        visits: of networks that name neither visits nor seconds.
        resign, resign_turns: networks with a search give up when they expect less than this share of the points (0:
            never) so many times in a row.
        timeout: seconds an engine may take for an answer.
        threads: CPU threads of a network; None takes every core.
    """

    visits: int = 100
    resign: float = 0.02
    resign_turns: int = 3
    timeout: float = 120.0
    threads: int | None = None


CLOCK_GRACE = 5.0
"""Seconds past its clock that an engine is waited for before it counts as hung."""


def most_seconds(clock: Clock) -> float:
    """How long an answer is waited for under that clock."""
    return clock.main + clock.increment + clock.period * clock.periods + CLOCK_GRACE
