"""What the parts of a session (playing, analysing, reviewing) see of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from keima.games.game import Game
from keima.games.position import Position
from keima.plain import Data
from keima.web.document import Document
from keima.web.keeping import Keeper
from keima.web.networks import Networks

T = TypeVar("T")


class Board(Protocol):
    """A session, as `keima.web.session.Session` describes it."""

    name: str
    networks: Networks
    keeper: Keeper
    document: Document
    loop: asyncio.AbstractEventLoop

    @property
    def game(self) -> Game:
        """What is played."""

    @property
    def position(self) -> Position:
        """The current one."""

    def tell(self, message: Data) -> None:
        """Send a message."""

    def failed(self, about: str, error: BaseException) -> None:
        """Tell that something went wrong away from any request."""

    def later(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function on the loop's thread, from any other."""

    def aside(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        """What a function returns that takes long."""

    def show_tree(self) -> None:
        """Send what has changed of the tree."""

    def moved(self, changed: bool = True) -> None:
        """The current node or the tree has changed."""

    def keep(self) -> None:
        """Write the game to its file."""

    def letter(self, side: str, field: str = "side") -> str:
        """The letter of a side. Raises BadMessage."""
