"""How near a network's int8 is to its float32, on positions it was not fitted to (docs/compress.md).

    python benchmarks/int8_accuracy.py NETWORK [GAMES.parquet] [--positions N]

NETWORK holds int8 numbers: a file, or a game's name for the default network. GAMES are a store it was not fitted to (of
`keima data import`); without one, games that it plays with itself, begun otherwise than those it is fitted to. Both run
in PyTorch, where int8 is the arithmetic of whole numbers that every backend computes.
"""

from __future__ import annotations

import argparse
from itertools import islice

from keima.cli.common import open_network
from keima.compress.own_games import own_inputs
from keima.compress.prune import agreement
from keima.systems.layers import quantized
from keima.training.data.batches import Loader
from keima.training.data.store import GameStore

BATCH = 64


def main() -> None:
    """Print first moves, mean win error and KL divergence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network")
    parser.add_argument("games", nargs="?")
    parser.add_argument("--positions", type=int, default=2048)
    arguments = parser.parse_args()
    network, count = open_network(arguments.network), -(-arguments.positions // BATCH)
    if arguments.games is None:
        batches = list(islice(own_inputs(network, BATCH, seed=2), count))
    else:
        with Loader(GameStore.open(arguments.games), network.encoding, BATCH, seed=2, targets=(), workers=1) as made:
            batches = [dict(next(made).torch().inputs) for _ in range(count)]
    found = agreement(network, quantized(network), batches)
    win = "" if found.value is None else f", mean win error {found.value / 2:.4f}"
    print(f"{arguments.network}: first move {found.top1:.1%} of {found.positions:,}{win}, KL {found.divergence:.4f}")


if __name__ == "__main__":
    main()
