"""A game's record with its review written into it: values, grades, comments, and better variations beside mistakes.

What the record held before (variations, comments, marks, properties that keima does not know) stays in it.
"""

from __future__ import annotations

from keima.errors import BadRecord
from keima.games.files import game_of_file
from keima.games.game import GAMES
from keima.games.records import GameRecord
from keima.games.streams import GameFile
from keima.games.trees.tree import GameTree, TreeNode
from keima.plain import Data
from keima.review.grading import GOOD

_JUDGED = ("to_play", "win", "draw", "loss", "value", "lead", "visits")


def annotate(tree: GameTree, review: Data) -> GameTree:
    """Write a review of the tree's main line into it; the same tree.

    Each position gets its values; a move that is not good its grade, a comment, and beside it the better variation.
    """
    letters = dict(zip(tree.game.sides, tree.game.letters, strict=True))
    line = [tree.root, *(node for node in tree.root.main_line() if node.move is not None)]
    for node, position in zip(line, review["positions"], strict=False):
        if "win" in position:
            node.judged = {name: position[name] for name in _JUDGED if name in position}
    for node, move in zip(line[1:], review["moves"], strict=False):
        if node.move != (letters[move["player"]], move["move"]):
            break  # another game than was reviewed
        _blame(node, move, letters)
    problem = review["game"].get("problem")
    last = line[min(len(line), len(review["positions"])) - 1]
    last.comment = _joined(last.comment, problem or "")
    told = "\n".join([f"keima review: {_judges(review)}", *review["warnings"]])
    tree.root.comment = _joined(tree.root.comment, told)
    return tree


def _blame(node: TreeNode, move: Data, letters: Data) -> None:
    """Grade and comment of a move that a judge does not take for good, and the better variation as its sibling."""
    second = move.get("second", {})
    grades = [move.get("grade", GOOD), second.get("grade", GOOD)]
    if grades == [GOOD, GOOD] or node.parent is None:
        return
    node.grade = next(grade for grade in grades if grade != GOOD)
    node.comment = _joined(node.comment, "\n".join(_words(move)))
    other = next(letter for letter in letters.values() if letter != letters[move["player"]])
    for line in (move.get("best_pv", ()), second.get("best_pv", ())):
        sides = (letters[move["player"]] if ply % 2 == 0 else other for ply in range(len(line)))
        if line and line[0] != move["move"]:
            node.parent.add_line(list(zip(sides, line, strict=True)))


def _words(move: Data) -> list[str]:
    """A sentence for each judge: "mistake: loses 12.0 % and 7.7 points; better Q16"."""
    told = []
    if move.get("grade", GOOD) != GOOD:
        points = f" and {move['points_loss']:.1f} points" if "points_loss" in move else ""
        best = move.get("best_san", move.get("best"))
        better = f"; better {best}" if best else ""
        told.append(f"{move['grade']}: loses {100 * move['winrate_loss']:.1f} %{points}{better}")
    second = move.get("second")
    if second:
        better = f"; better {second.get('best_san', second['best'])}" if second["grade"] != GOOD else ""
        told.append(f"second judge: {second['grade']}, loses {second['cp_loss']} centipawns{better}")
    return told


def _judges(review: Data) -> str:
    visits = review["options"].get("visits")
    first = f"judged by {review['network']['name']}" + (
        f", {visits} visits a position" if visits else ", without search"
    )
    return first + (f"; second judge {review['second']['name']}" if "second" in review else "")


def _joined(before: str, after: str) -> str:
    """A comment with a further line, once."""
    return before if after in before else "\n".join(filter(None, (before, after)))


class Sources:
    """The trees of records as they stand in their files. The last file's are kept, so its games cost one reading."""

    def __init__(self) -> None:
        self._file = ""
        self._trees: list[GameTree | BadRecord] = []

    def tree(self, record: GameRecord) -> GameTree:
        """The tree a record came from; of the record alone, where its file is not to be had. Raises BadRecord."""
        editing = GAMES[record.game].editing
        if record.source != self._file:
            self._file, self._trees = record.source, list(self._read(record.source))
        found = self._trees[record.index - 1] if record.index <= len(self._trees) else editing.of_record(record)
        if isinstance(found, BadRecord):
            found = editing.of_record(record)
        if isinstance(found, BadRecord):
            raise found
        return found

    def _read(self, source: str) -> list[GameTree | BadRecord]:
        file = GameFile.named(source)
        if not file.path.is_file():
            return []
        with file.open() as stream:
            return list(GAMES[game_of_file(file)].editing.trees(stream.read(), source))


def annotated(record: GameRecord, review: Data, sources: Sources | None = None) -> str:
    """The record's text (SGF, PGN, ...) with the review in it.

    Raises:
        BadRecord: its file has gone or changed.
        IllegalMove: a variation of the record cannot be played.
    """
    tree = annotate((sources or Sources()).tree(record), review)
    text: str = GAMES[record.game].editing.write(tree)
    return text
