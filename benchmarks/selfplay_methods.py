"""What each way of playing against itself is worth: games and visits until connect four's policy is so good.

    python benchmarks/selfplay_methods.py FOLDER [WAY …] [--target 0.76] [--steps 2000] [--seed 0]

Every way is a run of the same loop and network (2 blocks of 32 filters) in FOLDER/SEED/WAY. It is stopped once the
policies of two generations in a row keep the perfect solver's result in so many of the 1,000 positions of
`connect_four_strength.py`; started again, it goes on. Printed of the first of the two: games and searched positions
that were there to learn from, visits spent on them, and the policy. One JSON line a way.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import keima
from benchmarks.connect_four_strength import optimal_by_policy

NETWORK = {"name": "connect-four", "blocks": 2, "channels": 32, "policy_filters": 8, "value_filters": 8}
GAMES = {"side_by_side": 256, "block": 32, "opening_plies": 12.0, "opening_temperature": 4.0, "temperature_plies": 30}
VISITS, FAST, SHARE = 48, 12, 0.25
PLAIN: dict[str, Any] = {"visits": VISITS, "root_noise": 0.25}
CAPPED = PLAIN | {"fast_visits": FAST, "full_share": SHARE}
WAYS: dict[str, dict[str, Any]] = {
    "alphago-zero": PLAIN,
    "playout-caps": CAPPED,
    "forced-playouts": PLAIN | {"forced_playouts": 2.0},
    "caps-and-forced": CAPPED | {"forced_playouts": 2.0},
    "gumbel": {"preset": "gumbel", "visits": 25},
}
"""What a run searches with: AlphaGo Zero's way, KataGo's means (arXiv:1902.10565, §3.1 and 3.2), Gumbel AlphaZero."""


def recipe(search: dict[str, Any], steps: int, seed: int) -> str:
    """A recipe of the loop; Gumbel's noise explores, so that no temperature is needed."""
    games = GAMES | ({"temperature": 0} if search.get("preset") == "gumbel" else {})
    sections = {
        "network": NETWORK,
        "search": search | {"solve": True},
        "games": games,
        "window": {"steps": 50, "reuse": 4, "value_lambda": 0.8, "first": 4_000},
        "judge": {"games": 0},
        "optimizer": {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
        "schedule": {"kind": "constant", "warmup": 50},
        "run": {"steps": steps, "batch_size": 256, "ema": 0.98, "checkpoint_every": 50, "seed": seed},
    }
    lines = []
    for name, values in sections.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def visits_of(search: dict[str, Any], positions: int) -> float:
    """Visits behind so many positions with a policy target, those of fast searches between them included."""
    full, fast = search["visits"], search.get("fast_visits", 0)
    return positions * (full + (fast * (1 - SHARE) / SHARE if fast else 0))


def measure(way: str, folder: Path, target: float, steps: int, seed: int) -> dict[str, Any]:
    """Run a way until its policy is good enough or its steps are over; what it took."""
    folder.mkdir(parents=True, exist_ok=True)
    path, run = folder / f"{way}.toml", folder / way
    path.write_text(recipe(WAYS[way], steps, seed), encoding="utf-8")
    command = [sys.executable, "-m", "keima", "selfplay", str(path), "-o", str(run), "--quiet"]
    process = subprocess.Popen(command, stderr=(folder / f"{way}.log").open("a"))
    found: dict[int, float] = {}
    reached = None
    try:
        while reached is None:
            over = process.poll() is not None
            new = [int(file.stem) for file in sorted(run.glob("networks/*.json")) if int(file.stem) not in found]
            for generation in new:
                network = keima.load(run / "networks" / f"{generation:06d}.safetensors")
                found[generation] = float(optimal_by_policy(keima.Evaluator(network, threads=1)).mean())
                print(f"{way}: generation {generation}: {found[generation]:.1%}", file=sys.stderr, flush=True)
            good = [g for g in found if min(found[g], found.get(g + 1, 0.0)) >= target]
            reached = min(good, default=None)
            if over and not new:
                break
            time.sleep(1)
    finally:
        process.terminate()
        process.wait()
    told: dict[str, Any] = {"way": way, "target": target, "seed": seed, "generation": reached}
    if reached:
        manifest = json.loads((run / f"windows/{reached:06d}.json").read_bytes())
        told |= {key: manifest[key] for key in ("games", "positions")} | {"policy": found[reached]}
        told["visits"] = round(visits_of(WAYS[way], manifest["positions"]))
    return told | {"best": max(found.values(), default=0.0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--target", type=float, default=0.76)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for way in given.ways or WAYS:
        told = measure(way, given.folder / str(given.seed), given.target, given.steps, given.seed)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
