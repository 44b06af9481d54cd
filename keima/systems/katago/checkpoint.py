"""KataGo's PyTorch training checkpoints (`.ckpt`), read as its exporter writes them to `.bin.gz`; nothing is executed.

A checkpoint is what KataGo's `python/train.py` saves: a dict with the tensors of `model`, where there is one their
running average `swa_model`, which KataGo exports and keima reads for preference, and the `config`. PyTorch's loader
reads it as tensors and plain data (`weights_only`); whatever else a pickle may name is refused unread.

`file.py` says which layers a network has, in the exporter's names. `_Reader` stands in for the writer of a file: asked
for the floats of a layer, it makes them of the checkpoint's tensors. What training alone needs (a second head, the
opponent's reply, score beliefs) is left out, as in KataGo's files; any other tensor left over is refused by name.

Sources: KataGo's `python/export_model_pytorch.py`, `katago/train/model_pytorch.py` and `load_model.py` (August 2026).
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from keima.errors import BadWeights, KeimaError, UnsupportedNetwork
from keima.plain import Data, Fields
from keima.systems.files.contents import Format, read_bytes, sha256_of
from keima.systems.files.safetensors import parse_json
from keima.systems.katago.config import (
    BEFORE_13,
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
)
from keima.systems.katago.file import describe
from keima.systems.katago.file_tokens import Floats, TokenWriter
from keima.systems.katago.network import KataGoNetwork
from keima.systems.network import Network, Pedigree

_SAFE = (2, 6)  # before it, PyTorch's weights_only could be made to execute (CVE-2025-32434)
_BESIDE = "model.config.json"  # where older checkpoints keep the config
_FIXED = ("fixscale", "fixbrenorm", "fixscaleonenorm")  # kinds of norm that are multiplied by a number of their depth
_NORMS = (*_FIXED, "fixup", "bnorm", "brenorm")
_ACTIVATIONS = ("relu", "mish", "silu", "identity")
_BOTTLENECKS = {"bottlenest2": 2, "bottlenest3": 3}
_TRANSFORMERS = {"bottlenest2transformerropesg": 2, "bottlenest3transformerropesg": 3}
_KINDS = ("regular", *_BOTTLENECKS, *_TRANSFORMERS, "attnrope", "ffnsg")
_REFUSED = (
    "attention_qk_norm",
    "attention_num_rw_registers",
    "inline_registers",
    "rmsnorm_spatial_cgroup_size",
    "transformer_ffn_depthwise_conv",
    "use_trunk_channel_gate",
    "use_trunk_residual_backout",
)
"""Options of a config that KataGo's own exporter refuses or drops."""
_TRAINING = re.compile(
    r"n_averaged|(norm_)?intermediate_.*|value_head\.(conv_(scoring|futurepos|seki)|linear_s\w+|score_belief_\w+)(\..*)?"
    r"|.*\.renorm_\w+"
)
"""Tensors of training alone."""
_BIASES = {
    "policy_head.linear_pass_bias": "policy_head.linear_pass",
    "value_head.bias2": "value_head.linear2",
    "value_head.bias_valuehead": "value_head.linear_valuehead",
    "metadata_encoder.bias1": "metadata_encoder.linear1",
    "metadata_encoder.bias2": "metadata_encoder.linear2",
}
"""Biases that files have as layers of their own → the layers of the module they belong to."""


def looks_like_checkpoint(data: bytes) -> bool:
    """Whether contents begin like a file of `torch.save`: a zip archive whose first entry is the pickle of its data."""
    return re.match(rb"PK\x03\x04.{26}[!-~]{1,200}/data\.pkl", data, re.DOTALL) is not None


def read_checkpoint(path: str | os.PathLike[str]) -> KataGoNetwork:
    """The network of a checkpoint, in evaluation mode: its running average where it has one.

    Raises:
        BadWeights: the file is missing, cut short or corrupt, holds more than tensors and plain data, or its layers do
            not fit together; names the layer.
        UnsupportedNetwork: no checkpoint of KataGo's, or a network that KataGo's exporter or keima does not know.
    """
    source = os.fspath(path)
    try:
        found = _load(source)
        average = found.get("swa_model")
        config = _config(found, source)
        tensors = _tensors(found.get("model") if average is None else average)
        network = _Reader(tensors, config).network()
    except KeimaError as error:
        raise error.at(source=source) from error
    details = {"weights": "model" if average is None else "swa_model, the running average"}
    state = found.get("train_state")
    if isinstance(state, Mapping) and isinstance(state.get("global_step_samples"), int | float):
        details["training_samples"] = f"{state['global_step_samples']:.0f}"
    kind = f"KataGo training checkpoint, model version {network.config.version}"
    network.pedigree = Pedigree(Path(source).stem, source, kind, sha256_of(path), details=details)
    return network


def _load(source: str) -> Data:
    """What the file holds, tensors left on disk until they are used."""
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < _SAFE:
        message = f"PyTorch {torch.__version__} does not read checkpoints safely; install 2.6 or later"
        raise UnsupportedNetwork(message)
    try:
        found = torch.load(source, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:
        named = re.search(r"GLOBAL (\S+)|\b(defaultdict)\b", str(error))
        what = f" ({named[1] or named[2]})" if named else ""
        hint = "; KataGo's migrate_defaultdict_to_dict.py rewrites it" if "defaultdict" in what else ""
        message = f"holds more than tensors and plain data{what}, and loading that could execute it"
        raise BadWeights(f"{message}{hint}; nothing was loaded") from error
    except Exception as error:  # whatever PyTorch's reader of archives may raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadWeights(f"no whole checkpoint: {reason}") from error
    if not isinstance(found, dict) or not isinstance(found.get("model"), Mapping):
        raise UnsupportedNetwork("a PyTorch file of another program: it holds no 'model' of KataGo's")
    return found


def _config(found: Fields, source: str) -> Data:
    """The checkpoint's config, or that of the file beside it."""
    config = found.get("config")
    if config is None:
        beside = Path(source).with_name(_BESIDE)
        if not beside.is_file():
            raise BadWeights(f"the checkpoint holds no config, and there is no {_BESIDE} beside it")
        config = parse_json(read_bytes(beside, 1 << 20), _BESIDE)
    if not isinstance(config, dict):
        raise BadWeights("not a dict", place="config")
    return config


def _tensors(model: object) -> dict[str, Tensor]:
    """The model's tensors by the names of its layers, each of a size that it has memory for."""
    tensors = {}
    for name, tensor in model.items() if isinstance(model, Mapping) else ():
        bare = re.sub(r"^((module|_orig_mod)\.)+", "", str(name))
        plain = isinstance(tensor, Tensor) and tensor.layout == torch.strided and not tensor.is_quantized
        if not plain or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise BadWeights("not a plain tensor, or without memory of its size", place=bare)
        tensors[bare] = tensor.detach()
    return tensors


class _Reader(TokenWriter):
    """Makes the tensors of a network of a checkpoint's, asked for layer by layer as a file is written."""

    def __init__(self, tensors: Mapping[str, Tensor], config: Fields) -> None:
        super().__init__({}, binary=True)
        self.tensors = tensors
        self.config = config
        self.layer = ""  # the module that is asked for
        self.used: set[str] = set()
        self.scales: dict[str, float] = {}  # norm → what it is multiplied by
        self.activation = self._option("activation", "relu", _ACTIVATIONS)
        self.fixed = self._option("norm_kind", "", _NORMS) in _FIXED
        self.version = max(self._number("version"), 11)  # the exporter's own rule
        self.suicide = bool(config.get("always_compute_pass_alive_under_suicide_rules"))
        if self.version in (15, 16) and (self.suicide or config.get("trunk_final_rmsnorm")):
            self.version = 17
        for option in _REFUSED:
            if config.get(option):
                raise UnsupportedNetwork("KataGo's files have no such part", place=f"config: {option}")

    def network(self) -> KataGoNetwork:
        """The whole network, once nothing is left over."""
        name, config = describe(self, "checkpoint", self._describe())
        for left in sorted(self.tensors.keys() - self.used):
            if _TRAINING.fullmatch(left) is None:
                raise UnsupportedNetwork("a layer that keima does not know", place=left)
        with torch.device("meta"):
            network = KataGoNetwork(config, Pedigree(name))
        network.load_state_dict(self.state, strict=True, assign=True)
        return network.requires_grad_(True).eval()

    # What the writer asks for

    def name(self, what: str, name: str) -> str:
        """Remembers the layer."""
        self.layer = name.removeprefix("model.").replace("sgf_metadata_encoder", "metadata_encoder")
        return name

    def floats(self, key: str, shape: tuple[int, ...], order: tuple[int, ...] = (), absent: float = 0.0) -> Floats:
        """The tensor `key`, made of the checkpoint's; `absent` where that has none."""
        tensor = self._made(key.rpartition(".")[2])
        if tensor is None:
            return np.full(shape, absent, np.float32)
        wanted = tuple(shape[axis] for axis in order) or shape
        if tuple(tensor.shape) != wanted:
            raise BadWeights(f"{list(tensor.shape)}, but the layers around it need {list(wanted)}", place=self.layer)
        if not tensor.isfinite().all():
            raise BadWeights("a number is not finite", place=self.layer)
        self.state[key] = tensor.contiguous().clone()
        values: Floats = tensor.numpy().transpose(np.argsort(order or range(len(shape))))
        return values

    def _made(self, part: str) -> Tensor | None:
        """The weight, bias or statistic of the present layer, as the exporter makes it."""
        layer = self.layer
        if part == "running_mean":
            return self._take(f"{layer}.running_mean") if f"{layer}.running_mean" in self.tensors else None
        if part == "running_var":
            if f"{layer}.running_std" not in self.tensors:
                return None
            return (self._take(f"{layer}.running_std").square() - 1e-20).clamp(min=1e-20)
        if part == "frequencies":
            return self._take(layer)
        if layer == "value_head.linear_miscvaluehead" or layer == "value_head.bias_miscvaluehead":
            misc = self._take(f"value_head.linear_miscvaluehead.{part}")[:4]
            return torch.cat([misc, self._take(f"value_head.linear_moremiscvaluehead.{part}")[:2]])
        if part == "bias":
            if f"{layer}.beta" in self.tensors:
                return self._take(f"{layer}.beta").flatten()
            return self._take(f"{_BIASES.get(layer, layer)}.bias")
        if layer in self.scales or f"{layer}.gamma" in self.tensors:
            return self._norm_weight(layer)
        return self._weight(layer)

    def _norm_weight(self, layer: str) -> Tensor:
        scale = self.scales.get(layer, 1.0)
        if f"{layer}.gamma" not in self.tensors:
            return scale * torch.ones_like(self._take(f"{layer}.beta").flatten())
        gamma = self._take(f"{layer}.gamma")
        if gamma.ndim == 1:  # of a spatial RMS norm, which has no other scale
            return gamma
        return (scale * (gamma + 1.0 if self.config.get("gamma_weight_decay_center_1") else gamma)).flatten()

    def _weight(self, layer: str) -> Tensor:
        if layer.startswith("metadata_encoder.mul"):
            return self._metadata_weight(layer)
        if layer == "norm_trunkfinal":
            return self._take(f"{layer}.norm.weight")
        weight = self._take(f"{layer}.weight")
        beside = f"{layer}1x1.weight"  # RepVGG's second convolution
        if layer.endswith(".conv") and beside in self.tensors:
            weight, middle = weight.clone(), weight.shape[2] // 2
            weight[:, :, middle, middle] += self._take(beside)[:, :, 0, 0]
        last = "policy_head.linear_pass" if self.version < 15 else "policy_head.linear_pass2"
        return weight[self._rows(len(weight))] if layer in ("policy_head.conv2p", last) else weight

    def _metadata_weight(self, layer: str) -> Tensor:
        if layer.endswith("3"):
            return 0.5 * self._take("metadata_encoder.linear_output_to_trunk.weight")
        weight = self._take(f"metadata_encoder.linear{layer[-1]}.weight")
        return weight * self._take("metadata_encoder.feature_mask") if layer.endswith("1") else weight

    def _rows(self, outputs: int) -> list[int]:
        """Which of the policies in training the file keeps: policy, short-term optimistic, q win−loss, q score."""
        rows = [0, 5, 6, 7] if outputs == 8 else [0, 5] if outputs == 6 else [0]
        if outputs not in (4, 6, 8):
            raise UnsupportedNetwork(f"{outputs} policies, where KataGo trains 4, 6 or 8", place=self.layer)
        return rows

    def _take(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise BadWeights("the checkpoint lacks this layer", place=name)
        self.used.add(name)
        return self.tensors[name].float()

    # What the config and the sizes of the layers say

    def _option(self, name: str, default: str, known: tuple[str, ...]) -> str:
        found = self.config.get(name, default)
        if found not in known:
            raise UnsupportedNetwork(f"{str(found)[:40]!r}; keima runs {', '.join(known)}", place=f"config: {name}")
        return str(found)

    def _number(self, name: str, default: int | None = None) -> int:
        found = self.config.get(name, default)
        if not isinstance(found, int) or not 0 <= found < 1 << 24:
            raise BadWeights(f"{str(found)[:40]!r} is no number that can be", place=f"config: {name}")
        return found

    def _size(self, layer: str, axis: int = 0) -> int:
        """A size of a layer's weight."""
        weight = self._take(f"{layer}.weight")
        if weight.ndim <= axis:
            raise BadWeights(f"{list(weight.shape)} is no shape that can be", place=layer)
        return int(weight.shape[axis])

    def _norm(self, layer: str, scale: float | None = None) -> NormConfig:
        if scale is not None and self.fixed:
            self.scales[layer] = scale
        return NormConfig(self.activation, layer in self.scales or f"{layer}.gamma" in self.tensors)

    def _describe(self) -> KataGoConfig:
        kinds = self.config.get("block_kind")
        if not isinstance(kinds, list | tuple) or not all(isinstance(kind, list | tuple) and kind for kind in kinds):
            raise BadWeights("no list of blocks", place="config: block_kind")
        channels, act = self._size("conv_spatial"), self.activation
        tip: NormConfig | RmsConfig = RmsConfig(act, bool(self.config.get("trunk_rmsnorm_spatial")))
        if not self.config.get("trunk_final_rmsnorm"):
            tip = self._norm("norm_trunkfinal", (len(kinds) + 1) ** -0.5)
        policy, value, metadata = "policy_head", "value_head", None
        if self.config.get("metadata_encoder"):
            hidden = self._size("metadata_encoder.linear1"), self._size("metadata_encoder.linear2")
            metadata = MetadataConfig(hidden, (act, act))
        outputs = self._rows(self._size(f"{policy}.conv2p"))
        middle, pooled = self._number("mid_num_channels"), self._number("gpool_num_channels")
        norm = NormConfig(act, scale=False)
        return KataGoConfig(
            self.version,
            channels,
            tuple(self._block(f"blocks.{i}", str(kind[-1]), channels, i) for i, kind in enumerate(kinds)),
            tip,
            PolicyConfig(
                *(self._size(f"{policy}.conv1p"), self._size(f"{policy}.conv1g"), len(outputs)),
                *(norm, norm, None if self.version < 15 else act),
            ),
            ValueConfig(self._size(f"{value}.conv1"), self._size(f"{value}.linear2"), norm, act),
            metadata,
            self._size("conv_spatial", 2),
            self.suicide,
            Multipliers() if self.version >= 13 else BEFORE_13,
            (middle, middle - pooled, pooled, pooled),
        )

    def _block(self, name: str, kind: str, channels: int, number: int) -> BlockConfig:
        """The block of that kind, the `number`th of its stack."""
        base, scale = kind.removesuffix("gpool"), (number + 1) ** -0.5
        if base not in _KINDS:
            raise UnsupportedNetwork(f"a block of kind {kind[:40]!r}; keima runs {', '.join(_KINDS)}", place=name)
        if base == "attnrope":
            return self._attention(channels)
        if base == "ffnsg":
            return FeedForwardConfig(self._size(f"{name}.ffn_linear1"))
        if base == "regular":
            return self._residual(name, base != kind, scale)
        first, middle = f"{name}.normactconvp", self._size(f"{name}.normactconvp.conv")
        inner: list[BlockConfig] = [
            self._residual(f"{name}.blockstack.{i}", base != kind and i == 0, (i + 1) ** -0.5)
            for i in range(_BOTTLENECKS.get(base, 0))
        ]
        for i in range(_TRANSFORMERS.get(base, 0)):
            feed_forward = FeedForwardConfig(self._size(f"{name}.blockstack.{2 * i + 1}.ffn_linear1"))
            inner += [self._attention(middle), feed_forward]
        depth = _BOTTLENECKS.get(base) or _TRANSFORMERS[base]
        last = self._norm(f"{name}.normactconvq.norm", (depth + 1) ** -0.5)
        return BottleneckConfig(middle, tuple(inner), self._norm(f"{first}.norm", scale), last)

    def _residual(self, name: str, pools: bool, scale: float) -> ResidualConfig | PoolingConfig:
        one = f"{name}.normactconv1"
        first, second = self._norm(f"{one}.norm", scale), self._norm(f"{name}.normactconv2.norm")
        if not pools:
            return ResidualConfig(self._size(f"{one}.conv"), first, second)
        regular, pooled = self._size(f"{one}.convpool.conv1r"), self._size(f"{one}.convpool.conv1g")
        return PoolingConfig(regular, pooled, first, self._norm(f"{one}.convpool.normg"), second)

    def _attention(self, channels: int) -> AttentionConfig:
        heads = self._number("transformer_heads")
        each = channels // heads if heads else 0
        theta = self.config.get("rope_theta", AttentionConfig.theta)
        if not isinstance(theta, int | float) or not heads:
            raise BadWeights("attention without heads or rotary base", place="config: transformer_heads, rope_theta")
        return AttentionConfig(
            heads,
            self._number("transformer_kv_heads", heads),
            self._number("attention_query_head_dim", each),
            self._number("attention_value_head_dim", each),
            "learned" if self.config.get("learnable_rope") else "fixed",
            float(theta),
        )


def write_checkpoint(network: Network, path: str | os.PathLike[str]) -> None:
    """Raises UnsupportedNetwork: a network lacks what training needs beside it."""
    raise UnsupportedNetwork("keima reads KataGo's checkpoints and writes none", source=os.fspath(path))


FORMATS = (Format("KataGo checkpoints (.ckpt)", looks_like_checkpoint, read_checkpoint, write_checkpoint),)
