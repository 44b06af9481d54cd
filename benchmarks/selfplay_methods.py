"""What each way of playing against itself is worth: games and visits until a network is so good.

    python benchmarks/selfplay_methods.py FOLDER [WAY …] [--game connect-four] [--target 0.76] [--steps 2000] [--seed 0]
    python benchmarks/selfplay_methods.py FOLDER --game go-7x7 --target 0.5 --against NETWORK [--precision bf16]

Every way is a run of the same loop and network in FOLDER/SEED/WAY. It is stopped once two generations in a row are
good enough; started again, it goes on. Printed of the first of the two: games and searched positions that were there to
learn from, visits spent on them, and how good it is. One JSON line a way.

connect-four   2 blocks of 32 filters; the share of the 1,000 positions of `connect_four_strength.py` in which the
               policy keeps the perfect solver's result
go-7x7         KataGo's network, 3 blocks of 48 filters; points against another network (--against: the one in
               recipes/logs wins every game for the first thousand steps), 60 games at once from 30 openings, 16 visits
               each (`batch_match.py`)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import keima
from benchmarks import batch_match
from benchmarks.connect_four_strength import optimal_by_policy
from keima.training.run.recipe_text import parse_toml

ROOT = Path(__file__).parents[1]
Section = dict[str, Any]
SHARE = 0.25
FORCED = {"forced_playouts": 2.0}


class Trial(NamedTuple):
    """A game, and what all of its runs have in common."""

    sections: dict[str, Section]
    ways: dict[str, dict[str, Section]]  # what each changes
    strength: Callable[[Path], float]


def ways_of(visits: int, fast: int, gumbel: int) -> dict[str, dict[str, Section]]:
    """AlphaGo Zero's way, KataGo's means (arXiv:1902.10565, §3.1 and 3.2), Gumbel AlphaZero's, whose noise explores."""
    plain: Section = {"visits": visits, "root_noise": 0.25}
    capped = plain | {"fast_visits": fast, "full_share": SHARE}
    return {
        "alphago-zero": {"search": plain},
        "playout-caps": {"search": capped},
        "forced-playouts": {"search": plain | FORCED},
        "caps-and-forced": {"search": capped | FORCED},
        "gumbel": {"search": {"preset": "gumbel", "visits": gumbel}, "games": {"temperature": 0}},
    }


def connect_four(_: argparse.Namespace) -> Trial:
    """Quick games, judged by the solver."""
    sections: dict[str, Section] = {
        "network": {"name": "connect-four", "blocks": 2, "channels": 32, "policy_filters": 8, "value_filters": 8},
        "search": {"solve": True},
        "games": {
            "side_by_side": 256,
            "block": 32,
            "opening_plies": 12.0,
            "opening_temperature": 4.0,
            "temperature_plies": 30,
        },
        "window": {"steps": 50, "reuse": 4, "value_lambda": 0.8, "first": 4_000},
        "judge": {"games": 0},
        "optimizer": {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
        "schedule": {"kind": "constant", "warmup": 50},
        "run": {"batch_size": 256, "ema": 0.98, "checkpoint_every": 50},
    }

    def strength(path: Path) -> float:
        return float(optimal_by_policy(keima.Evaluator(keima.load(path), threads=1)).mean())

    return Trial(sections, ways_of(48, 12, 25), strength)


def go_7x7(given: argparse.Namespace) -> Trial:
    """recipes/selfplay/go-7x7-katago.toml by one rule set, judged by a network."""
    path = ROOT / "recipes/selfplay/go-7x7-katago.toml"
    sections, _ = parse_toml(path.read_text(encoding="utf-8"), str(path), "a recipe")
    sections["games"]["rules"] = "tromp-taylor"
    sections |= {"search": {}, "judge": {"games": 0}, "schedule": {"kind": "constant", "warmup": 100}}
    sections["run"] |= {"ema": 0.99, "checkpoint_every": 50}
    ways = ways_of(40, 10, 25)
    silent = dict.fromkeys(("score", "stdev", "lead", "ownership", "optimistic", "reply"), 0.0)
    ways["without-auxiliary-targets"] = ways["alphago-zero"] | {"loss": silent}
    precision = given.precision or "f32"
    other = batch_match.Player(f"{given.against}:{precision}", 16, 1)
    start = keima.go.Position.start(7, sections["games"]["rules"], 9.0)
    openings = batch_match.draw_openings(other, start, 30, 4, 0.5, np.random.default_rng(1))

    def strength(path: Path) -> float:
        own = batch_match.Player(f"{path}:{precision}", 16, 1)
        return float(batch_match.play((own, other), openings, start.to_play, 98).score)

    return Trial(sections, ways, strength)


TRIALS = {"connect-four": connect_four, "go-7x7": go_7x7}


def recipe(trial: Trial, way: str, steps: int, seed: int, precision: str) -> str:
    """A recipe of the loop."""
    changes, every = trial.ways[way], {"precision": precision} if precision else {}
    names = [*trial.sections, *(name for name in changes if name not in trial.sections)]
    sections = {name: trial.sections.get(name, {}) | changes.get(name, {}) for name in names}
    sections["search"] |= every
    sections["run"] |= every | {"steps": steps, "seed": seed}
    lines = []
    for name, values in sections.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def visits_of(search: dict[str, Any], positions: int) -> float:
    """Visits behind so many positions with a policy target, those of fast searches between them included."""
    full, fast = search["visits"], search.get("fast_visits", 0)
    return positions * (full + (fast * (1 - SHARE) / SHARE if fast else 0))


def measure(trial: Trial, way: str, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Run a way until its network is good enough or its steps are over; what it took."""
    folder.mkdir(parents=True, exist_ok=True)
    path, run = folder / f"{way}.toml", folder / way
    path.write_text(recipe(trial, way, given.steps, given.seed, given.precision), encoding="utf-8")
    command = [sys.executable, "-m", "keima", "selfplay", str(path), "-o", str(run), "--quiet"]
    process = subprocess.Popen(command, stderr=(folder / f"{way}.log").open("a"))
    found: dict[int, float] = {}
    reached = None
    try:
        while reached is None:
            over = process.poll() is not None
            new = [int(file.stem) for file in sorted(run.glob("networks/*.json")) if int(file.stem) not in found]
            for generation in new:
                found[generation] = trial.strength(run / "networks" / f"{generation:06d}.safetensors")
                print(f"{way}: generation {generation}: {found[generation]:.1%}", file=sys.stderr, flush=True)
            good = [g for g in found if min(found[g], found.get(g + 1, 0.0)) >= given.target]
            reached = min(good, default=None)
            if over and not new:
                break
            time.sleep(1)
    finally:
        process.terminate()
        process.wait()
    told: dict[str, Any] = {"way": way, "target": given.target, "seed": given.seed, "generation": reached}
    if reached:
        manifest = json.loads((run / f"windows/{reached:06d}.json").read_bytes())
        told |= {key: manifest[key] for key in ("games", "positions")} | {"strength": found[reached]}
        told["visits"] = round(visits_of(trial.ways[way]["search"], manifest["positions"]))
    return told | {"best": max(found.values(), default=0.0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("ways", nargs="*", metavar="WAY", help="all of them, if none is named")
    parser.add_argument("--game", choices=TRIALS, default="connect-four")
    parser.add_argument("--target", type=float, default=0.76)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", default="", help="of playing, learning and judging: bf16")
    parser.add_argument("--against", default=f"{ROOT}/recipes/logs/go-7x7-katago.bin.gz", help="whom to play on 7×7")
    given = parser.parse_args()
    trial = TRIALS[given.game](given)
    for way in given.ways or trial.ways:
        print(json.dumps(measure(trial, way, given.folder / str(given.seed), given)), flush=True)


if __name__ == "__main__":
    main()
