"""From a shell to the first answer: a fresh Python that opens a network and evaluates one position.

    python benchmarks/bench_start.py NETWORK [--backend openvino] [--rounds 5]

The first round starts without a cache of compiled networks (it traces, converts and compiles); the others find it. Each
prints the whole process's time, its processor time (all threads; near the other on an idle machine), and how long its
parts took inside.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

CHILD = """
import time
start = time.perf_counter()
def part(name):
    global start
    print(f"{name} {time.perf_counter() - start:.2f}", end="  ", flush=True)
    start = time.perf_counter()
import sys
import keima
network = keima.load(sys.argv[1])
part("import and load")
evaluator = keima.Evaluator(network, sys.argv[2])
part("evaluator")
chess = network.encoding.game == "chess"
size = getattr(network.encoding, "board_size", None) or 19
position = keima.chess.Position.start() if chess else keima.go.Position.start(size=size).play("D4")
part("position")
evaluator([position])
part("first answer")
evaluator([position])
part("second answer")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network")
    parser.add_argument("--backend", default="openvino")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    warm, busy = [], 0.0
    with tempfile.TemporaryDirectory() as cache:
        for number in range(arguments.rounds + 1):
            start = time.perf_counter()
            command = [sys.executable, "-c", CHILD, arguments.network, arguments.backend]
            parts = subprocess.run(command, env={**os.environ, "KEIMA_CACHE": cache}, check=True, capture_output=True)
            seconds = time.perf_counter() - start
            before, busy = busy, os.times().children_user + os.times().children_system
            label = "warm" if number else "cold"
            print(f"{label} {seconds:5.2f} s (processor {busy - before:5.2f} s)   {parts.stdout.decode()}")
            warm += [seconds] if number else []
    print(f"best warm start {min(warm):.2f} s")


if __name__ == "__main__":
    main()
