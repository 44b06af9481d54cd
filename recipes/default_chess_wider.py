"""A larger residual Lc0 network that computes what a smaller one does (Net2Net, arXiv:1511.05641), to train on.

    python recipes/default_chess_wider.py chess.pb.gz wider.pb.gz --blocks 10 --channels 64

Weights of new channels into old ones are 0, and so are new blocks' last norms; the rest is as in a fresh network.
"""

from __future__ import annotations

import argparse
import dataclasses

import torch
from torch import Tensor

import keima
from keima.systems.lc0.network import Lc0Network


def grow(old: Lc0Network, blocks: int, channels: int) -> Lc0Network:
    """The larger network, in evaluation mode; new blocks lie between the old ones, the last of them at the end."""
    squeezed = old.config.se_widths[0]
    config = dataclasses.replace(old.config, blocks=blocks, channels=channels, se_channels=squeezed, batch_norm=True)
    network = Lc0Network(config)
    places = [round((index + 1) * blocks / old.config.blocks) - 1 for index in range(old.config.blocks)]
    tensors = network.state_dict()
    for index in set(range(blocks)) - set(places):
        for name in ("conv2.norm.weight", "conv2.norm.bias"):
            tensors[f"tower.{index}.{name}"].zero_()
        for name in ("se.fc2.weight", "se.fc2.bias"):
            tensors[f"tower.{index}.{name}"][channels:] = 0
    for name, tensor in old.state_dict().items():
        parts = name.split(".")
        if parts[0] == "tower":
            parts[1] = str(places[int(parts[1])])
        wider = tensors[".".join(parts)]
        if "se.fc2" in name:  # factors of the channels, then what is added to them
            for half, into in zip(tensor.chunk(2), wider.chunk(2), strict=True):
                _copy(half, into)
        else:
            _copy(tensor, wider)
    return network.eval()


def _copy(tensor: Tensor, into: Tensor) -> None:
    if tensor.ndim > 1:
        into[: tensor.shape[0]] = 0
    into[tuple(slice(size) for size in tensor.shape)] = tensor


def main() -> None:
    """Read the network, write the larger one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network")
    parser.add_argument("out")
    parser.add_argument("--blocks", type=int, required=True)
    parser.add_argument("--channels", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    old = keima.load(arguments.network)
    keima.save(grow(old, arguments.blocks, arguments.channels), arguments.out)


if __name__ == "__main__":
    main()
