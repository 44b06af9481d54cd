"""What happens inside a tower of blocks, beside what a document on residual networks promises (docs/promises.md).

    python benchmarks/tower_figures.py gradients STORE [--depth 5 10 20] [--board 9]   gradient norm by layer
    python benchmarks/tower_figures.py paths NET STORE                  a trained tower with single blocks taken out

`gradients`: fresh stacks of 3×3 convolutions with and without skip connections, of depth residual blocks (two
convolutions each), 32 channels, with batch norm and without; the norm of the loss's gradient by each convolution's
weights, as a share of the last one's. `paths`: a residual network is a sum over 2ⁿ paths (A. Veit et al.,
arXiv:1605.06431), so one block fewer should cost little; in a plain stack it costs everything. STORE has games of
one board size (`keima data import`, `keima data play`); 2,048 positions, the same for all.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext

import torch
from torch import nn

import keima
from keima.systems.loss import loss_for
from keima.systems.network import Network
from keima.systems.targets import TensorBatch
from keima.training.data.batches import Loader
from keima.training.data.store import GameStore
from keima.training.run.evaluation import report, tally_batches

POSITIONS, BATCH = 2048, 128
KINDS = ("plain", "plain, no norm", "residual", "residual, no norm")


def batches(network: Network, store: str, count: int) -> list[TensorBatch]:
    """The first batches of a store for a network, neither turned nor mirrored."""
    targets = loss_for(network).targets
    with Loader(GameStore.open(store), network.encoding, BATCH, symmetries=False, workers=1, targets=targets) as loader:
        return [next(loader).torch() for _ in range(count)]


def fresh(kind: str, depth: int, board: int) -> Network:
    """An untrained stack of 2 · depth + 1 convolutions of 32 channels, of one of `KINDS`."""
    torch.manual_seed(0)
    sizes = {"channels": 32, "board_size": board}
    bare = kind.endswith("no norm")
    if kind.startswith("residual"):
        return keima.create("comparison-residual", blocks=depth, block="post-bare" if bare else "post", **sizes)
    network = keima.create("comparison-vgg", layers=2 * depth + 1, **sizes)
    for block in network.trunk if bare else ():
        block.norm = nn.Identity()
    return network


def gradients(store: str, depths: list[int], board: int) -> None:
    """Print each stack's gradient norms, first layer to last."""
    for depth in depths:
        for kind in KINDS:
            network = fresh(kind, depth, board).train()
            loss = loss_for(network)
            for batch in batches(network, store, 4):
                loss(network(**batch.inputs), batch).total.backward()
            layers = [m for m in network.trunk.modules() if isinstance(m, nn.Conv2d)]
            norms = [float(m.weight.grad.norm()) for m in layers if m.weight.grad is not None]
            shown = norms[1 :: max(1, (len(norms) - 1) // 5)]
            words = " ".join(f"{norm / norms[-1]:8.2g}" for norm in shown)
            print(f"{len(layers):3} convolutions, {kind:18} last {norms[-1]:8.2g}; first to last, of it: {words}")


def paths(net: str, store: str) -> None:
    """Print held-out figures of a trained network, and of the same with each block in turn replaced by the identity."""
    network = keima.load(net).eval()
    tower = network.get_submodule("tower" if hasattr(network, "tower") else "trunk")
    assert isinstance(tower, nn.Sequential)
    seen = batches(network, store, POSITIONS // BATCH)
    print(f"whole: {report(tally_batches(network, seen, nullcontext)).summary()}")
    for index in range(0 if hasattr(network, "tower") else 1, len(tower)):  # a trunk begins with the first convolution
        block, tower[index] = tower[index], nn.Identity()
        print(f"without block {index}: {report(tally_batches(network, seen, nullcontext)).summary()}")
        tower[index] = block


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    action = actions.add_parser("gradients")
    action.add_argument("store")
    action.add_argument("--depth", nargs="+", type=int, default=[5, 10, 20])
    action.add_argument("--board", type=int, default=9)
    action = actions.add_parser("paths")
    action.add_argument("net")
    action.add_argument("store")
    args = parser.parse_args()
    if args.action == "gradients":
        gradients(args.store, args.depth, args.board)
    else:
        paths(args.net, args.store)


if __name__ == "__main__":
    main()
