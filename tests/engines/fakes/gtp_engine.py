"""A Go program for tests: fills the board column by column from its own side, then passes; and can misbehave.

Black comes from the left, White from the right, so it never meets a stone that could be taken.
"""

import argparse
import os
import sys
import time

options = argparse.ArgumentParser()
options.add_argument("--stones", type=int, default=5, help="moves before it passes")
options.add_argument("--fail", default="", help="crash, hang, illegal, garbage, refuse, flood, or eof")
options.add_argument("--at", type=int, default=2, help="the genmove, counted over all games, at which it fails")
options.add_argument("--deaf", action="store_true", help="answers nothing at all")
options.add_argument("--dead", default="", help="what final_status_list dead says")
options.add_argument("--log", default="", help="a file that every command is appended to")
options.add_argument("--slow", type=float, default=0.0, help="seconds a genmove takes")
options.add_argument("--resign", type=int, default=0, help="the genmove at which it resigns")
given = options.parse_args()

KNOWN = ["boardsize", "clear_board", "komi", "play", "genmove", "quit", "list_commands", "final_status_list"]
COLUMNS = "ABCDEFGHJKLMNOPQRST"
size, asked, taken = 19, 0, set()


def points(colour):
    columns = COLUMNS[:size] if colour == "B" else COLUMNS[:size][::-1]
    return [f"{column}{row}" for column in columns for row in range(1, size + 1)]


def genmove(colour):
    global asked
    asked += 1
    time.sleep(given.slow)
    if given.resign and asked >= given.resign:
        return "= resign"
    if asked == given.at:
        if given.fail == "crash":
            print("out of memory", file=sys.stderr, flush=True)
            sys.exit(3)
        if given.fail == "hang":
            time.sleep(600)
        if given.fail == "eof":
            os.close(1)
            time.sleep(600)
        if given.fail == "illegal":
            return f"= {sorted(taken)[0]}"
        if given.fail == "garbage":
            return "\x07 segmentation of the moon"
        if given.fail == "vertex":
            return "= Z99"
        if given.fail == "refuse":
            return "? cannot think"
        if given.fail == "flood":
            while True:
                print("= " + "x" * 100000, flush=True)
    own = points(colour)[: given.stones]
    move = next((point for point in own if point not in taken), "pass")
    taken.add(move)
    return f"= {move}"


def answer(words):
    global size
    name = words[0]
    if name == "list_commands":
        return "= " + "\n".join(KNOWN)
    if name == "boardsize":
        size = int(words[1])
    if name == "clear_board":
        taken.clear()
    if name == "play":
        taken.add(words[2].upper())
    if name == "final_status_list":
        return f"= {given.dead}"
    if name == "genmove":
        return genmove(words[1].upper()[0])
    return "= " if name in KNOWN else "? unknown command"


for line in sys.stdin:
    if given.log:
        with open(given.log, "a") as log:
            log.write(line)
    if given.deaf or not line.split():
        continue
    print(answer(line.split()) + "\n", flush=True)
    if line.split()[0] == "quit":
        break
