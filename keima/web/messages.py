"""What a page may ask, message by message; docs/web.md, section "Messages", has answers and events beside them.

A message is a JSON object with `id` and `do`; every class below is one value of `do`, its fields are the message's, and
what is not in the table is refused by the field's name. Sides are the game's words ("black"), moves the names its
positions use, nodes the numbers that `tree` events give.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from keima.errors import BadRequest
from keima.games.trees.tree import MARK_COLOUR, MARK_TEXT, MOST_MARKS

MOST_VISITS = 10_000_000
LONGEST_NAME = 300
LONGEST_TEXT = 20_000
LARGEST_RECORD = 8 << 20
"""Characters of a record that is pasted or dropped (base64 where it is not text)."""

Id = Annotated[int, Field(ge=0, le=1 << 53)] | Annotated[str, Field(max_length=64)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Move = Annotated[str, Field(min_length=1, max_length=16)]
Point = Annotated[str, Field(min_length=1, max_length=8)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Node = Annotated[int, Field(ge=0, le=1 << 31)]
Visits = Annotated[int, Field(ge=1, le=MOST_VISITS)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Side = Annotated[str, Field(max_length=20)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Request(_Strict):
    """What all of them have: `id` is given back with the answer."""

    id: Id


class Mover(_Strict):
    """Who moves, or judges, and how strongly."""

    network: Name
    profile: Annotated[str, Field(max_length=40)] | None = None  # of a human network
    visits: Visits | None = None
    seconds: Seconds | None = None  # of one move
    temperature: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.0


class TimeControl(_Strict):
    """A clock for each side, in seconds: main time, increment, byo-yomi periods."""

    main: Seconds = 0.0
    increment: Seconds = 0.0
    period: Seconds = 0.0
    periods: Annotated[int, Field(ge=0, le=100)] = 0


class Mark(_Strict):
    """A mark on a point or square."""

    point: Point
    kind: Literal["circle", "cross", "square", "triangle", "label", "arrow"]
    text: Annotated[str, Field(max_length=MARK_TEXT)] = ""  # of a label
    to: Point | None = None  # of an arrow
    colour: Annotated[str, Field(pattern=MARK_COLOUR)] = ""


# --- Networks ---------------------------------------------------------------------------------------------------------


class Networks(Request):
    """List the networks."""


class OpenNetwork(Request):
    """Load a network: one of the list by its name, or a file by its path."""

    network: Name
    anyway: bool = False  # also where it is too large for this machine


# --- The game and its variations --------------------------------------------------------------------------------------


class New(Request):
    """Begin anew."""

    game: Name
    setup: dict[str, object] = Field(default_factory=dict, max_length=30)  # choices, or fields of a POSITIONS line


class Load(Request):
    """Read a record or a position, of whatever kind; exactly one of `text` and `data`."""

    text: Annotated[str, Field(max_length=LARGEST_RECORD)] | None = None
    data: Annotated[str, Field(max_length=LARGEST_RECORD)] | None = None  # base64
    name: Annotated[str, Field(max_length=LONGEST_NAME)] = ""  # the file's
    index: Annotated[int, Field(ge=1, le=1_000_000)] = 1  # which game of it


class Save(Request):
    """The record, with its variations."""

    analysis: bool = True  # with what was found of each position


class Describe(Request):
    """Change what the record says of the game."""

    players: dict[Side, Annotated[str, Field(max_length=LONGEST_NAME)]] | None = Field(default=None, max_length=2)
    ranks: dict[Side, Annotated[str, Field(max_length=40)]] | None = Field(default=None, max_length=2)
    event: Annotated[str, Field(max_length=LONGEST_NAME)] | None = None
    date: Annotated[str, Field(max_length=40)] | None = None
    result: Annotated[str, Field(max_length=40)] | None = None


class State(Request):
    """Send everything again."""


class Play(Request):
    """Make a move; where the variation exists, go there."""

    move: Move
    node: Node | None = None  # from where; None: the current one


class Step(Request):
    """Go to a node, or by steps."""

    node: Node | None = None
    by: Literal["start", "end", "back", "forward", "back_ten", "forward_ten", "next", "previous"] | None = None


class Delete(Request):
    """Delete a node and what follows it."""

    node: Node


class Promote(Request):
    """Make a node's line the first of its siblings; `main`: all the way."""

    node: Node
    main: bool = False


class SetUp(Request):
    """Put pieces on the board or take them off, in a new node (or the current one, where it is a setup already)."""

    changes: list[tuple[Annotated[str, Field(max_length=8)], Point]] = Field(default_factory=list, max_length=400)
    to_play: Side | None = None


class Comment(Request):
    """Set a node's comment."""

    text: Text
    node: Node | None = None


class Marks(Request):
    """Set a node's marks."""

    marks: list[Mark] = Field(max_length=MOST_MARKS)
    node: Node | None = None


class Undo(Request):
    """Take the last change of the tree back."""


class Redo(Request):
    """Make it again."""


# --- Playing ----------------------------------------------------------------------------------------------------------


class StartGame(Request):
    """Play from the current position against a network, or watch two."""

    engine: dict[Side, Mover] = Field(max_length=2)  # the sides a network has; the others are yours
    clock: TimeControl | None = None


class StopGame(Request):
    """End the game without a result; the position stays."""


class TakeBack(Request):
    """Take moves back until it is the player's turn again."""


class Hint(Request):
    """A move to consider."""

    network: Name | None = None
    visits: Visits = 100


class Resign(Request):
    """Give up for a side; None: the player's, or the one to move."""

    side: Side | None = None


class Score(Request):
    """The score, by ownership; `dead`: the stones marked by hand in place of the network's word."""

    dead: list[Point] | None = Field(default=None, max_length=400)
    network: Name | None = None
    final: bool = False  # end the game with this score


# --- Analysing --------------------------------------------------------------------------------------------------------


class Analyse(Request):
    """Search the current position, and follow the board, until `stop`."""

    networks: list[Mover] = Field(min_length=1, max_length=2)
    ownership: bool = True
    every: Annotated[float, Field(ge=0.05, le=5, allow_inf_nan=False)] = 0.1  # seconds between updates


class Stop(Request):
    """Stop the analysis; what was found stays."""


class Policies(Request):
    """What every loaded network, and every profile asked for, would play here without a search."""

    profiles: list[Annotated[str, Field(max_length=40)]] = Field(default_factory=list, max_length=40)
    node: Node | None = None


# --- Reviewing --------------------------------------------------------------------------------------------------------


class Review(Request):
    """Judge the main line: the network alone first, then a search where it matters."""

    network: Name | None = None
    visits: Annotated[int, Field(ge=0, le=100_000)] = 100  # of a position worth it; 0: the network alone


class StopReview(Request):
    """Stop it; what is finished stays."""


class Library(Request):
    """Games of the folder; a text matches players, event and file names."""

    text: Annotated[str, Field(max_length=200)] = ""
    player: Annotated[str, Field(max_length=200)] = ""
    result: Annotated[str, Field(max_length=40)] = ""
    opening: Annotated[str, Field(max_length=200)] = ""  # the first moves: "e2e4 c7c5"
    game: Annotated[str, Field(max_length=40)] = ""
    first: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    count: Annotated[int, Field(ge=1, le=500)] = 50


class OpenGame(Request):
    """Open a game of the library."""

    file: Annotated[str, Field(min_length=1, max_length=4096)]
    index: Annotated[int, Field(ge=1, le=10_000_000)] = 1


class Exercises(Request):
    """The largest mistakes of the review as exercises."""

    count: Annotated[int, Field(ge=1, le=100)] = 10
    player: Side | None = None


class Answer(Request):
    """A move tried in an exercise; the search judges it."""

    exercise: Annotated[int, Field(ge=1, le=100_000)]
    move: Move


_NAMES = """
    networks open_network new load save describe state play go delete promote set_up comment marks undo redo
    start_game stop_game take_back hint resign score analyse stop policies review stop_review library open_game
    exercises answer
"""
_CLASSES: tuple[type[Request], ...] = (
    Networks,
    OpenNetwork,
    New,
    Load,
    Save,
    Describe,
    State,
    Play,
    Step,
    Delete,
    Promote,
    SetUp,
    Comment,
    Marks,
    Undo,
    Redo,
    StartGame,
    StopGame,
    TakeBack,
    Hint,
    Resign,
    Score,
    Analyse,
    Stop,
    Policies,
    Review,
    StopReview,
    Library,
    OpenGame,
    Exercises,
    Answer,
)
REQUESTS: Mapping[str, type[Request]] = MappingProxyType(dict(zip(_NAMES.split(), _CLASSES, strict=True)))
"""By `do`."""

EVENTS = ("welcome", "tree", "position", "network", "game", "analysis", "review", "failed")
"""What the server sends unasked, by `event`."""

R = TypeVar("R", bound=Request)


class BadMessage(BadRequest):
    """A message that cannot be carried out; `field` is at fault, "" for the whole of it."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def read_request(fields: Mapping[str, object]) -> tuple[str, Request]:
    """A message's `do` and its fields, checked. Raises `BadMessage`."""
    name = fields.get("do")
    if not isinstance(name, str) or name not in REQUESTS:
        shown = repr(name)[:60]
        raise BadMessage(f"do: {shown} is none of {', '.join(REQUESTS)}", "do")
    try:
        return name, REQUESTS[name].model_validate({key: value for key, value in fields.items() if key != "do"})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"] if not str(part).startswith(("constrained", "function")))
        raise BadMessage(f"{place or 'message'}: {first['msg']}", place) from None
