"""`keima.check_system`: the laws a system must keep, from its planes to a search on it.

Those of its own parts stand in `keima.systems.conformance`, those of a game in `keima.games.conformance`.
"""

from __future__ import annotations

import numpy as np

from keima.compress.fold import fold
from keima.inference.evaluator import Evaluator
from keima.search.search import search
from keima.systems.conformance import check_parts, law, nearly, positions_for, raw_answers, small_networks
from keima.systems.network import Network
from keima.systems.system import System, get_system

VISITS = 12


def check_system(system: System | str) -> None:
    """Hold a system to the laws the rest of keima relies on, with a small network of each class it registers.

    Encodings: all is written, rows do not depend on their neighbours, symmetries can be turned back, moves have policy
    indices of their own. Networks: rows independent, the file there and back, probabilities, the mean over symmetries,
    folding, a search.

    Raises:
        ConformanceError: a law is broken; the message names it and where.
        BadRequest: no system of that name.
    """
    known = get_system(system) if isinstance(system, str) else system
    check_parts(known)
    for network in small_networks(known):
        _check_evaluation(network)
        _check_folding(network)


def _check_evaluation(network: Network) -> None:
    """Answers are probabilities of legal moves, whatever the symmetry; a search answers with a legal move."""
    name = f"network {network.pedigree.name}"
    evaluator = Evaluator(network, backend="torch", threads=1)
    positions = positions_for(network.encoding)
    for symmetry in (0, network.encoding.symmetries[-1], "average"):
        where = f"{name}, symmetry {symmetry}"
        for position, answer in zip(positions, evaluator(positions, symmetry), strict=True):
            law(set(answer.policy) <= set(position.legal()), "the policy holds legal moves only", where)
            law(abs(sum(answer.policy.values()) - 1) < 1e-4, "the policy sums to 1", where, sum(answer.policy.values()))
            if answer.value is not None and answer.win is not None:
                chances = (answer.win, answer.draw or 0.0, answer.loss or 0.0)
                law(abs(sum(chances) - 1) < 1e-4, "win, draw and loss sum to 1", where, chances)
                law(abs(answer.win - (answer.loss or 0.0) - answer.value) < 1e-4, "value is win − loss", where)
    again = evaluator(positions[:1])[0]
    law(again.policy == evaluator(positions)[0].policy, "an answer does not depend on what else is asked", name)
    if "policy" in network.output_names and again.value is not None:
        result = search(evaluator, positions[0], visits=VISITS, batch_size=2)
        law(result.best in positions[0].legal(), "a search finds a legal move", name, result.best)
        law(result.visits >= VISITS, "a search makes its visits", name, result.visits)


def _check_folding(network: Network) -> None:
    """A folded network answers alike."""
    batch = network.encoding.encode(positions_for(network.encoding))
    before, after = raw_answers(network, batch), raw_answers(fold(network), batch)
    for key, values in after.items():
        law(nearly(values, before[key], 1e-3), f"a folded network has the same {key}", network.pedigree.name)
    law(all(np.isfinite(values).all() for values in after.values()), "folded answers are finite", network.pedigree.name)
