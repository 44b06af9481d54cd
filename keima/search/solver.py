"""The solver: ends of games reached in the tree, and what they prove of the positions above them.

`lower` and `upper` bound a position's result for its side to move; where they meet it is known.
"""

from __future__ import annotations

import math

from keima.jit import Records, njit
from keima.search.backup import back_up
from keima.search.expand import draw_worth, utility_of
from keima.search.tree import TERMINAL, TWOFOLD, TreeArrays, add_node


@njit
def set_result(tree: TreeArrays, i: int, result: int, plies: int, points: float) -> None:
    """Make node i terminal: result −1, 0 or 1 and points (NaN: none) for its side to move, `plies` before the end."""
    nd, head, p = tree.nodes[i], tree.heads[0], tree.parameters[0]
    nd.state = TERMINAL
    nd.lower = result
    nd.upper = result
    nd.plies = plies
    nd.raw_value = result
    nd.raw_draw = 1.0 if result == 0 else 0.0
    nd.raw_moves_left = plies
    score = 0.0 if math.isnan(points) else points
    nd.raw_score = score
    nd.raw_score_sq = score * score
    nd.raw_lead = score
    if math.isnan(points):
        nd.raw_utility = result + nd.raw_draw * draw_worth(head, p, nd.side)
    else:
        nd.raw_utility = utility_of(head, p, nd.side, float(result), float(nd.raw_draw), score, score * score)


@njit
def update_bounds(tree: TreeArrays, i: int) -> None:
    """After node i became terminal: pass what is proven up, as far as it goes.

    A node is won if a child is lost for the other side; its result is known when every move's is (Lc0 `search.cc`,
    `MaybeSetBounds`). Averages on the way are set right.
    """
    nodes = tree.nodes
    i = nodes[i].parent
    while i > 0:
        nd = nodes[i]
        if nd.state == TERMINAL or not bound_by_children(nodes, i):
            return
        if nd.lower == nd.upper:
            _make_terminal(tree, i)
        i = nd.parent
    if i == 0:
        bound_by_children(nodes, 0)


@njit
def bound_by_children(nodes: Records, i: int) -> bool:
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
def _make_terminal(tree: TreeArrays, i: int) -> None:
    """Make a node whose bounds meet terminal, and its sums and those above as if every visit had found the result."""
    nodes = tree.nodes
    nd = nodes[i]
    nd.state = TERMINAL
    nd.raw_value = nd.lower
    nd.raw_draw = 1.0 if nd.lower == 0 else 0.0
    nd.raw_utility = nd.raw_value + nd.raw_draw * draw_worth(tree.heads[0], tree.parameters[0], nd.side)
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


@njit
def open_forced_win(tree: TreeArrays, move: int, side: int, plies: int) -> None:
    """Visit the root's move that wins by force, so that the root is proven; `side` has lost `plies` plies later."""
    nodes, root = tree.nodes, tree.roots[0]
    for e in range(root.count):
        if root.move[e] == move and root.allowed[e] == 1 and root.child[e] < 0:
            c = add_node(nodes, tree.heads[0], 0, move, root.prior[e], side)
            root.child[e] = c
            nodes[0].opened += 1
            set_result(tree, c, -1, plies, math.nan)
            back_up(nodes, c, 0, tree.parameters[0])
            update_bounds(tree, c)
