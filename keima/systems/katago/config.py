"""KataGo's architectures as data: what a file's header and layer sizes say.

Every number here is one that KataGo writes to its files (`cpp/neuralnet/desc.cpp`, `python/export_model_pytorch.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias

from keima.errors import BadWeights, UnsupportedNetwork
from keima.plain import Data, Fields

VERSIONS = range(8, 18)  # the model versions keima runs: those that take inputs V7 (22 planes, 19 globals)

PLANES, GLOBALS, METADATA = 22, 19, 192  # of the three inputs (`cpp/neuralnet/nninputs.h`, `sgfmetadata.h`)


@dataclass(frozen=True)
class NormConfig:
    """A per-channel norm and the activation after it: act(x · scale + bias)."""

    activation: str = "relu"  # "identity", "relu", "mish" or "silu"
    scale: bool = True  # whether the layer has one; an absent scale is 1
    bias: bool = True  # likewise; an absent bias is 0
    # True for batch norm with its running mean and variance; False where x is only scaled and shifted (fixup, fixed
    # scaling, and every batch norm whose statistics were folded in before the file was written)
    statistics: bool = False
    epsilon: float = 1e-20  # added to the variance. Files say 1e-20: there the variance is stored with it inside


@dataclass(frozen=True)
class RmsConfig:
    """RMS norm at the tip of the trunk, then an activation; `spatial`: one RMS for all points, not one for each."""

    activation: str = "silu"
    spatial: bool = False
    epsilon: float = 1e-6


@dataclass(frozen=True)
class ResidualConfig:
    """x + conv(norm(conv(norm(x)))) with `channels` in the middle."""

    channels: int
    first: NormConfig = NormConfig()
    second: NormConfig = NormConfig()
    kernels: tuple[int, int] = (3, 3)


@dataclass(frozen=True)
class PoolingConfig:
    """A residual block whose middle gets a bias from `pooled` channels pooled over the whole board."""

    channels: int
    pooled: int
    first: NormConfig = NormConfig()
    pool: NormConfig = NormConfig()
    second: NormConfig = NormConfig()
    kernels: tuple[int, int, int] = (3, 3, 3)  # of the regular, the pooled and the last convolution


@dataclass(frozen=True)
class BottleneckConfig:
    """A nested bottleneck: down to `channels` by a 1×1 convolution, `blocks` there, and back up."""

    channels: int
    blocks: tuple[BlockConfig, ...]
    first: NormConfig = NormConfig()
    last: NormConfig = NormConfig()
    kernels: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class AttentionConfig:
    """Self-attention over the points, `heads` queries sharing `key_value_heads` keys and values."""

    heads: int
    key_value_heads: int
    key_channels: int
    value_channels: int
    # "none", "fixed" (half the pairs follow the row, half the column; base `theta`) or "learned" (a frequency in x and
    # in y for each pair of each key-value head)
    rotary: str = "fixed"
    theta: float = 100.0
    epsilon: float = 1e-6


@dataclass(frozen=True)
class FeedForwardConfig:
    """The gated feed-forward half of a transformer layer: silu(W1 x) · (Wg x), then W2."""

    channels: int
    epsilon: float = 1e-6


BlockConfig: TypeAlias = ResidualConfig | PoolingConfig | BottleneckConfig | AttentionConfig | FeedForwardConfig


@dataclass(frozen=True)
class PolicyConfig:
    """The policy head."""

    channels: int  # of its board branch
    pooled: int  # of the branch that is pooled over the board
    outputs: int  # 1 = policy; 2 = policy, optimistic policy; 4 = those and q win−loss, q score
    pool: NormConfig = NormConfig(scale=False)  # the norm of the pooled branch
    board: NormConfig = NormConfig(scale=False)
    pass_activation: str | None = None  # between the two layers of the pass branch (version ≥ 15); None = one layer
    kernels: tuple[int, int, int] = (1, 1, 1)  # of the board, the pooled and the last convolution


@dataclass(frozen=True)
class ValueConfig:
    """The value, score and ownership head: `channels` on the board, `hidden` units after pooling."""

    channels: int
    hidden: int
    norm: NormConfig = NormConfig(scale=False)
    activation: str = "relu"
    kernels: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class MetadataConfig:
    """The encoder of who is playing (human networks): 192 inputs, two hidden layers, one bias per trunk channel."""

    hidden: tuple[int, int]
    activations: tuple[str, str]


@dataclass(frozen=True)
class Multipliers:
    """What KataGo multiplies raw outputs by (`ModelPostProcessParams`); files say so from version 13 on."""

    td_score: float = 20.0
    score_mean: float = 20.0
    score_stdev: float = 20.0
    lead: float = 20.0
    variance_time: float = 40.0
    shortterm_winloss_error: float = 0.25
    shortterm_score_error: float = 150.0


BEFORE_13 = Multipliers(shortterm_score_error=30.0)  # multipliers of versions 8 to 12, which do not write them


@dataclass(frozen=True)
class KataGoConfig:
    """One KataGo network, completely."""

    version: int  # KataGo's model version, 8 to 17
    channels: int  # of the trunk
    blocks: tuple[BlockConfig, ...]  # of the trunk
    tip: NormConfig | RmsConfig  # the norm after the last block
    policy: PolicyConfig
    value: ValueConfig
    metadata: MetadataConfig | None = None  # of human networks (version ≥ 15), or None
    stem_kernel: int = 3  # 5 in the g170 networks, 3 since
    pass_alive_suicide: bool = False  # area features are made as if multi-stone suicide were legal (version 17)
    multipliers: Multipliers = Multipliers()  # of the score outputs
    # middle, regular, dilated and pooled channels as the trunk's header line names them; KataGo reads and ignores them,
    # so they are kept only to be written back
    nominal: tuple[int, int, int, int] = (1, 1, 1, 1)
    # a head that only training asks, for the opponent's reply (Wu 2019, §4.2); KataGo's files leave it out, as here
    reply: bool = False

    def __post_init__(self) -> None:
        if self.version not in VERSIONS:
            found = f"KataGo model version {self.version}"
            raise UnsupportedNetwork(f"{found} is not supported; keima runs versions {VERSIONS[0]} to {VERSIONS[-1]}")
        if self.policy.outputs not in policy_outputs(self.version):
            wants = " or ".join(str(count) for count in policy_outputs(self.version))
            found = f"{self.policy.outputs} policy outputs"
            raise UnsupportedNetwork(f"{found} in model version {self.version}, which has {wants}")
        if (self.policy.pass_activation is None) != (self.version < 15):
            raise UnsupportedNetwork("the pass branch has two layers from model version 15 on, and one before")
        if self.version < 15 and (self.metadata is not None or self.pass_alive_suicide):
            raise UnsupportedNetwork("the metadata encoder and the pass-alive flag need model version 15 or later")
        if self.version < 13 and self.multipliers != BEFORE_13:
            raise UnsupportedNetwork("model versions before 13 have fixed multipliers; use BEFORE_13")

    @property
    def scores(self) -> int:
        """How many score outputs the value head has: mean, stdev, lead, time variance; from 9 on two errors as well."""
        return 6 if self.version >= 9 else 4

    def to_json(self) -> Data:
        """Plain JSON data, read back by `from_json`."""
        plain: Data = _to_json(self)
        return plain

    @staticmethod
    def from_json(data: Fields) -> KataGoConfig:
        """The config that `to_json` described; raises BadWeights if the data describes none."""
        try:
            config = _from_json(data)
        except (KeyError, TypeError) as error:
            raise BadWeights(f"not a KataGo configuration: {error}") from error
        if not isinstance(config, KataGoConfig):
            raise BadWeights("not a KataGo configuration")
        return config


def policy_outputs(version: int) -> tuple[int, ...]:
    """The policy head sizes that a model version may have (`PolicyHeadDesc` in `cpp/neuralnet/desc.cpp`)."""
    return (2, 4) if version >= 17 else (4,) if version == 16 else (2,) if version >= 12 else (1,)


_KINDS: dict[str, Any] = {name: kind for name, kind in globals().items() if is_dataclass(kind)}


def _to_json(value: Any) -> Any:
    if is_dataclass(value):
        named = {field.name: _to_json(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **named}
    return [_to_json(item) for item in value] if isinstance(value, tuple) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        named = {name: _from_json(item) for name, item in value.items() if name != "kind"}
        return _KINDS[value["kind"]](**named)
    return tuple(_from_json(item) for item in value) if isinstance(value, list) else value
