"""`keima bench train`: the speed of a recipe's training step and of its data, beside what convolutions alone give."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from keima.cli import common

if TYPE_CHECKING:
    from keima.systems.network import Network
    from keima.training.run.recipe import Recipe

EXAMPLES = """Examples:

\b
  keima bench train recipes/alphago-policy.toml
  keima bench train recipes/alphago-zero.toml --set run.precision=bf16 --set run.batch_size=512

Operations are those of the convolutions, forward and backward. "alone" is each of the network's convolutions by itself,
"best" a 3×3 one from 256 to 256 channels.
"""


def bench_train(
    recipe: common.RecipeArgument,
    settings: common.Settings = None,
    seconds: Annotated[float, Option(min=0.01, help="Length of one round of one measurement.")] = 1.0,
) -> None:
    """Measure a training step beside the machine's convolutions, and the loader beside the step."""
    from keima.training.run.preflight import build_network
    from keima.training.run.recipe import read_recipe

    read = read_recipe(recipe, settings or ())
    network = build_network(read)
    step = _step(read, network, seconds)
    if read.data.train and Path(read.data.train).exists():
        _loader(read, network, step)
    else:
        print(f"  loading              not measured: no {read.data.train or 'data.train, the games are self-play'}")


def _step(recipe: Recipe, network: Network, seconds: float) -> float:
    """Measure and print the step; positions/s."""
    import torch

    from keima.systems.loss import loss_for
    from keima.training.run import throughput
    from keima.training.run.loop import make_fabric
    from keima.training.run.objective import TrainingStep, Whole
    from keima.training.run.optimizer import make_optimizer
    from keima.training.run.preflight import find_world

    shapes = throughput.convolutions(network)
    fabric = make_fabric(recipe, find_world(recipe, {}))
    n = recipe.run.batch_size // recipe.run.accumulate
    objective = TrainingStep(network, loss_for(network, recipe.loss.weights))
    objective.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    wrapped, optimizer = fabric.setup(objective, make_optimizer(recipe, network))
    batch = throughput.random_batch(network, n).torch(fabric.device)

    def run() -> None:
        fabric.backward(wrapped(Whole(batch))["loss"])
        optimizer.step()
        optimizer.zero_grad()

    best = throughput.Convolution(*throughput.REFERENCE, shapes[0].height, shapes[0].width, first=False)
    timed = {
        shape: throughput.convolution_alone(shape, n, fabric.device, fabric.autocast, seconds / 4)
        for shape in {*shapes, best}
    }
    taken = throughput.seconds_of(run, fabric.device, seconds)
    operations = sum(shape.operations(n) for shape in shapes)
    alone = operations / sum(timed[shape] for shape in shapes)
    peak = best.operations(n) / timed[best]
    speed = operations / taken
    name = network.pedigree.name
    print(f"{name} on {fabric.device}, {recipe.run.precision}, {n} positions a step")
    print(f"  convolutions, best   {peak / 1e9:12,.1f} GFLOP/s")
    print(f"  convolutions, alone  {alone / 1e9:12,.1f} GFLOP/s")
    shares = f"{speed / alone:4.0%} of alone, {speed / peak:4.0%} of best"
    print(f"  training step        {speed / 1e9:12,.1f} GFLOP/s   {shares}")
    print(f"  training step        {n / taken:12,.0f} positions/s ({taken * 1e3:,.1f} ms)")
    return n / taken


def _loader(recipe: Recipe, network: Network, step: float) -> None:
    """Measure and print how fast the recipe's games become batches."""
    import time

    from keima.training.run.preflight import find_world
    from keima.training.run.sources import open_games, open_teacher

    sources: Any = open_games(recipe, network, find_world(recipe, {}), Path(), open_teacher(recipe, network))
    next(sources.train)
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < 2 or not done:
        done += len(next(sources.train))
    speed = done / (time.perf_counter() - started)
    sources.train.close()
    if sources.test is not None:
        sources.test.close()
    share = f"{speed / step:4.1f} × the step's, on {recipe.data.workers} threads"
    print(f"  loading              {speed:12,.0f} positions/s   {share}")
