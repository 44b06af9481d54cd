"""The game of a session: a tree that is edited, its nodes numbered, every change undone and redone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keima.errors import BadRequest, IllegalMove
from keima.games.position import Position
from keima.games.trees.tree import GameTree, Setup, TreeNode
from keima.plain import Data, Note, told
from keima.web.messages import BadMessage

MOST_NODES = 100_000
MOST_UNDONE = 1_000


@dataclass(frozen=True)
class _Change:
    """What was done, both ways; where the board was before and after."""

    undo: Callable[[], None]
    redo: Callable[[], None]
    before: TreeNode
    after: TreeNode


class Document:
    """A game tree with a current node.

    Attributes:
        tree, current: as they stand.
        changed, removed: what `take_changes` tells next.
    """

    def __init__(self, tree: GameTree) -> None:
        self._numbers: dict[TreeNode, int] = {}
        self._nodes: dict[int, TreeNode] = {}
        self._positions: dict[TreeNode, Position] = {}
        self._plies: dict[TreeNode, int] = {}
        self._next = 0
        self._undo: list[_Change] = []
        self._redo: list[_Change] = []
        self._set(tree)

    def _set(self, tree: GameTree) -> None:
        self.tree = tree
        self.current = tree.root
        self._numbers, self._nodes, self._positions, self._plies = {}, {}, {}, {}
        self._next = 0
        for node in tree.root.below():
            self._enter(node)
        self.whole = True
        self.changed: set[TreeNode] = set()
        self.removed: list[int] = []

    def _enter(self, node: TreeNode) -> None:
        if node not in self._numbers:
            self._numbers[node] = self._next
            self._nodes[self._next] = node
            self._next += 1
        self._plies[node] = (
            0 if node.parent is None else self._plies[node.parent] + (node.move is not None or node.setup is not None)
        )

    def node(self, number: int | None) -> TreeNode:
        """The node of that number; None: the current one. Raises BadMessage: there is none in the tree."""
        if number is None:
            return self.current
        node = self._nodes.get(number)
        if node is None or not self._is_in_tree(node):
            raise BadMessage(f"node: there is no node {number}", "node")
        return node

    def _is_in_tree(self, node: TreeNode) -> bool:
        while node.parent is not None:
            if node not in node.parent.children:
                return False
            node = node.parent
        return node is self.tree.root

    def number(self, node: TreeNode) -> int:
        """What a node is called."""
        return self._numbers[node]

    def ply(self, node: TreeNode) -> int:
        """How many moves and setups lead to it."""
        return self._plies[node]

    def position(self, node: TreeNode | None = None) -> Position:
        """The position at a node, the current one where none is named."""
        node = node or self.current
        missing = []
        while node is not None and node not in self._positions:
            missing.append(node)
            if node.parent is None:
                break
            node = node.parent
        for one in reversed(missing):
            before = self.tree.start if one.parent is None else self._positions[one.parent]
            self._positions[one] = before if one.parent is None else self.tree.position_after(before, one)
        wanted = missing[0] if missing else node
        assert wanted is not None
        return self._positions[wanted]

    # --- Changes ------------------------------------------------------------------------------------------------------

    def _do(self, change: _Change) -> None:
        change.redo()
        self.current = change.after
        self._undo = [*self._undo[-MOST_UNDONE:], change]
        self._redo.clear()

    def undo(self) -> None:
        """Take the last change back. Raises BadRequest: there is none."""
        if not self._undo:
            raise BadRequest(Note("there is nothing to undo", "error.undo"))
        change = self._undo.pop()
        change.undo()
        self.current = change.before
        self._redo.append(change)

    def redo(self) -> None:
        """Make it again. Raises BadRequest: there is none."""
        if not self._redo:
            raise BadRequest(Note("there is nothing to redo", "error.redo"))
        change = self._redo.pop()
        change.redo()
        self.current = change.after
        self._undo.append(change)

    @property
    def can(self) -> Data:
        """What may be undone and redone."""
        return {"can_undo": bool(self._undo), "can_redo": bool(self._redo)}

    def replace(self, tree: GameTree) -> None:
        """Another game in this one's place."""
        old, current = self.tree, self.current

        def put(one: GameTree) -> Callable[[], None]:
            return lambda: self._set(one)

        self._do(_Change(put(old), put(tree), current, tree.root))

    def play(self, move: str, at: TreeNode) -> TreeNode:
        """Make a move and go there; a child that has it already is gone to.

        Raises:
            IllegalMove: the rules forbid it.
        """
        position = self.position(at)
        if position.is_over:
            raise IllegalMove(Note("the game is over", "error.over"))
        after = position.play(move)
        side = position.to_play
        made = after.moves[-1]
        name = str(made[1] if isinstance(made, tuple) else made)
        for child in at.children:
            if child.move == (side, name):
                self.current = child
                return child
        node = TreeNode((side, name))
        self._add(node, at)
        self._positions[node] = after
        return node

    def set_up(self, changes: Sequence[tuple[str, str]], to_play: str | None, at: TreeNode) -> TreeNode:
        """Change the board in a new node, or in this one where it is a setup without children.

        Raises:
            BadPosition: the board cannot be.
        """
        setup = Setup(tuple(changes), to_play)
        if at.setup is not None and not at.children and at.parent is not None:
            both = Setup((*at.setup.changes, *setup.changes), to_play or at.setup.to_play)
            self.tree.game.editing.set_up(self.position(at.parent), both)
            self._assign(at, "setup", both)
            return at
        node = TreeNode(setup=setup)
        self._positions[node] = self.tree.position_after(self.position(at), node)
        self._add(node, at)
        return node

    def _add(self, node: TreeNode, at: TreeNode) -> None:
        if len(self._nodes) >= MOST_NODES:
            raise BadRequest(Note("a tree has at most {most} nodes", "error.nodes", most=MOST_NODES))
        node.parent = at
        self._enter(node)
        place = len(at.children)
        self._do(_Change(lambda: self._detach(node), lambda: self._attach(node, at, place), self.current, node))

    def _attach(self, node: TreeNode, at: TreeNode, place: int) -> None:
        at.children.insert(place, node)
        for one in node.below():
            self._enter(one)
        self.changed.update((at, *node.below()))
        self.removed = [number for number in self.removed if number != self._numbers[node]]

    def _detach(self, node: TreeNode) -> None:
        assert node.parent is not None
        node.parent.children.remove(node)
        self.changed.add(node.parent)
        self.changed.difference_update(node.below())
        self.removed.append(self._numbers[node])

    def delete(self, node: TreeNode) -> None:
        """Take a node and all below it away. Raises BadRequest: it is the root."""
        at = node.parent
        if at is None:
            raise BadRequest(Note("the root cannot be deleted; begin anew", "error.root"))
        place = at.children.index(node)
        inside = node in self.current.path()
        after = at if inside else self.current
        self._do(_Change(lambda: self._attach(node, at, place), lambda: self._detach(node), self.current, after))

    def promote(self, node: TreeNode, main: bool) -> None:
        """Put a node before its next elder sibling; `main`: it and all above it first."""
        line = node.path()[1:] if main else [node]
        before = [(one.parent, list(one.parent.children)) for one in line if one.parent is not None]
        after = []
        for parent, children in before:
            one = next(each for each in children if each in line)
            k = children.index(one)
            place = 0 if main else max(0, k - 1)
            after.append((parent, [*children[:place], one, *children[place:k], *children[k + 1 :]]))

        def put(orders: Sequence[tuple[TreeNode, list[TreeNode]]]) -> Callable[[], None]:
            def work() -> None:
                for parent, children in orders:
                    parent.children[:] = children
                    self.changed.add(parent)

            return work

        self._do(_Change(put(before), put(after), self.current, self.current))

    def _assign(self, node: TreeNode, name: str, value: object) -> None:
        old = getattr(node, name)

        def put(what: object) -> Callable[[], None]:
            def work() -> None:
                setattr(node, name, what)
                self.changed.add(node)
                if name == "setup":
                    self._positions.pop(node, None)

            return work

        self._do(_Change(put(old), put(value), self.current, self.current))

    def comment(self, node: TreeNode, text: str) -> None:
        """Set a node's comment."""
        self._assign(node, "comment", text)

    def marks(self, node: TreeNode, marks: list[Data]) -> None:
        """Set a node's marks. Raises BadMessage: an arrow without an end."""
        for number, mark in enumerate(marks):
            if mark["kind"] == "arrow" and not mark.get("to"):
                raise BadMessage("marks: an arrow needs `to`", f"marks.{number}.to")
        self._assign(node, "marks", marks)

    def judge(self, node: TreeNode, judged: Data) -> None:
        """Keep what was found of a position, unless more visits found something before."""
        if node in self._numbers and judged.get("visits", 0) >= node.judged.get("visits", 0):
            node.judged = judged
            self.changed.add(node)

    # --- Told to the page ---------------------------------------------------------------------------------------------

    def step(self, by: str) -> TreeNode:
        """The node that a step leads to: as far as there is one."""
        node = self.current
        if by == "start":
            return self.tree.root
        if by == "end":
            return list(node.main_line())[-1]
        if by in ("next", "previous") and node.parent is not None:
            k = node.parent.children.index(node) + (1 if by == "next" else -1)
            return node.parent.children[k % len(node.parent.children)]
        for _ in range(10 if by.endswith("_ten") else 1):
            if by.startswith("back") and node.parent is not None:
                node = node.parent
            elif by.startswith("forward") and node.children:
                node = node.children[0]
        return node

    def node_json(self, node: TreeNode) -> Data:
        """NODE of docs/web.md."""
        found: Data = {
            "node": self._numbers[node],
            "parent": None if node.parent is None else self._numbers[node.parent],
            "children": [self._numbers[child] for child in node.children],
            "ply": self._plies[node],
        }
        game = self.tree.game
        if node.move is not None:
            found |= {"move": node.move[1], "player": game.side(node.move[0])}
            if game.drawing.written(self.tree.start, []) is not None and node.parent is not None:
                names = game.drawing.written(self.position(node.parent), [node.move[1]])
                found |= {"san": names[0]} if names else {}
        flags = {"comment": bool(node.comment), "marks": bool(node.marks), "setup": node.setup is not None}
        found |= {name: True for name, flag in flags.items() if flag}
        if node.judged:
            found["judged"] = node.judged
        if node.grade:
            found["grade"] = node.grade
        return found

    def take_changes(self, whole: bool = False) -> Data | None:
        """The event `tree` since it was last taken; None where only the current node may differ."""
        whole = whole or self.whole
        nodes = list(self.tree.root.below()) if whole else [one for one in self.changed if self._is_in_tree(one)]
        event: Data = {"event": "tree", "whole": whole, "root": 0, "current": self._numbers[self.current]}
        event |= {"nodes": [self.node_json(node) for node in nodes], "removed": self.removed, **self.can}
        event["game"] = self.facts()
        self.changed, self.removed, self.whole = set(), [], False
        return event

    def facts(self) -> Data:
        """What a review's `game` tells."""
        tree, game = self.tree, self.tree.game
        return {
            "game": game.name,
            "players": {game.side(letter): tree.players.get(letter, "") for letter in game.letters},
            "ranks": {game.side(letter): rank for letter, rank in tree.ranks.items() if rank},
            "event": tree.event,
            "date": tree.date,
            "result": tree.result,
            "notes": [told(note) for note in tree.notes],
            "first": game.side(tree.start.to_play),
            "comments": {},
            **{name: told(fact) for name, fact in game.editing.facts(tree.start).items()},
        }


def position_json(document: Document, node: TreeNode) -> Data:
    """POSITION of docs/web.md."""
    position = document.position(node)
    game = document.tree.game
    outcome = game.playing.outcome(position) if position.is_over else None
    legal = [] if position.is_over else position.legal()
    written = game.drawing.written(position, []) is not None
    names: Data = dict.fromkeys(legal)
    if written:
        names = {move: next(iter(game.drawing.written(position, [move]) or [move])) for move in legal}
    found: Data = {
        "node": document.number(node),
        "ply": document.ply(node),
        "to_play": game.side(position.to_play),
        **game.drawing.board(position),
        "legal": names,
        "over": position.is_over,
        "result": position.result,
        "reason": told(outcome.reason) if outcome else None,
        "comment": node.comment,
        "marks": node.marks,
        "text": str(position),
    }
    points = {move: game.editing.point(position, move) for move in legal}
    if any(points.values()):
        found["points"] = points
    if node.move is not None:
        found |= {"player": game.side(node.move[0]), "move": node.move[1]}
    captures = game.editing.captures(position)
    if captures:
        found["captures"] = {game.side(letter): count for letter, count in captures.items()}
    return found
