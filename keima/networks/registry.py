"""Every network of the family by name: make one, list them, describe one.

An entry is a name and the sizes it stands for; `create(name, **sizes)` builds it with fresh weights, any size changed.
A *kind* is a class and the way its configuration becomes JSON, which is how keima's own files rebuild a network
(`keima.weights.safetensors`). Modules are imported when a network of theirs is asked for.

    >>> create("alphago-zero", blocks=2, channels=8, board_size=9).pedigree.name
    'alphago-zero'
    >>> [entry.name for entry in list_networks() if entry.kind == "alphago-zero-separate"]
    ['alphago-zero-sep-res', 'alphago-zero-sep-conv']
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from keima.errors import BadRequest, BadWeights, UnsupportedNetwork
from keima.networks.katago_config import PRESETS, KataGoConfig, preset

if TYPE_CHECKING:
    from torch import Tensor

    from keima.networks.network import Network

Sizes = Mapping[str, Any]

ALPHAGO = "Silver et al., Nature 529 (2016)"
ALPHAGO_ZERO = "Silver et al., Nature 550 (2017)"
LEELA_ZERO = "Leela Zero 0.17, after Silver et al. (2017)"
GUIDE = "the KataGo architecture guide"
KATAGO = "Wu, arXiv:1902.10565 (2019), and KataGo's later methods"
LC0 = "Leela Chess Zero 0.33, after Silver et al., Science 362 (2018)"
MAIA = "McIlroy-Young et al., KDD 2020, in Lc0's format"


# --- Kinds: class and configuration -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A class of networks.

    Attributes:
        module, name: where the class is.
        trunk: prefixes of its trunk's modules, the path that `receptive_field` follows.
        beside: parts of module names that stand beside that path and not on it.
        reach: what in the network sees the whole board at once; empty for nothing.
        settings: where the configuration is one dataclass, its class's name in `module` or in `settings_module`.
        settings_module: see `settings`.
    """

    module: str
    name: str
    trunk: tuple[str, ...]
    reach: str
    beside: tuple[str, ...] = ()
    settings: str = ""
    settings_module: str = ""

    def load(self) -> type[Network]:
        """The class."""
        loaded: type[Network] = getattr(import_module(self.module), self.name)
        return loaded

    def load_settings(self) -> Any:
        """The class of its configuration."""
        return getattr(import_module(self.settings_module or self.module), self.settings)


_LINEAR = "the heads' linear layers"

KINDS: dict[str, Kind] = {
    "alphago-policy": Kind("keima.networks.alphago", "AlphaGoPolicyNetwork", ("hidden",), ""),
    "alphago-value": Kind("keima.networks.alphago", "AlphaGoValueNetwork", ("hidden",), "the last linear layers"),
    "alphago-rollout": Kind("keima.networks.rollout_softmax", "RolloutSoftmax", (), ""),
    "alphago-zero": Kind("keima.networks.alphago_zero", "AlphaGoZeroNetwork", ("stem", "tower"), _LINEAR),
    "alphago-zero-separate": Kind(
        "keima.networks.alphago_zero", "AlphaGoZeroSeparateNetworks", ("policy_stem", "policy_tower"), _LINEAR
    ),
    "leela-zero": Kind("keima.networks.leela_zero", "LeelaZeroNetwork", ("stem", "tower"), _LINEAR),
    "katago-guide": Kind("keima.networks.katago_guide", "KataGoGuideNetwork", ("stem", "tower"), "global pooling"),
    "comparison-vgg": Kind("keima.networks.comparison", "VggNetwork", ("trunk",), _LINEAR),
    "comparison-inception": Kind("keima.networks.comparison", "InceptionNetwork", ("trunk",), _LINEAR, (".near.",)),
    "comparison-transformer": Kind("keima.networks.comparison", "TransformerNetwork", ("trunk",), "attention"),
    "comparison-residual": Kind(
        "keima.networks.comparison_residual",
        "ComparisonResidualNetwork",
        ("trunk",),
        _LINEAR,
        (".pool_convolution.",),
    ),
    "katago": Kind(
        "keima.networks.katago",
        "KataGoNetwork",
        ("conv", "blocks"),
        "global pooling",
        (".pool_conv",),
        "KataGoConfig",
        "keima.networks.katago_config",
    ),
    "lc0": Kind("keima.networks.lc0", "Lc0Network", ("stem", "tower"), "squeeze-and-excitation", (), "Lc0Config"),
    "lc0-transformer": Kind(
        "keima.networks.lc0_transformer", "Lc0Transformer", ("embedding",), "attention", (), "Lc0TransformerConfig"
    ),
}
"""Kind's name → class; keima's own files name the kind."""


def kind_of(network: Network) -> str:
    """The kind of a network.

    Raises:
        UnsupportedNetwork: its class is not registered.
    """
    for name, kind in KINDS.items():
        if type(network).__name__ == kind.name and type(network).__module__ == kind.module:
            return name
    raise UnsupportedNetwork(f"{type(network).__name__} is not registered; the registry has {', '.join(KINDS)}")


def config_to_json(network: Network) -> dict[str, Any]:
    """A registered network's configuration as plain JSON data, read back by `from_config`."""
    config: Any = network.config
    if isinstance(config, KataGoConfig):
        return config.to_json()
    return dict(config) if isinstance(config, dict) else asdict(config)


def from_config(kind: str, data: Mapping[str, Any]) -> Network:
    """A fresh network of a kind from what `config_to_json` said.

    Raises:
        UnsupportedNetwork: no such kind.
        BadWeights: the data does not describe one.
    """
    if kind not in KINDS:
        raise UnsupportedNetwork(f"a network of the unknown kind {kind!r}; keima has {', '.join(KINDS)}")
    known = KINDS[kind]
    build: Callable[..., Network] = known.load()
    try:
        if kind == "katago":
            return build(KataGoConfig.from_json(data))
        if known.settings:
            return build(known.load_settings()(**data))
        return build(**data)
    except (BadRequest, TypeError, ValueError, RuntimeError, AttributeError, OverflowError) as error:
        raise BadWeights(f"not a configuration of a {kind} network: {error}") from error


# --- Entries: names ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NetworkEntry:
    """A name `create` takes.

    Attributes:
        name: the name.
        kind: which of `KINDS` it is.
        paper: where it is described.
        sizes: what the name stands for, as arguments of `create`.
        small: sizes that make it small and quick, for tests and first steps.
        note: one line on what it is.
    """

    name: str
    kind: str
    paper: str
    sizes: Sizes
    small: Sizes
    note: str


_SMALL_ZERO = {"blocks": 2, "channels": 8, "board_size": 9, "value_hidden": 16}
_SMALL_KATAGO = {"blocks": 4}
_SMALL_LC0 = {"blocks": 2, "channels": 16, "se_channels": 8}


def _encoders(count: int, width: int, feedforward: int) -> list[dict[str, Any]]:
    smolgen = {"compressed": 32, "hidden": 256, "generated": 256}
    return [{"d_model": width, "feedforward": feedforward, "smolgen": smolgen}] * count


def _alphago_family() -> list[NetworkEntry]:
    zero, separate = "alphago-zero", "alphago-zero-separate"
    residual, plain = {"channels": 256, "tower": "residual"}, {"channels": 256, "tower": "convolution"}
    small_policy = {"filters": 8, "layers": 3, "board_size": 9}
    return [
        NetworkEntry(
            "alphago-policy",
            "alphago-policy",
            ALPHAGO,
            {"filters": 192, "layers": 12},
            small_policy,
            "AlphaGo's policy network; pass_logit=True adds a pass",
        ),
        NetworkEntry(
            "alphago-value",
            "alphago-value",
            ALPHAGO,
            {"filters": 192, "layers": 12},
            {**small_policy, "hidden": 16},
            "AlphaGo's value network",
        ),
        NetworkEntry(
            "alphago-rollout",
            "alphago-rollout",
            ALPHAGO,
            {"patterns": 16_000, "responses": 16_000},
            {"patterns": 8, "responses": 8},
            "AlphaGo's rollout policy, a linear softmax, to learn its weights",
        ),
        NetworkEntry(
            "alphago-zero", zero, ALPHAGO_ZERO, {"blocks": 19, **residual}, _SMALL_ZERO, "dual-res, “20 blocks”"
        ),
        NetworkEntry(
            "alphago-zero-40", zero, ALPHAGO_ZERO, {"blocks": 39, **residual}, _SMALL_ZERO, "dual-res, “40 blocks”"
        ),
        NetworkEntry(
            "alphago-zero-dual-conv",
            zero,
            ALPHAGO_ZERO,
            {"blocks": 11, **plain},
            _SMALL_ZERO,
            "one tower of 12 convolutions without skip connections, two heads",
        ),
        NetworkEntry(
            "alphago-zero-sep-res",
            separate,
            ALPHAGO_ZERO,
            {"blocks": 19, **residual},
            _SMALL_ZERO,
            "two residual networks",
        ),
        NetworkEntry(
            "alphago-zero-sep-conv",
            separate,
            ALPHAGO_ZERO,
            {"blocks": 11, **plain},
            _SMALL_ZERO,
            "two networks of 12 convolutions",
        ),
        NetworkEntry(
            "leela-zero",
            "leela-zero",
            LEELA_ZERO,
            {"blocks": 40, "channels": 256},
            _SMALL_ZERO,
            "Leela Zero's last and largest size",
        ),
    ]


def _guide_family() -> list[NetworkEntry]:
    sizes = {"b10c128": (10, 128), "b18c384": (18, 384), "b40c256": (40, 256), "b60c320": (60, 320)}
    small = {"blocks": 7, "channels": 8, "board_size": 9}
    return [
        NetworkEntry(
            f"katago-guide-{name}",
            "katago-guide",
            GUIDE,
            {"blocks": blocks, "channels": channels},
            small,
            "four heads, global pooling after every sixth block",
        )
        for name, (blocks, channels) in sizes.items()
    ]


def _comparison_family() -> list[NetworkEntry]:
    small = {"channels": 8, "board_size": 9, "value_hidden": 16}
    under = "under AlphaGo Zero's input and heads"
    return [
        NetworkEntry(
            "comparison-vgg",
            "comparison-vgg",
            "trunk after Simonyan & Zisserman, arXiv:1409.1556",
            {"layers": 16, "channels": 256},
            {"layers": 3, **small},
            f"plain 3×3 convolutions {under}",
        ),
        NetworkEntry(
            "comparison-inception",
            "comparison-inception",
            "trunk after Szegedy et al., arXiv:1512.00567",
            {"blocks": 12, "channels": 256},
            {"blocks": 2, **small},
            f"parallel convolutions {under}",
        ),
        NetworkEntry(
            "comparison-transformer",
            "comparison-transformer",
            "trunk after Vaswani et al., arXiv:1706.03762",
            {"blocks": 8, "channels": 192, "heads": 6},
            {"blocks": 2, "heads": 2, **small},
            f"attention over points {under}",
        ),
        NetworkEntry(
            "comparison-residual",
            "comparison-residual",
            "blocks after He et al., arXiv:1512.03385 and 1603.05027, Hu et al., arXiv:1709.01507, and Wu, "
            "arXiv:1902.10565",
            {"block": "post", "blocks": 6, "channels": 96},
            {"blocks": 2, **small},
            f"block=post, pre, post-se, pre-se, post-pool or pre-pool {under}",
        ),
    ]


def _katago_family() -> list[NetworkEntry]:
    return [
        NetworkEntry(
            f"katago-{name}", "katago", KATAGO, {"preset": name}, _SMALL_KATAGO, "as KataGo's files hold it, any board"
        )
        for name in PRESETS
    ]


def _lc0_family() -> list[NetworkEntry]:
    residual = {(10, 128): 32, (20, 256): 32, (24, 320): 32}
    entries = [
        NetworkEntry(
            f"lc0-{blocks}x{channels}",
            "lc0",
            LC0,
            {"blocks": blocks, "channels": channels, "se_channels": squeezed},
            _SMALL_LC0,
            "squeeze-and-excitation; convolution policy, win/draw/loss, moves left",
        )
        for (blocks, channels), squeezed in residual.items()
    ]
    entries.append(
        NetworkEntry(
            "maia-6x64",
            "lc0",
            MAIA,
            {"blocks": 6, "channels": 64, "se_channels": 8, "moves_left": False},
            _SMALL_LC0,
            "the shape of Maia's networks of human play",
        )
    )
    entries.append(
        NetworkEntry(
            "lc0-transformer-10x256",
            "lc0-transformer",
            LC0,
            {"embedding": 256, "heads": 8, "encoders": _encoders(10, 256, 1024)},
            {"embedding": 16, "heads": 2, "encoders": _encoders(2, 16, 16)},
            "attention body with smolgen, attention policy",
        )
    )
    return entries


def _entries() -> dict[str, NetworkEntry]:
    families = (_alphago_family, _guide_family, _katago_family, _lc0_family, _comparison_family)
    return {entry.name: entry for family in families for entry in family()}


_ENTRIES = _entries()

ALIASES = {
    "alphago": "alphago-policy",
    "katago-guide": "katago-guide-b18c384",
    "katago": "katago-b18c384nbt",
    "lc0": "lc0-10x128",
    "maia": "maia-6x64",
}
"""Short names → the entry each stands for."""


def list_networks() -> list[NetworkEntry]:
    """All networks that `create` makes, in the family's order."""
    return list(_ENTRIES.values())


def find(name: str) -> NetworkEntry:
    """The entry of that name, of an alias, or of KataGo's own name for it ("b18c384nbt").

    Raises:
        BadRequest: there is none; the message lists those there are.
    """
    entry = _ENTRIES.get(ALIASES.get(name, name)) or _ENTRIES.get(f"katago-{name}")
    if entry is None:
        raise BadRequest(f"unknown network {name!r}; choose one of {', '.join(_ENTRIES)}")
    return entry


def create(name: str, **sizes: Any) -> Network:
    """A fresh network by name, its weights random.

    Args:
        name: one of `list_networks()`, or an alias ("katago", "lc0", "b18c384nbt", ...).
        sizes: sizes other than the entry's own: `blocks`, `channels`, `board_size`, ... (its class's arguments, or the
            fields of its configuration). For KataGo networks `blocks=n` keeps the first n blocks.

    Returns:
        The network, in training mode.

    Raises:
        BadRequest: an unknown name, an unknown size, or sizes that cannot be.
    """
    entry = find(name)
    network = _build(entry, {**entry.sizes, **sizes})
    network.pedigree = replace(network.pedigree, name=entry.name)
    return network


def _build(entry: NetworkEntry, sizes: dict[str, Any]) -> Network:
    kind = KINDS[entry.kind]
    build: Callable[..., Network] = kind.load()
    if entry.kind == "katago":
        return build(_katago_config(entry.name, sizes))
    if kind.settings:
        settings = kind.load_settings()
        _check_names(entry.name, sizes, [each.name for each in fields(settings)])
        return build(settings(**sizes))
    _check_names(entry.name, sizes, list(inspect.signature(build).parameters))
    return build(**sizes)


def _katago_config(name: str, sizes: dict[str, Any]) -> KataGoConfig:
    config = preset(sizes.pop("preset"))
    _check_names(name, sizes, [each.name for each in fields(config)])
    count = sizes.get("blocks")
    if isinstance(count, int):
        if not 1 <= count <= len(config.blocks):
            raise BadRequest(f"{name} has 1 to {len(config.blocks)} blocks, not {count}")
        sizes["blocks"] = config.blocks[:count]
    return replace(config, **sizes)


def _check_names(name: str, sizes: Sizes, known: list[str]) -> None:
    unknown = [size for size in sizes if size not in known]
    if unknown:
        raise BadRequest(f"{name} has no size {', '.join(unknown)}; it has {', '.join(known)}")


# --- Descriptions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Description:
    """What a network is made of.

    Attributes:
        inputs: shape of each input for one position, by name.
        outputs: shape of each output for one position, by name.
        parameters: trained numbers (batch norm's running statistics are not counted).
        flops: operations of one evaluation, a multiplication and an addition counting as two; convolutions, linear
            layers and attention's products are counted, everything point by point (norms, activations, sums) is not.
        receptive_field: side, in points, of the square of input that one point of the trunk's output depends on through
            its convolutions.
        reach: what else sees the whole board at once; empty for nothing.
    """

    inputs: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]
    parameters: int
    flops: int
    receptive_field: int
    reach: str = field(default="")


def describe(network: Network | str) -> Description:
    """Count a network of the registry, or of one of its kinds; `network` is left as it is.

    A name is described without its weights being made (on PyTorch's "meta" device), so this is quick at any size.

    Raises:
        BadRequest: an unknown name.
        UnsupportedNetwork: a network of a class that is not registered.
    """
    import copy

    import torch
    from torch.utils.flop_counter import FlopCounterMode

    if isinstance(network, str):
        with torch.device("meta"):
            model = create(network).to("meta").eval()
    else:
        model = copy.deepcopy(network).to("meta").eval()
    kind = KINDS[kind_of(model)]
    inputs = example_inputs(model, device="meta")
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        output = model(**inputs)
    return Description(
        inputs={name: tuple(tensor.shape[1:]) for name, tensor in inputs.items()},
        outputs={name: tuple(getattr(output, name).shape[1:]) for name in model.output_names},
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        flops=int(counter.get_total_flops()),
        receptive_field=receptive_field(model),
        reach=_reach(model, kind),
    )


def _reach(network: Network, kind: Kind) -> str:
    """What sees the whole board at once; some KataGo networks have attention as well."""
    attends = any("Attention" in type(module).__name__ for module in network.modules())
    return f"attention, {kind.reach}" if attends and "attention" not in kind.reach else kind.reach


def receptive_field(network: Network) -> int:
    """1 + the sum of (kernel − 1) over the convolutions on the trunk's path: the side of what one point sees.

    Raises:
        UnsupportedNetwork: a class that is not registered.
    """
    from torch import nn

    kind = KINDS[kind_of(network)]
    side = 1
    for name, module in network.named_modules():
        on_path = name.split(".")[0] in kind.trunk and not any(part in f".{name}." for part in kind.beside)
        if on_path and isinstance(module, nn.Conv2d):
            side += int(module.kernel_size[0]) - 1
    return side


def example_inputs(network: Network, n: int = 1, device: str = "cpu") -> dict[str, Tensor]:
    """Zero inputs of the shapes that `network.forward` takes, by name and in its order: for tracing and counting.

    The board is the network's own size; 19×19 for a Go network that takes any, 8×8 for chess.
    """
    import torch

    encoding = network.encoding
    config: Any = network.config
    side = config.get("board_size", 19) if isinstance(config, dict) else 8 if encoding.game == "chess" else 19
    shapes = {
        "planes": (n, encoding.planes, side, side),
        "globals": (n, encoding.globals),
        "metadata": (n, 192),
    }
    return {name: torch.zeros(shapes[name], device=device) for name in network.input_names}
