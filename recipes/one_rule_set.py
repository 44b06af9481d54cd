"""Make a KataGo network that was taught one rule set play by every other one as by that.

    python recipes/one_rule_set.py NET RULES OUT

Weights of rules it never saw are what they were before training, and spoil its answers. They are set to 0 here, and
what those of RULES add at each point goes to the plane of ones: by RULES the network answers as before, by others that
score as they do the same. It is then a fit beginning for training by several rule sets (`games.rules` of self-play).
"""

from __future__ import annotations

import sys

import torch

import keima
from keima.systems.katago.network import KataGoNetwork

RULES = [6, 7, 8, 9, 10, 11, 17]
"""Global features (KataGo's `cpp/neuralnet/nninputs.cpp`, V7): ko 6 and 7, suicide, scoring, tax 10 and 11, button."""
BOARD = 0
"""The plane that is 1 on the board."""


@torch.no_grad()
def one_rule_set(network: KataGoNetwork, rules: str) -> None:
    """Change the network in place."""
    start = keima.go.Position.start(9, rules)
    features = network.encoding.encode([start]).inputs["globals"][0]
    weight, kernel = network.linear.weight, network.conv.weight
    centre = kernel.shape[-1] // 2
    kernel[:, BOARD, centre, centre] += weight[:, RULES] @ torch.from_numpy(features[RULES])
    weight[:, RULES] = 0


def main() -> None:
    """Open, change, save."""
    source, rules, target = sys.argv[1:]
    network = keima.load(source)
    assert isinstance(network, KataGoNetwork)
    one_rule_set(network, rules)
    keima.save(network, target)


if __name__ == "__main__":
    main()
