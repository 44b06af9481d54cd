"""KataGo's own network files (`.bin.gz`, `.txt.gz`, or unpacked) ↔ `KataGoNetwork`, model versions 8 to 17.

`describe` describes the whole file, top to bottom: the layers stand in a fixed order, each as a name, its sizes and its
floats; convolutions as y, x, in, out and matrices as in, out. The same description reads and writes: `Tokens` takes
what the network holds and returns what the file holds. When reading, the configurations that go in are blank, and those
that come out are the file's.

Order and checks are those of KataGo's `cpp/neuralnet/desc.cpp`; the layers' names those of its present exporter
(`python/export_model_pytorch.py`), so its files come back to the byte. Older files (g170) name them otherwise. Names
mean nothing to KataGo: read ones are checked to be names and no more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import astuple, replace

import numpy as np
import torch

from keima.errors import BadWeights, UnsupportedNetwork
from keima.systems.files.contents import Format, atomic_write, read_bytes, sha256_of
from keima.systems.katago.config import (
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
from keima.systems.katago.file_tokens import TokenReader, Tokens, TokenWriter
from keima.systems.katago.network import KataGoNetwork
from keima.systems.network import Network, Pedigree

_HEAD = re.compile(rb"\s*[!-~]*[A-Za-z_][!-~]*\s+[0-9]{1,4}\s+[0-9]{1,4}\s+[0-9]{1,4}\s+([0-9.]+\s|[A-Za-z])")
_MAX_NAME = 96
_MAX_BLOCKS = 1024
_MAX_DEPTH = 8  # nested bottlenecks inside each other; KataGo's own have one level

_ACTIVATIONS = {
    "ACTIVATION_IDENTITY": "identity",
    "ACTIVATION_RELU": "relu",
    "ACTIVATION_MISH": "mish",
    "ACTIVATION_SILU": "silu",
}
_Block = ResidualConfig | BottleneckConfig
_BLOCKS: dict[str, BlockConfig] = {
    "ordinary_block": ResidualConfig(0),
    "gpool_block": PoolingConfig(0, 0),
    "nested_bottleneck_block": BottleneckConfig(0, ()),
    "transformer_attention_block": AttentionConfig(0, 0, 0, 0),
    "transformer_ffn_block": FeedForwardConfig(0),
}
"""What files call the blocks → a blank configuration of each."""


def looks_like_katago(data: bytes) -> bool:
    """Whether contents begin like a KataGo network: a name, three small integers, a number or a name."""
    return _HEAD.match(data[:4096]) is not None


def read_katago(path: str | os.PathLike[str]) -> KataGoNetwork:
    """The network in a KataGo file, text or binary, gzipped or not, whatever its name; in evaluation mode.

    Raises:
        BadWeights: the file is missing, cut short, corrupt, or its layers do not fit together; names layer and byte.
        UnsupportedNetwork: a version below 8 or above 17, or a feature that KataGo itself does not run.
    """
    network = decode_katago(read_bytes(path), os.fspath(path))
    network.pedigree = replace(network.pedigree, sha256=sha256_of(path))
    return network


def write_katago(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a file that KataGo loads: binary when the name holds `.bin`, else text; gzipped when it ends in `.gz`.

    The file is written whole or not at all. KataGo tells binary from text by the name, so keep the ending.

    Raises:
        UnsupportedNetwork: not a KataGo network, or the name ends in none of .bin, .bin.gz, .txt, .txt.gz.
        BadWeights: the file cannot be written, or a weight is not a finite number.
    """
    source = os.fspath(path)
    plain = source.lower().removesuffix(".gz")
    if not plain.endswith((".bin", ".txt")):
        raise UnsupportedNetwork("a KataGo file's name ends in .bin.gz, .txt.gz, .bin or .txt", source=source)
    if not isinstance(network, KataGoNetwork):
        raise UnsupportedNetwork(f"a KataGo file cannot hold a {network.system} network", source=source)
    try:
        atomic_write(path, encode_katago(network, binary=plain.endswith(".bin")))
    except BadWeights as error:
        raise error.at(source=source) from error


FORMATS = (Format("KataGo model versions 8–17 (.bin.gz, .txt.gz)", looks_like_katago, read_katago, write_katago),)


def decode_katago(data: bytes, source: str = "network") -> KataGoNetwork:
    """The network in the unpacked contents of a KataGo file; errors as by `read_katago`, in which `source` names it."""
    tokens = TokenReader(data, source)
    name, config = describe(tokens, "", None)
    tokens.finish()
    with torch.device("meta"):
        network = KataGoNetwork(config, Pedigree(name, source, f"KataGo model version {config.version}"))
    network.load_state_dict(tokens.state, strict=True, assign=True)
    return network.requires_grad_(True).eval()


def encode_katago(network: KataGoNetwork, binary: bool = True) -> bytes:
    """The contents of a KataGo file, not gzipped; raises BadWeights for a weight that is not a finite number."""
    tokens = TokenWriter(network.state_dict(), binary)
    describe(tokens, network.pedigree.name, network.config)
    return tokens.result()


# --- The file ---------------------------------------------------------------------------------------------------------


def describe(f: Tokens, name: str, config: KataGoConfig | None) -> tuple[str, KataGoConfig]:
    """Header, trunk, heads: what the file says of both; `config` is None when reading."""
    name = f.name("the network", re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_MAX_NAME] or "keima")
    version = f.integer("the model version", config.version if config else 0, 0, 9999)
    if version not in VERSIONS:
        supported = f"keima runs versions {VERSIONS[0]} to {VERSIONS[-1]}"
        raise f.unsupported(f"KataGo model version {version} is not supported; {supported}")
    c = config or _blank(version)
    for what, expected in (("planes", PLANES), ("globals", GLOBALS)):
        found = f.integer(f"the number of input {what}", expected)
        if found != expected:
            raise f.error(f"{found} input {what}, but version {version} has {expected}")
    times, metadata, pass_alive = BEFORE_13, False, False
    if version >= 13:
        values = enumerate(astuple(c.multipliers), start=1)
        times = Multipliers(*(f.number(f"multiplier {number} of 7", value) for number, value in values))
    if version >= 15:
        metadata = _option(f, "metadata encoder version", c.metadata is not None)
        pass_alive = _option(f, "pass-alive flag", c.pass_alive_suicide)
        _zeros(f, 6, "model option")
    f.name("the trunk", "trunk")
    count = f.integer("the number of blocks", len(c.blocks))
    channels = f.integer("the number of trunk channels", c.channels)
    middle, regular, dilated, pooled = (
        f.integer(f"the number of {what} channels", number, 0)
        for what, number in zip(("middle", "regular", "dilated", "pooled"), c.nominal, strict=True)
    )
    rms = False
    if version >= 15:
        rms = _option(f, "kind of the trunk's last norm", isinstance(c.tip, RmsConfig))
        _zeros(f, 5, "trunk option")
    layers = _Layers(f, version)
    _, kernel = layers.convolution("conv", "model.conv_spatial", PLANES, channels, c.stem_kernel)
    layers.matrix("linear", "model.linear_global", GLOBALS, channels)
    return name, KataGoConfig(
        version=version,
        channels=channels,
        metadata=layers.metadata(channels, c.metadata or MetadataConfig((0, 0), ("", ""))) if metadata else None,
        blocks=layers.blocks("blocks", "model.blocks", count, channels, c.blocks),
        tip=layers.tip(channels, c.tip if rms == isinstance(c.tip, RmsConfig) else RmsConfig()),
        policy=layers.policy(channels, c.policy),
        value=layers.value(channels, c.value),
        stem_kernel=kernel,
        pass_alive_suicide=pass_alive,
        multipliers=times,
        nominal=(middle, regular, dilated, pooled),
    )


def _blank(version: int) -> KataGoConfig:
    """What to read into."""
    passing = "relu" if version >= 15 else None
    multipliers = Multipliers() if version >= 13 else BEFORE_13
    policy = PolicyConfig(0, 0, policy_outputs(version)[0], pass_activation=passing)
    return KataGoConfig(version, 0, (), NormConfig(), policy, ValueConfig(0, 0), multipliers=multipliers)


def _option(f: Tokens, what: str, value: bool) -> bool:
    """A flag of which later versions of KataGo may know more values."""
    found = f.integer(f"the {what}", int(value), -999_999)
    if not 0 <= found <= 1:
        raise f.unsupported(f"{what} {found}; keima runs 0 to 1")
    return found == 1


def _zeros(f: Tokens, count: int, what: str) -> None:
    """Places that KataGo keeps free for what is to come; anything but 0 is something newer."""
    for number in range(1, count + 1):
        value = f.integer(f"{what} {number}", 0, -999_999)
        if value != 0:
            raise f.unsupported(f"{what} {number} is {value}; this file needs a newer KataGo")


class _Layers:
    """The layers, each given the tensors' key, the exporter's name, its sizes and its configuration (blank when read).

    Methods return what the file holds: sizes, or a configuration. An output size is the file's to choose where `free`.
    """

    def __init__(self, f: Tokens, version: int) -> None:
        self.f = f
        self.version = version
        self._count = 0

    def convolution(
        self, key: str, name: str, inputs: int, outputs: int, kernel: int, free: bool = False
    ) -> tuple[int, int]:
        """Returns the output channels and the kernel's size."""
        f = self.f
        f.name("a convolution", name)
        height, width = (f.integer(f"the kernel's {what}", kernel, high=99) for what in ("height", "width"))
        if height != width or height % 2 == 0:
            raise f.error(f"a {height}×{width} kernel; keima runs square kernels of odd size")
        inputs = f.size("input channels", inputs)
        outputs = f.size("output channels", outputs, free)
        if (f.integer("the dilation", 1), f.integer("the dilation", 1)) != (1, 1):
            raise f.unsupported("a dilated convolution; keima runs dilation 1 only")
        f.floats(f"{key}.weight", (height, width, inputs, outputs), (3, 2, 0, 1))
        return outputs, height

    def matrix(self, key: str, name: str, inputs: int, outputs: int, free: bool = False) -> int:
        self.f.name("a matrix", name)
        inputs = self.f.size("input channels", inputs)
        outputs = self.f.size("output channels", outputs, free)
        self.f.floats(f"{key}.weight", (inputs, outputs), (1, 0))
        return outputs

    def bias(self, key: str, name: str, channels: int) -> None:
        self.f.name("a bias", name)
        self.f.floats(f"{key}.bias", (self.f.size("channels", channels),))

    def norm(self, key: str, name: str, act: str, channels: int, config: NormConfig) -> NormConfig:
        """A batch norm, as files write every norm of a convolutional trunk, and the activation after it."""
        f = self.f
        f.name("a norm", name)
        shape = (f.size("channels", channels),)
        epsilon = f.number("epsilon", config.epsilon)
        scale = f.integer("whether there is a scale", int(config.scale), 0, 1) == 1
        bias = f.integer("whether there is a bias", int(config.bias), 0, 1) == 1
        mean = f.floats(f"{key}.running_mean", shape)
        var = f.floats(f"{key}.running_var", shape, absent=1.0)
        if (var < 0).any() or not (var + np.float32(epsilon)).all():
            raise f.error("a negative variance, or one of 0")
        statistics = bool(mean.any() or (var + np.float32(epsilon) != 1).any())
        if not statistics:
            for statistic in ("running_mean", "running_var"):
                f.state.pop(f"{key}.{statistic}", None)
        if scale:
            f.floats(f"{key}.weight", shape)
        if bias:
            f.floats(f"{key}.bias", shape)
        return NormConfig(self.activation(act, config.activation), scale, bias, statistics, epsilon)

    def first(self, key: str, name: str, channels: int, c: _Block) -> tuple[NormConfig, int, int]:
        """The first norm and convolution of a block; the norm, the output channels, the kernel's size."""
        norm = self.norm(f"{key}.norm1", f"{name}.norm", f"{name}.act", channels, c.first)
        return norm, *self.convolution(f"{key}.conv1", f"{name}.conv", channels, c.channels, c.kernels[0], True)

    def last(
        self, key: str, name: str, sizes: tuple[int, int], norm: NormConfig, kernel: int
    ) -> tuple[NormConfig, int]:
        """The last norm and convolution of a block; the norm, the kernel's size."""
        norm = self.norm(f"{key}.norm2", f"{name}.norm", f"{name}.act", sizes[0], norm)
        return norm, self.convolution(f"{key}.conv2", f"{name}.conv", *sizes, kernel)[1]

    def tip(self, channels: int, config: NormConfig | RmsConfig) -> NormConfig | RmsConfig:
        f, name, act = self.f, "model.norm_trunkfinal", "model.act_trunkfinal"
        if isinstance(config, NormConfig):
            return self.norm("tip", name, act, channels, config)
        epsilon = self.rms(name, channels, config.epsilon)
        spatial = f.integer("whether the norm is spatial", int(config.spatial), 0, 1) == 1
        if f.integer("the channel group size", 0, 0) != 0:
            raise f.unsupported("a grouped RMS norm, which KataGo does not run either")
        f.floats("tip.weight", (channels,))
        f.floats("tip.bias", (channels,))
        return RmsConfig(self.activation(act, config.activation), spatial, epsilon)

    def rms(self, name: str, channels: int, epsilon: float) -> float:
        """The head of an RMS norm; its epsilon."""
        self.f.name("an RMS norm", name)
        self.f.size("channels", channels)
        return self.f.number("epsilon", epsilon, high=1.0)

    def token_norm(self, key: str, name: str, channels: int, epsilon: float) -> float:
        """An RMS norm inside a transformer block; its epsilon."""
        epsilon = self.rms(name, channels, epsilon)
        self.f.floats(f"{key}.weight", (channels,))
        return epsilon

    def activation(self, name: str, activation: str) -> str:
        """An activation; before version 11 it is always ReLU."""
        self.f.name("an activation", name)
        if self.version < 11:
            if activation != "relu":
                raise self.f.unsupported(f"KataGo model version {self.version} has no activation but ReLU")
            return "relu"
        words = {known: word for word, known in _ACTIVATIONS.items()}
        kind = self.f.word("the kind of activation", words.get(activation, activation))
        if kind not in _ACTIVATIONS:
            raise self.f.unsupported(f"unknown activation {kind!r}; keima runs {', '.join(_ACTIVATIONS)}")
        return _ACTIVATIONS[kind]

    # Blocks

    def blocks(
        self, key: str, name: str, count: int, channels: int, configs: Sequence[BlockConfig], depth: int = 0
    ) -> tuple[BlockConfig, ...]:
        return tuple(
            self.block(f"{key}.{i}", f"{name}.{i}", channels, configs[i] if i < len(configs) else None, depth)
            for i in range(count)
        )

    def block(self, key: str, name: str, channels: int, config: BlockConfig | None, depth: int) -> BlockConfig:
        word = next((word for word, blank in _BLOCKS.items() if type(blank) is type(config)), "")
        kind = self.f.word("the kind of a block", word)
        if kind not in _BLOCKS:
            raise self.f.unsupported(f"unknown kind of block {kind!r}; keima runs {', '.join(_BLOCKS)}")
        self._count += 1
        if self._count > _MAX_BLOCKS:
            raise self.f.unsupported(f"more than {_MAX_BLOCKS:,} blocks")
        self.f.name("a block", name)
        match config or _BLOCKS[kind]:
            case ResidualConfig() as residual:
                return self.residual_block(key, name, channels, residual)
            case PoolingConfig() as pooling:
                return self.pooling_block(key, name, channels, pooling)
            case BottleneckConfig() as bottleneck:
                return self.bottleneck_block(key, name, channels, bottleneck, depth)
            case AttentionConfig() as attention:
                return self.attention_block(key, name, channels, attention)
            case FeedForwardConfig() as feed_forward:
                return self.feed_forward_block(key, name, channels, feed_forward)

    def residual_block(self, key: str, name: str, channels: int, c: ResidualConfig) -> ResidualConfig:
        first, middle, kernel1 = self.first(key, f"{name}.normactconv1", channels, c)
        second, kernel2 = self.last(key, f"{name}.normactconv2", (middle, channels), c.second, c.kernels[1])
        return ResidualConfig(middle, first, second, (kernel1, kernel2))

    def pooling_block(self, key: str, name: str, channels: int, c: PoolingConfig) -> PoolingConfig:
        one = f"{name}.normactconv1"
        first = self.norm(f"{key}.norm1", f"{one}.norm", f"{one}.act", channels, c.first)
        one += ".convpool"
        middle, kernel1 = self.convolution(f"{key}.conv1", f"{one}.conv1r", channels, c.channels, c.kernels[0], True)
        pooled, kernel2 = self.convolution(f"{key}.pool_conv", f"{one}.conv1g", channels, c.pooled, c.kernels[1], True)
        pool = self.norm(f"{key}.pool_norm", f"{one}.normg", f"{one}.actg", pooled, c.pool)
        self.matrix(f"{key}.pool_linear", f"{one}.linear_g", 3 * pooled, middle)
        second, kernel3 = self.last(key, f"{name}.normactconv2", (middle, channels), c.second, c.kernels[2])
        return PoolingConfig(middle, pooled, first, pool, second, (kernel1, kernel2, kernel3))

    def bottleneck_block(self, key: str, name: str, channels: int, c: BottleneckConfig, depth: int) -> BottleneckConfig:
        if depth >= _MAX_DEPTH:
            raise self.f.unsupported(f"nested bottlenecks more than {_MAX_DEPTH} deep")
        count = self.f.integer("the number of inner blocks", len(c.blocks))
        first, middle, kernel1 = self.first(key, f"{name}.normactconvp", channels, c)
        blocks = self.blocks(f"{key}.blocks", f"{name}.blockstack", count, middle, c.blocks, depth + 1)
        last, kernel2 = self.last(key, f"{name}.normactconvq", (middle, channels), c.last, c.kernels[1])
        return BottleneckConfig(middle, blocks, first, last, (kernel1, kernel2))

    def attention_block(self, key: str, name: str, channels: int, c: AttentionConfig) -> AttentionConfig:
        f = self.f
        heads = f.integer("the number of heads", c.heads)
        shared = f.integer("the number of key-value heads", c.key_value_heads)
        keys = f.integer("the channels of a query head", c.key_channels)
        values = f.integer("the channels of a value head", c.value_channels)
        has_rotary = f.integer("whether there is a rotary embedding", int(c.rotary != "none"), 0, 1)
        learned = f.integer("whether it is learned", int(c.rotary == "learned"), 0, 1)
        if heads % shared:
            raise f.error(f"{heads} heads cannot share {shared} key-value heads evenly")
        if has_rotary and keys % 2:
            raise f.error(f"{keys} channels in a query head; a rotary embedding needs an even number")
        epsilon = self.token_norm(f"{key}.norm", f"{name}.norm1", channels, c.epsilon)
        self.matrix(f"{key}.query", f"{name}.q_proj", channels, heads * keys)
        self.matrix(f"{key}.key", f"{name}.k_proj", channels, shared * keys)
        self.matrix(f"{key}.value", f"{name}.v_proj", channels, shared * values)
        self.matrix(f"{key}.out", f"{name}.out_proj", heads * values, channels)
        rotary, theta = "none", AttentionConfig.theta
        if has_rotary and learned:
            rotary, shape = "learned", (shared, keys // 2, 2)
            f.name("the rotary frequencies", f"{name}.rope_freqs")
            for what, size in zip(("heads", "pairs", "directions"), shape, strict=True):
                f.size(what, size)
            f.floats(f"{key}.frequencies", shape)
        elif has_rotary:
            rotary = "fixed"
            f.name("the rotary base", f"{name}.rope_theta")
            theta = f.number("the rotary base", c.theta)
        return AttentionConfig(heads, shared, keys, values, rotary, theta, epsilon)

    def feed_forward_block(self, key: str, name: str, channels: int, c: FeedForwardConfig) -> FeedForwardConfig:
        self.f.size("channels", channels)
        hidden = self.f.integer("the number of hidden channels", c.channels)
        if self.f.integer("whether the layer is gated", 1, 0, 1) == 0:
            raise self.f.unsupported("a feed-forward block without a gate, which KataGo does not run either")
        epsilon = self.token_norm(f"{key}.norm", f"{name}.norm", channels, c.epsilon)
        self.matrix(f"{key}.linear", f"{name}.ffn_linear1", channels, hidden)
        self.matrix(f"{key}.gate", f"{name}.ffn_linear_gate", channels, hidden)
        self.matrix(f"{key}.out", f"{name}.ffn_linear2", hidden, channels)
        return FeedForwardConfig(hidden, epsilon)

    def metadata(self, channels: int, c: MetadataConfig) -> MetadataConfig:
        key, name = "metadata", "model.sgf_metadata_encoder"
        self.f.name("the metadata encoder", name)
        inputs = self.f.size("metadata inputs", METADATA)
        hidden: list[int] = []
        activations: list[str] = []
        for i, (size, activation) in enumerate(zip(c.hidden, c.activations, strict=True), start=1):
            inputs = self.matrix(f"{key}.linear{i}", f"{name}.mul{i}", inputs, size, free=True)
            self.bias(f"{key}.linear{i}", f"{name}.bias{i}", inputs)
            hidden.append(inputs)
            activations.append(self.activation(f"{name}.act{i}", activation))
        self.matrix(f"{key}.linear3", f"{name}.mul3", inputs, channels)
        return MetadataConfig((hidden[0], hidden[1]), (activations[0], activations[1]))

    # Heads

    def policy(self, channels: int, c: PolicyConfig) -> PolicyConfig:
        f, key, name = self.f, "policy", "model.policy_head"
        f.name("the policy head", name)
        outputs = c.outputs
        if self.version >= 17:
            outputs = f.integer("the number of policy outputs", outputs)
            if outputs not in policy_outputs(self.version):
                raise f.error(f"{outputs} policy outputs; version {self.version} has 2 or 4")
            _zeros(f, 3, "policy option")
        middle, kernel1 = self.convolution(f"{key}.conv", f"{name}.conv1p", channels, c.channels, c.kernels[0], True)
        pooled, kernel2 = self.convolution(f"{key}.pool_conv", f"{name}.conv1g", channels, c.pooled, c.kernels[1], True)
        pool = self.norm(f"{key}.pool_norm", f"{name}.biasg", f"{name}.actg", pooled, c.pool)
        self.matrix(f"{key}.pool_linear", f"{name}.linear_g", 3 * pooled, middle)
        board = self.norm(f"{key}.norm", f"{name}.bias2", f"{name}.act2", middle, c.board)
        _, kernel3 = self.convolution(f"{key}.out", f"{name}.conv2p", middle, outputs, c.kernels[2])
        activation = None
        if c.pass_activation is None:
            self.matrix(f"{key}.pass_out", f"{name}.linear_pass", 3 * pooled, outputs)
        else:
            self.matrix(f"{key}.pass_hidden", f"{name}.linear_pass", 3 * pooled, middle)
            self.bias(f"{key}.pass_hidden", f"{name}.linear_pass_bias", middle)
            activation = self.activation(f"{name}.act_pass", c.pass_activation)
            self.matrix(f"{key}.pass_out", f"{name}.linear_pass2", middle, outputs)
        return PolicyConfig(middle, pooled, outputs, pool, board, activation, (kernel1, kernel2, kernel3))

    def value(self, channels: int, c: ValueConfig) -> ValueConfig:
        key, name = "value", "model.value_head"
        self.f.name("the value head", name)
        if self.version >= 17:
            _zeros(self.f, 3, "value option")
        middle, kernel1 = self.convolution(f"{key}.conv", f"{name}.conv1", channels, c.channels, c.kernels[0], True)
        norm = self.norm(f"{key}.norm", f"{name}.bias1", f"{name}.act1", middle, c.norm)
        hidden = self.matrix(f"{key}.linear", f"{name}.linear2", 3 * middle, c.hidden, free=True)
        self.bias(f"{key}.linear", f"{name}.bias2", hidden)
        activation = self.activation(f"{name}.act2", c.activation)
        scores = 6 if self.version >= 9 else 4
        for layer, file_name, outputs in (("value", "valuehead", 3), ("score", "miscvaluehead", scores)):
            self.matrix(f"{key}.{layer}", f"{name}.linear_{file_name}", hidden, outputs)
            self.bias(f"{key}.{layer}", f"{name}.bias_{file_name}", outputs)
        _, kernel2 = self.convolution(f"{key}.ownership", f"{name}.conv_ownership", middle, 1, c.kernels[1])
        return ValueConfig(middle, hidden, norm, activation, (kernel1, kernel2))
