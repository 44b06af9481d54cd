"""Players made from their descriptions; networks loaded once for all that name them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from keima.engines.gtp.player import GtpPlayer
from keima.engines.match.network_players import PolicyPlayer, SearchPlayer
from keima.engines.match.players import (
    NETWORK_OPTIONS,
    POLICY_OPTIONS,
    Player,
    Settings,
    Spec,
)
from keima.engines.uci.player import UciPlayer
from keima.games.game import GAMES

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator
    from keima.systems.network import Network

PROGRAMS: dict[str, Callable[[Spec, Settings], Player]] = {"gtp": GtpPlayer, "uci": UciPlayer}
"""Other programs, by the protocol they speak."""


class Networks:
    """Loaded networks: players that name the same file and options share one compiled network, in all games."""

    def __init__(self) -> None:
        self._loaded: dict[str, Network] = {}
        self._evaluators: dict[tuple[str, str, str, int, float | None], Evaluator] = {}
        self._lock = threading.Lock()

    def network(self, name: str) -> Network:
        """The network in the file of that name, or the default network of the game of that name.

        Raises:
            BadWeights, UnsupportedNetwork: as `keima.load`.
        """
        from keima.systems.files.defaults import find_network
        from keima.systems.files.load import load

        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = load(find_network(name))
            return self._loaded[name]

    def evaluator(self, spec: Spec, settings: Settings) -> Evaluator:
        """The evaluator of that player, the network's own options among its options bound.

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
            shared = self._evaluators[key]
        own = spec.network_options(network.encoding.options)
        return shared.bind(**own) if own else shared

    def game(self, spec: Spec) -> str:
        """What that player plays.

        Raises:
            BadWeights, UnsupportedNetwork: as `keima.load`.
        """
        if spec.is_program:
            return next(game.name for game in GAMES.values() if game.playing.protocol == spec.kind)
        return self.network(spec.target).encoding.game


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
        spec.refuse_unknown((*NETWORK_OPTIONS, *POLICY_OPTIONS, *evaluator.encoding.options))
        return PolicyPlayer(spec, evaluator)
    return SearchPlayer(spec, evaluator, settings)
