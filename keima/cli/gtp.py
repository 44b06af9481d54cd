"""`keima gtp`: a Go network as an engine for Sabaki, GoGui, Lizzie and other programs that speak GTP."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from typer import Option

from keima.cli import common
from keima.plain import Fields

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator
    from keima.search.search import Search

EXAMPLES = """Examples:

\b
  keima gtp
  keima gtp --net kata1-b18c384nbt.bin.gz --visits 400
  keima gtp --net kata1-b6c96.bin.gz --seconds 5 --ponder --rules japanese
  keima gtp --net kata1-b18c384nbt.bin.gz --name KataGo          for Lizzie
  keima gtp --net b18c384nbt-humanv0.bin.gz --profile rank_5k --visits 40
  keima gtp --policy policy.safetensors --value value.safetensors --rollout rollout.safetensors   AlphaGo, whole
  keima gtp --policy policy.safetensors --value value.safetensors --override-config rollout_weight=0

Without --net, keima's own small network plays (docs/default-networks.md). Give the program that drives it the whole
line as the engine's command. docs/gtp.md lists the commands.
"""


def gtp(
    net: Annotated[
        str | None, Option("--net", "--policy", metavar="NET", help="Network file; keima's own if not given.")
    ] = None,
    value: common.ValueNetwork = None,
    rollout: common.Rollout = None,
    preset: Annotated[str, Option(help="auto (the network's own), alphago, alphago-zero, katago or gumbel.")] = "auto",
    visits: Annotated[
        int | None, Option(min=1, help="Most visits of a move; 800 if neither seconds nor a clock limit it.")
    ] = None,
    seconds: Annotated[float | None, Option(min=0.0, help="Most seconds of a move.")] = None,
    backend: common.Backend = "auto",
    precision: common.Precision = "auto",
    batch: common.BatchSize = 8,
    threads: common.Threads = None,
    resign_threshold: Annotated[
        float, Option(min=0.0, max=1.0, help="Resign below this probability of winning; 0 never.")
    ] = 0.05,
    resign_turns: Annotated[int, Option(min=1, help="... for so many moves in a row.")] = 3,
    ponder: Annotated[bool, Option("--ponder", help="Think while the other side does, up to a minute.")] = False,
    rules: Annotated[str, Option(help="chinese, japanese, tromp-taylor, aga, ..., or KataGo's JSON.")] = "chinese",
    komi: Annotated[float | None, Option(help="Komi; the usual one of the rules if not given.")] = None,
    profile: Annotated[str | None, Option(help="Whom to imitate: rank_5k, proyear_1990, ... (human networks).")] = None,
    option: common.NetworkOptions = None,
    override_config: common.Overrides = None,
    name: Annotated[str, Option(help='The answer to "name"; Lizzie wants KataGo.')] = "keima",
    memory: Annotated[int, Option(min=16, metavar="MIB", help="Most memory of the search tree.")] = 1024,
    seed: Annotated[int, Option(min=0, help="Of everything random in the search.")] = 0,
) -> None:
    """Speak GTP on standard input and output."""
    from keima.engines.analysis.settings import read_overrides
    from keima.engines.gtp import GAME
    from keima.engines.gtp.commands import COMMANDS
    from keima.engines.gtp.commands_settings import set_values
    from keima.engines.gtp.engine import Engine, Options
    from keima.engines.session import prepare
    from keima.search.search import Search
    from keima.systems.files.load import load_rollout

    network = common.open_network(common.network_file(net, GAME), value)
    evaluator = common.open_player(network, backend, precision, batch, threads)
    policy = None if rollout is None else load_rollout(rollout)

    def make_search(bound: Evaluator, overrides: Fields) -> Search:
        return Search(bound, preset, seed=seed, memory=memory << 20, rollout_policy=policy, **overrides)

    options = Options(
        name=name,
        rules=rules,
        komi=komi,
        visits=visits,
        seconds=seconds,
        ponder=ponder,
        resign_threshold=resign_threshold,
        resign_turns=resign_turns,
        bound=common.read_options(option) | ({} if profile is None else {"profile": profile}),
    )
    engine = Engine(evaluator, make_search, options, COMMANDS)
    for text in override_config or []:
        set_values(engine, read_overrides(text))
    prepare(engine.search, engine.game.position)
    common.say(f"keima: {evaluator.backend} {evaluator.precision}; GTP ready")
    engine.run(sys.stdin.buffer, sys.stdout.buffer)
