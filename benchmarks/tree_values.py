"""How well networks tell apart positions of one search, beside what a stronger program said of them.

    keima data search games.parquet uci,nodes=600:stockfish -o trees.parquet --share 0.01 --within chess
    python benchmarks/tree_values.py trees.parquet chess maia-1500.pb.gz

A search compares positions a few moves from one another. So of the positions of each tree with one side to move, values
are taken less their mean: how do what is left of the network's and of the program's go together? One JSON line a
network: `within`, their correlation, and `mse_within`, their mean squared difference; `mse` of the values themselves.
With two or more networks, the means of the first one's values and of each other's too.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from numpy.typing import NDArray

import keima
from keima.cli.common import open_network
from keima.games.position import Position
from keima.training.data.export import export
from keima.training.data.store import GameStore
from keima.training.selfplay.columns import describe_row


def read(store: GameStore) -> tuple[list[Position], NDArray[np.float64], NDArray[np.int64]]:
    """The positions, their values for the side to move, and for each the number of its tree and side."""
    positions: list[Position] = []
    values, groups, numbers = [], [], {}
    for game in export(store):
        *_, position, _ = game.record.positions()
        positions.append(position)
        values.append(describe_row(game.row, game.name)["plies"][-1]["q"])
        groups.append(numbers.setdefault((game.row["source"], position.to_play), len(numbers)))
    return positions, np.array(values), np.array(groups)


def about_means(values: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Values less the mean of their group."""
    return values - (np.bincount(groups, values) / np.bincount(groups))[groups]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", help="of `keima data search --within`")
    parser.add_argument("networks", nargs="+", metavar="NETWORK")
    options = parser.parse_args()
    positions, wanted, groups = read(GameStore.open(options.store))
    answers = {}
    for name in options.networks:
        evaluator = keima.Evaluator(open_network(name), batch_size=64)
        answers[name] = np.array([answer.value for answer in evaluator(positions)])
    first = options.networks[0]
    answers |= {f"{first} and {name}": (answers[first] + answers[name]) / 2 for name in options.networks[1:]}
    for name, values in answers.items():
        here, there = about_means(values, groups), about_means(wanted, groups)
        told = {"within": float(np.corrcoef(here, there)[0, 1]), "mse_within": float(np.mean((here - there) ** 2))}
        told |= {"mse": float(np.mean((values - wanted) ** 2))}
        print(json.dumps({"network": name, **told, "positions": len(positions), "groups": int(groups.max()) + 1}))


if __name__ == "__main__":
    main()
