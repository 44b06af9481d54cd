"""Gather: descents from the root to leaves that need the network. One source for every game, with and without playouts.

`gather` below is a template: `gather_of` compiles it with a game's kernels in the places of the names it calls.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keima.games.game import get_game
from keima.games.kernels import NO_KEY, ONGOING
from keima.jit import Record, Records, instantiate, njit
from keima.search.backup import back_up, back_up_result
from keima.search.expand import Leaves, share
from keima.search.puct import select
from keima.search.solver import set_result, update_bounds
from keima.search.tree import FRESH, OPEN, PENDING, TWOFOLD, UNSOLVED, TreeArrays, count_pending, look_up, open_child
from keima.systems.playouts import PlayOut


class Descents(NamedTuple):
    """What descents of one tree begin with and write on, of the game's dtypes."""

    root: Records  # [1], the position at the root
    scratch: Records  # [1], its working space
    leaves: Records  # [capacity], written: the positions of leaves


class Random(NamedTuple):
    """What playouts draw from."""

    weights: Records  # [1], of the playout policy
    state: NDArray[np.uint64]  # [1], of the generator, never 0


def of_the_game(*arguments: Any) -> Any:
    """Stands for a kernel of the game in the template."""
    raise NotImplementedError


begin = play = side = other = result = legal_moves = key = cycle = wins_at_once = play_out = of_the_game
PLAYOUTS = False
"""Does `play_out` play every leaf out (AlphaGo)?"""


def gather(
    tree: TreeArrays, descents: Descents, batch: Leaves, random: Random, first: int, wanted: int, quota: int
) -> tuple[int, int]:
    """Descend until `wanted` leaves need the network, or `quota` visits are made or under way.

    With playouts every leaf is played out, only one visited often enough goes to the network, and nothing is shared
    between equal positions, since playouts differ.

    Leaves are written into `batch` and `descents` from row `first` on; `tree` has room for them.

    Returns (leaves found, visits made on the way: ends of games, shared evaluations, playouts).
    """
    nodes, head, root, p = tree.nodes, tree.heads[0], tree.roots[0], tree.parameters[0]
    scratch = descents.scratch[0]
    history = int(p.cache_history)
    met = np.empty(wanted + 1, np.int64)
    found, done, collisions = 0, 0, 0
    attempts = 2 * wanted + (64 if PLAYOUTS else 16)
    while found < wanted and found + done < quota and attempts > 0 and nodes[0].lower != nodes[0].upper:
        attempts -= 1
        row = first + found
        descents.leaves[row] = descents.root[0]
        position = descents.leaves[row]
        begin(scratch)
        i, depth = 0, 0
        while nodes[i].state == OPEN:
            choice = select(nodes, tree.edge_priors, root, i, p)
            i = open_child(tree, i, choice, other(side(position)))
            play(position, scratch, nodes[i].move)
            depth += 1
        if nodes[i].state == PENDING:
            head.collisions += 1
            if PLAYOUTS or collisions > wanted:
                break
            count_pending(nodes, i, 1)
            met[collisions] = i
            collisions += 1
            continue
        head.descents += 1
        head.depths += depth
        head.max_depth = max(head.max_depth, depth)
        if nodes[i].kind == TWOFOLD and depth < nodes[i].plies:  # the root moved past its first occurrence
            nd = nodes[i]
            nd.state, nd.kind, nd.lower, nd.upper, nd.plies = FRESH, 0, -1, 1, UNSOLVED
        solved = False
        if nodes[i].state == FRESH:
            outcome, points = result(position, scratch)
            repeated = cycle(position) if p.twofold_draws == 1.0 else 0
            if outcome != ONGOING:
                set_result(tree, i, outcome, 0, points)
                solved = True
            elif 0 < repeated <= depth:
                set_result(tree, i, 0, repeated, np.nan)
                nodes[i].kind = TWOFOLD
            elif p.solve == 1.0 and wins_at_once(position, scratch):
                set_result(tree, i, 1, 1, np.nan)
                solved = True
        if nodes[i].state == FRESH:
            cached = -1
            if PLAYOUTS:
                value = play_out(position, random.weights[0], random.state)
                if nodes[i].own + 1 < p.expansion_visits:
                    back_up_result(nodes, i, 0, value, 0.0, value)
                    done += 1
                    continue
                nodes[i].raw_value = value
            else:
                nodes[i].key = key(position, scratch, history)
                if nodes[i].key != NO_KEY:
                    cached = look_up(tree.table, nodes, nodes[i].key)
            if cached < 0:
                nodes[i].state = PENDING
                count_pending(nodes, i, 1)
                batch.nodes[row] = i
                batch.counts[row] = legal_moves(position, scratch, batch.moves[row])
                found += 1
                continue
            share(nodes, i, cached)
            head.hits += 1
        back_up(nodes, i, 0, p)
        done += 1
        if solved and p.solve == 1.0:
            update_bounds(tree, i)
    for k in range(collisions):
        count_pending(nodes, met[k], -1)
    return found, done


@njit
def _no_playout(position: Record, weights: Record, random: NDArray[np.uint64]) -> float:
    """Stands for a playout where there are none."""
    return 0.0


NO_RANDOM = Random(np.zeros(1, np.dtype([("unused", np.int64)])), np.ones(1, np.uint64))
"""Where nothing is played out."""


@cache
def gather_of(game: str, play_out: PlayOut | None) -> Any:
    """`gather` with a game's kernels; every leaf played out by `play_out` if one is given."""
    kernels = get_game(game).kernels
    names = ("begin", "play", "side", "other", "result", "legal_moves", "key", "cycle", "wins_at_once")
    return instantiate(
        gather,
        f"gather_{game}" + "_with_playouts" * (play_out is not None),
        **{name: getattr(kernels, name) for name in names},
        play_out=play_out or _no_playout,
        PLAYOUTS=play_out is not None,
    )
