"""The games of the house, a folder each; `game.py` says what a game is. `GAMES` has one for every name in `__all__`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keima.games import chess as chess
    from keima.games import connect_four as connect_four
    from keima.games import go as go

__all__ = ["go", "chess", "connect_four"]  # noqa: RUF022  # the order that help lists them in
