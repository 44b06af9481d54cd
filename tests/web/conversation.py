"""A page's side of a conversation with a real server on a real socket."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import uvicorn
from websockets.sync.client import ClientConnection, connect

from keima.web.networks import Networks
from keima.web.server import Server, Settings, make_app

Json = dict[str, Any]


def two_thousand_moves() -> str:
    """A record of so many, passes between stones that do not touch."""
    rows = "abcdefghijklmnopqrs"
    apart = [rows[n // 19] + rows[n % 19] for n in range(0, 361, 2)]
    moves = [apart[k // 12] if k % 12 == 0 else "" for k in range(2000)]
    return f"(;SZ[19]{''.join(f';{side}[{move}]' for side, move in zip(cycle('BW'), moves, strict=False))})"


class Page:
    """What a page sends and has received; events wait in `events` until they are looked for."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[Json] = []
        self._number = 0

    def ask(self, do: str, **fields: Any) -> Json:
        """Send a request and wait for its answer."""
        self._number += 1
        identity = f"page {self._number}"
        self.socket.send(json.dumps({"id": identity, "do": do, **fields}))
        return self.answer(identity)

    def answer(self, identity: object, seconds: float = 30) -> Json:
        """The answer with that id."""
        while True:
            message = self.receive(seconds)
            if "event" not in message and message.get("id") == identity:
                return message
            self.events.append(message)

    def receive(self, seconds: float = 30) -> Json:
        """The next message."""
        found: Json = json.loads(self.socket.recv(timeout=seconds))
        return found

    def event(self, name: str, which: Callable[[Json], bool] = lambda event: True, seconds: float = 30) -> Json:
        """The next event of that name that fits; those before it are forgotten."""
        until = time.monotonic() + seconds
        while True:
            while self.events:
                found = self.events.pop(0)
                if found.get("event") == name and which(found):
                    return found
            self.events.append(self.receive(max(0.01, until - time.monotonic())))

    def new(self, game: str, **setup: Any) -> None:
        """Begin a game."""
        assert "error" not in self.ask("new", game=game, setup=setup)

    def ready(self, name: str) -> Json:
        """Wait until a network is ready."""
        while True:
            found = {one["name"]: one for one in self.ask("networks")["networks"]}[name]
            assert found["state"] != "failed", found
            if found["state"] == "ready":
                return dict(found)
            time.sleep(0.05)


class Served:
    """A server under test."""

    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.port = port

    @contextmanager
    def page(self, query: str = "", **options: Any) -> Iterator[Page]:
        """Open a socket as a page does."""
        with connect(f"ws://127.0.0.1:{self.port}/ws{query}", max_size=1 << 25, open_timeout=60, **options) as socket:
            yield Page(socket)


@contextmanager
def serve(networks: Networks, settings: Settings) -> Iterator[Served]:
    """Run the server on a thread until the block ends."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = make_app(networks, settings)
    running = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, ws_max_size=16 << 20)
    )
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield Served(app.state.server, listening.getsockname()[1])
    finally:
        running.should_exit = True
        thread.join(20)
        listening.close()
