"""The server of `keima web`: pages, boards and one WebSocket a board.

It answers only to its own names (`Host`), only its own pages may open a socket (`Origin`), and beyond this machine only
who has the token. Files come from three known folders, by name.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import mimetypes
import re
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

import keima
from keima.games.game import GAMES
from keima.plain import Data
from keima.web.keeping import Keeper
from keima.web.library import Library
from keima.web.networks import Networks, Offered
from keima.web.session import Session, as_text

PAGES = Path(__file__).parent / "page"
SHARED = Path(keima.__file__).parent / "review" / "page"
LARGEST_MESSAGE = 12 << 20
MOST_SESSIONS = 200
FORGOTTEN_AFTER = 1800.0
"""Seconds after which a session without a page is ended; its game stays on the disk."""
MOST_UNSENT = 2_000
"""Messages that wait for a page that does not read; then its connection is closed."""
COOKIE = "keima-token"
_NAME = re.compile(r"[a-z0-9]{16}")
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_POLICY = (
    "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)


@dataclass
class Settings:
    """How the server is reached and what it keeps."""

    host: str = "127.0.0.1"
    token: str = ""  # asked for where the server listens beyond this machine
    games: Path | None = None  # the library
    kept: Path | None = None  # where games being played are kept; None: the library, else the usual folder
    names: frozenset[str] = field(default_factory=frozenset)  # further names it answers to

    @property
    def local(self) -> bool:
        """Does it listen on this machine alone?"""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Is it a name or an address of this machine alone?"""
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


class Server:
    """The sessions, and what they share."""

    def __init__(self, networks: Networks, settings: Settings) -> None:
        self.networks = networks
        self.settings = settings
        self.library = None if settings.games is None else Library(settings.games)
        from keima.web.keeping import usual_folder

        self.keeper = Keeper(settings.kept or settings.games or usual_folder())
        self.sessions: dict[str, Session] = {}
        self.loop: asyncio.AbstractEventLoop | None = None

    def open_session(self, name: str) -> Session | None:
        """The session of that name, or a new one; None where there are too many."""
        self._forget()
        if name in self.sessions:
            return self.sessions[name]
        if len(self.sessions) >= MOST_SESSIONS:
            return None
        if not (_NAME.fullmatch(name) and self.keeper.find(name) is not None):
            name = secrets.token_hex(8)
        self.sessions[name] = Session(name, self.networks, self.library, self.keeper, self.settings.local)
        return self.sessions[name]

    def _forget(self) -> None:
        now = time.monotonic()
        for name, session in list(self.sessions.items()):
            if session.send is None and now - session.left > FORGOTTEN_AFTER:
                session.close()
                del self.sessions[name]

    def tell_network(self, offered: Offered) -> None:
        """Tell every page of a network whose state has changed; any thread."""
        if self.loop is None or self.loop.is_closed():
            return

        def tell() -> None:
            for session in list(self.sessions.values()):
                session.tell({"event": "network", "network": offered.to_json()})

        with suppress(RuntimeError):  # the loop has just been closed
            self.loop.call_soon_threadsafe(tell)

    def allows(self, host: str, origin: str | None) -> bool:
        """May a request to this `Host`, from a page of this `Origin`, be answered?"""
        name = _host_of(host)
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return False
        if name in self.settings.names or name == self.settings.host or is_loopback(name):
            return True
        if self.settings.local:
            return False
        with suppress(ValueError):  # beyond this machine it is reached by an address; a name could be rebound
            ipaddress.ip_address(name)
            return True
        return False

    def knows(self, token: str | None) -> bool:
        """Is it the token, where one is asked for?"""
        return not self.settings.token or hmac.compare_digest(token or "", self.settings.token)

    def close(self) -> None:
        """End everything; what is to be kept is written."""
        for session in self.sessions.values():
            session.close()
        self.keeper.close()
        self.networks.close()
        if self.library is not None:
            self.library.close()


def _host_of(netloc: str) -> str:
    with suppress(ValueError):
        return (urlsplit(f"//{netloc}").hostname or "").lower()
    return ""


def make_app(networks: Networks, settings: Settings) -> Starlette:
    """The application.

    Raises:
        BadRequest: the folder of games is none.
    """
    server = Server(networks, settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        server.loop = asyncio.get_running_loop()
        networks.tell = server.tell_network
        networks.open_all()
        yield
        server.close()

    async def guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
        if not server.allows(request.headers.get("host", ""), request.headers.get("origin")):
            return PlainTextResponse("this address is not served here", 403)
        given = request.query_params.get("token")
        if not server.knows(given or request.cookies.get(COOKIE)):
            return PlainTextResponse("the token is missing: open the address that keima web has printed", 403)
        if given and request.url.path == "/":
            response: Response = RedirectResponse("/", 303)
            response.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            return response
        response = await call_next(request)
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-cache"
        return response

    async def index(request: Request) -> Response:
        return _file([PAGES], "index.html")

    async def health(request: Request) -> Response:
        return JSONResponse({"keima": keima.__version__})

    async def board(request: Request) -> Response:
        game = request.path_params["game"]
        if game not in GAMES:
            return PlainTextResponse("not found", 404)
        folder = Path(str(import_module(GAMES[game].package).__file__)).parent
        return _file([folder], "board.js")

    async def static(request: Request) -> Response:
        return _file([PAGES, SHARED], request.path_params["name"])

    async def talk(socket: WebSocket) -> None:
        headers, given = socket.headers, socket.query_params
        if not server.allows(headers.get("host", ""), headers.get("origin")):
            await socket.close(4403, "this address is not served here")
            return
        if not server.knows(given.get("token") or socket.cookies.get(COOKIE)):
            await socket.close(4403, "the token is missing")
            return
        found = server.open_session(given.get("session", ""))
        await socket.accept()  # a page is told why a line is closed only once it is open
        if found is None:
            await socket.close(4429, "too many boards are open; close one")
            return
        await Connection(socket, found).run()

    routes = [
        Route("/", index),
        Route("/health", health),
        Route("/static/games/{game}/board.js", board),
        Route("/static/{name:path}", static),
        WebSocketRoute("/ws", talk),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)], lifespan=lifespan)
    app.state.server = server
    return app


def _file(folders: list[Path], name: str) -> Response:
    """A file of the first folder that has it."""
    for folder in folders:
        path = folder / name
        inside = path.resolve().is_relative_to(folder.resolve()) if "\0" not in name else False
        if inside and path.is_file() and path.suffix != ".py":
            kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            return FileResponse(path, media_type=kind)
    return PlainTextResponse("not found", 404)


class Connection:
    """A page at the other end of a socket; one that reads slowly gets only the newest of analyses and clocks."""

    def __init__(self, socket: WebSocket, session: Session) -> None:
        self._socket = socket
        self._session = session
        self._waiting: dict[object, Data] = {}
        self._more = asyncio.Event()
        self._number = 0

    async def run(self) -> None:
        """Speak until either end has enough."""
        session = self._session
        if session.send is not None:
            session.send({})  # the page that was there before is taken over from
        sender = asyncio.create_task(self._send_all())
        session.attach(self.put)
        mine = session.send
        try:
            while True:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                text = message.get("text")
                if text is None:
                    text = (message.get("bytes") or b"").decode("utf-8", "replace")
                if len(text) > LARGEST_MESSAGE:
                    session.tell(
                        {"id": None, "error": f"a message has at most {LARGEST_MESSAGE >> 20} MB", "field": ""}
                    )
                    continue
                waited = session.handle(text)
                await (waited or asyncio.sleep(0))
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            sender.cancel()
            if session.send is mine:
                session.detach()

    def put(self, message: Data) -> None:
        """Send a message soon."""
        if not message:
            self._waiting = {"close": {"code": 4409, "reason": "the board was opened elsewhere"}}
        elif message.get("event") in ("analysis", "position", "game"):
            key = (message["event"], message.get("number"))
            self._waiting.pop(key, None)  # an older one is outdated
            self._waiting[key] = message
        else:
            self._number += 1
            self._waiting[self._number] = message
        if len(self._waiting) > MOST_UNSENT:
            self._waiting = {"close": {"code": 4408, "reason": "this page reads too slowly"}}
        self._more.set()

    async def _send_all(self) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                await self._more.wait()
                self._more.clear()
                while self._waiting:
                    key = next(iter(self._waiting))
                    message = self._waiting.pop(key)
                    if key == "close":
                        await self._socket.close(**message)
                        return
                    await self._socket.send_text(as_text(message))
