"""Positions for a network that has no games at hand: of games that it plays with itself."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from keima.games.game import GAMES
from keima.games.position import Position
from keima.inference.evaluator import Evaluator
from keima.plain import Data
from keima.systems.network import Network

_GAME, _TAKEN, _ASIDE = 100, 0.2, 512
"""Plies of a game on average, where it does not end; share of its positions taken; those of a batch are of so many."""


def own_inputs(network: Network, batch_size: int, seed: int = 0) -> Iterator[Data]:
    """Inputs of positions from games whose moves are drawn from the network's own policy, without end; tensors."""
    evaluator, draw = Evaluator(network, batch_size=batch_size), random.Random(seed)
    begin = GAMES[network.encoding.game].playing.start()
    found: list[Position] = []
    table = [begin] * batch_size
    while True:
        for k, answer in enumerate(evaluator(table)):
            moves = list(answer.policy)
            table[k] = table[k].play(draw.choices(moves, [answer.policy[move] for move in moves])[0])
            if table[k].is_over or draw.random() < 1 / _GAME:
                table[k] = begin
            elif draw.random() < _TAKEN:
                found.append(table[k])
        if len(found) >= _ASIDE:
            draw.shuffle(found)
            inputs = network.encoding.encode(found[-batch_size:]).inputs
            del found[-batch_size:]
            yield {name: torch.from_numpy(inputs[name]) for name in network.input_names}
