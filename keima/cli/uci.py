"""`keima uci`: a chess engine for GUIs, on standard input and output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

from typer import Option

from keima.cli import common
from keima.errors import UnsupportedNetwork
from keima.plain import Data

if TYPE_CHECKING:
    from collections.abc import Mapping

    from keima.engines.uci.options import Values
    from keima.inference.evaluator import Evaluator
    from keima.search.search import Search
    from keima.systems.network import Network

EXAMPLES = """Examples:

\b
  keima uci
  keima uci --net maia-1900.pb.gz
  keima uci --net BT4-1024x15x32h.pb.gz --backend torch --precision bf16
  printf 'position startpos moves e2e4\\ngo nodes 400\\n' | keima uci --net maia-1900.pb.gz

Without --net, keima's own small network plays (docs/default-networks.md).
In a GUI, add an engine with this command. Options and what `go` takes: docs/uci.md.
"""


def uci(
    net: Annotated[
        str, Option("--net", metavar="NET", help="Network file; keima's own if not given. The option WeightsFile.")
    ] = "",
    backend: common.Backend = "auto",
    precision: common.Precision = "auto",
    batch: common.BatchSize = 8,
    threads: common.Threads = None,
    preset: Annotated[str, Option(help="auto, alphago, alphago-zero, katago, lc0 or gumbel.")] = "auto",
    memory: Annotated[int, Option(min=1, help="Megabytes the search tree may take; the option Hash.")] = 1024,
    option: common.NetworkOptions = None,
) -> None:
    """Play and analyse chess for a GUI, by the UCI protocol, with any chess network.

    What the command line sets is the default of the option of that name, which the GUI can change.
    """
    from keima.engines.uci.engine import UciEngine
    from keima.engines.uci.options import Values
    from keima.places import on_notice

    values = Values()
    given = {
        "WeightsFile": net,
        "Backend": backend,
        "Precision": precision,
        "MinibatchSize": batch,
        "Threads": threads or 0,
        "Preset": preset,
        "Hash": memory,
    }
    for name, value in given.items():
        values.set(name, str(value))
    opener = _Opener(common.read_options(option))
    if net:
        opener.network(net)  # one of another game is refused here, before a GUI waits for its moves
    out = os.dup(sys.stdout.fileno())
    with os.fdopen(out, "w", encoding="utf-8", errors="backslashreplace", newline="\n", buffering=1) as output:
        engine = UciEngine(opener, values, lambda line: output.write(line + "\n"))
        on_notice(lambda line: engine.write(f"info string {line}"))
        try:
            for line in iter(sys.stdin.buffer.readline, b""):
                if not engine.handle(line.decode("utf-8", "replace")):
                    return
            engine.finish()
        finally:
            engine.close()


class _Opener:
    """Opens the search the options ask for, and keeps it until one of them changes; `bound`: options of the network."""

    def __init__(self, bound: Mapping[str, object]) -> None:
        self._bound = bound
        self._network: Network | None = None
        self._network_of = ""
        self._evaluator: Evaluator | None = None
        self._evaluator_of: tuple[object, ...] = ()
        self._search: Search | None = None
        self._search_of: tuple[object, ...] = ()

    def __call__(self, values: Values) -> Search:
        """The search. Raises as `open_network`; BadWeights: no network was named and the default one is missing."""
        from keima.engines.session import prepare
        from keima.engines.uci import GAME
        from keima.games.game import get_game
        from keima.search.search import Search

        evaluator = self.evaluator(values)
        search_of = (values["Preset"], values["Hash"], values["Seed"], values.parameters)
        if self._search is None or search_of != self._search_of:
            memory = values["Hash"] << 20
            options: Data = {"memory": memory, "seed": values["Seed"], **values.parameters}
            self._search = Search(evaluator, values["Preset"], **options)
            self._search_of = search_of
            prepare(self._search, get_game(GAME).from_json({}))
        return self._search

    def network(self, net: str) -> Network:
        """A file's network, "" for keima's own. Raises as `__call__`; UnsupportedNetwork: it plays another game."""
        from keima.engines.uci import GAME

        path = common.network_file(net or None, GAME)
        if self._network is None or path != self._network_of:
            network = common.open_network(path)
            if network.encoding.game != GAME:
                raise UnsupportedNetwork(f"plays {network.encoding.game}, not {GAME} (try keima gtp)", source=path)
            self._network, self._network_of = network, path
        return self._network

    def evaluator(self, values: Values) -> Evaluator:
        """Its evaluator. Raises as `__call__`."""
        evaluator_of = tuple(values[n] for n in ("WeightsFile", "Backend", "Precision", "MinibatchSize", "Threads"))
        if self._evaluator is None or evaluator_of != self._evaluator_of:
            net, backend, precision, batch, threads = evaluator_of
            opened = common.open_player(self.network(net), backend, precision, batch, threads or None)
            self._evaluator, self._search_of = opened.bind(**self._bound), ()
            self._evaluator_of = evaluator_of
        return self._evaluator
