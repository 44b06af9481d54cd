"""A chess program for tests: `win` mates in three moves an opponent that plays `lose`; and can misbehave."""

import argparse
import sys
import time

options = argparse.ArgumentParser()
options.add_argument("role", choices=["win", "lose"])
options.add_argument("--fail", default="", help="crash, hang, illegal, or garbage")
options.add_argument("--at", type=int, default=2, help="the search, counted over all games, at which it fails")
options.add_argument("--log", default="", help="a file that every line is appended to")
given = options.parse_args()

LINES = {
    ("win", "w"): ["e2e4", "d2d4", "d1h5"],
    ("lose", "b"): ["f7f6", "g7g5"],
    ("win", "b"): ["e7e5", "d8h4"],
    ("lose", "w"): ["f2f3", "g2g4"],
}
moves, asked = [], 0


def best():
    side = "wb"[len(moves) % 2]
    if asked == given.at:
        if given.fail == "crash":
            sys.exit(4)
        if given.fail == "hang":
            time.sleep(600)
        if given.fail == "illegal":
            return "e1e5"
        if given.fail == "garbage":
            return "moonrise"
    return LINES[given.role, side][len(moves) // 2]


for line in sys.stdin:
    if given.log:
        with open(given.log, "a") as log:
            log.write(line)
    words = line.split()
    if words[:1] == ["uci"]:
        print("id name Fake\noption name Depth of thought type spin default 1 min 1 max 9\nuciok", flush=True)
    elif words[:1] == ["isready"]:
        print("readyok", flush=True)
    elif words[:1] == ["position"]:
        moves = words[words.index("moves") + 1 :] if "moves" in words else []
    elif words[:1] == ["go"]:
        asked += 1
        print(f"info string thinking\nbestmove {best()}", flush=True)
    elif words[:1] == ["quit"]:
        break
