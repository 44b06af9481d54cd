"""Self-play of Go 9×9 by one network file: moves a second, and beside them KataGo's own `selfplay` in the same run.

    python benchmarks/bench_selfplay_katago.py NET.bin.gz KATAGO [KATAGO ...] [--precision bf16]

Both search a quarter of the moves with 80 visits and the others with 16, Chinese rules, komi 7, no forks, openings or
handicap; two processes of one thread here, as `keima selfplay` on two cores; KataGo's games by threads. KataGo's moves
are those of its finished games (their SGF files), and half as many for each under way in the end, over the time it ran.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import keima
from benchmarks.bench_selfplay import rates
from keima.training.selfplay.play import Player, Players
from keima.training.selfplay.recipe import build_loop

SECTIONS = {
    "network": {"name": "katago-b6c96"},
    "search": {"visits": 80, "fast_visits": 16, "full_share": 0.25, "root_noise": 0.25},
    "games": {"side_by_side": 128, "size": [9], "rules": ["chinese"], "komi": [7.0], "temperature": 0.75,
              "late_temperature": 0.15, "halflife": 9, "max_moves": 120},
    "optimizer": {"learning_rate": 0.01},
    "run": {"steps": 1, "batch_size": 1},
}  # fmt: skip

THREADS = 16
CONFIG = f"""
logSearchInfo = false
logMoves = false
logGamesEvery = 1000
logToStdout = true
dataBoardLen = 9
maxDataQueueSize = 2000
maxRowsPerTrainFile = 10000
numGameThreads = {THREADS}
maxMovesPerGame = 120
cheapSearchProb = 0.75
cheapSearchVisits = 16
maxVisits = 80
koRules = SIMPLE
scoringRules = AREA
taxRules = NONE
multiStoneSuicideLegals = false
hasButtons = false
bSizes = 9
bSizeRelProbs = 1
komiMean = 7.0
handicapProb = 0.0
numSearchThreads = 1
nnMaxBatchSize = 16
nnCacheSizePowerOfTwo = 20
nnMutexPoolSizePowerOfTwo = 15
numNNServerThreadsPerModel = 2
nnRandomize = true
chosenMoveTemperatureEarly = 0.75
chosenMoveTemperatureHalflife = 19
chosenMoveTemperature = 0.15
rootNoiseEnabled = true
firstFileRandMinProp = 0.0
switchNetsMidGame = true
initGamesWithPolicy = false
compensateAfterPolicyInitProb = 0.0
sidePositionProb = 0.0
earlyForkGameProb = 0.0
earlyForkGameExpectedMoveProp = 0.0
forkGameProb = 0.0
forkGameMinChoices = 1
earlyForkGameMaxChoices = 1
forkGameMaxChoices = 1
sekiForkHackProb = 0.0
reduceVisits = false
handicapAsymmetricPlayoutProb = 0.0
normalAsymmetricPlayoutProb = 0.0
maxAsymmetricRatio = 2.0
minAsymmetricCompensateKomiProb = 0.0
policySurpriseDataWeight = 0.0
valueSurpriseDataWeight = 0.0
estimateLeadProb = 0.0
fancyKomiVarying = false
cheapSearchTargetWeight = 0.0
komiStdev = 0.0
komiBigStdevProb = 0.0
komiBigStdev = 0.0
komiAuto = false
policyInitAreaProp = 0.0
reduceVisitsThreshold = 0.9
reduceVisitsThresholdLookback = 3
reducedVisitsMin = 16
reducedVisitsWeight = 1.0
handicapCompensateKomiProb = 0.0
forkCompensateKomiProb = 0.0
sgfCompensateKomiProb = 0.0
drawRandRadius = 0.0
noResultStdev = 0.0
"""
"""What `selfplay` wants to be told, with all that would tell its games from ours turned off."""


def play(net: str, precision: str, seconds: float, answers: multiprocessing.Queue[dict[str, float]]) -> None:
    """One worker of one thread: what it does a second, once its first games are over."""
    loop = build_loop(SECTIONS, {}, "bench", "")
    evaluator = keima.Evaluator(keima.load(net), "auto", precision, 64, 1)
    counter = itertools.count()
    players = Players(loop, [Player(evaluator, 0)], lambda: next(counter))
    warm = time.perf_counter()
    while players.games < 8 and time.perf_counter() - warm < seconds:
        players.step()
    answers.put(rates(players, seconds)[0])


def ours(net: str, precision: str, seconds: float) -> dict[str, float]:
    answers: multiprocessing.Queue[dict[str, float]] = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=play, args=(net, precision, seconds, answers)) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()
    return {name: round(sum(each[name] for each in found), 1) for name in found[0]}


def katago(net: str, program: str, games: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "models").mkdir()
        (folder / "models" / Path(net).name).write_bytes(Path(net).read_bytes())
        (folder / "selfplay.cfg").write_text(CONFIG)
        began = time.perf_counter()
        command = [program, "selfplay", "-models-dir", folder / "models", "-output-dir", folder / "out",
                   "-config", str(folder / "selfplay.cfg"), "-max-games-total", str(games)]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        spent = time.perf_counter() - began
        records = "".join(path.read_text() for path in (folder / "out").rglob("*.sgfs"))
    games = records.count("(;")
    moves = len(re.findall(r";[BW]\[", records)) * (1 + THREADS / 2 / games)
    return {"games": games, "moves_per_second": round(moves / spent, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net")
    parser.add_argument("katago", nargs="+")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--games", type=int, default=128, help="of KataGo's")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    for _ in range(args.rounds):
        mine = ours(args.net, args.precision, args.seconds)
        print(json.dumps({"keima": mine}), flush=True)
        for program in args.katago:
            theirs = katago(args.net, program, args.games)
            ratio = mine["moves_per_second"] / theirs["moves_per_second"]
            print(json.dumps({program: theirs, "ratio": round(ratio, 2)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
