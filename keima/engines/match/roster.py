"""Players made from their descriptions: our networks, loaded once for all that name them, and other programs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from keima.engines.gtp.client import GtpPlayer
from keima.engines.match.players import (
    POLICY_OPTIONS,
    RESIGN,
    SEARCH_OPTIONS,
    Choice,
    GameState,
    Player,
    Settings,
    Spec,
)
from keima.engines.uci.player import UciPlayer
from keima.errors import BadRequest
from keima.games.game import GAMES
from keima.games.position import Position
from keima.inference.evaluator import Evaluator
from keima.plain import Data
from keima.search.limits import Limits
from keima.search.search import Search, parameters_of
from keima.systems.files.defaults import find_network
from keima.systems.files.load import load, load_rollout
from keima.systems.network import Network


class NetworkPlayer:
    """What both kinds share: the evaluator, the temperature of choices, the word on dead stones."""

    def __init__(self, spec: Spec, evaluator: Evaluator, plies: int | None = None) -> None:
        self.name = spec.name
        self.evaluator = evaluator
        self._temperature = spec.number("temperature", 0.0) or 0.0
        self._plies = spec.number("plies", plies)
        if self._temperature < 0:
            raise BadRequest(f"player {spec.text!r}: temperature must not be negative")

    def temperature(self, state: GameState) -> float:
        """Of the next move: 0 after so many plies, and in the clean-up."""
        over = state.clean_up or (self._plies is not None and len(state.position.moves) >= int(self._plies))
        return 0.0 if over else self._temperature

    def dead_stones(self, state: GameState) -> frozenset[str] | None:
        """As the game reads the network."""
        return GAMES[state.position.game].playing.dead_stones(self.evaluator, state.position)

    def final_score(self, state: GameState) -> float | None:
        """None: dead stones are its word."""
        return None


class PolicyPlayer(NetworkPlayer):
    """A network's policy: of the moves it chooses among, the likeliest, or at temperature T one drawn by P^(1/T).

    Options: temperature (0), plies (the temperature holds for so many of the game's moves; all), symmetry (0 … 7 or
    "average"; 0), precision, backend, threads, and the network's own (`profile=rank_5k`).
    """

    def __init__(self, spec: Spec, evaluator: Evaluator) -> None:
        super().__init__(spec, evaluator)
        symmetry = spec.options.get("symmetry", "0")
        self._symmetry = int(symmetry) if symmetry.isdecimal() else symmetry

    def warm_up(self, position: Position) -> None:
        """Compile and load what a first move would otherwise wait for.

        Raises:
            UnsupportedPosition: the network cannot take this position.
            BadRequest: an option it does not have, or one it needs and did not get.
        """
        self.evaluator([position], symmetry=self._symmetry)

    def new_game(self, state: GameState, seed: int) -> None:
        """Draw anew."""
        self._rng = np.random.default_rng(seed)

    def move(self, state: GameState) -> Choice:
        """The policy's move."""
        answer = self.evaluator([state.position], symmetry=self._symmetry)[0]
        temperature = self.temperature(state)
        expects = None if answer.value is None else (answer.value + 1) / 2
        moves = self.evaluator.network.choices(state.position, answer.policy)
        weights = np.array([answer.policy[move] for move in moves]) + 1e-30
        if temperature == 0:
            return Choice(moves[int(weights.argmax())], expects)
        weights = (weights / weights.max()) ** (1 / temperature)
        return Choice(moves[int(self._rng.choice(len(moves), p=weights / weights.sum()))], expects)

    def stop(self) -> None:
        """One evaluation ends soon enough."""

    def close(self) -> None:
        """Nothing to let go: the evaluator is shared."""


class SearchPlayer(NetworkPlayer):
    """A network with our search.

    Options: visits, seconds (a move), preset, any parameter of `keima.systems.parameters.Parameters`, value (the file
    of a value network to go with it), rollout (of a rollout policy, for playouts), batch (leaves evaluated together),
    memory (bytes of the tree), temperature (0) for the first `plies` moves of the game (30), resign, precision,
    backend, threads, and the network's own options (`profile=rank_5k`).
    """

    def __init__(self, spec: Spec, evaluator: Evaluator, settings: Settings) -> None:
        super().__init__(spec, evaluator, plies=30)
        visits, self._seconds, self._settings = spec.number("visits"), spec.number("seconds"), settings
        self._visits = None if visits is None else int(visits)
        self._resign = spec.number("resign", settings.resign) or 0.0
        known = {*SEARCH_OPTIONS, *spec.network_options(evaluator.network.encoding.options)}
        overrides = {key: spec.number(key) or 0.0 for key in spec.options if key not in known}
        self._search_options: Data = {**overrides, "preset": spec.options.get("preset", "auto")}
        for option, argument in (("batch", "batch_size"), ("memory", "memory")):
            if option in spec.options:
                self._search_options[argument] = int(spec.number(option) or 0)
        if "rollout" in spec.options:
            self._search_options["rollout_policy"] = load_rollout(spec.options["rollout"])
        Limits(visits=self._visits, seconds=self._seconds)
        parameters_of(evaluator, self._search_options["preset"], overrides)
        self._search: Search | None = None

    def warm_up(self, position: Position) -> None:
        """As `PolicyPlayer.warm_up`."""
        search = Search(self.evaluator, **{**self._search_options, "memory": 1 << 24})
        search.set_position(position)
        search.run(Limits(visits=32))

    def new_game(self, state: GameState, seed: int) -> None:
        """A tree of its own for each game."""
        self._search = Search(self.evaluator, seed=seed, **self._search_options)
        self._hopeless = 0

    def move(self, state: GameState) -> Choice:
        """Search, then the preset's choice; or give up."""
        clock = state.clocks[state.position.to_play] if state.clocks else None
        visits = self._visits
        if visits is None and self._seconds is None and clock is None:
            visits = self._settings.visits
        search = self._search
        assert search is not None
        search.set_position(state.position)
        result = search.run(Limits(visits=visits, seconds=self._seconds, clock=clock))
        expects = (result.value + 1) / 2
        self._hopeless = self._hopeless + 1 if expects < self._resign else 0
        if self._hopeless >= self._settings.resign_turns and not state.clean_up:
            return Choice(RESIGN, expects)
        temperature = self.temperature(state)
        return Choice(search.choose(temperature) if temperature else result.best, expects)

    def stop(self) -> None:
        """End the search under way."""
        if self._search is not None:
            self._search.stop()

    def close(self) -> None:
        """Let go of the tree."""
        self._search = None


PROGRAMS: dict[str, Callable[[Spec, Settings], Player]] = {"gtp": GtpPlayer, "uci": UciPlayer}
"""Other programs, by the protocol they speak."""


class Networks:
    """Loaded networks: players that name the same file and options share one compiled network, in all games."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[str, str], Network] = {}
        self._evaluators: dict[tuple[tuple[str, str], str, str, int, float | None], Evaluator] = {}
        self._lock = threading.Lock()

    def network(self, spec: Spec) -> Network:
        """The network of that player: of a file, or the default one of a game; with its value network, both as one.

        Raises:
            BadWeights, UnsupportedNetwork: as `keima.load`; so do the other two.
        """
        key = _files(spec)
        with self._lock:
            if key not in self._loaded:
                network = load(find_network(key[0]))
                self._loaded[key] = network.with_value(load(key[1])) if key[1] else network
            return self._loaded[key]

    def evaluator(self, spec: Spec, settings: Settings) -> Evaluator:
        """The evaluator of that player, the network's own options among its options bound."""
        network = self.network(spec)
        batch = int(spec.number("batch", 8) or 8)
        threads = spec.number("threads", settings.threads)
        threads = None if threads is None else int(threads)
        key = (_files(spec), spec.options.get("backend", "auto"), spec.options.get("precision", "auto"), batch, threads)
        with self._lock:
            if key not in self._evaluators:
                self._evaluators[key] = Evaluator(network, key[1], key[2], batch_size=batch, threads=threads)
            shared = self._evaluators[key]
        own = spec.network_options(network.encoding.options)
        return shared.bind(**own) if own else shared

    def game(self, spec: Spec) -> str:
        """The game that player plays."""
        if spec.is_program:
            return next(game.name for game in GAMES.values() if game.playing.protocol == spec.kind)
        return self.network(spec).encoding.game


def _files(spec: Spec) -> tuple[str, str]:
    """The network's file, and the value network's; empty without one."""
    return spec.target, spec.options.get("value", "")


def make_player(spec: Spec, networks: Networks, settings: Settings) -> Player:
    """The player that a spec describes.

    Raises:
        BadWeights, UnsupportedNetwork: its network cannot be loaded.
        BadRequest: its program is not there, or an option is unknown or out of range.
    """
    if spec.is_program:
        return PROGRAMS[spec.kind](spec, settings)
    evaluator = networks.evaluator(spec, settings)
    if spec.kind == "policy":
        spec.refuse_unknown((*POLICY_OPTIONS, *evaluator.encoding.options))
        return PolicyPlayer(spec, evaluator)
    return SearchPlayer(spec, evaluator, settings)
