"""`keima web`: a board in the browser, to play, analyse and review."""

from __future__ import annotations

import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Option

from keima.cli import common
from keima.errors import BadRequest
from keima.plain import Data

EXAMPLES = """Examples:

\b
  keima web
  keima web --net kata1-b18c384nbt.bin.gz --net maia-1900.pb.gz
  keima web --games ~/games
  keima web --host 0.0.0.0 --no-open

The page is served on this machine alone and loads nothing from elsewhere. With --host of another address it is served
to other machines too, and only to who has the token in the address that is printed. More: docs/web.md.
"""

USUAL_PORT = 8765


def web(
    net: Annotated[
        list[str] | None, Option(metavar="NET", help="Network file; repeat for several. keima's own come with it.")
    ] = None,
    host: Annotated[str, Option(help="Address to listen on; the usual one is of this machine alone.")] = "127.0.0.1",
    port: Annotated[
        int, Option(min=0, max=65535, help="0: any free one; the next free one if it is taken.")
    ] = USUAL_PORT,
    no_open: Annotated[bool, Option("--no-open", help="Do not open the browser.")] = False,
    games: Annotated[Path | None, Option(metavar="FOLDER", help="A folder of records: the library.")] = None,
    backend: common.Backend = "auto",
    precision: common.Precision = "auto",
    batch: common.BatchSize = 8,
    threads: common.Threads = None,
) -> None:
    """Serve a board for the browser: play, analyse and review every game with any network.

    Ends with Ctrl-C. Games being played are kept on the disk as they go: in FOLDER, else among the user's state.
    """
    try:
        import uvicorn

        from keima.web.server import Settings, is_loopback, make_app
    except ImportError as error:
        raise BadRequest(f'the web server needs more packages: pip install "keima[web]" ({error})') from error
    import secrets

    from keima.web.networks import Networks

    options: Data = {"backend": backend, "precision": precision, "batch_size": batch, "threads": threads}
    networks = Networks(net or [], options)
    settings = Settings(host, "" if is_loopback(host) else secrets.token_urlsafe(16), games)
    listening = _listen(host, port)
    app = make_app(networks, settings)
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{listening.getsockname()[1]}/"
    if settings.token:
        address += f"?token={settings.token}"
    print(address, flush=True)
    print("keima: Ctrl-C ends it", file=sys.stderr)
    if not no_open:
        threading.Timer(0.3, webbrowser.open, (address,)).start()
    config = uvicorn.Config(
        app, log_level="warning", ws_max_size=16 << 20, ws_per_message_deflate=False, timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens there, or at one of the next ports. Raises BadRequest."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem: OSError | None = None
    for wanted in range(port, min(port + 20, 65536)) if port else [0]:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, wanted))
            found.listen()
        except OSError as error:
            found.close()
            problem = error
            continue
        return found
    raise BadRequest(f"cannot listen on {host}:{port}: {problem and (problem.strerror or problem)}")
