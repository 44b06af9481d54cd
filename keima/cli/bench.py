"""`keima bench`: how fast this machine encodes and evaluates with a network, beside what OpenVINO alone would give."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Option, Typer

from keima.cli import common
from keima.errors import BadRequest

if TYPE_CHECKING:
    from keima.games.position import Position
    from keima.inference.evaluator import Evaluator, Handle
    from keima.systems.encoding import Batch
    from keima.systems.network import Network
    from keima.training.run.recipe import Recipe

EXAMPLES = """Examples:

\b
  keima bench
  keima bench --net kata1-b6c96.bin.gz
  keima bench --net maia-1900.pb.gz --batch 8 --precision bf16
  keima bench --net kata1-b18c384nbt.bin.gz --backend torch --batch 256     on a GPU where there is one
  keima bench train recipes/alphago-policy.toml

"batches" are encoded positions through keima's evaluator, "positions" the whole way from position to named answer; the
share is of the best of OpenVINO's own two modes on the same graph, batch and precision, or of the module itself on
PyTorch with its inputs on the device already. The best of several rounds
counts, taken in turns, so that a busy machine slows all of them alike.
"""

TRAIN_EXAMPLES = """Examples:

\b
  keima bench train recipes/alphago-policy.toml
  keima bench train recipes/alphago-zero.toml --set run.precision=bf16 --set run.batch_size=512

Operations are those of the convolutions, forward and backward. "alone" is each of the network's convolutions by itself,
"best" a 3×3 one from 256 to 256 channels.
"""

app = Typer(invoke_without_command=True, rich_markup_mode=None, epilog=EXAMPLES)

Run = Callable[[float], float]
"""Runs for about so many seconds; positions per second."""

WARM_UP = 0.1


@app.callback(epilog=EXAMPLES)
def bench(
    context: Context,
    net: Annotated[
        str | None, Option(metavar="NET", help="Network file; keima's own of each game if not given.")
    ] = None,
    batch: Annotated[list[int] | None, Option(min=1, help="Batch sizes; 1, 8 and 16 if not given.")] = None,
    precision: Annotated[list[str] | None, Option(help="f32, bf16, int8; those there are if not given.")] = None,
    backend: Annotated[str, Option(help="openvino or torch.")] = "openvino",
    seconds: Annotated[float, Option(min=0.01, help="Length of one round of one measurement.")] = 1.0,
    rounds: Annotated[int, Option(min=1, help="Rounds; the best one counts.")] = 3,
) -> None:
    """Measure encoding and evaluation, beside what the backend alone gives for the same network."""
    if context.invoked_subcommand is not None:
        return
    from keima.systems.files.defaults import DEFAULT_NETWORKS

    for path in DEFAULT_NETWORKS if net is None else [net]:
        _print_table(common.open_network(path), backend, precision, batch, seconds, rounds)


def _print_table(
    network: Network,
    backend: str,
    precision: list[str] | None,
    batch: list[int] | None,
    seconds: float,
    rounds: int,
) -> None:
    positions = middle_game(network.encoding.game, 64)
    print(f"{network.pedigree.name} ({network.system})")
    encode = timed(lambda: network.encoding.encode(positions), len(positions))
    encoded = best_of({"encode": encode}, seconds, rounds)["encode"]
    print(f"  encoding, one core{encoded:19,.0f} positions/s\n")
    print(f"  {'precision':10}{'batch':>6}{f'{backend} alone':>18}{'batches':>18}{'positions':>18}   (positions/s)")
    for kind in precision or ["f32", "bf16", *(["int8"] if network.quantization else [])]:
        for size in batch or [1, 8, 16]:
            _print_row(network, positions, backend, kind, size, seconds, rounds)


def _print_row(
    network: Network, positions: list[Position], backend: str, precision: str, batch: int, seconds: float, rounds: int
) -> None:
    try:
        evaluator = common.open_evaluator(network, backend, precision, batch)
    except BadRequest as error:
        print(f"  {precision:10}{batch:>6}  not measured: {error.message}")
        return
    encoded = network.encoding.encode([positions[k % len(positions)] for k in range(batch)])
    if evaluator.backend == "torch":
        alone_runs = {"alone": torch_alone(evaluator, encoded)}
    else:
        alone_runs = {hint: openvino_alone(network, encoded, precision, hint) for hint in ("LATENCY", "THROUGHPUT")}
    runs = {
        **alone_runs,
        "batches": batches(evaluator, encoded),
        "positions": timed(lambda: evaluator(positions), len(positions)),
    }
    best = best_of(runs, seconds, rounds)
    alone = max(best[name] for name in alone_runs)
    shares = "".join(f"{best[name]:10,.0f} ({best[name] / alone:4.0%})" for name in ("batches", "positions"))
    print(f"  {precision:10}{batch:>6}{alone:>18,.0f}  {shares}")


def middle_game(game: str, count: int, size: int | None = None) -> list[Position]:
    """Positions 30 plies into random games, on the game's usual board or one of `size`; the same ones every time."""
    from keima.games.game import GAMES

    choose = random.Random(1)
    positions: list[Position] = []
    while len(positions) < count:
        position = GAMES[game].playing.start((size, size) if size else None)
        for _ in range(30):
            moves = [move for move in position.legal() if move != "pass"]
            if not moves:
                break
            position = position.play(choose.choice(moves))
        else:
            positions.append(position)
    return positions


def best_of(runs: dict[str, Run], seconds: float, rounds: int) -> dict[str, float]:
    """Each run's best speed over several rounds, taken in turns."""
    best = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, run in runs.items():
            run(WARM_UP)
            best[name] = max(best[name], run(seconds))
    return best


def timed(step: Callable[[], object], count: int, finish: Callable[[], object] = lambda: None) -> Run:
    """Positions/s of a step that does so many of them, repeated; `finish` waits for what is under way."""

    def run(seconds: float) -> float:
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < seconds or not done:
            step()
            done += count
        finish()
        return done / (time.perf_counter() - start)

    return run


def batches(evaluator: Evaluator, encoded: Batch) -> Run:
    """Positions/s of encoded batches, two under way."""
    under_way: deque[Handle] = deque()

    def step() -> None:
        under_way.append(evaluator.submit(encoded))
        if len(under_way) > 1:
            under_way.popleft().result()

    return timed(step, encoded.size, lambda: under_way.pop().result())


def openvino_alone(network: Network, encoded: Batch, precision: str, hint: str) -> Run:
    """Positions/s of the graph itself on OpenVINO's own request queue, with nothing around it."""
    from keima.inference.offline import openvino
    from keima.inference.openvino_backend import by_products, computed, float_precision
    from keima.systems.layers import quantized

    network = quantized(network) if precision == "int8" else network
    products = by_products(network, precision, encoded.inputs["planes"].shape[2:], encoded.size)
    config = {"PERFORMANCE_HINT": hint, "INFERENCE_PRECISION_HINT": float_precision(precision)}
    compiled = openvino.Core().compile_model(computed(network, encoded.inputs, products), "CPU", config)
    queue = openvino.AsyncInferQueue(compiled, 4)
    inputs = [encoded.inputs[name] for name in network.input_names]
    return timed(lambda: queue.start_async(inputs, share_inputs=True), encoded.size, queue.wait_all)


def torch_alone(evaluator: Evaluator, encoded: Batch) -> Run:
    """Positions/s of the module itself, on the evaluator's device and at its precision, its inputs there already."""
    import copy

    import torch

    from keima.inference.backend import as_tensors
    from keima.inference.device_backend import HALVES

    network = copy.deepcopy(evaluator.network).eval().to(evaluator.device)
    inputs = [tensor.to(evaluator.device) for tensor in as_tensors(network, encoded.inputs)]

    def step() -> None:
        with torch.inference_mode(), torch.autocast(evaluator.device, half, enabled=half is not None):
            network(*inputs)

    half = HALVES.get(evaluator.precision)
    return timed(step, encoded.size, torch.cuda.synchronize if evaluator.device == "cuda" else lambda: None)


# --- Training ---------------------------------------------------------------------------------------------------------


@app.command("train", epilog=TRAIN_EXAMPLES, short_help="A training step, beside convolutions alone.")
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
    from keima.training.run.objective import TrainingStep, Whole, checkpoint_trunk
    from keima.training.run.optimizer import make_optimizer
    from keima.training.run.preflight import find_world
    from keima.training.run.small_boards import lay_out_small_boards

    shapes = throughput.convolutions(network)
    fabric = make_fabric(recipe, find_world(recipe, {}))
    lay_out_small_boards(network)
    if recipe.run.gradient_checkpointing:
        checkpoint_trunk(network)
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
    kept = throughput.bytes_kept(lambda: wrapped(Whole(batch))["loss"])
    print(f"  kept for backward    {kept / 2**20:12,.1f} MiB")
    return n / taken


def _loader(recipe: Recipe, network: Network, step: float) -> None:
    """Measure and print how fast the recipe's games become batches."""
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
