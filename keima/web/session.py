"""A session: one board, its game tree, and what is going on with it; requests come in, answers and events go out.

Everything here runs on the event loop's thread. What takes long (searches, single evaluations, records of megabytes)
runs on threads of its own and comes back through `later`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar, cast

from keima import __version__
from keima.errors import BadRequest, KeimaError
from keima.games.game import GAMES, Game
from keima.games.position import Position
from keima.games.positions import parse_json
from keima.games.trees.tree import GameTree, TreeNode
from keima.plain import Data, Note, told, told_words
from keima.web import messages as m
from keima.web.analysing import Analysing
from keima.web.document import Document, position_json
from keima.web.keeping import Keeper
from keima.web.library import Library
from keima.web.networks import Networks, Offered
from keima.web.playing import Playing
from keima.web.reading import read_any, read_bytes
from keima.web.reviewing import Reviewing

T = TypeVar("T")
Answer = Data | Awaitable[Data]


_IN_ORDER = ("load", "open_game")
"""Requests after which the board is another: later ones wait for them."""


class Session:
    """One board.

    Args:
        name: of the session.
        networks, library, keeper: of the server; `library` None without a folder.
        local: may files be opened by their path?
    """

    def __init__(self, name: str, networks: Networks, library: Library | None, keeper: Keeper, local: bool) -> None:
        self.name = name
        self.networks = networks
        self.library = library
        self.keeper = keeper
        self.local = local
        self.left = time.monotonic()  # when it was last spoken to
        self.loop = asyncio.get_running_loop()
        self.send: Callable[[Data], None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        kept = keeper.find(name)
        tree = None
        if kept is not None:
            try:
                tree = read_bytes(kept.read_bytes(), kept.name).tree
            except (KeimaError, OSError):
                tree = None
        first = next(iter(GAMES.values()))
        self.document = Document(tree or GameTree(first.editing.start({})))
        if tree is not None:
            self.document.current = self.document.step("end")
        self.analysing = Analysing(self)
        self.playing = Playing(self, self.analysing)
        self.reviewing = Reviewing(self, self.analysing)

    # --- In and out ---------------------------------------------------------------------------------------------------

    def handle(self, text: str) -> Awaitable[None] | None:
        """Answer one message, now or later; what is given back is to be waited for before the next one."""
        self.left = time.monotonic()
        identity: object = None
        try:
            try:
                fields = parse_json(text)
            except KeimaError as error:
                raise m.BadMessage(error.message) from None
            identity = fields.get("id") if isinstance(fields.get("id"), int | str) else None
            name, request = m.read_request(fields)
            answer = getattr(self, f"do_{name}")(request)
        except Exception as error:
            self._fail(identity, error)
            return None
        if isinstance(answer, Mapping):
            self._answer(identity, name, cast(Data, answer))
            return None
        task = self.loop.create_task(self._answer_later(identity, name, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task if name in _IN_ORDER else None

    async def _answer_later(self, identity: object, name: str, answer: Awaitable[Data]) -> None:
        try:
            self._answer(identity, name, await answer)
        except Exception as error:
            self._fail(identity, error)

    def _answer(self, identity: object, name: str, answer: Data) -> None:
        self.tell({"id": identity, "did": name, **answer})

    def _fail(self, identity: object, error: Exception) -> None:
        field = error.field if isinstance(error, m.BadMessage) else ""
        self.tell({"id": identity, **told_error("error", error), "field": field})

    def tell(self, message: Data) -> None:
        """Send a message, if anyone listens."""
        if self.send is not None:
            self.send(message)

    def failed(self, about: str, error: BaseException) -> None:
        """Tell that something went wrong away from any request."""
        self.tell({"event": "failed", "about": about, **told_error("message", error)})

    def later(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function on the loop's thread, from any other."""
        self.loop.call_soon_threadsafe(function, *arguments)

    async def aside(self, function: Callable[..., T], *arguments: object) -> T:
        """What a function returns that takes long."""
        return await asyncio.to_thread(function, *arguments)

    def attach(self, send: Callable[[Data], None]) -> None:
        """A page has come (again)."""
        self.send = send
        self.left = time.monotonic()
        self.do_state(None)

    def detach(self) -> None:
        """The page is gone: nothing is searched for nobody; a game goes on when it comes back."""
        self.send = None
        self.left = time.monotonic()
        self.analysing.stop()

    def close(self) -> None:
        """End everything."""
        self.detach()
        self.playing.stop("")
        self.reviewing.stop()

    # --- What there is ------------------------------------------------------------------------------------------------

    @property
    def game(self) -> Game:
        """What is played."""
        return self.document.tree.game

    @property
    def position(self) -> Position:
        """The current one."""
        return self.document.position()

    def do_state(self, _: m.Request | None) -> Data:
        """Send everything again."""
        welcome: Data = {"event": "welcome", "session": self.name, "keima": __version__, "local": self.local}
        welcome |= {"library": self.library is not None, "networks": [one.to_json() for one in self.networks]}
        welcome["games"] = [self._game_json(game) for game in GAMES.values()]
        self.tell(welcome)
        self.show(whole=True)
        self.tell(self.playing.to_json())
        self.tell(self.reviewing.to_json(whole=True))
        return {}

    def _game_json(self, game: Game) -> Data:
        editing = game.editing
        first = self.networks.first(game.name) or self.networks.first(game.name, ready=False)
        return {
            "name": game.name,
            "title": game.title,
            "sides": list(game.sides),
            "network": None if first is None else first.name,
            "board": f"/static/games/{game.name}/board.js",
            "pieces": [{"piece": piece, "title": title} for piece, title in editing.pieces.items()],
            "choices": [choice.to_json() for choice in editing.choices],
            "scored": game.playing.scored,
            "passes": editing.passes,
            "suffixes": list(game.suffixes),
        }

    def show(self, whole: bool = False) -> None:
        """Send what has changed of the tree, and the current position."""
        event = self.document.take_changes(whole)
        if event is not None:
            self.tell(event)
        self.tell(self.position_event())

    def position_event(self) -> Data:
        """The event `position`."""
        return {"event": "position", **position_json(self.document, self.document.current), **self.analysing.known()}

    def show_tree(self) -> None:
        """Send what has changed of the tree alone."""
        event = self.document.take_changes()
        if event is not None:
            self.tell(event)

    def moved(self, changed: bool = True) -> None:
        """The current node or the tree has changed: show it, keep it, let the searches follow."""
        self.show()
        if changed:
            self.keep()
        self.analysing.follow()

    def keep(self) -> None:
        """Write the game to its file, as it stands."""
        if any(self.document.tree.root.children):
            try:
                text = self.game.editing.write(self.document.tree)
            except (KeimaError, RecursionError):
                return  # a tree no record can hold: a board changed in mid-game, where records know no such thing
            self.keeper.keep(self.name, self.game.suffixes[0], text)

    def letter(self, side: str, field: str = "side") -> str:
        """The letter of a side. Raises BadMessage."""
        if side not in self.game.sides:
            raise m.BadMessage(f"{field}: {side[:20]!r} is none of {', '.join(self.game.sides)}", field)
        return self.game.letters[self.game.sides.index(side)]

    # --- Networks -----------------------------------------------------------------------------------------------------

    def do_networks(self, _: m.Networks) -> Data:
        """The list."""
        return {"networks": [one.to_json() for one in self.networks]}

    def do_open_network(self, request: m.OpenNetwork) -> Data:
        """Begin to load one."""
        found: Offered | None = next((one for one in self.networks if one.name == request.network), None)
        if found is None:
            if not self.local:
                raise m.BadMessage(
                    Note("network: files are opened by path only on the machine itself", "error.path"), "network"
                )
            found = self.networks.add(str(Path(request.network).expanduser()))
        if found.too_large and not request.anyway:
            raise m.BadMessage(Note("{where}: {what}", "error.at", where=found.name, what=found.message), "network")
        found.anyway = found.anyway or request.anyway
        self.networks.open(found)
        return {"network": found.to_json()}

    # --- The game and its variations ----------------------------------------------------------------------------------

    def do_new(self, request: m.New) -> Data:
        """Begin anew."""
        if request.game not in GAMES:
            raise m.BadMessage(f"game: {request.game[:40]!r} is none of {', '.join(GAMES)}", "game")
        try:
            start = GAMES[request.game].editing.start(request.setup)
        except KeimaError as error:
            raise m.BadMessage(error.words, "setup") from None
        self._begin(GameTree(start))
        first = self.networks.first(request.game, ready=False)
        if first is not None and self.networks.first(request.game) is None and first.state == "loading":
            self.networks.open(first)
        return {"node": 0}

    def _begin(self, tree: GameTree) -> None:
        self.playing.stop("")
        self.reviewing.clear()
        self.document.replace(tree)
        self.keeper.forget(self.name)
        self.moved()
        self.tell(self.reviewing.to_json())

    async def do_load(self, request: m.Load) -> Data:
        """Read a record or a position."""
        opened = await self.aside(read_any, request.text, request.data, request.name, request.index)
        self._begin(opened.tree)
        return {"games": opened.games, "index": opened.index, "notes": [told(note) for note in opened.tree.notes]}

    def do_save(self, request: m.Save) -> Data:
        """The tree as a record."""
        text = self.game.editing.write(self.document.tree, request.analysis)
        suffix = self.game.suffixes[0]
        name = "-".join(filter(None, (self.document.tree.date, *self.document.tree.players.values()))) or self.game.name
        safe = "".join(letter if letter.isalnum() or letter in "-_ " else "_" for letter in name)[:80]
        return {"name": f"{safe}{suffix}", "type": "text/plain", "text": text}

    def do_describe(self, request: m.Describe) -> Data:
        """Change what the record says of the game."""
        tree = self.document.tree
        for name in ("players", "ranks"):
            for side, text in (getattr(request, name) or {}).items():
                getattr(tree, name)[self.letter(side, name)] = text
        for name in ("event", "date", "result"):
            text = getattr(request, name)
            if text is not None:
                setattr(tree, name, text)
        self.show_tree()
        self.keep()
        return {}

    def do_play(self, request: m.Play) -> Data:
        """Make a move."""
        at = self.document.node(request.node)
        try:
            if self.playing.on and at is self.document.current:
                node = self.playing.human_moves(request.move)
            else:
                node = self.document.play(request.move, at)
                self.moved()
        except KeimaError as error:
            raise error if isinstance(error, m.BadMessage) else m.BadMessage(error.words, "move") from None
        return self._at(node)

    def _at(self, node: TreeNode) -> Data:
        return {"node": self.document.number(node)}

    def do_go(self, request: m.Step) -> Data:
        """Go to a node."""
        if (request.node is None) == (request.by is None):
            raise m.BadMessage("node: exactly one of node and by is needed", "node")
        node = self.document.step(request.by) if request.by else self.document.node(request.node)
        self.document.current = node
        self.moved(changed=False)
        return self._at(node)

    def do_delete(self, request: m.Delete) -> Data:
        """Delete a node."""
        self.document.delete(self.document.node(request.node))
        self.moved()
        return self._at(self.document.current)

    def do_promote(self, request: m.Promote) -> Data:
        """Promote a node."""
        node = self.document.node(request.node)
        if node.parent is None:
            raise m.BadMessage("node: the root has no siblings", "node")
        self.document.promote(node, request.main)
        self.moved()
        return {}

    def do_set_up(self, request: m.SetUp) -> Data:
        """Change the board."""
        to_play = None if request.to_play is None else self.letter(request.to_play, "to_play")
        if not request.changes and to_play is None:
            raise m.BadMessage("changes: nothing to change", "changes")
        node = self.document.set_up(request.changes, to_play, self.document.current)
        self.moved()
        return self._at(node)

    def do_comment(self, request: m.Comment) -> Data:
        """Set a comment."""
        self.document.comment(self.document.node(request.node), request.text)
        self.moved()
        return {}

    def do_marks(self, request: m.Marks) -> Data:
        """Set marks."""
        node = self.document.node(request.node)
        points = self.game.editing.is_point
        for number, mark in enumerate(request.marks):
            for name, point in (("point", mark.point), ("to", mark.to)):
                if point is not None and not points(self.document.position(node), point):
                    raise m.BadMessage(
                        Note("{point} is no point of this board", "error.nopoint", point=repr(point)),
                        f"marks.{number}.{name}",
                    )
        marks = [mark.model_dump(exclude_none=True, exclude_defaults=True) for mark in request.marks]
        self.document.marks(node, marks)
        self.moved()
        return {}

    def do_undo(self, _: m.Undo) -> Data:
        """Take the last change back."""
        self.document.undo()
        self.moved()
        return {}

    def do_redo(self, _: m.Redo) -> Data:
        """Make it again."""
        self.document.redo()
        self.moved()
        return {}

    # --- Playing, analysing, reviewing --------------------------------------------------------------------------------

    def do_start_game(self, request: m.StartGame) -> Data:
        """Play against a network."""
        self.playing.start(request)
        return {}

    def do_stop_game(self, _: m.StopGame) -> Data:
        """End the game without a result."""
        self.playing.stop("")
        self.tell(self.playing.to_json())
        return {}

    def do_take_back(self, _: m.TakeBack) -> Data:
        """Take moves back."""
        return self._at(self.playing.take_back())

    def do_resign(self, request: m.Resign) -> Data:
        """Give up."""
        return {"result": self.playing.resign(None if request.side is None else self.letter(request.side))}

    async def do_score(self, request: m.Score) -> Data:
        """The score."""
        return await self.playing.score(request)

    async def do_hint(self, request: m.Hint) -> Data:
        """A move to consider."""
        return await self.analysing.hint(request)

    def do_analyse(self, request: m.Analyse) -> Data:
        """Search the current position."""
        self.analysing.start(request)
        return {}

    def do_stop(self, _: m.Stop) -> Data:
        """Pause the analysis."""
        self.analysing.stop()
        return {}

    async def do_policies(self, request: m.Policies) -> Data:
        """What every network would play."""
        return await self.analysing.policies(request)

    def do_review(self, request: m.Review) -> Data:
        """Judge the main line."""
        self.reviewing.start(request)
        return {}

    def do_stop_review(self, _: m.StopReview) -> Data:
        """Stop that."""
        self.reviewing.stop()
        return {}

    def do_exercises(self, request: m.Exercises) -> Data:
        """The largest mistakes."""
        return self.reviewing.exercises(request)

    async def do_answer(self, request: m.Answer) -> Data:
        """Judge a move tried in an exercise."""
        return await self.reviewing.answer(request)

    def _games(self) -> Library:
        if self.library is None:
            raise BadRequest(
                Note("there is no folder of games; start keima web with --games FOLDER", "error.nolibrary")
            )
        return self.library

    async def do_library(self, request: m.Library) -> Data:
        """Games of the folder."""
        return await self.aside(self._games().find, request)

    async def do_open_game(self, request: m.OpenGame) -> Data:
        """Open one of them."""
        try:
            raw = await self.aside(self._games().read, request.file)
        except KeimaError as error:
            raise m.BadMessage(error.words, "file") from None
        opened = await self.aside(read_bytes, raw, Path(request.file).name, request.index)
        self._begin(opened.tree)
        return {"notes": [told(note) for note in opened.tree.notes]}


def told_error(name: str, error: BaseException) -> Data:
    """The fields that tell an error: its words by that name, and `worded` where a page can word them."""
    return told_words(name, error.words if isinstance(error, KeimaError) else f"{type(error).__name__}: {error}")


def as_text(message: Data) -> str:
    """A message as it is sent."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))
