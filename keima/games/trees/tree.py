"""A game record as a tree: the moves played, variations beside them, stones set up, comments, marks, judgements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from keima.games.game import GAMES, Game
from keima.games.position import Position
from keima.games.records import GameRecord
from keima.plain import Data

MOST_MARKS = 400
"""Of a node, where the page or keima's own words in a record set them."""
MARK_TEXT = 1000
"""Letters of a label there."""
MARK_COLOUR = "^[A-Z]?$"
"""A letter of PGN, where the colour is not the kind's own."""


@dataclass(frozen=True)
class Setup:
    """A change of the board that is no move."""

    changes: tuple[tuple[str, str], ...] = ()  # (piece of the game's `Editing.pieces`, point); "" takes one off
    to_play: str | None = None  # the letter of the side to move; None: as it was


@dataclass(eq=False)
class TreeNode:
    """A position of the tree, by what led to it."""

    move: tuple[str, str] | None = None  # (letter of the side, name)
    setup: Setup | None = None
    comment: str = ""
    marks: list[Data] = field(default_factory=list)  # kind, point, and of some text, to or colour
    judged: Data = field(default_factory=dict)  # win, draw, loss, value, lead, visits, for `to_play`, a side in words
    grade: str = ""  # of the move: "inaccuracy", "mistake", "blunder"
    # what else the record said here, as it was written (SGF: raw values by property; PGN: other NAGs as "$")
    properties: dict[str, list[str]] = field(default_factory=dict)
    parent: TreeNode | None = None
    children: list[TreeNode] = field(default_factory=list)  # the main line's first

    def add(self, child: TreeNode) -> TreeNode:
        """Append a child; it is given back."""
        child.parent = self
        self.children.append(child)
        return child

    def add_line(self, line: Iterable[tuple[str, str]]) -> TreeNode:
        """Append the moves (side's letter, name) of a variation, along children that are there already; its end."""
        node = self
        for move in line:
            node = next((child for child in node.children if child.move == move), None) or node.add(TreeNode(move))
        return node

    def main_line(self) -> Iterator[TreeNode]:
        """This node, and the first child of each after it."""
        node: TreeNode | None = self
        while node is not None:
            yield node
            node = node.children[0] if node.children else None

    def path(self) -> list[TreeNode]:
        """From the root to this node."""
        found: list[TreeNode] = []
        node: TreeNode | None = self
        while node is not None:
            found.append(node)
            node = node.parent
        return found[::-1]

    def below(self) -> Iterator[TreeNode]:
        """This node and all that hang below it, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


@dataclass(eq=False)
class GameTree:
    """A game with its variations, and what its record says of it. Sides are named by the game's letters."""

    start: Position
    root: TreeNode = field(default_factory=TreeNode)
    players: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, str] = field(default_factory=dict)
    event: str = ""
    date: str = ""
    result: str = ""
    tags: dict[str, str] = field(default_factory=dict)  # what else the record said, as it was written
    notes: list[str] = field(default_factory=list)  # what was taken from a bent record, and how, in words

    @property
    def game(self) -> Game:
        """What game it is."""
        return GAMES[self.start.game]

    def describe(self, record: GameRecord) -> None:
        """Take over what a record says of the game beside its moves."""
        self.players, self.ranks = dict(record.players), dict(record.ranks)
        self.event, self.date, self.result = record.event, record.date, record.result
        self.notes += record.notes

    def position_after(self, position: Position, node: TreeNode) -> Position:
        """The position at a node whose parent's is `position`.

        Raises:
            IllegalMove, BadPosition: it cannot be.
        """
        if node.move is not None:
            side, move = node.move
            return self.game.playing.follow(position, side, move)
        if node.setup is not None:
            changed: Position = self.game.editing.set_up(position, node.setup)
            return changed
        return position
