"""Who plays in a match: our networks with a search or without, and other programs by GTP or UCI.

A player is written as what it is, with its options (`docs/matches.md`):

    NET,visits=100,preset=katago        a network file, with our search
    policy:NET,temperature=0.5          a network file, its policy alone
    go,visits=100 or policy:chess       the default network of that game, where no file is called so
    gtp:gnugo --mode gtp --level 10     a program that speaks GTP
    uci,nodes=1000:stockfish            a program that speaks UCI

Options of a network stand behind it; those of a command line, which may hold commas itself, before the colon.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from keima.errors import BadRequest
from keima.search.limits import Clock

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator

RESIGN, PASS = "resign", "pass"
_NETWORK_OPTIONS = ("precision", "backend", "threads", "temperature", "plies", "name", "profile")
SEARCH_OPTIONS = (*_NETWORK_OPTIONS, "visits", "seconds", "preset", "batch", "memory", "resign", "rollout")
"""What a network with our search takes, besides the parameters of the search."""
_OPTIONS = {
    "policy": (*_NETWORK_OPTIONS, "symmetry"),
    "gtp": ("timeout", "name"),
    "uci": ("timeout", "name", "nodes", "depth", "seconds"),
}
_KINDS = ("net", *_OPTIONS)


@dataclass(frozen=True)
class Spec:
    """A player as it was written.

    Attributes:
        text: the whole of it.
        kind: "net", "policy", "gtp" or "uci".
        target: the network file, "go" or "chess", or the command line.
        options: by name, as written.
    """

    text: str
    kind: str
    target: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What records call it, unless the engine tells a better one."""
        if "name" in self.options:
            return self.options["name"]
        if self.kind in ("gtp", "uci"):
            return Path(self.target.split()[0]).name
        stem = re.sub(r"(\.(bin|txt|pb|safetensors))?(\.gz)?$", "", Path(self.target).name)
        chosen = [f"{key}={value}" for key, value in self.options.items()]
        return ",".join([f"{stem} policy" if self.kind == "policy" else stem, *chosen])

    def number(self, option: str, default: float | None = None) -> float | None:
        """A number among the options.

        Raises:
            BadRequest: it is none.
        """
        if option not in self.options:
            return default
        try:
            return float(self.options[option])
        except ValueError:
            raise BadRequest(f"player {self.text!r}: {option} must be a number") from None


def parse_player(text: str) -> Spec:
    """Read a player as the user wrote it.

    Raises:
        BadRequest: an unknown option, one without a value, or nothing to play with.
    """
    kind, target, options = "net", text, ""
    match = re.match(rf"({'|'.join(_KINDS)})((?:,[^,:=]+=[^,:]*)*):", text)
    if match:
        kind, options, target = match[1], match[2], text[match.end() :]
    elif re.match(r"(gtp|uci|policy)\b(?![./\\])", text):
        raise BadRequest(f"player {text!r}: expected {text.split(',')[0]}[,option=value...]:... ")
    if kind in ("net", "policy"):
        target, *more = re.split(r",(?=[A-Za-z_]+=)", target)
        options += "".join(f",{one}" for one in more)
    pairs = [one.partition("=") for one in options.split(",")[1:]]
    found = {name.strip(): value.strip() for name, _, value in pairs}
    if not target.strip():
        raise BadRequest(
            f"player {text!r}: names no {'command' if kind in ('gtp', 'uci') else 'network (a file, go or chess)'}"
        )
    for name in found if kind != "net" else ():
        if name not in _OPTIONS[kind] and not (kind == "uci" and name.startswith("option.")):
            raise BadRequest(f"player {text!r}: unknown option {name!r}; {kind} takes {', '.join(_OPTIONS[kind])}")
    return Spec(text, kind, target.strip(), found)


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

    start: Any
    position: Any
    moves: list[tuple[str, str]] = field(default_factory=list)
    clocks: dict[str, Clock] | None = None
    clean_up: bool = False


@dataclass(frozen=True)
class Choice:
    """A player's move: a vertex, "pass", UCI, or "resign"; and its share of the points expected, if it says so."""

    move: str
    expects: float | None = None


class Player(Protocol):
    """One side of a game. Each thread has its own; `stop` may come from another."""

    name: str

    def new_game(self, state: GameState, seed: int) -> None:
        """Get ready for a game. Raises EngineFault."""

    def move(self, state: GameState) -> Choice:
        """The move to make for the side to move. Raises EngineFault."""

    def dead_stones(self, state: GameState) -> frozenset[str] | None:
        """Go, at the end: the vertices of dead stones of both sides; None without an opinion. Raises EngineFault."""

    def stop(self) -> None:
        """End what is under way, for good."""

    def close(self) -> None:
        """Let go of processes and memory; `new_game` begins again."""


@dataclass(frozen=True)
class Settings:
    """What the match says to all players.

    Attributes:
        visits: of networks that name neither visits nor seconds.
        resign: networks with a search give up when they expect less than this share of the points; 0: never.
        resign_turns: ... so many times in a row.
        timeout: seconds an engine may take for an answer.
        threads: CPU threads of a network; None takes every core.
    """

    visits: int = 100
    resign: float = 0.02
    resign_turns: int = 3
    timeout: float = 120.0
    threads: int | None = None


class Networks:
    """Loaded networks: players that name the same file and options share one evaluator, in all games."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}
        self._evaluators: dict[tuple[Any, ...], Evaluator] = {}
        self._lock = threading.Lock()

    def network(self, name: str) -> Any:
        """The network in the file of that name, or for "go" and "chess" the default network.

        Raises:
            BadWeights, UnsupportedNetwork: as `keima.load`.
        """
        from keima.weights.defaults import find_network
        from keima.weights.load import load

        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = load(find_network(name))
            return self._loaded[name]

    def evaluator(self, spec: Spec, settings: Settings) -> Evaluator:
        """The evaluator of that player.

        Raises:
            BadWeights, UnsupportedNetwork, BadRequest: as `keima.load` and `Evaluator`.
        """
        from keima.inference.evaluator import Evaluator

        network = self.network(spec.target)
        batch = int(spec.number("batch", 8) or 8)
        threads = spec.number("threads", settings.threads)
        key = (spec.target, spec.options.get("backend", "auto"), spec.options.get("precision", "auto"), batch, threads)
        with self._lock:
            if key not in self._evaluators:
                self._evaluators[key] = Evaluator(
                    network, key[1], key[2], batch_size=batch, threads=None if threads is None else int(threads)
                )
            return self._evaluators[key]

    def game(self, spec: Spec) -> str:
        """ "go" or "chess": what that player plays."""
        if spec.kind in ("gtp", "uci"):
            return "go" if spec.kind == "gtp" else "chess"
        return str(self.network(spec.target).encoding.game)


def make_player(spec: Spec, networks: Networks, settings: Settings) -> Player:
    """The player that a spec describes.

    Raises:
        BadWeights, UnsupportedNetwork: its network cannot be loaded.
        BadRequest: its program is not there, or an option is out of range.
    """
    if spec.kind in ("gtp", "uci"):
        from keima.engines.program_players import GtpPlayer, UciPlayer

        return (GtpPlayer if spec.kind == "gtp" else UciPlayer)(spec, settings)
    from keima.engines.network_players import PolicyPlayer, SearchPlayer

    evaluator = networks.evaluator(spec, settings)
    if spec.kind == "policy":
        return PolicyPlayer(spec, evaluator)
    return SearchPlayer(spec, evaluator, settings)
