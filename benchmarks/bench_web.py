"""`keima web` from outside: time to the first move, streaming and what it costs the search, leaving, many at once.

    python benchmarks/bench_web.py [start] [stream] [leave] [many] [--rounds 5] [--people 50] [--seconds 4]

Each part starts `keima web` as a user does, with keima's own networks, and speaks with it over the WebSocket as a page.
What else runs on the machine spoils figures by the clock, so the server's processor time stands beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from websockets.sync.client import ClientConnection, connect

Json = dict[str, Any]
MOVES = {"go": "Q16", "chess": "e2e4", "connect_four": "d"}
VISITS = 100  # of the answer, as the page proposes


class Page:
    """One page's socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.networks: dict[str, Json] = {}
        self.sides: dict[str, list[str]] = {}

    def send(self, do: str, **fields: Any) -> None:
        """Send a request; its answer is passed over by `event`."""
        self.socket.send(json.dumps({"id": 1, "do": do, **fields}))

    def receive(self, seconds: float = 60.0) -> Json:
        """The next message; errors end the benchmark."""
        message: Json = json.loads(self.socket.recv(timeout=seconds))
        if "error" in message:
            raise SystemExit(f"refused: {message['error']}")
        if message.get("event") == "welcome":
            self.sides = {game["name"]: game["sides"] for game in message["games"]}
            self.networks |= {one["name"]: one for one in message["networks"]}
        elif message.get("event") == "network":
            self.networks[message["network"]["name"]] = message["network"]
        return message

    def network(self, game: str) -> str:
        """The name of the game's network, once it is ready."""
        while True:
            for one in self.networks.values():
                if one["game"] == game and one["state"] == "ready":
                    return str(one["name"])
            self.receive()

    def settle(self) -> None:
        """Wait until every network is loaded and measured."""
        while not self.networks or not all(one["measured"] for one in self.networks.values()):
            self.receive()


def processor_time(process: subprocess.Popen[str]) -> float:
    """Seconds of processor a process has had, all its threads."""
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """A `keima web` of its own."""

    def __init__(self, folder: str) -> None:
        self.began = time.perf_counter()
        command = [sys.executable, "-m", "keima", "web", "--no-open", "--port", "0"]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "XDG_STATE_HOME": folder},
            stdout=subprocess.PIPE,
            text=True,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().replace("http", "ws") + "ws"

    @contextmanager
    def page(self) -> Iterator[Page]:
        """Open a page's socket, as soon as the server answers."""
        while True:
            try:
                socket = connect(self.address, max_size=1 << 25, open_timeout=60)
                break
            except OSError:
                time.sleep(0.02)
        with socket:
            yield Page(socket)


@contextmanager
def served() -> Iterator[Server]:
    """Run one."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            yield server
        finally:
            server.process.terminate()
            server.process.wait(20)


def start(rounds: int) -> None:
    """From the command to the network's answer to the first move; the first round may compile and does not count."""
    for game, move in MOVES.items():
        found = []
        for _ in range(rounds + 1):
            with served() as server, server.page() as page:
                page.receive()
                page.send("new", game=game)
                name, other = page.network(game), page.sides[game][1]
                ready = time.perf_counter() - server.began
                page.send("start_game", engine={other: {"network": name, "visits": VISITS}})
                page.send("play", move=move)
                while True:
                    message = page.receive()
                    if message.get("event") == "position" and message["ply"] == 2:
                        break
                found.append((time.perf_counter() - server.began, processor_time(server.process), ready))
        best, busy, ready = min(found[1:])
        middle = median(one[0] for one in found[1:])
        print(
            f"start, {game}: first move answered after {best:.2f} s at best, {middle:.2f} s"
            f" in the middle of {rounds}; processor {busy:.2f} s; its network ready after {ready:.2f} s",
            flush=True,
        )


class Analysis:
    """What one page's analysis tells: evaluations by the time they were told, and when reports came."""

    def __init__(self, page: Page, name: str, komi: float, every: float) -> None:
        self.page = page
        self.reports: list[float] = []  # when they came, of the search under way
        self.told: list[tuple[float, int]] = []
        page.send("new", game="go", setup={"komi": komi})  # another komi: no tree is kept from before
        page.send("analyse", networks=[{"network": name}], every=every, ownership=True)

    def take(self, seconds: float) -> bool:
        """Take in what comes next, for at most so long. True once the search has ended."""
        try:
            message = self.page.receive(seconds)
        except TimeoutError:
            return False
        if message.get("event") != "analysis":
            return False
        self.told.append((time.perf_counter(), message["entry"]["evaluations"]))
        if message["running"]:
            self.reports.append(self.told[-1][0])
        return not message["running"]

    @property
    def rate(self) -> float:
        """Visits a second from the first report to the last."""
        (began, before), (end, after) = self.told[0], self.told[-1]
        return (after - before) / (end - began)


def analysed(server: Server, pages: list[Page], name: str, komi: float, every: float, seconds: float) -> list[Analysis]:
    """All pages analyse for so many seconds after their first report, each a position of its own."""
    running = [Analysis(page, name, komi + k / 2, every) for k, page in enumerate(pages)]
    for one in running:
        while not one.told:
            one.take(60)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        if len(running) > 1:
            time.sleep(0.05)  # pages that ask without a pause would take the server's processor
        for one in running:
            one.take(0.0 if len(running) > 1 else 0.02)
    for page in pages:
        page.send("stop")
    for one in running:
        while not one.take(60):
            pass
    return running


def compare(title: str, first: list[tuple[float, float]], second: list[tuple[float, float]]) -> None:
    """Print evaluations a second of two kinds of run: by the clock, and by the server's processor time."""
    by_clock, by_processor = ([b[k] / a[k] for a, b in zip(first, second, strict=True)] for k in (0, 1))
    rate = median(a[0] for a in first)
    print(
        f"{title}: {median(by_clock):.1%} of {rate:.0f} visits/s by the clock, {median(by_processor):.1%} by processor "
        f"time (medians of {len(first)} pairs, in turns; {min(by_processor):.1%} to {max(by_processor):.1%})",
        flush=True,
    )


def measured(server: Server, *arguments: Any) -> tuple[float, float, list[Analysis]]:
    """`analysed`: visits a second of all together, by the clock and by the server's processor time."""
    busy, began = processor_time(server.process), time.perf_counter()
    running = analysed(server, *arguments)
    share = (processor_time(server.process) - busy) / (time.perf_counter() - began)
    rate = sum(one.rate for one in running)
    return rate, rate / share, running


def stream(rounds: int, seconds: float) -> None:
    """A page that gets ten reports a second beside one that gets one at the start and one at the end."""
    with served() as server, server.page() as page:
        page.settle()
        name, reports = page.network("go"), []
        alone, watched = [], []
        for k in range(rounds + 1):
            alone.append(measured(server, [page], name, 5 + k, 5.0, seconds)[:2])
            *rates, (one,) = measured(server, [page], name, 25 + k, 0.1, seconds)
            watched.append((rates[0], rates[1]))
            reports.append((len(one.reports) - 1) / (one.reports[-1] - one.reports[0]))
        compare(f"stream, {median(reports[1:]):.1f} reports/s", alone[1:], watched[1:])


def many(rounds: int, seconds: float, people: int) -> None:
    """Many pages that analyse at once beside one."""
    with served() as server, ExitStack() as stack:
        pages = [stack.enter_context(server.page()) for _ in range(people)]
        pages[0].settle()
        name, least = pages[0].network("go"), []
        alone, together = [], []
        for k in range(rounds + 1):
            alone.append(measured(server, pages[:1], name, 5 + k, 0.1, seconds)[:2])
            *rates, running = measured(server, pages, name, 30 * k - 60, 0.1, 3 * seconds)
            together.append((rates[0], rates[1]))
            least.append(min(one.rate for one in running) * people / rates[0])
        compare(f"many, {people} people", alone[1:], together[1:])
        print(f"many, {people} people: who gets least has {median(least[1:]):.0%} of an equal share", flush=True)


def leave(rounds: int) -> None:
    """A page that analyses goes away: how long the server goes on working."""
    found = []
    with served() as server:
        for k in range(rounds):
            with server.page() as page:
                page.settle()
                one = Analysis(page, page.network("go"), 5 + k, 0.1)
                while len(one.reports) < 5:
                    one.take(5)
                page.socket.close()
                left = last = time.perf_counter()
                busy = processor_time(server.process)
                while time.perf_counter() - last < 0.3:
                    now = processor_time(server.process)
                    if now > busy:
                        busy, last = now, time.perf_counter()
                    time.sleep(0.002)
                found.append(last - left)
    middle, most = (1000 * kind(found) for kind in (median, max))
    print(f"leave: the server rests {middle:.0f} ms after its page has gone, {most:.0f} at most", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["start", "stream", "leave", "many"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each analysis")
    arguments = parser.parse_args()
    runs = {
        "start": lambda: start(arguments.rounds),
        "stream": lambda: stream(arguments.rounds, arguments.seconds),
        "leave": lambda: leave(arguments.rounds),
        "many": lambda: many(arguments.rounds, arguments.seconds, arguments.people),
    }
    for part in arguments.parts:
        runs[part]()


if __name__ == "__main__":
    main()
