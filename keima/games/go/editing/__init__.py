"""EDITING of Go: boards and rules to begin with, stones set up, SGF with variations, marks and judgements.

A judgement stands in the comment's last line, as SBKV (Black's chances in per cent, as Sabaki has it) and V (Black's
points), and whole in the property KEIMA, as JSON. Properties that mean nothing here are kept as they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from io import BytesIO
from typing import cast

from sgfmill import sgf_grammar

from keima.errors import BadPosition, BadRecord, KeimaError
from keima.games.fields import whole
from keima.games.go import GAME
from keima.games.go.board import MAX_SIZE
from keima.games.go.playing import PLAYING, score_without
from keima.games.go.position import Position, result_of
from keima.games.go.records import (
    _COLOURS,
    GameRecord,
    _escaped,
    _point_list,
    _text,
    _vertices,
    changes_of,
    event_of,
    parse_sgf,
    write_sgf,
)
from keima.games.go.rules import NAMED_RULES
from keima.games.go.sgf_text import decode_text, mended, split_games
from keima.games.go.vertices import fixed_handicap, vertex_to_xy
from keima.games.playing import Judge
from keima.games.position import Position as AnyPosition
from keima.games.trees.editing import (
    MOST_NODES,
    Choice,
    Editing,
    broken,
    judgement_in_words,
    read_judgement,
    retold,
    without_judgement,
)
from keima.games.trees.tree import MARK_TEXT, GameTree, Setup, TreeNode
from keima.plain import Data, Note

_MARKS = {"CR": "circle", "MA": "cross", "SQ": "square", "TR": "triangle"}
_GRADES = {"inaccuracy": "IT", "mistake": "DO", "blunder": "BM"}
_OURS = {"B", "W", "AB", "AW", "AE", "PL", "C", "LB", "AR", "V", "SBKV", "KEIMA", *_MARKS}
_JUDGED = {"V", "SBKV"}
"""Of ours, what may be another program's."""
_OF_FORMAT = {"FF", "GM", "CA", "AP"}
_OF_ROOT = {"SZ", "KM", "RU", "HA", "PB", "PW", "BR", "WR", "DT", "EV", "RO", "GN", "RE", *_OF_FORMAT}
"""Properties of a root that are facts of the game, or of the file."""


class _Editing(Editing[Position]):
    def start(self, setup: Mapping[str, object]) -> Position:
        """`size`: a side; `handicap`: a number of stones on the usual points; else as in a POSITIONS line."""
        fields = dict(setup)
        if "size" in fields:
            fields.setdefault("xsize", fields.pop("size"))
        count = fields.get("handicap")
        if isinstance(count, int) and not isinstance(count, bool):
            fields["handicap"] = []
            size = whole(fields, "xsize", 19), whole(fields, "ysize", whole(fields, "xsize", 19))
            stones = fixed_handicap(count, size)
            if count not in (0, 1) and not stones:
                raise BadPosition(f"no usual points for {count} stones on a board of {size[0]}×{size[1]}; set them up")
            fields["handicap"] = list(stones)
            if fields.get("komi") is None and (stones or count == 1):
                fields["komi"] = 0.5
        return Position.from_json(fields)

    def set_up(self, position: Position, setup: Setup) -> Position:
        board = {vertex: colour for colour, vertex in position.on_board()}
        for piece, vertex in setup.changes:
            if (piece and piece not in self.pieces) or not self.is_point(position, vertex):
                raise BadPosition(f"{piece or 'nothing'} cannot be put on {vertex!r}")
            board.pop(vertex, None)
            if piece:
                board[vertex] = piece
        stones = [(colour, vertex) for vertex, colour in board.items()]
        return position.set_up_anew(stones, setup.to_play or position.to_play)

    def facts(self, start: Position) -> Data:
        record = _record_of(GameTree(start))
        return {**record.setup, **record.facts}

    def is_point(self, position: Position, point: str) -> bool:
        try:
            return vertex_to_xy(point, position.xsize, position.ysize) is not None
        except KeimaError:
            return False

    def captures(self, position: Position) -> dict[str, int]:
        return position.captures

    def dead(self, position: Position, judge: object) -> frozenset[str] | None:
        return PLAYING.dead_stones(cast(Judge, judge), position)

    def score(self, position: Position, dead: Collection[str]) -> str:
        if position.is_no_result:
            return "Void"
        return result_of(score_without(position, dead))

    def recognises(self, text: str) -> int:
        at = text.find("(")
        return 3 if at >= 0 and text[at + 1 :].lstrip()[:1] == ";" else 0

    def trees(self, data: bytes, source: str = "") -> Iterator[GameTree | BadRecord]:
        index = 0
        for raw in split_games(BytesIO(data)):
            index = raw.index
            try:
                yield _read(mended(raw.data) if raw.problem else raw.data, raw.problem, source, raw.index)
            except BadRecord as error:
                yield error
            except KeimaError as error:
                yield BadRecord(error.message, source=source or None, place=error.place)
        if not index:
            yield BadRecord("holds no SGF game: nothing begins with `(;`", source=source or None)

    def write(self, tree: GameTree, judged: bool = True) -> str:
        coarse = sgf_grammar.parse_sgf_game(write_sgf(_record_of(tree)).encode())  # it knows rules, komi and stones
        if tree.tags:
            root = coarse.sequence[0]
            for name in _OF_ROOT - _OF_FORMAT:
                root.pop(name, None)
            told = retold(tree.tags, _told(tree.tags), _told(_facts(tree)), ("EV", "RO"))
            root.update({name: [_escaped(text)] for name, text in told.items()})
        waiting = [(tree.root, coarse)]
        while waiting:
            node, into = waiting.pop()
            into.sequence[-1].update(_properties(tree, node, judged))
            while len(node.children) == 1:
                node = node.children[0]
                into.sequence.append(_properties(tree, node, judged))
            for child in node.children:
                branch = sgf_grammar.Coarse_game_tree()
                branch.sequence.append({})
                into.children.append(branch)
                waiting.append((child, branch))
        return _serialised(coarse)


def _read(data: bytes, problem: str, source: str, index: int) -> GameTree:
    notes = [broken(problem)] if problem else []
    try:
        record = parse_sgf(data, source=source, index=index)
    except BadRecord as error:
        if not isinstance(error.partial, GameRecord):
            raise
        record = error.partial
        notes.append(broken(error))
    tree = GameTree(record.start())
    tree.describe(record)
    tree.notes += notes
    coarse = sgf_grammar.parse_sgf_game(decode_text(data).encode("utf-8", "replace"))
    points = _vertices(record.xsize, record.ysize)
    root = coarse.sequence[0]
    tree.tags = {name: _text(root, name) for name in root if name in _OF_ROOT - _OF_FORMAT}
    made, cut = 1, 0
    waiting = [(tree.root, tree.start, coarse, True, 0)]
    while waiting:
        node, position, part, main, moves = waiting.pop()
        for properties in part.sequence:
            steps = _steps(properties, points, None if main and not moves else position)
            if not steps and not (node is tree.root and main):
                steps = [TreeNode()]
            try:
                for step in steps:
                    position = tree.position_after(position, step)
                    node = node.add(step)
            except KeimaError as error:
                cut += 1
                if cut <= 5:
                    tree.notes.append(
                        Note(
                            "a move that cannot be played, and what follows, is left out: {error}",
                            "note.cut",
                            error=error,
                        )
                    )
                break
            made += len(steps)
            if made > MOST_NODES:
                tree.notes.append(Note("only the first {count} nodes are read", "note.most", count=f"{MOST_NODES:,}"))
                return tree
            _take(node, properties, points, of_root=properties is root)
            moves += sum(step.move is not None for step in steps)
        else:
            rest = [(node, position, branch, main and k == 0, moves) for k, branch in enumerate(part.children)]
            waiting += reversed(rest)
    return tree


Properties = Mapping[str, list[bytes]]


def _steps(properties: Properties, points: Mapping[bytes, str], position: AnyPosition | None) -> list[TreeNode]:
    """What leads on in a node: stones set up on the position (None: they are part of the start already), then a move.

    What is no point of the board is a move, or a stone, that cannot be.
    """
    steps = []
    to_play = _COLOURS.get(_text(properties, "PL").strip().upper())
    if position is not None:
        assert isinstance(position, Position)
        try:
            changes = changes_of(properties, points, position)
        except BadRecord:
            changes = (("B", "?"),)
        if changes or to_play not in (None, position.to_play):
            steps.append(TreeNode(setup=Setup(changes, to_play)))
    for colour in ("B", "W"):
        if colour in properties:
            raw = properties[colour][0].strip()
            vertex = points.get(raw) or points.get(raw.lower()) or f"[{raw.decode('utf-8', 'replace')[:20]}]"
            return [*steps, TreeNode((colour, vertex))]
    return steps


def _take(node: TreeNode, properties: Properties, points: Mapping[bytes, str], of_root: bool) -> None:
    """Comment, marks, judgement, grade and everything else of a node."""
    comment = without_judgement(_text(properties, "C", lines=True).strip())
    node.comment = "\n".join(filter(None, (node.comment, comment)))
    for name, kind in _MARKS.items():
        if name in properties:
            try:
                node.marks += [
                    {"kind": kind, "point": vertex} for vertex in _point_list(properties[name], points, name)
                ]
            except BadRecord:
                node.properties[name] = [one.decode("utf-8", "replace") for one in properties[name]]
    for name in ("LB", "AR"):
        for raw in properties.get(name, ()):
            at, _, other = raw.strip().partition(b":")
            point, text = points.get(at.lower()), sgf_grammar.simpletext_value(other).decode("utf-8", "replace")
            if name == "LB" and point not in (None, "pass"):
                node.marks.append({"kind": "label", "point": point, "text": text[:MARK_TEXT]})
            elif name == "AR" and point not in (None, "pass") and points.get(other.lower()) not in (None, "pass"):
                node.marks.append({"kind": "arrow", "point": point, "to": points[other.lower()]})
    if "KEIMA" in properties:
        try:
            node.judged = read_judgement(json.loads(_text(properties, "KEIMA")))
        except ValueError:
            node.judged = {}
    node.grade = next((grade for grade, name in _GRADES.items() if name in properties), "")
    known = {""} | _OURS | (_OF_ROOT if of_root or node.parent is None else set())
    for name, values in properties.items():
        if name not in known or (name in _JUDGED and not node.judged):
            node.properties[name] = [one.decode("utf-8", "replace") for one in values]


def _told(texts: Mapping[str, str]) -> dict[str, str]:
    """The facts that can change, by property, as a record's reader takes them."""
    names = {name: texts.get(name, "").strip() for name in ("PB", "PW", "BR", "WR")}
    return {**names, "DT": texts.get("DT", ""), "EV": event_of(texts), "RE": texts.get("RE", "")}


def _facts(tree: GameTree) -> dict[str, str]:
    names = {f"P{side}": name for side, name in tree.players.items()}
    ranks = {f"{side}R": rank for side, rank in tree.ranks.items()}
    return {**names, **ranks, "DT": tree.date, "EV": tree.event, "RE": tree.result}


def _record_of(tree: GameTree) -> GameRecord:
    """The record of a tree's start, without its moves."""
    start = tree.start
    assert isinstance(start, Position)
    black, white = (tuple(vertex for each, vertex in start.setup if each == colour) for colour in "BW")
    handicap, black = (black, ()) if not white and start.to_play == "W" else ((), black)
    return GameRecord(
        start.xsize,
        start.ysize,
        start.rules,
        start.komi,
        handicap=handicap,
        black_setup=black,
        white_setup=white,
        to_play=start.to_play,
        result=tree.result,
        players=tree.players,
        ranks=tree.ranks,
        date=tree.date,
        event=tree.event,
    )


def _properties(tree: GameTree, node: TreeNode, judged: bool) -> dict[str, list[bytes]]:
    """A node as SGF has it."""
    start = tree.start
    assert isinstance(start, Position)
    to_point = {vertex: point for point, vertex in _vertices(start.xsize, start.ysize).items()} | {"pass": b""}
    found: dict[str, list[bytes]] = {name: [one.encode() for one in ones] for name, ones in node.properties.items()}
    if node.move is not None:
        found[node.move[0]] = [to_point[node.move[1]]]
    if node.setup is not None:
        for piece, vertex in node.setup.changes:
            found.setdefault(f"A{piece or 'E'}", []).append(to_point[vertex])
        if node.setup.to_play:
            found["PL"] = [node.setup.to_play.encode()]
    names = {kind: name for name, kind in _MARKS.items()}
    for mark in node.marks:
        point = to_point[mark["point"]]
        if mark["kind"] == "label":
            found.setdefault("LB", []).append(point + b":" + sgf_grammar.escape_text(mark["text"].encode()))
        elif mark["kind"] == "arrow":
            found.setdefault("AR", []).append(point + b":" + to_point[mark["to"]])
        else:
            found.setdefault(names[mark["kind"]], []).append(point)
    texts = [node.comment]
    for grade, name in _GRADES.items():
        if grade != node.grade:
            found.pop(name, None)
        else:
            found.setdefault(name, [b"1" if grade == "blunder" else b""])
    if judged and "value" in node.judged:
        sign = 1 if node.judged.get("to_play") == tree.game.sides[0] else -1
        texts.append(judgement_in_words(tree, node))
        found["SBKV"] = [f"{50 * (1 + sign * node.judged['value']):.2f}".encode()]
        found.pop("V", None)
        if "lead" in node.judged:
            found["V"] = [f"{sign * node.judged['lead']:.2f}".encode()]
        found["KEIMA"] = [_escaped(json.dumps(node.judged, separators=(",", ":")))]
    if any(texts):
        found["C"] = [_escaped("\n".join(filter(None, texts)))]
    return found


def _serialised(coarse: sgf_grammar.Coarse_game_tree) -> str:
    text: str = sgf_grammar.serialise_game_tree(coarse).decode("utf-8", "replace")
    return text


EDITING = _Editing(
    GAME,
    choices=(
        Choice("size", "Board", "whole", 19, 2, MAX_SIZE),
        Choice(
            "rules",
            "Rules",
            "choice",
            "chinese",
            values=tuple((name, rules.words) for name, rules in NAMED_RULES.items()),
        ),
        Choice("komi", "Komi", "number", None, -150, 150, 0.5),
        Choice("handicap", "Handicap", "whole", 0, 0, 9),
    ),
    pieces={"B": "black stone", "W": "white stone"},
    passes=True,
)
