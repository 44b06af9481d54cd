"""`keima compress`: networks made smaller and faster for deployment."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from keima.cli import common
from keima.errors import BadRequest
from keima.plain import Data

if TYPE_CHECKING:
    from keima.systems.network import Network
    from keima.training.distill.comparison import Standing

_BATCH = 64
_COMPARED = 6
"""One batch of so many is kept aside to compare on."""
_CHOSEN, _KEPT = 256, 512
"""Positions on which layers are chosen, and on which nothing is."""
_TIMED = 2.0
"""Seconds in which each precision's speed is measured."""

FOLD_EXAMPLES = """Examples:

\b
  keima compress fold kata1-b6c96.bin.gz b6c96-folded.bin.gz
  keima compress fold lc0-unfolded.pb.gz folded.safetensors
"""

PRUNE_EXAMPLES = """Examples:

\b
  keima compress prune g170-b6c96.bin.gz b6c64.bin.gz --channels 64 --data games.parquet
  keima compress prune lc0-10x128.pb.gz lc0-6x64.pb.gz --channels 64 --blocks 6 --data train.parquet --data more.parquet
  keima compress prune leela-zero.txt.gz narrow.txt.gz --channels 192

The result answers worse than the original; train it on with `keima compress distill` (docs/compress.md).
"""

DISTILL_EXAMPLES = """Examples:

\b
  keima compress distill student.toml -o runs/student
  keima compress distill student.toml --set teacher.network=b18c384nbt.bin.gz --games 200 --visits 400

The recipe is one of `keima train` with a [teacher] (docs/training.md). Started again, it goes on where it stopped.
"""

QUANTIZE_EXAMPLES = """Examples:

\b
  keima compress quantize kata1-b6c96.bin.gz b6c96.safetensors --data games.parquet
  keima compress quantize maia-1900.pb.gz maia-1900.safetensors --train 10 --games 200
  keima compress quantize maia-1900.safetensors better.safetensors --train 10      (goes on from maia-1900's numbers)
  keima eval b6c96.safetensors positions.jsonl --precision int8

OUT holds the float network and its numbers for int8; in a format of another program these stand beside it, in OUT.int8.
Without --data, positions come from games that the network plays with itself, moves drawn from its policy.
"""

app = Typer(
    help="Make a network smaller and faster for deployment.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=FOLD_EXAMPLES,
)


@app.callback()
def _compress() -> None:
    """Make a network smaller and faster for deployment."""


@app.command("fold", epilog=FOLD_EXAMPLES)
def fold(source: common.InArgument, target: common.OutArgument) -> None:
    """Fold batch norms into the convolutions before them: fewer operations, the same answers to 1e-5."""
    from keima.compress.fold import fold as fold_network
    from keima.systems.files.load import save

    network = common.open_network(source)
    before = sum(parameter.numel() for parameter in network.parameters())
    folded = fold_network(network)
    after = sum(parameter.numel() for parameter in folded.parameters())
    save(folded, target)
    common.say(f"{target}: {before:,} parameters before, {after:,} after")


@app.command("prune", epilog=PRUNE_EXAMPLES)
def prune(
    source: common.InArgument,
    target: common.OutArgument,
    channels: Annotated[int | None, Option(help="Channels of the trunk to keep; all if not given.")] = None,
    blocks: Annotated[int | None, Option(help="Residual blocks to keep; all if not given.")] = None,
    data: Annotated[
        list[str] | None,
        Option(metavar="STORE.parquet", help="Games to measure by and to fit the weights on; may be repeated."),
    ] = None,
    positions: Annotated[int, Option(min=64, help="Positions taken from the games.")] = 2048,
) -> None:
    """Cut away the channels (and blocks) that matter least: a smaller network, to be trained on by distillation.

    With games the choice is much better, and the weights that are left are fitted anew to what the whole network
    computes; without, both follow from the weights alone.
    """
    from keima.compress.prune import agreement
    from keima.compress.prune import prune as prune_network
    from keima.systems.files.load import save

    network = common.open_network(source)
    batches = _inputs(network, data or [], positions * _COMPARED // (_COMPARED - 1))
    compared = batches[::_COMPARED]
    fitted = [batch for number, batch in enumerate(batches) if number % _COMPARED]
    pruned = prune_network(network, channels, blocks=blocks, batches=fitted, tell=common.say)
    save(pruned, target)
    before, after = (sum(parameter.numel() for parameter in one.parameters()) for one in (network, pruned))
    common.say(f"{target}: {before:,} parameters before, {after:,} after")
    if batches:
        common.say(f"{target}: {agreement(network, pruned, compared).summary()}")


def _inputs(network: Network, stores: list[str], positions: int) -> list[Data]:
    """Inputs of about `positions` positions, as many from each store; tensors."""
    from keima.training.data.batches import Loader
    from keima.training.data.store import GameStore

    found = []
    for store in stores:
        count = -(-positions // (_BATCH * len(stores)))
        with Loader(GameStore.open(store), network.encoding, _BATCH, targets=(), workers=1) as made:
            found += [dict(next(made).torch().inputs) for _ in range(count)]
    return found


@app.command("quantize", epilog=QUANTIZE_EXAMPLES)
def quantize(
    source: common.InArgument,
    target: common.OutArgument,
    data: Annotated[
        list[str] | None, Option(metavar="STORE.parquet", help="Games to fit on; may be repeated. Else its own games.")
    ] = None,
    test: Annotated[
        str | None, Option(metavar="STORE.parquet", help="Games to compare on; else positions kept aside.")
    ] = None,
    positions: Annotated[int, Option(min=64, help="Positions to fit on.")] = 1024,
    limit: Annotated[
        float, Option(min=0.0, help="Layers go back to float until the policy's KL divergence is below this.")
    ] = 0.001,
    minutes: Annotated[
        float,
        Option("--train", min=0.0, help="Minutes of training before that, or of the int8 numbers that IN has."),
    ] = 0.0,
    games: Annotated[int, Option(min=0, help="Games of each match against the float network; 0 plays none.")] = 0,
    visits: Annotated[int, Option(min=1, help="Of both, in the match at equal visits.")] = 100,
    seconds: Annotated[float, Option(min=0.001, help="Of both for a move, in the match at equal time.")] = 0.1,
) -> None:
    """Make a network ready for int8: its convolutions computed in whole numbers, a quarter of the memory, faster.

    With --train its teacher is the float network; where IN holds int8 numbers, they are trained on, not made anew.
    At the end it is compared with the float network on positions that nothing was chosen on: first moves, policy and
    win, size, evaluations a second; with --games by two matches, at equal visits and at equal time.
    """
    from keima.compress.own_games import own_inputs
    from keima.compress.prune import agreement
    from keima.compress.quantize import near_enough
    from keima.compress.quantize import quantize as quantize_network
    from keima.compress.quantize import train as train_network
    from keima.systems.files.load import save
    from keima.systems.layers import quantized

    network = common.open_network(source)
    stores = data or []
    wanted = positions + _CHOSEN + (0 if test else _KEPT)
    own = own_inputs(network, _BATCH)
    batches = _inputs(network, stores, wanted) if stores else _first(own, wanted)
    compared = _inputs(network, [test], _KEPT) if test else batches[-_KEPT // _BATCH :]
    batches = batches if test else batches[: -_KEPT // _BATCH]
    choice, fitted = batches[: _CHOSEN // _BATCH], batches[_CHOSEN // _BATCH :]
    if minutes and network.quantization is not None:
        common.say(f"{source} holds int8 numbers: they are trained on")
        found = network
    else:
        found = quantize_network(network, fitted, common.say)
    if minutes:
        found = train_network(found, _lessons(network, stores) if stores else own, 60 * minutes, common.say)
    found = near_enough(found, choice, limit, common.say)
    save(found, target)
    layers = found.quantization.layers if found.quantization else {}
    whole = sum(parameter.numel() for parameter in network.parameters())
    small = sum(layer["weight"].numel() for layer in layers.values())
    print(f"{target}: {len(layers)} convolutions, {small / whole:.1%} of {whole:,} parameters, in int8;")
    print(f"  {4 * whole / 1e6:.2f} MB in float, {(4 * whole - 3 * small) / 1e6:.2f} MB in int8")
    print(f"  {agreement(network, quantized(found), compared).summary()}")
    speeds = _speeds(found)
    print("  " + ", ".join(f"{name} {speed:,.0f} evaluations/s" for name, speed in speeds.items()))
    if games:
        rival = max((name for name in speeds if name != "int8"), key=lambda name: speeds[name])
        for name, limits in (("visits", f"visits={visits}"), ("time", f"seconds={seconds}")):
            players = [(target, f"int8,{limits},precision=int8"), (target, f"float,{limits},precision={rival}")]
            board = network.encoding.board
            played = _play(players, (board[1], board[0]), games, Path(f"{target}.matches") / name)
            print(f"  against {rival} at equal {name} ({limits}): {played['words']}")


def _first(batches: Iterator[Data], positions: int) -> list[Data]:
    """The first batches, until they hold so many positions; says how far it is."""
    found: list[Data] = []
    for start in range(0, positions, _BATCH):
        common.say(f"playing: {start:,} of {positions:,} positions")
        found.append(next(batches))
    return found


def _lessons(network: Network, stores: list[str]) -> Iterator[Data]:
    """Inputs of positions of all stores in turn, without end; tensors."""
    from keima.training.data.batches import Loader
    from keima.training.data.store import GameStore

    with ExitStack() as opened:
        made = [
            opened.enter_context(Loader(GameStore.open(store), network.encoding, _BATCH, seed=1, targets=(), workers=1))
            for store in stores
        ]
        for loader in itertools.cycle(made):
            yield dict(next(loader).torch().inputs)


def _speeds(network: Network) -> dict[str, float]:
    """Evaluations a second in each precision that this machine computes in."""
    from keima.cli.bench import middle_game
    from keima.training.distill.comparison import per_second

    batch = network.encoding.encode(middle_game(network.encoding.game, _BATCH))
    speeds = {}
    for precision in ("f32", "bf16", "int8"):
        with suppress(BadRequest):
            speeds[precision] = per_second(network, batch, precision, _TIMED)
    return speeds


@app.command("distill", epilog=DISTILL_EXAMPLES)
def distill(
    recipe: Annotated[str, Argument(metavar="RECIPE", help="A recipe with a [teacher], TOML.")],
    output: common.RunFolder = None,
    settings: common.Settings = None,
    games: Annotated[int, Option(min=0, help="Games of each match against the teacher; 0 plays none.")] = 40,
    visits: Annotated[int, Option(min=1, help="Of both, in the match at equal visits.")] = 100,
    seconds: Annotated[float, Option(min=0.001, help="Of both for a move, in the match at equal time.")] = 0.1,
    precision: Annotated[str, Option(help="Of the timing and the matches: auto, f32 or bf16.")] = "auto",
    positions: Annotated[int, Option(min=64, help="Held-out positions of the comparison.")] = 4096,
    quiet: common.Quiet = False,
) -> None:
    """Train a small network to answer as a large one; then say how it stands beside its teacher.

    Accuracy and value error on the recipe's held-out games, evaluations a second on this machine, and by two matches
    the Elo difference at equal visits and at equal time; the same as JSON in RUN/comparison.json.
    """
    from keima.atomic import replacing
    from keima.cli.training.train import check_installed, watcher
    from keima.training.data.store import GameStore
    from keima.training.distill.comparison import first_board, standing
    from keima.training.run.loop import train
    from keima.training.run.preflight import check_store, position_filter
    from keima.training.run.recipe import read_recipe
    from keima.training.run.sources import open_teacher

    check_installed()
    read = read_recipe(recipe, settings or ())
    if not read.teacher.network:
        raise read.error("teacher.network", "is missing: distillation needs a teacher")
    if not read.data.test:
        raise read.error("data.test", "is missing: student and teacher are compared on held-out games")
    if games and len(read.teacher.network) > 1:
        raise read.error("teacher.network", "is several networks, which play no match together: add --games 0")
    folder = Path(output or Path("runs") / Path(recipe).stem)
    student = train(read, folder, watcher(quiet)).network
    rows, trained, chosen = [], common.open_network(str(student)), position_filter(read)
    for network in (trained, open_teacher(read, trained)):
        assert network is not None
        store = check_store(read, "test", network)
        rows.append(standing(network, store, positions=positions, chosen=chosen, precision=precision))
    for line in _table(rows):
        print(line)
    matches = {}
    if games:
        for name, limit in (("visits", f"visits={visits}"), ("time", f"seconds={seconds}")):
            limits = f"{limit},precision={precision}"
            players = [(str(student), f"student,{limits}"), (read.teacher.network[0], f"teacher,{limits}")]
            size = first_board(GameStore.open(read.data.test), trained)
            matches[name] = _play(players, size, games, folder / f"match-{name}")
            print(f"student against teacher at equal {name} ({limit}): {matches[name]['words']}")
    with replacing(folder / "comparison.json", "w") as stream:
        contents = {"student": rows[0].to_json(), "teacher": rows[1].to_json(), "matches": matches}
        stream.write(json.dumps(contents, indent=1, ensure_ascii=False) + "\n")


def _table(rows: list[Standing]) -> list[str]:
    lines = ["            parameters   top-1   top-5  cross-entropy  value MSE  evaluations/s"]
    for title, row in zip(("student", "teacher"), rows, strict=True):
        found = row.evaluation
        shares = [f"{100 * share:6.2f}%" if share is not None else "      –" for share in (found.top1, found.top5)]
        entropy, error = (
            f"{number:.4f}" if number is not None else "–" for number in (found.cross_entropy, found.value_mse)
        )
        numbers = f"{row.parameters:>12,} {' '.join(shares)}  {entropy:>13}  {error:>9}  {row.per_second:>13,.0f}"
        lines.append(f"{title:10}{numbers}")
    return lines


def _play(players: list[tuple[str, str]], size: tuple[int, int], games: int, folder: Path) -> Data:
    """A match of two networks, each a file and its name with limits, on boards of that size, kept in a folder."""
    from keima.cli.match import game_line, showing_games
    from keima.cli.match import standing as words_of
    from keima.engines.match.match import Match, MatchOptions

    for path, _ in players:
        if "," in path:
            raise BadRequest("a match cannot be played with a file whose name has a comma", source=path)
    ours, theirs = (f"{path},name={settings}" for path, settings in players)
    match = Match(ours, theirs, MatchOptions(games=games, size=size), folder)
    with showing_games(games, match.played) as show:
        summary = match.run(lambda result, summary: show(game_line(result, summary), words_of(summary)))
    return {**summary.to_json(), "words": words_of(summary)}
