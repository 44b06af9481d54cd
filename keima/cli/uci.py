"""`keima uci`: a chess engine for GUIs, on standard input and output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keima.cli.common import Backend, BatchSize, Precision, Threads, network_file, open_evaluator, open_network
from keima.errors import UnsupportedNetwork

if TYPE_CHECKING:
    from keima.engines.uci_options import Values
    from keima.search.search import Search

EXAMPLES = """Examples:

\b
  keima uci
  keima uci --net maia-1900.pb.gz
  keima uci --net BT4-1024x15x32h.pb.gz --backend torch --precision bf16
  printf 'position startpos moves e2e4\\ngo nodes 400\\n' | keima uci --net maia-1900.pb.gz

Without --net, keima's own small network plays (docs/default-networks.md).
In a GUI, add an engine with this command. Options and what `go` takes: docs/uci.md.
"""

_WARM_UP_VISITS = 24


def uci(
    net: Annotated[
        str,
        typer.Option("--net", metavar="NET", help="Network file; keima's own if not given. The option WeightsFile."),
    ] = "",
    backend: Backend = "auto",
    precision: Precision = "auto",
    batch: BatchSize = 8,
    threads: Threads = None,
    preset: Annotated[str, typer.Option(help="auto, alphago, alphago-zero, katago or lc0.")] = "auto",
    memory: Annotated[int, typer.Option(min=1, help="Megabytes the search tree may take; the option Hash.")] = 1024,
) -> None:
    """Play and analyse chess for a GUI, by the UCI protocol, with any chess network.

    What the command line sets is the default of the option of that name, which the GUI can change.
    """
    from keima.engines.uci import UciEngine
    from keima.engines.uci_options import Values

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
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", newline="\n", buffering=1)
    with output:
        engine = UciEngine(_Opener(), values, lambda line: output.write(line + "\n"))
        try:
            for line in iter(sys.stdin.buffer.readline, b""):
                if not engine.handle(line.decode("utf-8", "replace")):
                    return
            engine.finish()
        finally:
            engine.close()


class _Opener:
    """Opens the search the options ask for, and keeps it until one of them changes."""

    def __init__(self) -> None:
        self._evaluator: Any = None
        self._evaluator_of: tuple[Any, ...] = ()
        self._search: Search | None = None
        self._search_of: tuple[Any, ...] = ()

    def __call__(self, values: Values) -> Search:
        """The search.

        Raises:
            BadWeights, UnsupportedNetwork: as `keima.load`, or the network does not play chess; none was named, and the
                default one is missing.
            BadRequest: an option its backend does not take.
        """
        from keima.search.search import Search

        network_of = tuple(values[name] for name in ("WeightsFile", "Backend", "Precision", "MinibatchSize", "Threads"))
        if network_of != self._evaluator_of:
            self._evaluator, self._search_of = self._open(*network_of), ()
            self._evaluator_of = network_of
        search_of = (values["Preset"], values["Hash"], values["Seed"], values.parameters)
        if search_of != self._search_of:
            memory = values["Hash"] << 20
            options: dict[str, Any] = {"memory": memory, "seed": values["Seed"], **values.parameters}
            self._search = Search(self._evaluator, values["Preset"], **options)
            self._search_of = search_of
            _warm_up(self._search)
        assert self._search is not None
        return self._search

    def _open(self, net: str, backend: str, precision: str, batch: int, threads: int) -> Any:
        path = network_file(net or None, "chess")
        network = open_network(path)
        if network.encoding.game != "chess":
            raise UnsupportedNetwork(f"plays {network.encoding.game}, not chess (try keima gtp)", source=path)
        return open_evaluator(network, backend, precision, batch, threads or None)


def _warm_up(search: Search) -> None:
    """Compile what the first move would otherwise wait for, with its clock running."""
    from keima.games.chess.position import Position
    from keima.search.limits import Limits

    search.set_position(Position.start())
    search.run(Limits(visits=_WARM_UP_VISITS))
    search.clear()
