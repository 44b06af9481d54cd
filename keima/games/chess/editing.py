"""EDITING of chess: positions by FEN, pieces set up, PGN with variations, comments, marks and evaluations.

A judgement stands in a move's comment as [%eval PAWNS], which lichess and other programs read, and whole as
[%keima win=…,…]; an [%eval …] alone is another program's, kept until a judgement takes its place. Marks stand as
[%csl Ge4] and [%cal Ge2e4], as ChessBase writes them: their colours are circle (green), cross (red), triangle (yellow)
and square (blue), arrows are green; a mark of another colour keeps it.
Labels, which PGN does not know, stand in [%labels e4A].
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from io import BytesIO

from keima.errors import BadPosition, BadRecord, IllegalMove, KeimaError
from keima.games.chess import GAME
from keima.games.chess.position import Position
from keima.games.chess.records import RECORDS, GameRecord, PlayedMove, format_pgn
from keima.games.records import GameRecord as AnyRecord
from keima.games.trees.editing import Choice, Editing, read_judgement, retold, tree_of_position
from keima.games.trees.tree import GameTree, Setup, TreeNode
from keima.plain import Data

FEN = re.compile(r"\s*([pnbrqkPNBRQK1-8]+/){7}[pnbrqkPNBRQK1-8]+ [wb] [-\w]+ [-a-h1-8]+( \d+){0,2}\s*")
_NAMES = dict(zip("KQRBNP", ("king", "queen", "rook", "bishop", "knight", "pawn"), strict=True))
_COMMAND = re.compile(r"\[%(?P<name>csl|cal|labels|eval|keima) (?P<value>[^\]]*)\]\s*")
_COLOURED = re.compile("(?P<colour>[A-Z])(?P<point>[a-h][1-8])(?P<to>[a-h][1-8])?")
_LABELLED = re.compile("(?P<point>[a-h][1-8])(?P<text>.+)")
_COLOURS = {"G": "circle", "R": "cross", "Y": "triangle", "B": "square"}
_LETTERS = {"arrow": "G", **{kind: letter for letter, kind in _COLOURS.items()}}
_NAGS = {"inaccuracy": 6, "mistake": 2, "blunder": 4}


class _Editing(Editing[Position]):
    def start(self, setup: Mapping[str, object]) -> Position:
        """`fen` may be "" for the usual start."""
        return Position.from_json({**setup, "fen": setup.get("fen") or None})

    def set_up(self, position: Position, setup: Setup) -> Position:
        rows = [list(row) for row in position.rows()]
        for piece, square in setup.changes:
            if not re.fullmatch("[a-h][1-8]", square) or (piece and piece not in self.pieces):
                raise BadPosition(f"{piece or 'nothing'} cannot be put on {square!r}")
            rows[8 - int(square[1])]["abcdefgh".index(square[0])] = piece or "."
        fields = position.fen().split()
        placement = "/".join(re.sub(r"\.+", lambda run: str(len(run[0])), "".join(row)) for row in rows)
        castling = "".join(right for right in fields[2] if self._may_castle(rows, right)) or "-"
        fen = f"{placement} {setup.to_play or fields[1]} {castling} - 0 {fields[5]}"
        return Position.from_fen(fen, chess960=position.chess960)

    @staticmethod
    def _may_castle(rows: list[list[str]], right: str) -> bool:
        row, king, rook = (rows[7], "K", "R") if right.isupper() else (rows[0], "k", "r")
        return row[4] == king and row[7 if right in "Kk" else 0] == rook

    def is_point(self, position: Position, point: str) -> bool:
        return re.fullmatch("[a-h][1-8]", point) is not None

    def recognises(self, text: str) -> int:
        if FEN.fullmatch(text) or re.search(r'^\[(White|Black|Event|FEN)\s+"', text, re.M):
            return 3
        return 2 if re.search(r"\b1\.\s*[a-hNBRQKO]", text) else 0

    def trees(self, data: bytes, source: str = "") -> Iterator[GameTree | BadRecord]:
        text = data[:300].decode("latin-1").strip()
        if FEN.fullmatch(text):
            try:
                yield tree_of_position(Position.from_fen(text))
            except KeimaError as error:
                yield BadRecord(error.message, source=source or None)
            return
        for record in RECORDS.read(BytesIO(data), source):
            yield self.of_found(record)

    def of_record(self, record: AnyRecord) -> GameTree:
        """With its variations; PGN's readers have played them all."""
        assert isinstance(record, GameRecord)
        return _tree(record)

    def write(self, tree: GameTree, judged: bool = True) -> str:
        last = tree.root
        for last in tree.root.main_line():
            if last.setup is not None:
                raise BadRecord("PGN cannot change the board in mid-game: begin a new game from the position set up")
        assert isinstance(tree.start, Position)
        head = retold(tree.tags, _facts(GameRecord(tree.start, headers=tree.tags)), _facts(tree))
        line = _line(tree, tree.start, tree.root, judged)
        comment = _comment(tree, tree.root, judged)
        return format_pgn(GameRecord(tree.start, line, head, tree.result or "*", comment))


def _facts(told: GameTree | GameRecord) -> dict[str, str]:
    """What a tree and a record both tell, by the tag."""
    sides = {"White": told.players, "Black": told.players, "WhiteElo": told.ranks, "BlackElo": told.ranks}
    each = {name: texts.get(name[0].lower(), "") for name, texts in sides.items()}
    return {"Event": told.event, "Date": told.date.replace("-", "."), **each}


def _tree(record: GameRecord) -> GameTree:
    """The record's tree, variations and all."""
    tree = GameTree(record.start, tags=dict(record.headers))
    tree.describe(record)
    tree.date, tree.result = tree.date.replace(".", "-"), record.result if record.result != "*" else ""
    _take_comment(tree.root, record.comment)
    waiting = [(tree.root, record.start.to_play, record.line)]
    while waiting:
        node, side, line = waiting.pop()
        for played in line:
            child = TreeNode((side, played.uci))
            _take_comment(child, "\n".join(filter(None, (played.comment_before, played.comment))))
            node.add(child)
            child.grade = next((name for name, nag in _NAGS.items() if nag in played.nags), "")
            others = [str(nag) for nag in played.nags if nag not in _NAGS.values()]
            child.properties |= {"$": others} if others else {}
            side = "b" if side == "w" else "w"
            before = "b" if side == "w" else "w"
            waiting += [(node, before, variation) for variation in played.variations]
            node = child
    _order(tree, record)
    return tree


def _order(tree: GameTree, record: GameRecord) -> None:
    """Variations wait on a stack, so those of one move were added last first: the main line's move leads them."""
    for node in tree.root.below():
        if len(node.children) > 2:
            node.children[1:] = reversed(node.children[1:])


def _take_comment(node: TreeNode, comment: str) -> None:
    """Set comment, marks and judgement from a PGN comment."""
    for found in _COMMAND.finditer(comment):
        name, value = found["name"], found["value"]
        if name == "keima":
            fields: Data = dict(part.split("=", 1) for part in value.split(",") if "=" in part)
            with suppress(ValueError):
                node.judged = read_judgement({k: v if k == "to_play" else json.loads(v) for k, v in fields.items()})
        elif name == "eval":
            node.properties["%eval"] = [value]
        elif name == "labels":
            for one in filter(None, map(_LABELLED.fullmatch, value.split(","))):
                node.marks.append({"kind": "label", "point": one["point"], "text": one["text"]})
        elif name in ("csl", "cal"):
            for one in filter(None, map(_COLOURED.fullmatch, value.split(","))):
                kind = "arrow" if one["to"] else _COLOURS.get(one["colour"], "circle")
                colour = "" if one["colour"] == _LETTERS[kind] else one["colour"]
                mark = {"kind": kind, "point": one["point"], "to": one["to"], "colour": colour}
                node.marks.append({name: value for name, value in mark.items() if value})
    if node.judged:
        node.properties.pop("%eval", None)  # it says the same
    node.comment = _COMMAND.sub("", comment).strip()


def _colour(mark: Data) -> str:
    """The letter of a mark's colour: its own, or that of its kind."""
    return mark.get("colour") or _LETTERS[mark["kind"]]


def _comment(tree: GameTree, node: TreeNode, judged: bool) -> str:
    commands = []
    squares = [f"{_colour(mark)}{mark['point']}" for mark in node.marks if mark["kind"] in _COLOURS.values()]
    named = [(mark["point"], mark.get("text", "")) for mark in node.marks if mark["kind"] == "label"]
    labels = [point + re.sub(r"[\[\]{},\s]", "", text) for point, text in named]
    ends = [mark for mark in node.marks if mark["kind"] == "arrow" and mark.get("to")]
    arrows = [f"{_colour(mark)}{mark['point']}{mark['to']}" for mark in ends]
    commands += [f"[%csl {','.join(squares)}]"] if squares else []
    commands += [f"[%labels {','.join(labels)}]"] if labels else []
    commands += [f"[%cal {','.join(arrows)}]"] if arrows else []
    if judged and "value" in node.judged:
        sign = 1 if node.judged.get("to_play") == tree.game.sides[0] else -1
        commands.append(f"[%eval {_pawns(sign * float(node.judged['value'])):.2f}]")
        told = ",".join(f"{name}={number}" for name, number in node.judged.items())
        commands.append(f"[%keima {told}]")
    else:
        commands += [f"[%eval {told}]" for told in node.properties.get("%eval", ())]
    return " ".join(filter(None, (*commands, node.comment)))


def _pawns(value: float) -> float:
    """Lc0's centipawns (`search.cc`, score type "centipawn") of win − loss, in pawns."""
    return 1.117 * math.tan(1.5620688421 * max(-1.0, min(1.0, value)))


def _line(tree: GameTree, position: Position, node: TreeNode, judged: bool, depth: int = 0) -> tuple[PlayedMove, ...]:
    """The moves after a node as PGN has them: the first child's line, the other children as its variations."""
    line: list[PlayedMove] = []
    while node.children:
        main, *others = node.children
        move = _played(tree, position, main, judged)
        variations = []
        for other in others:
            first = _played(tree, position, other, judged)
            if depth < 60:
                after = position.play(first.uci)
                variations.append((first, *_line(tree, after, other, judged, depth + 1)))
        line.append(replace(move, variations=tuple(variations)))
        position = position.play(move.uci)
        node = main
    return tuple(line)


def _played(tree: GameTree, position: Position, node: TreeNode, judged: bool) -> PlayedMove:
    if node.move is None:
        raise BadRecord("PGN cannot change the board in mid-game: begin a new game from the position set up")
    uci = node.move[1]
    if not position.is_legal(uci):
        raise IllegalMove(f"{uci} is not legal in {position.fen()}")
    nags = {int(nag) for nag in node.properties.get("$", ())} | ({_NAGS[node.grade]} if node.grade in _NAGS else set())
    return PlayedMove(uci, position.san(uci), comment=_comment(tree, node, judged), nags=tuple(sorted(nags)))


def _pieces() -> Data:
    return {
        (letter if side == "white" else letter.lower()): f"{side} {name}"
        for side in GAME.sides
        for letter, name in _NAMES.items()
    }


EDITING = _Editing(
    GAME,
    choices=(Choice("fen", "Position (FEN)", "text", ""), Choice("chess960", "Chess960", "flag", False)),
    pieces=_pieces(),
)
