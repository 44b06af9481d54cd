"""`keima analysis`: KataGo's JSON analysis protocol, on standard input and output."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from keima.cli import common
from keima.errors import BadRequest
from keima.plain import Data, Fields

if TYPE_CHECKING:
    from keima.engines.analysis.settings import Settings
    from keima.inference.evaluator import Evaluator
    from keima.search.search import Search

EXAMPLES = """Examples:

\b
  keima analysis
  keima analysis --net kata1-b18c384nbt.bin.gz
  keima analysis --net kata1-b18c384nbt.bin.gz --visits 200 --analysis-threads 4 < queries.jsonl
  keima analysis -model kata1-b18c384nbt.bin.gz -config analysis.cfg -override-config maxTime=10
  keima analysis --net maia-1900.pb.gz --report-as sidetomove
  keima analysis --policy policy.safetensors --value value.safetensors --rollout rollout.safetensors

Without --net, keima's own small Go network answers, with --net chess its chess network (docs/default-networks.md).
A query: {"id": "1", "moves": [["B","Q16"]], "rules": "chinese", "komi": 7.5, "boardXSize": 19, "boardYSize": 19}
In KaTrain, this program can stand in place of katago, or the command above in its settings.
"""


def analysis(
    net: Annotated[
        str | None,
        Option("--net", "--policy", "--model", "-model", metavar="NET", help="Network; keima's own for Go if none."),
    ] = None,
    value: common.ValueNetwork = None,
    rollout: common.Rollout = None,
    config: Annotated[
        str | None, Option("--config", "-config", metavar="FILE", help="A KataGo configuration file.")
    ] = None,
    override_config: common.Overrides = None,
    human_model: Annotated[
        str | None, Option("--human-model", "-human-model", metavar="NET", help="KataGo's human network.")
    ] = None,
    visits: Annotated[int | None, Option(min=1, help="Visits where a query gives none; 500.")] = None,
    analysis_threads: Annotated[
        int | None, Option("--analysis-threads", "-analysis-threads", min=1, help="Positions searched at once; 2.")
    ] = None,
    report_as: Annotated[
        str | None, Option(help="Whose values: black, white, sidetomove; black in Go, white in chess.")
    ] = None,
    preset: Annotated[str, Option(help="auto, alphago, alphago-zero, katago, lc0 or gumbel.")] = "auto",
    memory: Annotated[int, Option(min=1, help="Megabytes each search tree may take.")] = 1024,
    backend: common.Backend = "auto",
    precision: common.Precision = "auto",
    batch: common.BatchSize = 8,
    threads: common.Threads = None,
    option: common.NetworkOptions = None,
    quit_without_waiting: Annotated[
        bool, Option("--quit-without-waiting", "-quit-without-waiting", help="When the input ends, drop what is open.")
    ] = False,
) -> None:
    """Answer queries in KataGo's JSON analysis protocol, a line each, until the input ends.

    Programs written for KataGo (KaTrain, scripts) work unchanged, its command line included. Networks of other systems
    answer in the same way; for chess, queries say "game": "chess". The fields: docs/analysis.md.
    """
    from keima.engines.analysis.engine import PROFILE, AnalysisEngine, read_lines
    from keima.engines.session import prepare
    from keima.games.game import GAMES
    from keima.search.search import Search
    from keima.systems.files.load import load_rollout

    bound = common.read_options(option)
    settings = _settings(config, override_config or [], visits, analysis_threads, report_as)
    if settings.profile is None and PROFILE in bound:
        settings = replace(settings, profile=str(bound[PROFILE]))
    path = common.network_file(net, next(iter(GAMES)))
    evaluator = common.open_player(common.open_network(path, value), backend, precision, batch, threads)
    evaluator = evaluator.bind(**bound)
    policy = None if rollout is None else load_rollout(rollout)
    models = [_model(path, evaluator)]
    human = None
    if human_model is not None:
        human = common.open_evaluator(common.open_network(human_model), backend, precision, batch, threads)
        models.append(_model(human_model, human))

    def open_search(bound_one: Evaluator, parameters: Fields) -> Search:
        return Search(bound_one, preset, memory=memory << 20, rollout_policy=policy, **parameters)

    engine = AnalysisEngine(evaluator, open_search, settings, models=models, human=human, log=common.complain)
    try:
        prepare(engine.search_with(settings), evaluator.encoding.start())
    except BadRequest as error:  # a human network whose queries are to say whom it imitates
        common.complain(str(error))
    common.say("Started, ready to begin handling requests")
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", newline="\n", buffering=1)
    with output:
        engine.run(read_lines(sys.stdin.buffer), lambda line: output.write(line + "\n"), wait=not quit_without_waiting)


def _settings(
    config: str | None, overrides: list[str], visits: int | None, workers: int | None, report_as: str | None
) -> Settings:
    """The settings of the command line, of its overrides, of the configuration file, in this order of weight."""
    from keima.engines.analysis.settings import Settings, apply_settings, read_config, read_overrides, read_perspective

    changes: Data = {} if config is None else read_config(config)
    for text in overrides:
        changes |= read_overrides(text)
    applied = apply_settings(Settings(workers=2), changes)
    if applied.idle or applied.unknown:
        common.complain(f"without effect here: {', '.join((*applied.idle, *applied.unknown))}")
    given: Data = {"visits": visits, "workers": workers}
    given["perspective"] = None if report_as is None else read_perspective(report_as)
    return replace(applied.settings, **{name: value for name, value in given.items() if value is not None})


def _model(path: str, evaluator: Evaluator) -> Data:
    network = evaluator.network
    config = getattr(network, "config", None)
    return {
        "name": Path(path).name,
        "internalName": network.pedigree.name,
        "maxBatchSize": evaluator.batch_size,
        "usesHumanSLProfile": "profile" in evaluator.encoding.options,
        "version": getattr(config, "version", None),
        "usingFP16": "false",
        "system": network.system,
        "precision": evaluator.precision,
    }
