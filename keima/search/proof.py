"""Results that are proven: the end of a game reached in the tree, and what follows for the positions above it.

The nodes are those of `keima.search.tree`; `lower` and `upper` bound a position's result for its side to move.
"""

from __future__ import annotations

from typing import Any

from keima.jit import njit
from keima.search.tree import TERMINAL, TWOFOLD, utility_of


@njit
def set_result(nodes: Any, head: Any, p: Any, i: int, result: int, plies: int, score: float, has_score: bool) -> None:
    """Make node i terminal: result −1, 0 or 1 and points for its side to move, the end `plies` plies away."""
    nd = nodes[i]
    nd.state = TERMINAL
    nd.lower = result
    nd.upper = result
    nd.plies = plies
    nd.raw_value = result
    nd.raw_draw = 1.0 if result == 0 else 0.0
    nd.raw_moves_left = plies
    nd.raw_score = score
    nd.raw_score_sq = score * score
    nd.raw_lead = score
    if has_score:
        nd.raw_utility = utility_of(head, p, nd.side, float(result), float(nd.raw_draw), score, score * score)
    else:
        nd.raw_utility = result + nd.raw_draw * p.draw_score


@njit
def prove(nodes: Any, i: int, p: Any) -> None:
    """After node i became terminal: pass what is proven up, as far as it goes.

    A node is won if a child is lost for the other side; its result is known when every move's is (Lc0 `search.cc`,
    `MaybeSetBounds`). Averages on the way are set right.
    """
    i = nodes[i].parent
    while i > 0:
        nd = nodes[i]
        if nd.state == TERMINAL or not bound_by_children(nodes, i):
            return
        if nd.lower == nd.upper:
            _settle(nodes, i, p)
        i = nd.parent
    if i == 0:
        bound_by_children(nodes, 0)


@njit
def bound_by_children(nodes: Any, i: int) -> bool:
    """Work out a node's bounds and plies from its children's; did they change?"""
    nd = nodes[i]
    lower, upper = -1, -1
    shortest, longest, level = 32000, 0, 0
    c = nd.child
    while c >= 0:
        ch = nodes[c]
        if ch.kind == TWOFOLD:
            upper = max(upper, 1)
        else:
            lower = max(lower, -ch.upper)
            upper = max(upper, -ch.lower)
        if ch.state == TERMINAL or ch.lower == ch.upper:
            if ch.upper == -1:
                shortest = min(shortest, ch.plies + 1)
            elif ch.lower == 1:
                longest = max(longest, ch.plies + 1)
            else:
                level = max(level, ch.plies + 1)
        c = ch.sibling
    if nd.opened < nd.edges or nd.cut == 1:
        upper = 1
    if lower == 1:
        upper = 1
    if lower <= nd.lower and upper >= nd.upper and not (lower == 1 and shortest < nd.plies):
        return False
    nd.lower = max(lower, nd.lower)
    nd.upper = min(upper, nd.upper)
    if nd.lower == nd.upper:
        nd.plies = shortest if nd.lower == 1 else (longest if nd.lower == -1 else level)
    return True


@njit
def _settle(nodes: Any, i: int, p: Any) -> None:
    """Make a node whose bounds meet terminal, and its sums and those above as if every visit had found the result."""
    nd = nodes[i]
    nd.state = TERMINAL
    nd.raw_value = nd.lower
    nd.raw_draw = 1.0 if nd.lower == 0 else 0.0
    nd.raw_utility = nd.raw_value + nd.raw_draw * p.draw_score
    nd.raw_moves_left = nd.plies
    n = nd.visits
    value = n * nd.raw_value - nd.value
    draw = n * nd.raw_draw - nd.draw
    utility = n * nd.raw_utility - nd.utility
    square = n * nd.raw_utility * nd.raw_utility - nd.utility_sq
    left = n * nd.raw_moves_left - nd.moves_left
    while i >= 0:
        nd = nodes[i]
        nd.value += value
        nd.draw += draw
        nd.utility += utility
        nd.utility_sq += square
        nd.moves_left += left
        value, utility = -value, -utility
        i = nd.parent
