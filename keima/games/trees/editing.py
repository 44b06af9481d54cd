"""The EDITING facet: how a game is begun, its board set up by hand, and its records kept with their variations.

    editing.py of a game:  EDITING = Editing(...) or one of a class of its own

`Editing` serves a game that begins in one way, whose board no hand sets up, and whose records hold one line of moves:
variations then go into comments, and so do marks, as [%marks kind=circle&point=d3 kind=arrow&point=a1&to=b2] in front.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Generic, TypeVar, cast
from urllib.parse import parse_qsl, urlencode

from keima.errors import BadPosition, BadRecord, KeimaError
from keima.games.game import Game
from keima.games.position import Position
from keima.games.records import GameRecord, PlayedGame
from keima.games.trees.tree import MARK_COLOUR, MARK_TEXT, MOST_MARKS, GameTree, Setup, TreeNode
from keima.plain import Data, Note

P = TypeVar("P", bound=Position)
_MARKS = re.compile(r"\[%marks (?P<marks>[^\]]*)\]\n?")
MOST_NODES = 100_000
"""Nodes of a record; what is beyond is left out, with a note."""


@dataclass(frozen=True)
class Choice:
    """A field of the form of a new game."""

    name: str
    title: str
    kind: str  # "whole", "number", "choice", "text" or "flag"
    default: object = None
    least: float | None = None
    most: float | None = None
    step: float | None = None
    values: tuple[tuple[object, str], ...] = ()  # (value, title) of a "choice"

    def to_json(self) -> Data:
        """Its fields that say something."""
        return {name: value for name, value in vars(self).items() if value not in (None, ())}


@dataclass(frozen=True)
class Editing(Generic[P]):
    """One game's boards and records as they are edited."""

    game: Game
    choices: tuple[Choice, ...] = ()  # how a new game may begin
    pieces: Mapping[str, str] = field(default_factory=dict)  # what may be set up: piece → what it is called
    passes: bool = False  # has a move without a point
    marks: tuple[str, ...] = ("circle", "cross", "square", "triangle", "label", "arrow")

    def start(self, setup: Mapping[str, object]) -> P:
        """The position a game begins from, by `choices` and fields of a POSITIONS line. Raises as `from_json`."""
        return cast(P, self.game.from_json(setup))

    def set_up(self, position: P, setup: Setup) -> P:
        """The position with the board changed by hand. Raises `BadPosition`: it cannot be."""
        raise BadPosition(f"the board of {self.game.title} is not set up by hand; its positions come of moves alone")

    def facts(self, start: P) -> Data:
        """What decides a game besides its moves, as a review's `game` has it."""
        return {name: value for name, value in start.to_json().items() if name not in ("game", "moves", "to_play")}

    def point(self, position: P, move: str) -> str | None:
        """The point of a move, where its name does not say it."""
        return None

    def is_point(self, position: P, point: str) -> bool:
        """Is there a point (square) of that name on the board?"""
        return False

    def captures(self, position: P) -> dict[str, int]:
        """What was taken off the board, by the letter of its side; empty where that is not counted."""
        return {}

    def dead(self, position: P, judge: object) -> frozenset[str] | None:
        """What is dead at the end, by a network; None where there is no such thing."""
        return None

    def score(self, position: P, dead: Collection[str]) -> str | None:
        """The result with these stones dead; None where the rules decide."""
        return None

    def recognises(self, text: str) -> int:
        """Is it one of this game's records or positions? 0: no; 3: certainly."""
        return 0

    def trees(self, data: bytes, source: str = "") -> Iterator[GameTree | BadRecord]:
        """The games of a file or a text, one after another; what cannot be read as a `BadRecord` in its place."""
        for record in self.game.records.read(BytesIO(data), source):
            yield self.of_found(record)

    def of_found(self, found: GameRecord | BadRecord) -> GameTree | BadRecord:
        """The tree of a record; of a broken one what could be read of it, with a note."""
        if not isinstance(found, BadRecord):
            return self.of_record(found)
        if found.partial is None:
            return found
        tree = self.of_record(cast(GameRecord, found.partial))
        if isinstance(tree, GameTree):
            tree.notes.append(broken(found))
        return tree

    def of_record(self, record: GameRecord) -> GameTree | BadRecord:
        """The tree of a record's main line, up to the first move that cannot be."""
        try:
            tree = GameTree(next(iter(record.positions())))
        except KeimaError as error:
            return BadRecord(error.message, source=error.source, place=error.place)
        tree.describe(record)
        node, position = tree.root, tree.start
        self._take_comment(tree.root, position, record.comments.get(0, ""))
        for number, turn in enumerate(record.turns, 1):
            child = TreeNode(turn)
            try:
                position = tree.position_after(position, child)
            except KeimaError as error:
                words = "move {number} ({move}) cannot be played, and what follows is left out: {error}"
                tree.notes.append(Note(words, "note.unplayable", number=number, move=turn[1], error=error))
                break
            self._take_comment(child, position, record.comments.get(number, ""))
            node = node.add(child)
        return tree

    def record(self, tree: GameTree, position: Position) -> GameRecord:
        """The record of a tree's main line, which ends in `position`, but for its comments."""
        first, second = (tree.players.get(letter, "") for letter in tree.game.letters)
        return tree.game.records.of_game(
            PlayedGame(
                position=position,
                names=(first, second),
                result=tree.result or "*",
                event=tree.event,
                number=0,
                opening="",
                reason="",
                date=tree.date,
            )
        )

    def _take_comment(self, node: TreeNode, position: Position, comment: str) -> None:
        """Set comment and marks; marks that cannot be on this board stay words of the comment."""
        node.comment = comment
        if found := _MARKS.match(comment):
            marks: list[Data] = [dict(parse_qsl(mark)) for mark in found["marks"].split()]
            if len(marks) <= MOST_MARKS and all(self._is_mark(cast(P, position), mark) for mark in marks):
                node.marks, node.comment = marks, comment[found.end() :]

    def _is_mark(self, position: P, mark: Data) -> bool:
        known = mark.get("kind") in self.marks and mark.keys() <= {"kind", "point", "text", "to", "colour"}
        known &= len(mark.get("text", "")) <= MARK_TEXT and bool(re.fullmatch(MARK_COLOUR, mark.get("colour", "")))
        points = ("point", "to") if mark.get("kind") == "arrow" else ("point",)
        return known and all(self.is_point(position, mark.get(name, "")) for name in points)

    def write(self, tree: GameTree, judged: bool = True) -> str:
        """The tree as a record of its game; `judged`: with what was found of its positions.

        Raises:
            IllegalMove: a move of the tree cannot be played.
        """
        from dataclasses import replace

        position, line = tree.start, list(tree.root.main_line())
        for node in line:
            position = tree.position_after(position, node)
        record = self.record(tree, position)
        comments = {}
        for number, node in enumerate(line):
            marks = f"[%marks {' '.join(map(urlencode, node.marks))}]" if node.marks else ""
            texts = [marks, node.comment, judgement_in_words(tree, node) if judged else ""]
            texts += [f"variation: {_line_in_words(child)}" for child in node.children[1:]]
            if any(texts):
                comments[number] = "\n".join(filter(None, texts))
        return tree.game.records.write(replace(record, comments=comments))  # type: ignore[type-var]


def retold(
    tags: Mapping[str, str],
    was: Mapping[str, str],
    now: Mapping[str, str],
    joined: tuple[str, str] = ("Event", "Round"),
) -> dict[str, str]:
    """A record's tags as they were written, but for facts that are others `now`: those anew, or gone if they are "".

    The first of `joined` tells the second one too, which goes where that is written anew.
    """
    changed = {name: text for name, text in now.items() if text != was[name]}
    changed |= {joined[1]: ""} if joined[0] in changed else {}
    return {name: text for name, text in {**tags, **changed}.items() if name not in changed or text}


def _line_in_words(node: TreeNode) -> str:
    return " ".join(one.move[1] for one in node.main_line() if one.move)


def broken(problem: object) -> Note:
    """The note of a tree that ends where its record cannot be read."""
    return Note("the record is broken, and what follows is left out: {error}", "note.broken", error=problem)


ANALYSIS = "keima:"
"""What a line of a comment begins with that tells a judgement."""


def judgement_in_words(tree: GameTree, node: TreeNode) -> str:
    """A line for a comment: chances of the side that usually moves first, points, visits; "" without a judgement."""
    judged = node.judged
    if "win" not in judged:
        return ""
    first = tree.game.sides[0]
    sign = 1 if judged.get("to_play") == first else -1
    chance = 50 * (1 + sign * judged["value"])
    text = f"{ANALYSIS} {first} {chance:.1f} %"
    if "lead" in judged:
        text += f", {sign * judged['lead']:+.1f} points"
    visits = f"{judged['visits']} visits" if judged.get("visits") else "network alone"
    return ", ".join(filter(None, (text, visits, node.grade)))


def read_judgement(fields: object) -> Data:
    """A judgement out of a record: numbers in their ranges and a side; {} for anything else."""
    if not isinstance(fields, dict) or not isinstance(fields.get("to_play"), str):
        return {}
    found: Data = {"to_play": fields["to_play"]}
    for name, most in (("win", 1), ("draw", 1), ("loss", 1), ("value", 1), ("lead", 1e4), ("visits", 1e12)):
        number = fields.get(name)
        if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= most:
            found[name] = number
    return found if {"win", "draw", "loss", "value"} <= found.keys() else {}


def without_judgement(comment: str) -> str:
    """A comment without the lines that tell judgements."""
    return "\n".join(line for line in comment.split("\n") if not line.startswith(ANALYSIS)).strip()


def tree_of_position(position: Position) -> GameTree:
    """The tree of the moves that led to a position, from where its own account begins."""
    fields = position.to_json()
    moves = [move if isinstance(move, tuple) else (None, str(move)) for move in position.moves]
    fields["moves"] = []
    if moves and moves[0][0] is not None:
        fields["to_play"] = moves[0][0]
    start = type(position).from_json(fields)
    tree, at = GameTree(start), start
    node = tree.root
    for side, move in moves:
        node = node.add(TreeNode((side or at.to_play, move)))
        at = tree.position_after(at, node)
    return tree
