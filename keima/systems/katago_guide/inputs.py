"""The 22 planes of the four-head KataGo of the architecture guide.

Source: the guide "神经网络架构详解" ("KataGo's network architecture in detail"), section on input features. It is not
what KataGo's published networks read (`keima.systems.katago.inputs`: 22 planes of another meaning and 19 globals); it
is the input of `keima.systems.katago_guide.network`, which is trained here from scratch. `PLANES` is the table.

Where the guide is loose, this file decides:

- Planes 3–10, "the board of the past 8 steps", hold one plane a step: +1 for own stones, −1 for the opponent's, as of
  the side to move now. The newest is the current board (the guide's code reads `game_history[-1]` first); steps before
  the game are zero.
- Plane 11 marks every point that a ko rule forbids now: the simple ko, or any superko point.
- Planes 12–17 mark the stones of chains, of either colour, with exactly 1 to 6 liberties; with more, in none.
- Planes 18–19, "Chinese" and "Japanese", go by how the game is scored, area or territory: every rule set has one.
- Plane 20 is komi / 15 for White, whoever moves. The guide says this lies in [−1, 1]; that holds for komi up to 15.

Worked values, for 19×19, Chinese rules, komi 7.5, after Black D4 with White to move, symmetry 0 (D4 is row 15, column
3): plane 0 is empty; plane 1 has D4; plane 2 has all points but D4; plane 3 is −1 at D4; planes 4–14 are zero; plane 15
(4 liberties) has D4; plane 18 is all ones; plane 20 is 0.5 everywhere; plane 21 is zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.go.board import BLACK, EMPTY, MAX_POINTS
from keima.games.go.history import RECENT, SCORING_AREA, SCORING_TERRITORY
from keima.jit import Record, Records, njit
from keima.systems.encoding import Batch
from keima.systems.go_points import GoEncoding, fill_locs

STEPS = RECENT
MAX_LIBERTIES = 6
KOMI_SCALE = 15.0

OWN, OPPONENT, VACANT, HISTORY, KO, LIBERTIES, AREA, TERRITORY, KOMI, COLOUR = 0, 1, 2, 3, 11, 12, 18, 19, 20, 21
"""The first plane of each feature."""

PLANES: tuple[str, ...] = (
    "own stones",
    "opponent's stones",
    "empty points",
    *(f"the board {t} moves ago: +1 own, −1 opponent's" for t in range(STEPS)),
    "points forbidden by ko",
    *(f"stones of chains with {n} {'liberty' if n == 1 else 'liberties'}" for n in range(1, MAX_LIBERTIES + 1)),
    "all ones if the rules score area (Chinese)",
    "all ones if the rules score territory (Japanese)",
    "komi / 15 everywhere",
    "all ones if Black is to move",
)
"""The planes in order, 22."""


@njit
def _fill_board(b: Record, h: Record, locs: NDArray[np.int64], planes: NDArray[np.float32]) -> None:
    """Write planes 0–17 of one position, those that differ from point to point, into zeroed planes [22, H·W]."""
    own = h.to_play
    boards = min(int(h.turns) + 1, STEPS)
    for p in range(planes.shape[1]):
        loc = locs[p]
        stone = b.stones[loc]
        if stone == EMPTY:
            planes[VACANT, p] = 1
            if h.superko_banned[loc] or (loc == b.ko and h.encore_phase == 0):
                planes[KO, p] = 1
        else:
            planes[OWN if stone == own else OPPONENT, p] = 1
            liberties = b.liberties[b.head[loc]]
            if 1 <= liberties <= MAX_LIBERTIES:
                planes[LIBERTIES + liberties - 1, p] = 1
        for t in range(boards):
            past = h.recent_stones[t, loc]
            if past != EMPTY:
                planes[HISTORY + t, p] = 1 if past == own else -1


@njit
def encode_katago_guide(records: Records, symmetries: NDArray[np.int64], planes: NDArray[np.float32]) -> None:
    """Write the planes of RECORD [N] under their symmetries, 0–7, into float32 [N, 22, H, W], C-contiguous."""
    locs = np.empty(MAX_POINTS, np.int64)
    rows = planes.reshape((planes.shape[0], planes.shape[1], planes.shape[2] * planes.shape[3]))
    for i in range(len(records)):
        b = records[i].board
        h = records[i].history
        fill_locs(int(b.xsize), int(b.ysize), symmetries[i], locs)
        rows[i] = 0
        _fill_board(b, h, locs, rows[i])
        rows[i, AREA] = h.scoring == SCORING_AREA
        rows[i, TERRITORY] = h.scoring == SCORING_TERRITORY
        rows[i, KOMI] = h.komi / KOMI_SCALE
        rows[i, COLOUR] = h.to_play == BLACK


class KataGoGuideEncoding(GoEncoding):
    """The guide's inputs: `PLANES`, no globals, no context."""

    name = "katago-guide"
    planes = len(PLANES)

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        """Write the planes."""
        encode_katago_guide(records, symmetries, batch.inputs["planes"])


ENCODINGS = {"katago-guide": KataGoGuideEncoding()}
