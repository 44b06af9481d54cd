"""KataGo's network file, written: the same walk as `katago_read`, with the layer names of KataGo's present exporter.

For files of that exporter the result is the same to the byte; older files (g170) named their layers otherwise.
Source: KataGo's `python/export_model_pytorch.py`.
"""

from __future__ import annotations

import re

import numpy as np
import torch
from torch import Tensor, nn

from keima.errors import BadWeights
from keima.networks.katago import (
    BottleneckBlock,
    KataGoNetwork,
    NormAct,
    PolicyHead,
    PoolingBlock,
    ResidualBlock,
    RmsNormAct,
    ValueHead,
)
from keima.networks.katago_config import GLOBALS, METADATA, PLANES, RmsConfig
from keima.networks.katago_metadata import MetadataEncoder
from keima.networks.katago_transformer import AttentionBlock, FeedForwardBlock
from keima.weights.katago_read import ACTIVATION_WORDS
from keima.weights.katago_tokens import TokenWriter

_WORDS = {name: word for word, name in ACTIVATION_WORDS.items()}
_MAX_NAME = 96


class NetworkWriter:
    """Walks the network in the order of the file."""

    def __init__(self, tokens: TokenWriter, version: int) -> None:
        self.tokens = tokens
        self.version = version

    def network(self, network: KataGoNetwork) -> None:
        """The whole file."""
        config, tokens = network.config, self.tokens
        tokens.words(_file_name(network.pedigree.name), self.version, PLANES, GLOBALS)
        if self.version >= 13:
            times = config.multipliers
            tokens.words(times.td_score, times.score_mean, times.score_stdev, times.lead, times.variance_time)
            tokens.words(times.shortterm_winloss_error, times.shortterm_score_error)
        if self.version >= 15:
            tokens.words(int(config.metadata is not None), int(config.pass_alive_suicide), *[0] * 6)
        tokens.words("trunk", len(config.blocks), config.channels, *config.nominal)
        if self.version >= 15:
            tokens.words(int(isinstance(config.tip, RmsConfig)), *[0] * 5)
        self._conv("model.conv_spatial", network.conv)
        self._matrix("model.linear_global", network.linear)
        if network.metadata is not None:
            self._metadata("model.sgf_metadata_encoder", network.metadata)
        for number, block in enumerate(network.blocks):
            self._block(f"model.blocks.{number}", block)
        self._tip(network.tip)
        self._policy("model.policy_head", network.policy)
        self._value("model.value_head", network.value)

    def _tip(self, tip: nn.Module) -> None:
        if isinstance(tip, RmsNormAct):
            self.tokens.words("model.norm_trunkfinal", len(tip.weight), tip.config.epsilon, int(tip.config.spatial), 0)
            self._floats(tip.weight, tip.bias)
            self._activation("model.act_trunkfinal", tip.config.activation)
        elif isinstance(tip, NormAct):
            self._norm_act("model.norm_trunkfinal", "model.act_trunkfinal", tip)

    # Layers

    def _floats(self, *weights: Tensor) -> None:
        for weight in weights:
            values = weight.detach().to("cpu", torch.float32).numpy()
            if not np.isfinite(values).all():
                raise BadWeights("a weight is not a finite number; KataGo refuses such a file")
            self.tokens.floats(values)

    def _conv(self, name: str, conv: nn.Conv2d) -> None:
        outputs, inputs, height, width = conv.weight.shape
        self.tokens.words(name, height, width, inputs, outputs, 1, 1)
        self._floats(conv.weight.permute(2, 3, 1, 0))

    def _matrix(self, name: str, linear: nn.Linear) -> None:
        self.tokens.words(name, linear.in_features, linear.out_features)
        self._floats(linear.weight.T)

    def _bias(self, name: str, linear: nn.Linear) -> None:
        self.tokens.words(name, linear.out_features)
        self._floats(linear.bias)

    def _norm_act(self, name: str, act_name: str, norm: NormAct) -> None:
        channels = norm.channels
        scale, bias = norm.weight, norm.bias
        self.tokens.words(name, channels, norm.config.epsilon, int(scale is not None), int(bias is not None))
        if norm.config.statistics:
            self._floats(norm.running_mean, norm.running_var)
        else:
            self._floats(torch.zeros(channels), torch.ones(channels))
        self._floats(*(weight for weight in (scale, bias) if weight is not None))
        self._activation(act_name, norm.config.activation)

    def _token_norm(self, name: str, weight: Tensor, epsilon: float) -> None:
        self.tokens.words(name, len(weight), epsilon)
        self._floats(weight)

    def _activation(self, name: str, activation: str) -> None:
        self.tokens.words(name)
        if self.version >= 11:
            self.tokens.words(_WORDS[activation])

    # Blocks

    def _block(self, name: str, block: nn.Module) -> None:
        match block:
            case ResidualBlock():
                self._residual_block(name, block)
            case PoolingBlock():
                self._pooling_block(name, block)
            case BottleneckBlock():
                self._bottleneck_block(name, block)
            case AttentionBlock():
                self._attention_block(name, block)
            case FeedForwardBlock():
                self._feed_forward_block(name, block)

    def _residual_block(self, name: str, block: ResidualBlock) -> None:
        self.tokens.words("ordinary_block", name)
        self._norm_act_conv(f"{name}.normactconv1", block.norm1, block.conv1)
        self._norm_act_conv(f"{name}.normactconv2", block.norm2, block.conv2)

    def _pooling_block(self, name: str, block: PoolingBlock) -> None:
        self.tokens.words("gpool_block", name)
        first = f"{name}.normactconv1"
        self._norm_act(f"{first}.norm", f"{first}.act", block.norm1)
        self._conv(f"{first}.convpool.conv1r", block.conv1)
        self._conv(f"{first}.convpool.conv1g", block.pool_conv)
        self._norm_act(f"{first}.convpool.normg", f"{first}.convpool.actg", block.pool_norm)
        self._matrix(f"{first}.convpool.linear_g", block.pool_linear)
        self._norm_act_conv(f"{name}.normactconv2", block.norm2, block.conv2)

    def _bottleneck_block(self, name: str, block: BottleneckBlock) -> None:
        self.tokens.words("nested_bottleneck_block", name, len(block.blocks))
        self._norm_act_conv(f"{name}.normactconvp", block.norm1, block.conv1)
        for number, inner in enumerate(block.blocks):
            self._block(f"{name}.blockstack.{number}", inner)
        self._norm_act_conv(f"{name}.normactconvq", block.norm2, block.conv2)

    def _norm_act_conv(self, name: str, norm: NormAct, conv: nn.Conv2d) -> None:
        self._norm_act(f"{name}.norm", f"{name}.act", norm)
        self._conv(f"{name}.conv", conv)

    def _attention_block(self, name: str, block: AttentionBlock) -> None:
        config, tokens = block.config, self.tokens
        tokens.words("transformer_attention_block", name)
        tokens.words(config.heads, config.key_value_heads, config.key_channels, config.value_channels)
        tokens.words(int(config.rotary != "none"), int(config.rotary == "learned"))
        self._token_norm(f"{name}.norm1", block.norm.weight, config.epsilon)
        self._matrix(f"{name}.q_proj", block.query)
        self._matrix(f"{name}.k_proj", block.key)
        self._matrix(f"{name}.v_proj", block.value)
        self._matrix(f"{name}.out_proj", block.out)
        if config.rotary == "learned":
            tokens.words(f"{name}.rope_freqs", *block.frequencies.shape)
            self._floats(block.frequencies)
        elif config.rotary == "fixed":
            tokens.words(f"{name}.rope_theta", config.theta)

    def _feed_forward_block(self, name: str, block: FeedForwardBlock) -> None:
        self.tokens.words("transformer_ffn_block", name, block.linear.in_features, block.linear.out_features, 1)
        self._token_norm(f"{name}.norm", block.norm.weight, block.config.epsilon)
        self._matrix(f"{name}.ffn_linear1", block.linear)
        self._matrix(f"{name}.ffn_linear_gate", block.gate)
        self._matrix(f"{name}.ffn_linear2", block.out)

    def _metadata(self, name: str, encoder: MetadataEncoder) -> None:
        self.tokens.words(name, METADATA)
        self._matrix(f"{name}.mul1", encoder.linear1)
        self._bias(f"{name}.bias1", encoder.linear1)
        self._activation(f"{name}.act1", encoder.config.activations[0])
        self._matrix(f"{name}.mul2", encoder.linear2)
        self._bias(f"{name}.bias2", encoder.linear2)
        self._activation(f"{name}.act2", encoder.config.activations[1])
        self._matrix(f"{name}.mul3", encoder.linear3)

    # Heads

    def _policy(self, name: str, head: PolicyHead) -> None:
        config = head.config
        self.tokens.words(name)
        if self.version >= 17:
            self.tokens.words(config.outputs, 0, 0, 0)
        self._conv(f"{name}.conv1p", head.conv)
        self._conv(f"{name}.conv1g", head.pool_conv)
        self._norm_act(f"{name}.biasg", f"{name}.actg", head.pool_norm)
        self._matrix(f"{name}.linear_g", head.pool_linear)
        self._norm_act(f"{name}.bias2", f"{name}.act2", head.norm)
        self._conv(f"{name}.conv2p", head.out)
        if head.pass_hidden is None or config.pass_activation is None:
            self._matrix(f"{name}.linear_pass", head.pass_out)
        else:
            self._matrix(f"{name}.linear_pass", head.pass_hidden)
            self._bias(f"{name}.linear_pass_bias", head.pass_hidden)
            self._activation(f"{name}.act_pass", config.pass_activation)
            self._matrix(f"{name}.linear_pass2", head.pass_out)

    def _value(self, name: str, head: ValueHead) -> None:
        self.tokens.words(name)
        if self.version >= 17:
            self.tokens.words(0, 0, 0)
        self._conv(f"{name}.conv1", head.conv)
        self._norm_act(f"{name}.bias1", f"{name}.act1", head.norm)
        self._matrix(f"{name}.linear2", head.linear)
        self._bias(f"{name}.bias2", head.linear)
        self._activation(f"{name}.act2", head.config.activation)
        self._matrix(f"{name}.linear_valuehead", head.value)
        self._bias(f"{name}.bias_valuehead", head.value)
        self._matrix(f"{name}.linear_miscvaluehead", head.score)
        self._bias(f"{name}.bias_miscvaluehead", head.score)
        self._conv(f"{name}.conv_ownership", head.ownership)


def _file_name(name: str) -> str:
    """A name that KataGo accepts in a file: letters, digits, "_" and "-", at most 96 of them."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_MAX_NAME] or "keima"
