"""Made tests/data/gumbel-mctx.npz, once: searches by DeepMind's mctx over the network of `hashed`.

    python -m venv VENV && VENV/bin/pip install mctx==0.0.71 jax && VENV/bin/python tests/search/make_gumbel_data.py

Double precision. A column that is full takes part in mctx below the root as a move without visits, which keima does not
have; searches that meet one are left out.
"""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from hashed import COLUMNS, drop, hashed_answer, is_full

CASES = [  # moves considered, simulations, value_scale, maxvisit_init
    (16, 2, 0.1, 50.0), (4, 8, 0.1, 50.0), (16, 16, 0.1, 50.0), (5, 33, 0.1, 50.0), (16, 50, 0.1, 50.0),
    (1, 40, 0.1, 50.0), (2, 64, 1.0, 50.0), (3, 100, 0.1, 10.0), (7, 100, 0.02, 50.0), (16, 200, 0.1, 50.0),
    (6, 200, 1.0, 20.0), (4, 199, 0.1, 50.0),
]  # fmt: skip
POSITIONS = 24

jax.config.update("jax_enable_x64", True)


def opening(choose: random.Random) -> str:
    """Columns of a random game of a few moves, not over, no column above two."""
    while True:
        own, other, heights, moves = 0, 0, [0] * COLUMNS, ""
        for _ in range(choose.randrange(11)):
            column = choose.choice([c for c in range(COLUMNS) if heights[c] < 2])
            own, other, four = drop(own, other, column)
            if four:
                break
            heights[column] += 1
            moves += "abcdefg"[column]
        else:
            return moves


def board(moves: str) -> tuple[int, int]:
    own, other = 0, 0
    for move in moves:
        own, other, _ = drop(own, other, "abcdefg".index(move))
    return own, other


met_full: set[int] = set()


def step(action: Any, embedding: Any) -> Any:
    """Rows of (reward, discount, logits, value, embedding); an embedding is [own, other, over, row]."""
    rewards, discounts, logits, values, after = [], [], [], [], []
    for column, (own, other, over, row) in zip(action.tolist(), embedding.tolist(), strict=True):
        reward, discount, odds, value = 0.0, 0.0, [0.0] * COLUMNS, 0.0
        if not over:
            own, other, four = drop(own, other, column)
            over = int(four)
            reward, discount = (1.0, 0.0) if four else (0.0, -1.0)
            if not four:
                odds, value = hashed_answer(own, other)
                if is_full(own, other):
                    met_full.add(row)
        rewards.append(reward)
        discounts.append(discount)
        logits.append(odds)
        values.append(value)
        after.append((own, other, over, row))
    return (np.array(rewards), np.array(discounts), np.array(logits), np.array(values), np.array(after, np.int64))


def recurrent(params: Any, rng: Any, action: Any, embedding: Any) -> Any:
    n = action.shape[0]
    one, many = jax.ShapeDtypeStruct((n,), jnp.float64), jax.ShapeDtypeStruct((n, COLUMNS), jnp.float64)
    shapes = (one, one, many, one, jax.ShapeDtypeStruct((n, 4), jnp.int64))
    reward, discount, logits, value, after = jax.pure_callback(step, shapes, action, embedding)
    return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), after


def main() -> None:
    choose, found = random.Random(15), []
    for number, (considered, simulations, scale, offset) in enumerate(CASES):
        openings = [opening(choose) for _ in range(POSITIONS)]
        boards = [board(moves) for moves in openings]
        answers = [hashed_answer(own, other) for own, other in boards]
        root = mctx.RootFnOutput(
            prior_logits=jnp.array([logits for logits, _ in answers]),
            value=jnp.array([value for _, value in answers]),
            embedding=jnp.array([(own, other, 0, row) for row, (own, other) in enumerate(boards)], jnp.int64),
        )
        met_full.clear()
        output = mctx.gumbel_muzero_policy(
            None, jax.random.PRNGKey(number), root, recurrent, simulations,
            qtransform=functools.partial(
                mctx.qtransform_completed_by_mix_value, value_scale=scale, maxvisit_init=offset
            ),
            max_num_considered_actions=considered, gumbel_scale=1.0,
        )  # fmt: skip
        tree = jax.block_until_ready(output.search_tree)
        print(number, CASES[number], "left out:", len(met_full))
        found += [
            (openings[row], considered, simulations, scale, offset, tree.extra_data.root_gumbel[row],
             tree.children_visits[row, 0], output.action_weights[row], output.action[row], tree.node_values[row, 0])
            for row in range(POSITIONS)
            if row not in met_full
        ]  # fmt: skip
    names = ["moves", "considered", "simulations", "scale", "offset", "gumbel", "visits", "weights", "action", "value"]
    columns = {name: np.array(column) for name, column in zip(names, zip(*found, strict=True), strict=True)}
    np.savez_compressed(Path(__file__).parents[1] / "data" / "gumbel-mctx.npz", **columns)
    print(len(found), "searches")


if __name__ == "__main__":
    main()
