"""Small KataGo networks of every generation and block family, with random weights, for tests to share."""

from __future__ import annotations

import torch

from keima.systems.katago.config import (
    BEFORE_13,
    AttentionConfig,
    BottleneckConfig,
    FeedForwardConfig,
    KataGoConfig,
    MetadataConfig,
    Multipliers,
    NormConfig,
    PolicyConfig,
    PoolingConfig,
    ResidualConfig,
    RmsConfig,
    ValueConfig,
    policy_outputs,
)
from keima.systems.katago.layers import NormAct
from keima.systems.katago.network import KataGoNetwork
from keima.systems.network import Pedigree

BATCH = NormConfig("relu", scale=False, statistics=True, epsilon=1e-3)
MISH = NormConfig("mish")
SILU = NormConfig("silu")


def _config(version, blocks, tip, **more):
    activation = tip.activation
    bare = NormConfig(activation, scale=False)
    passing = activation if version >= 15 else None
    multipliers = Multipliers(shortterm_score_error=120.5) if version >= 13 else BEFORE_13
    return KataGoConfig(
        version=version,
        channels=6,
        blocks=blocks,
        tip=tip,
        policy=PolicyConfig(5, 3, policy_outputs(version)[-1], bare, bare, passing),
        value=ValueConfig(4, 7, bare, activation),
        multipliers=multipliers,
        nominal=(6, 4, 2, 2),
        **more,
    )


def _residual(version, **more):
    blocks = (ResidualConfig(6, BATCH, NormConfig("relu")), PoolingConfig(4, 3, BATCH, BATCH, BATCH))
    return _config(version, blocks, BATCH, **more)


def _nested(version, **more):
    inner = (PoolingConfig(3, 2, MISH, MISH, MISH), ResidualConfig(5, MISH, MISH))
    tip = NormConfig("mish", statistics=True, epsilon=1e-20)
    return _config(version, (BottleneckConfig(5, inner, MISH, MISH), ResidualConfig(4, MISH, MISH)), tip, **more)


def _transformer(spatial):
    fixed = AttentionConfig(2, 2, 6, 4, "fixed", theta=50.0, epsilon=1e-5)
    learned = AttentionConfig(4, 2, 4, 3, "learned")
    alone = AttentionConfig(3, 1, 3, 2, "none")
    inner = BottleneckConfig(5, (learned, FeedForwardConfig(9)), SILU, SILU)
    return _config(17, (fixed, FeedForwardConfig(8), inner, alone), RmsConfig("silu", spatial))


CONFIGS = {
    "v8-residual": _residual(8, stem_kernel=5),
    "v9-residual": _residual(9),
    "v10-residual": _residual(10),
    "v11-nested": _nested(11),
    "v12-nested": _nested(12),
    "v13-nested": _nested(13),
    "v14-nested": _nested(14),
    "v15-metadata": _nested(15, metadata=MetadataConfig((5, 4), ("mish", "identity"))),
    "v16-residual": _residual(16),
    "v17-residual": _residual(17, pass_alive_suicide=True),
    "v17-transformer": _transformer(spatial=False),
    "v17-spatial": _transformer(spatial=True),
}


def tiny(name: str) -> KataGoNetwork:
    """The network of that name, in evaluation mode, no weight of it left at its starting value."""
    torch.manual_seed(7)
    network = KataGoNetwork(CONFIGS[name], Pedigree(name))
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, NormAct) and module.config.statistics:
                module.running_mean.normal_(0.0, 0.3)
                module.running_var.uniform_(0.5, 2.0)
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return network.eval()
