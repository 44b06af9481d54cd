"""KataGo's network file, read: a walk through its layers in their fixed order, with KataGo's own checks.

The order and the checks are those of the constructors in KataGo's `cpp/neuralnet/desc.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from keima.errors import UnsupportedNetwork
from keima.networks.katago import KataGoNetwork
from keima.networks.katago_config import (
    BEFORE_13,
    GLOBALS,
    METADATA,
    PLANES,
    VERSIONS,
    AttentionConfig,
    BlockConfig,
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
from keima.networks.network import Array, Pedigree
from keima.weights.katago_tokens import TokenReader

ACTIVATION_WORDS = {
    "ACTIVATION_IDENTITY": "identity",
    "ACTIVATION_RELU": "relu",
    "ACTIVATION_MISH": "mish",
    "ACTIVATION_SILU": "silu",
}
"""What files call the activations."""

_MAX_DEPTH = 8
"""Nested bottlenecks inside each other; KataGo's own have one level."""


class NetworkReader:
    """Walks the file once: sizes become a `KataGoConfig`, weights a state dict by the network's parameter names."""

    def __init__(self, tokens: TokenReader) -> None:
        self.tokens = tokens
        self.version = 0
        self.state: dict[str, Tensor] = {}

    def network(self) -> KataGoNetwork:
        """The whole file."""
        name = self.tokens.name("the network")
        config = self._config()
        self.tokens.finish()
        with torch.device("meta"):
            network = KataGoNetwork(config, Pedigree(name, self.tokens.source, f"KataGo model version {self.version}"))
        network.load_state_dict(self.state, strict=True, assign=True)
        return network.requires_grad_(True).eval()

    def _config(self) -> KataGoConfig:
        tokens = self.tokens
        self.version = tokens.integer("the model version", 0, 9999)
        if self.version not in VERSIONS:
            raise self._unsupported(
                f"KataGo model version {self.version} is not supported; "
                f"keima runs versions {VERSIONS[0]} to {VERSIONS[-1]}"
            )
        for what, expected in (("planes", PLANES), ("globals", GLOBALS)):
            found = tokens.integer(f"the number of input {what}")
            if found != expected:
                raise tokens.error(f"{found} input {what}, but version {self.version} has {expected}")
        multipliers = BEFORE_13
        if self.version >= 13:
            multipliers = Multipliers(*(tokens.number(f"multiplier {i} of 7") for i in range(1, 8)))
        has_metadata, pass_alive = False, False
        if self.version >= 15:
            has_metadata = self._option("metadata encoder version", 1) == 1
            pass_alive = self._option("pass-alive flag", 1) == 1
            self._unused(6, "model option")
        return self._trunk_and_heads(multipliers, has_metadata, pass_alive)

    def _trunk_and_heads(self, multipliers: Multipliers, has_metadata: bool, pass_alive: bool) -> KataGoConfig:
        tokens = self.tokens
        tokens.name("the trunk")
        count = tokens.integer("the number of blocks")
        channels = tokens.integer("the number of trunk channels")
        middle, regular, dilated, pooled = (
            tokens.integer(f"the number of {what} channels", 0) for what in ("middle", "regular", "dilated", "pooled")
        )
        tip_kind = 0
        if self.version >= 15:
            tip_kind = self._option("kind of the trunk's last norm", 1)
            self._unused(5, "trunk option")
        kernel, _ = self._conv("conv", PLANES, channels)
        self._matrix("linear", GLOBALS, channels)
        metadata = self._metadata("metadata", channels) if has_metadata else None
        blocks = self._blocks("blocks", count, channels, 0)
        tip = self._rms_norm_act("tip", channels) if tip_kind else self._norm_act("tip", channels)
        return KataGoConfig(
            version=self.version,
            channels=channels,
            blocks=blocks,
            tip=tip,
            policy=self._policy("policy", channels),
            value=self._value("value", channels),
            metadata=metadata,
            stem_kernel=kernel,
            pass_alive_suicide=pass_alive,
            multipliers=multipliers,
            nominal=(middle, regular, dilated, pooled),
        )

    # Layers: each takes the key of its weights in the state dict, and the sizes it must have.

    def _conv(self, key: str, inputs: int, outputs: int | None = None) -> tuple[int, int]:
        """A convolution; its kernel size and output channels."""
        tokens = self.tokens
        tokens.name("a convolution")
        height, width = (tokens.integer(f"the kernel's {what}", high=99) for what in ("height", "width"))
        if height != width or height % 2 == 0:
            raise tokens.error(f"a {height}×{width} kernel; keima runs square kernels of odd size")
        found_in = self._expect("input channels", inputs)
        found_out = self._expect("output channels", outputs)
        if (tokens.integer("the dilation"), tokens.integer("the dilation")) != (1, 1):
            raise self._unsupported("a dilated convolution; keima runs dilation 1 only")
        weight = tokens.floats(height * width * found_in * found_out).reshape(height, width, found_in, found_out)
        self._keep(f"{key}.weight", weight.transpose(3, 2, 0, 1))
        return height, found_out

    def _matrix(self, key: str, inputs: int, outputs: int | None = None) -> int:
        """A matrix; its output channels."""
        self.tokens.name("a matrix")
        found_in = self._expect("input channels", inputs)
        found_out = self._expect("output channels", outputs)
        self._keep(f"{key}.weight", self.tokens.floats(found_in * found_out).reshape(found_in, found_out).T)
        return found_out

    def _bias(self, key: str, channels: int) -> None:
        self.tokens.name("a bias")
        self._expect("channels", channels)
        self._keep(f"{key}.bias", self.tokens.floats(channels))

    def _norm_act(self, key: str, channels: int) -> NormConfig:
        """A batch norm layer as files write every norm of a convolutional trunk, and the activation after it."""
        tokens = self.tokens
        tokens.name("a norm")
        self._expect("channels", channels)
        epsilon = tokens.number("epsilon")
        has_scale, has_bias = (tokens.integer(f"whether there is a {what}", 0, 1) for what in ("scale", "bias"))
        mean, var = tokens.floats(channels), tokens.floats(channels)
        if (var < 0).any():
            raise tokens.error("a negative variance")
        statistics = bool(mean.any() or (var + np.float32(epsilon) != 1).any())
        if statistics:
            self._keep(f"{key}.running_mean", mean)
            self._keep(f"{key}.running_var", var)
        if has_scale:
            self._keep(f"{key}.weight", tokens.floats(channels))
        if has_bias:
            self._keep(f"{key}.bias", tokens.floats(channels))
        return NormConfig(self._activation(), bool(has_scale), bool(has_bias), statistics, epsilon)

    def _rms_norm_act(self, key: str, channels: int) -> RmsConfig:
        tokens = self.tokens
        tokens.name("an RMS norm")
        self._expect("channels", channels)
        epsilon = tokens.number("epsilon", high=1.0)
        spatial = tokens.integer("whether the norm is spatial", 0, 1)
        if tokens.integer("the channel group size", 0) != 0:
            raise self._unsupported("a grouped RMS norm, which KataGo does not run either")
        self._keep(f"{key}.weight", tokens.floats(channels))
        self._keep(f"{key}.bias", tokens.floats(channels))
        return RmsConfig(self._activation(), bool(spatial), epsilon)

    def _token_norm(self, key: str, channels: int) -> float:
        """An RMS norm inside a transformer block; its epsilon."""
        self.tokens.name("an RMS norm")
        self._expect("channels", channels)
        epsilon = self.tokens.number("epsilon", high=1.0)
        self._keep(f"{key}.weight", self.tokens.floats(channels))
        return epsilon

    def _activation(self) -> str:
        self.tokens.name("an activation")
        if self.version < 11:
            return "relu"
        kind = self.tokens.word("the kind of activation").decode("ascii")
        if kind not in ACTIVATION_WORDS:
            raise self._unsupported(f"unknown activation {kind!r}; keima runs {', '.join(ACTIVATION_WORDS)}")
        return ACTIVATION_WORDS[kind]

    # Blocks

    def _blocks(self, key: str, count: int, channels: int, depth: int) -> tuple[BlockConfig, ...]:
        return tuple(self._block(f"{key}.{number}", channels, depth) for number in range(count))

    def _block(self, key: str, channels: int, depth: int) -> BlockConfig:
        kind = self.tokens.word("the kind of a block").decode("ascii")
        readers: dict[str, Callable[[], BlockConfig]] = {
            "ordinary_block": lambda: self._residual_block(key, channels),
            "gpool_block": lambda: self._pooling_block(key, channels),
            "nested_bottleneck_block": lambda: self._bottleneck_block(key, channels, depth),
            "transformer_attention_block": lambda: self._attention_block(key, channels),
            "transformer_ffn_block": lambda: self._feed_forward_block(key, channels),
        }
        if kind not in readers:
            raise self._unsupported(f"unknown kind of block {kind!r}; keima runs {', '.join(readers)}")
        self.tokens.name("a block")
        return readers[kind]()

    def _residual_block(self, key: str, channels: int) -> ResidualConfig:
        first = self._norm_act(f"{key}.norm1", channels)
        kernel1, middle = self._conv(f"{key}.conv1", channels)
        second = self._norm_act(f"{key}.norm2", middle)
        kernel2, _ = self._conv(f"{key}.conv2", middle, channels)
        return ResidualConfig(middle, first, second, (kernel1, kernel2))

    def _pooling_block(self, key: str, channels: int) -> PoolingConfig:
        first = self._norm_act(f"{key}.norm1", channels)
        kernel1, middle = self._conv(f"{key}.conv1", channels)
        kernel_pool, pooled = self._conv(f"{key}.pool_conv", channels)
        pool = self._norm_act(f"{key}.pool_norm", pooled)
        self._matrix(f"{key}.pool_linear", 3 * pooled, middle)
        second = self._norm_act(f"{key}.norm2", middle)
        kernel2, _ = self._conv(f"{key}.conv2", middle, channels)
        return PoolingConfig(middle, pooled, first, pool, second, (kernel1, kernel_pool, kernel2))

    def _bottleneck_block(self, key: str, channels: int, depth: int) -> BottleneckConfig:
        if depth >= _MAX_DEPTH:
            raise self._unsupported(f"nested bottlenecks more than {_MAX_DEPTH} deep")
        count = self.tokens.integer("the number of inner blocks")
        first = self._norm_act(f"{key}.norm1", channels)
        kernel1, middle = self._conv(f"{key}.conv1", channels)
        blocks = self._blocks(f"{key}.blocks", count, middle, depth + 1)
        last = self._norm_act(f"{key}.norm2", middle)
        kernel2, _ = self._conv(f"{key}.conv2", middle, channels)
        return BottleneckConfig(middle, blocks, first, last, (kernel1, kernel2))

    def _attention_block(self, key: str, channels: int) -> AttentionConfig:
        tokens = self.tokens
        heads = tokens.integer("the number of heads")
        shared = tokens.integer("the number of key-value heads")
        keys = tokens.integer("the channels of a query head")
        values = tokens.integer("the channels of a value head")
        has_rotary = tokens.integer("whether there is a rotary embedding", 0, 1)
        learned = tokens.integer("whether it is learned", 0, 1)
        if heads % shared:
            raise tokens.error(f"{heads} heads cannot share {shared} key-value heads evenly")
        if has_rotary and keys % 2:
            raise tokens.error(f"{keys} channels in a query head; a rotary embedding needs an even number")
        epsilon = self._token_norm(f"{key}.norm", channels)
        self._matrix(f"{key}.query", channels, heads * keys)
        self._matrix(f"{key}.key", channels, shared * keys)
        self._matrix(f"{key}.value", channels, shared * values)
        self._matrix(f"{key}.out", heads * values, channels)
        rotary, theta = "none", AttentionConfig.theta
        if has_rotary and learned:
            rotary = "learned"
            tokens.name("the rotary frequencies")
            for what, expected in (("heads", shared), ("pairs", keys // 2), ("directions", 2)):
                self._expect(what, expected)
            self._keep(f"{key}.frequencies", tokens.floats(shared * keys).reshape(shared, keys // 2, 2))
        elif has_rotary:
            rotary = "fixed"
            tokens.name("the rotary base")
            theta = tokens.number("the rotary base")
        return AttentionConfig(heads, shared, keys, values, rotary, theta, epsilon)

    def _feed_forward_block(self, key: str, channels: int) -> FeedForwardConfig:
        self._expect("channels", channels)
        hidden = self.tokens.integer("the number of hidden channels")
        if self.tokens.integer("whether the layer is gated", 0, 1) == 0:
            raise self._unsupported("a feed-forward block without a gate, which KataGo does not run either")
        epsilon = self._token_norm(f"{key}.norm", channels)
        self._matrix(f"{key}.linear", channels, hidden)
        self._matrix(f"{key}.gate", channels, hidden)
        self._matrix(f"{key}.out", hidden, channels)
        return FeedForwardConfig(hidden, epsilon)

    def _metadata(self, key: str, channels: int) -> MetadataConfig:
        self.tokens.name("the metadata encoder")
        self._expect("metadata inputs", METADATA)
        first = self._matrix(f"{key}.linear1", METADATA)
        self._bias(f"{key}.linear1", first)
        act1 = self._activation()
        second = self._matrix(f"{key}.linear2", first)
        self._bias(f"{key}.linear2", second)
        act2 = self._activation()
        self._matrix(f"{key}.linear3", second, channels)
        return MetadataConfig((first, second), (act1, act2))

    # Heads

    def _policy(self, key: str, channels: int) -> PolicyConfig:
        tokens = self.tokens
        tokens.name("the policy head")
        outputs = policy_outputs(self.version)[0]
        if self.version >= 17:
            outputs = tokens.integer("the number of policy outputs")
            if outputs not in policy_outputs(self.version):
                raise tokens.error(f"{outputs} policy outputs; version {self.version} has 2 or 4")
            self._unused(3, "policy option")
        kernel1, middle = self._conv(f"{key}.conv", channels)
        kernel_pool, pooled = self._conv(f"{key}.pool_conv", channels)
        pool = self._norm_act(f"{key}.pool_norm", pooled)
        self._matrix(f"{key}.pool_linear", 3 * pooled, middle)
        board = self._norm_act(f"{key}.norm", middle)
        kernel2, _ = self._conv(f"{key}.out", middle, outputs)
        activation = None
        if self.version >= 15:
            self._matrix(f"{key}.pass_hidden", 3 * pooled, middle)
            self._bias(f"{key}.pass_hidden", middle)
            activation = self._activation()
            self._matrix(f"{key}.pass_out", middle, outputs)
        else:
            self._matrix(f"{key}.pass_out", 3 * pooled, outputs)
        return PolicyConfig(middle, pooled, outputs, pool, board, activation, (kernel1, kernel_pool, kernel2))

    def _value(self, key: str, channels: int) -> ValueConfig:
        self.tokens.name("the value head")
        if self.version >= 17:
            self._unused(3, "value option")
        kernel1, middle = self._conv(f"{key}.conv", channels)
        norm = self._norm_act(f"{key}.norm", middle)
        hidden = self._matrix(f"{key}.linear", 3 * middle)
        self._bias(f"{key}.linear", hidden)
        activation = self._activation()
        for layer, outputs in (("value", 3), ("score", 6 if self.version >= 9 else 4)):
            self._matrix(f"{key}.{layer}", hidden, outputs)
            self._bias(f"{key}.{layer}", outputs)
        kernel2, _ = self._conv(f"{key}.ownership", middle, 1)
        return ValueConfig(middle, hidden, norm, activation, (kernel1, kernel2))

    # Small things

    def _keep(self, key: str, values: Array) -> None:
        self.state[key] = torch.from_numpy(np.ascontiguousarray(values))

    def _expect(self, what: str, expected: int | None) -> int:
        """The next integer, which must be `expected` unless that is None."""
        found = self.tokens.integer(f"the number of {what}")
        if expected is not None and found != expected:
            raise self.tokens.error(f"{found} {what}, but the layers around it need {expected}")
        return found

    def _option(self, what: str, high: int) -> int:
        value = self.tokens.integer(f"the {what}", -999_999)
        if not 0 <= value <= high:
            raise self._unsupported(f"{what} {value}; keima runs 0 to {high}")
        return value

    def _unused(self, count: int, what: str) -> None:
        """Places that KataGo keeps free for what is to come; anything but 0 is something newer."""
        for number in range(1, count + 1):
            value = self.tokens.integer(f"{what} {number}", -999_999)
            if value != 0:
                raise self._unsupported(f"{what} {number} is {value}; this file needs a newer KataGo")

    def _unsupported(self, message: str) -> UnsupportedNetwork:
        place = f"{self.tokens.layer}, byte {self.tokens.at:,}"
        return UnsupportedNetwork(message, source=self.tokens.source, place=place)
