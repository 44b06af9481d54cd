"""A second search, written plainly on the public positions, one visit at a time: what the kernels are held to.

It knows nothing of arrays, shared evaluations, virtual loss or sorted edges. Formulas from the sources named in
`keima.systems.parameters`; sums run in the order of the visits, so that equal searches agree to the last decision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from keima.search.expand import score_value
from keima.systems.go_points import policy_indices
from keima.systems.lc0.moves import policy_index
from keima.systems.parameters import Parameters
from keima.systems.presets import parameter_names


@dataclass
class Node:
    position: Any
    prior: Any = 1.0
    visits: int = 0
    weight: float = 0.0
    utility: float = 0.0
    utility_sq: float = 0.0
    value: float = 0.0
    left: float = 0.0
    raw: float = 0.0
    own: int = 0
    edges: dict[str, np.float32] = field(default_factory=dict)
    children: dict[str, Node] = field(default_factory=dict)
    ended: bool = False
    numbers: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Twin:
    """Search `position` with answers of a fakes' function, `visits` in all."""

    def __init__(self, position: Any, answer: Any, p: Parameters, center: float = 0.0) -> None:
        self.p = SimpleNamespace(**{name: p[name] for name in parameter_names()})
        self.answer = answer
        self.root_side = position.to_play
        self.center = center
        self.root = Node(position)

    def run(self, visits: int) -> Node:
        while self.root.visits < visits:
            path = [self.root]
            while path[-1].edges and not path[-1].ended:
                path.append(self.descend(path[-1]))
            leaf = path[-1]
            if not leaf.ended and leaf.visits == 0:
                self.evaluate(leaf, depth=len(path) - 1)
            value, utility, left = leaf.numbers
            leaf.own += 1
            for node in reversed(path):
                node.visits += 1
                node.weight += 1
                node.value += value
                node.utility += utility
                node.utility_sq += utility * utility
                node.left += left
                value, utility, left = -value, -utility, left + 1
            if self.p.value_weight_exponent:
                for node in reversed(path[:-1]):
                    self.weigh(node)
        return self.root

    def weigh(self, node: Node) -> None:
        """KataGo's averages, as its `recomputeNodeStats` describes them, by the means of the children."""
        children = list(node.children.values())
        weights = [child.weight for child in children]
        means = [-child.utility / child.visits for child in children]
        for k in range(1, len(children)):
            before = sum(weights[:k])
            fair = before * float(children[k].prior) / sum(float(child.prior) for child in children[:k])
            gap = sum(w * m for w, m in zip(weights[:k], means[:k], strict=True)) / before - means[k]
            if gap > 0 and weights[k] > 2 * fair:
                weights[k] -= (weights[k] - 2 * fair) * (1 - math.exp(-gap / self.p.noise_prune_scale))
        total = sum(weights)
        mean = sum(w * m for w, m in zip(weights, means, strict=True)) / total
        spread = [math.sqrt(1e-8 + 1 / (1.5 * math.sqrt(w))) for w in weights]
        favoured = [
            w * (student((m - mean) / s) + 0.0001) ** self.p.value_weight_exponent
            for w, m, s in zip(weights, means, spread, strict=True)
        ]
        weights = [w * total / sum(favoured) for w in favoured]
        node.weight = total + node.own
        per_visit = node.visits / node.weight
        value, raw, left = node.numbers

        def mean_of(own: float, sums: list[float]) -> float:
            parts = sum(w * s / c.visits for w, s, c in zip(weights, sums, children, strict=True))
            return per_visit * (node.own * own + parts)

        node.value = mean_of(value, [-child.value for child in children])
        node.utility = mean_of(raw, [-child.utility for child in children])
        node.utility_sq = mean_of(raw * raw, [child.utility_sq for child in children])
        node.left = mean_of(left, [child.left + child.visits for child in children])

    def evaluate(self, node: Node, depth: int) -> None:
        position = node.position
        end = None if depth == 0 else self.end_of(position)
        if end is not None:
            value, score = end
            node.ended = True
            draw = 1.0 if value == 0 else 0.0
            utility = value + draw * self.draw_worth(depth) + self.score_utility(position, score, 0.0)
            node.numbers = (value, float(np.float32(utility)), 0.0)
            return
        answer = self.answer(position)
        value, draw = float(np.float32(answer.value)), float(np.float32(answer.draw))
        utility = value + draw * self.draw_worth(depth)
        if answer.score is not None:
            mean = float(np.float32(answer.score))
            stdev = np.float32(answer.stdev)
            square = float(np.float32(np.square(np.float32(mean)) + np.square(stdev)))
            utility += self.score_utility(position, mean, math.sqrt(max(square - mean * mean, 0.0)))
        node.raw = float(np.float32(utility))
        left = float(np.float32(answer.moves_left or 0.0))
        node.numbers = (value, node.raw, left)
        t = self.p.root_policy_temperature if depth == 0 else self.p.policy_temperature
        node.edges = self.priors(position, answer.logits, t, depth == 0)

    def draw_worth(self, depth: int) -> float:
        """A draw's worth for the side to move at a depth: lc0's `Search::GetDrawScore`, which goes by the depth alone.

        `DrawScore` is White's; the root's side is Black where it is Black's turn there.
        """
        root_is_black = self.root_side.lower() == "b"
        is_odd = depth % 2 == 1
        return self.p.draw_score if is_odd == root_is_black else -self.p.draw_score

    def score_utility(self, position: Any, mean: float | None, stdev: float) -> float:
        p = self.p
        if mean is None or not (p.static_score or p.dynamic_score):
            return 0.0
        side = math.sqrt(position.xsize * position.ysize)
        center = self.center if position.to_play == self.root_side else -self.center
        about_even = score_value(mean, stdev, 0.0, 2 * side)  # itself held to `squashed` in a test of its own
        return p.static_score * about_even + p.dynamic_score * score_value(mean, stdev, center, p.dynamic_scale * side)

    def priors(self, position: Any, logits: np.ndarray, t: float, root: bool) -> dict[str, np.float32]:
        odds = [math.exp((float(logits[k]) - self.top(position, logits)) / t) for _, k in self.moves(position)]
        if root:
            total = float(np.sum(odds))
            return {name: np.float32(o / total) for (name, _), o in zip(self.moves(position), odds, strict=True)}
        total = 0.0
        for o in odds:
            total += o
        return {
            name: np.float32(float(np.float32(o)) / total)
            for (name, _), o in zip(self.moves(position), odds, strict=True)
        }

    def top(self, position: Any, logits: np.ndarray) -> float:
        return max(float(logits[k]) for _, k in self.moves(position))

    def moves(self, position: Any) -> list[tuple[str, int]]:
        if hasattr(position, "xsize"):
            table = policy_indices(position.xsize, position.ysize, 0)
            return [(name, table[name]) for name in position.legal()]
        indices = [policy_index(int(code), 0) for code in position.legal_codes]
        return list(zip(position.legal(), indices, strict=True))

    def end_of(self, position: Any) -> tuple[float, float | None] | None:
        """(result, points) for the side to move where the game is over."""
        if hasattr(position, "xsize"):
            if not position.is_over:
                return None
            if position.is_no_result:
                return (0.0, None)
            score = position.score_to_play()
            return float(np.sign(score)), score
        if not position.legal():
            return (-1.0, None) if position.in_check else (0.0, None)
        if position.outcome is not None or position.claimable is not None:
            return (0.0, None)
        return None

    def descend(self, node: Node) -> Node:
        p, root = self.p, node is self.root
        total = node.weight - node.own
        c = p.cpuct + p.cpuct_factor * math.log((total + p.cpuct_base) / p.cpuct_base)
        if p.stdev_scale:
            c *= 1 + p.stdev_scale * (self.stdev(node) / p.stdev_prior - 1)
        scale = c * math.sqrt(max(total, p.sqrt_floor) + p.sqrt_offset)
        best, found = -math.inf, ""
        for name in sorted(node.edges, key=lambda name: -node.edges[name]):
            child = node.children.get(name)
            if child is None:
                score = self.urgency(node, p.root_fpu_reduction if root else p.fpu_reduction)
                score += scale * node.edges[name]
            else:
                q = -child.utility / child.visits
                if p.moves_left_slope and child.left > 0:
                    q += self.liking(node, child, q)
                score = q + scale * node.edges[name] / (1 + child.weight)
            if score > best:
                best, found = score, name
        if found not in node.children:
            node.children[found] = Node(node.position.play(found), node.edges[found])
        return node.children[found]

    def stdev(self, node: Node) -> float:
        p, n = self.p, node.weight
        if n <= 1:
            return p.stdev_prior
        mean = node.utility / node.visits
        square = max(node.utility_sq / node.visits, mean * mean)
        above = (mean * mean + p.stdev_prior**2) * p.stdev_prior_weight + square * n
        return math.sqrt(max(0.0, above / (p.stdev_prior_weight + n - 1) - mean * mean))

    def urgency(self, node: Node, reduction: float) -> float:
        p = self.p
        if p.fpu_absolute:
            return p.fpu_value
        tried = float(np.float32(sum((float(c.prior) for c in node.children.values()), 0.0)))
        mean = node.utility / node.visits
        if p.fpu_policy_power:
            share = min(1.0, tried**p.fpu_policy_power)
            mean = share * mean + (1 - share) * node.raw
        return mean - reduction * math.sqrt(tried)

    def liking(self, node: Node, child: Node, q: float) -> float:
        p = self.p
        if abs(node.value / node.visits) <= p.moves_left_threshold:
            return 0.0
        longer = child.left / child.visits - node.left / node.visits
        m = max(-p.moves_left_max, min(p.moves_left_max, p.moves_left_slope * longer))
        m = -m if q > 0 else m
        q = max(0.0, abs(q) - p.moves_left_threshold) / (1 - p.moves_left_threshold)
        return m * (p.moves_left_constant + p.moves_left_linear * q + p.moves_left_square * q * q)


def student(z: float) -> float:
    """Student's distribution function with three degrees of freedom."""
    return 0.5 + (z / math.sqrt(3) / (1 + z * z / 3) + math.atan(z / math.sqrt(3))) / math.pi


def squashed(mean: float, stdev: float, center: float, scale: float) -> float:
    """E[2/π · atan((x − center) / scale)] of a normal x, by a fine sum."""
    if stdev < 1e-3:
        return 2 / math.pi * math.atan((mean - center) / scale)
    z = np.linspace(-8, 8, 4001)
    weights = np.exp(-z * z / 2)
    values = np.arctan((mean + stdev * z - center) / scale)
    return float(2 / math.pi * (weights * values).sum() / weights.sum())
