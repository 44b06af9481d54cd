"""What a searched root teaches, and the move played there: kernels, for self-play asks them at every move."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keima.jit import Record, Records, njit
from keima.search.gumbel import improve_root, improved_value
from keima.search.puct import exploration, puct
from keima.search.report import RootTable
from keima.search.tree import ROOT_EDGES, Tree
from keima.systems.parameters import Choice

_GUMBEL = int(Choice.GUMBEL)


def policy_target(tree: Tree) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """The policy that a searched root teaches: moves int16 [k] and their weights float32 [k], which sum to 1.

    Visits (AlphaGo Zero, Methods, π with τ = 1); where playouts were forced, visits without those (`prune_forced`);
    with Gumbel the improved policy softmax(ln P + σ(q)) of all moves (mctx: `action_weights`). Of a root whose result
    is proven, only moves that keep it, by their visits. A root without visits below it teaches its policy.
    """
    moves, weights = np.empty(ROOT_EDGES, np.int16), np.empty(ROOT_EDGES, np.float32)
    count = weigh_moves(tree.nodes, tree.roots, tree.record, moves, weights)
    return moves[:count].copy(), weights[:count].copy()


def root_value(tree: Tree) -> float:
    """The value that a searched root teaches, win − loss for its side to move.

    The result where it is proven; with Gumbel what the improved policy is worth; else the mean of the visits.
    """
    return float(value_taught(tree.nodes, tree.roots, tree.record))


def draw_move(tree: Tree, temperature: float, chance: float) -> int:
    """The code of the move to play: drawn with odds N^(1/temperature), or with temperature 0 the preset's choice.

    Of a root whose result is proven, only moves that keep it. `chance`, from 0 to below 1, says which is drawn.
    """
    choice, proofs = tree.parameters.final_choice.choice, tree.parameters.solver.solve
    by_more_than_visits = choice in (Choice.LCB, Choice.PROVEN) or (choice == Choice.VISITS and proofs)
    if temperature == 0 and by_more_than_visits and not tree.solved:
        table = RootTable(tree)
        if table.order:
            return int(tree.roots[0]["move"][table.edges[table.order[0]]])
    return int(draw_visited(tree.nodes, tree.roots, tree.record, temperature, chance))


@njit
def value_taught(nodes: Records, roots: Records, parameters: Records) -> float:
    """`root_value`."""
    if nodes[0].lower == nodes[0].upper:
        return float(nodes[0].lower)
    if parameters[0].gumbel_considered > 0:
        return improved_value(nodes, roots[0], parameters[0])
    return float(nodes[0].value / nodes[0].visits)


@njit
def weigh_moves(
    nodes: Records, roots: Records, parameters: Records, moves: NDArray[np.int16], weights: NDArray[np.float32]
) -> int:
    """`policy_target` into arrays with room for a root's moves; how many there are."""
    root, p = roots[0], parameters[0]
    each = np.zeros(root.count)
    solved = nodes[0].lower == nodes[0].upper
    if p.gumbel_considered > 0 and not solved:
        improve_root(nodes, root, p, each)
        top = each.max() if len(each) else 0.0
        for e in range(len(each)):
            each[e] = math.exp(each[e] - top)
    else:
        count_visits(nodes, root, each)
        if p.forced_playouts > 0 and not solved:
            prune_forced(nodes, root, p, each)
    total = each.sum()
    if total == 0:
        for e in range(len(each)):
            each[e] = root.prior[e] if root.allowed[e] else 0.0
        total = each.sum()
    count = 0
    for e in range(len(each)):
        if each[e] > 0:
            moves[count] = root.move[e]
            weights[count] = each[e] / total
            count += 1
    return count


@njit
def count_visits(nodes: Records, root: Record, each: NDArray[np.float64]) -> None:
    """The visits of every root move (float64 [count], 0 at first); of a proven root, only of those that keep it.

    If none of those was visited, 1 for each.
    """
    solved = nodes[0].lower == nodes[0].upper
    total = 0.0
    for e in range(root.count):
        c = root.child[e]
        if c >= 0 and root.allowed[e] and (not solved or keeps(nodes[0], nodes[c])):
            each[e] = nodes[c].visits
            total += each[e]
    if solved and total == 0:
        for e in range(root.count):
            c = root.child[e]
            each[e] = 1.0 if c >= 0 and root.allowed[e] and keeps(nodes[0], nodes[c]) else 0.0


@njit
def keeps(nd: Record, ch: Record) -> bool:
    """Is a child's result for its side to move at most what the node's proven one leaves it?"""
    return bool(ch.upper <= -nd.lower)


@njit
def prune_forced(nodes: Records, root: Record, p: Record, each: NDArray[np.float64]) -> None:
    """Take the visits that were only forced off `each` (float64 [count], the root moves' visits).

    Wu, arXiv:1902.10565, §3.2: c* has the most visits; every other move loses what was forced on it, ⌊√(k P Σ N)⌋ at
    most, while its PUCT with fewer stays below that of c*; utilities and the exploration's factor are held. A move
    reduced to a single visit loses that as well. KataGo's engine has since come to take off whatever PUCT would not
    have spent, forced or not (`searchresults.cpp`, `getPlaySelectionValues`); this follows the paper.
    """
    best = -1
    for e in range(len(each)):
        if each[e] > 0 and (best < 0 or each[e] > each[best]):
            best = e
    if best < 0:
        return
    scale = exploration(nodes[0], p)
    limit = puct(nodes[0], nodes[root.child[best]], scale, 0.0, p)
    total = nodes[0].weight - nodes[0].own
    for e in range(len(each)):
        if e == best or each[e] == 0:
            continue
        ch = nodes[root.child[e]]
        gap = limit - puct(nodes[0], ch, 0.0, 0.0, p)
        forced = math.floor(math.sqrt(p.forced_playouts * ch.prior * total))
        if gap > 0 and forced > 0:
            left = max(each[e] - forced, math.floor(scale * ch.prior / gap))
            if left < each[e]:
                each[e] = left if left > 1 else 0.0


@njit
def draw_visited(nodes: Records, roots: Records, parameters: Records, temperature: float, chance: float) -> int:
    """`draw_move` by visits, or with Gumbel and temperature 0 by what sequential halving leaves; −1 without moves."""
    root, p = roots[0], parameters[0]
    each = np.zeros(root.count)
    solved = nodes[0].lower == nodes[0].upper
    count_visits(nodes, root, each)
    halved = p.choice == _GUMBEL and not solved
    scores = np.zeros(root.count)
    if halved:
        improve_root(nodes, root, p, scores)
    best, most = -1, -np.inf
    for e in range(len(each)):
        if not root.allowed[e]:
            continue
        value = -1.0
        if each[e] > 0:
            ch = nodes[root.child[e]]
            value = each[e] + (1 - ch.utility / max(ch.visits, 1) / 4) / 4 + ch.prior * 1e-3
            if solved:
                value -= ch.plies * 1e6 * nodes[0].lower
            elif halved and temperature == 0:
                value = each[e] - root.base[e]
        if value > most or (halved and value == most and scores[e] + root.noise[e] > scores[best] + root.noise[best]):
            best, most = e, value
    if best < 0 or temperature == 0 or each[best] == 0:
        return int(root.move[best]) if best >= 0 else -1
    top, total = each.max(), 0.0
    for e in range(len(each)):
        if each[e] > 0:
            each[e] = math.exp(math.log(each[e] / top) / temperature)
            total += each[e]
    left = chance * total
    for e in range(len(each)):
        if each[e] > 0:
            best = e
            left -= each[e]
            if left < 0:
                break
    return int(root.move[best])
