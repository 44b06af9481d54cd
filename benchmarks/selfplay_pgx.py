"""Self-play of connect four by pgx and mctx on JAX: the other side of `bench_selfplay.py`, which runs it.

    pip install pgx mctx             (in an environment of its own)
    python benchmarks/selfplay_pgx.py --blocks 4 --channels 48 --visits 32 --games 128 --seconds 60

The network is that of `keima.systems.alphago_zero.connect_four` with folded batch norms and random weights, the search
mctx's `gumbel_muzero_policy` on pgx's `connect_four`, in batches, compiled as one function a move. One JSON line.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial


def main() -> None:
    import jax
    import jax.numpy as jnp
    import mctx
    import pgx

    def parameters(key, blocks, channels, hidden=64):
        keys = iter(jax.random.split(key, 2 * blocks + 6))

        def layer(*shape):
            return jax.random.normal(next(keys), shape) * 0.05, jnp.zeros(shape[0])

        return {
            "stem": layer(channels, 3, 3, 3),
            "tower": [(layer(channels, channels, 3, 3), layer(channels, channels, 3, 3)) for _ in range(blocks)],
            "policy": (layer(2, channels, 1, 1), layer(7, 84)),
            "value": (layer(1, channels, 1, 1), layer(hidden, 42), layer(1, hidden)),
        }

    def convolve(x, layer):
        weight, bias = layer
        y = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        return y + bias[None, :, None, None]

    def network(params, observation):
        """Logits [N, 7] and values [N] of observations [N, 6, 7, 2]."""
        x = jnp.moveaxis(observation, -1, 1).astype(jnp.float32)
        x = jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1)
        x = jax.nn.relu(convolve(x, params["stem"]))
        for first, second in params["tower"]:
            x = jax.nn.relu(x + convolve(jax.nn.relu(convolve(x, first)), second))
        policy, (weight, bias) = params["policy"]
        logits = jax.nn.relu(convolve(x, policy)).reshape(len(x), -1) @ weight.T + bias
        value, (w1, b1), (w2, b2) = params["value"]
        v = jax.nn.relu(jax.nn.relu(convolve(x, value)).reshape(len(x), -1) @ w1.T + b1)
        return logits, jnp.tanh((v @ w2.T + b2)[:, 0])

    parser = argparse.ArgumentParser()
    for name, default in (("blocks", 4), ("channels", 48), ("visits", 32), ("games", 128), ("seconds", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    env = pgx.make("connect_four")
    init, step = jax.vmap(env.init), jax.vmap(env.step)
    params = parameters(jax.random.PRNGKey(0), args.blocks, args.channels)

    def recurrent(params, key, action, state):
        current = state.current_player
        state = step(state, action)
        logits, value = network(params, state.observation)
        logits = jnp.where(state.legal_action_mask, logits, jnp.finfo(logits.dtype).min)
        reward = state.rewards[jnp.arange(len(current)), current]
        value = jnp.where(state.terminated, 0.0, value)
        discount = jnp.where(state.terminated, 0.0, -1.0)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), state

    @partial(jax.jit, donate_argnums=0)
    def move(state, key):
        logits, value = network(params, state.observation)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state)
        found = mctx.gumbel_muzero_policy(
            params, key, root, recurrent, args.visits, invalid_actions=~state.legal_action_mask
        )
        state = step(state, found.action)
        ended = state.terminated | state.truncated
        lengths = jnp.where(ended, state._step_count, 0).sum()
        fresh = init(jax.random.split(key, args.games))
        state = jax.tree.map(lambda a, b: jnp.where(ended.reshape(-1, *[1] * (a.ndim - 1)), a, b), fresh, state)
        return state, ended.sum(), lengths

    key = jax.random.PRNGKey(1)
    state = init(jax.random.split(key, args.games))
    state, ended, _ = move(state, key)
    ended.block_until_ready()  # compiled
    games = length = moves = 0
    began = time.perf_counter()
    while (seconds := time.perf_counter() - began) < args.seconds:
        key, sub = jax.random.split(key)
        state, ended, lengths = move(state, sub)
        games, length, moves = games + int(ended), length + int(lengths), moves + args.games
    rate = moves / seconds
    mean = length / games if games else None
    print(json.dumps({"moves_per_second": rate, "evaluations_per_second": rate * (args.visits + 1),
                      "games_ended": games, "mean_length": mean}))  # fmt: skip


if __name__ == "__main__":
    main()
