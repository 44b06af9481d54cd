"""Pruning takes the channels and blocks that nobody needs, all of each and nothing else; the rest answers as before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import keima
from keima.compress import prune
from keima.compress.prune import agreement
from keima.errors import BadRequest, UnsupportedNetwork
from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork
from keima.systems.alphago_zero.network import AlphaGoZeroNetwork
from keima.systems.katago.config import NormConfig, PoolingConfig, ResidualConfig
from keima.systems.katago.network import KataGoNetwork, by_name
from keima.systems.lc0.attention import AttentionPolicyConfig
from keima.systems.lc0.network import Lc0Config, Lc0Network
from keima.systems.network import Network
from keima.systems.registry import create
from tests.compress.test_fold import answer, unsettle

torch.set_num_threads(1)

TILES = (1, 2, 3)
"""How often a group may stand in one axis: squeeze-and-excitation ends in two halves, pooling has three."""


def katago(norm: NormConfig | None = None) -> KataGoNetwork:
    """Every kind of block that is pruned; no two of its sizes, nor three times one, are equal."""
    norm = norm or NormConfig("relu", statistics=True, epsilon=1e-4)
    blocks = (
        ResidualConfig(14, norm, replace(norm, scale=False)),
        PoolingConfig(11, 7, norm, norm, norm),
        replace(by_name("b18c384nbt").blocks[2], channels=9, blocks=(PoolingConfig(13, 5, norm, norm, norm),)),
    )
    config = by_name("b6c96")
    policy = replace(config.policy, channels=6, pooled=4)
    value = replace(config.value, channels=8, hidden=10)
    return KataGoNetwork(replace(config, channels=20, blocks=blocks, tip=norm, policy=policy, value=value))


def lc0(**sizes: object) -> Lc0Network:
    return Lc0Network(Lc0Config(**{"blocks": 3, "channels": 20, "se_channels": 6, **sizes}))


NETWORKS: dict[str, Callable[[], Network]] = {
    "katago": katago,
    "katago-without-statistics": lambda: katago(NormConfig("mish")),
    "alphago-zero": lambda: AlphaGoZeroNetwork(3, 20, board_size=9, value_hidden=16),
    "leela-zero": lambda: LeelaZeroNetwork(3, 20, board_size=9, value_hidden=16),
    "lc0": lc0,
    "lc0-folded": lambda: lc0(batch_norm=False),
    "lc0-without-se": lambda: lc0(se_channels=0, moves_left=False),
    "lc0-classical": lambda: lc0(policy="classical", value="classical", activation="mish"),
    "lc0-attention": lambda: lc0(policy="attention", attention_policy=AttentionPolicyConfig(16, 24)),
}
CUT = {20: 5, 14: 4, 11: 3, 7: 2, 9: 2, 13: 3, 5: 1}
"""A group's size → how many of its channels go when the trunk of 20 keeps 15."""


def inputs(network: Network, n: int, seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    size = 8 if network.encoding.game == "chess" else 9
    made = {
        "planes": torch.randint(0, 2, (n, network.encoding.planes, size, size), generator=generator).float(),
        "globals": torch.rand((n, network.encoding.globals), generator=generator),
    }
    return {name: made[name] for name in network.input_names}


def batches_of(network: Network) -> list[dict[str, Tensor]]:
    return [inputs(network, 24, seed) for seed in range(4)]


def each_channel_axis(network: Network, axis: int) -> list[tuple[Tensor, int, int]]:
    """Weights (and norms' vectors, which have one axis) that hold a group in that axis; its size, how often."""
    groups = set(CUT) if isinstance(network, KataGoNetwork) else {20}
    return [
        (tensor, tensor.shape[axis] // tiles, tiles)
        for tensor in network.state_dict().values()
        for tiles in TILES
        if tensor.ndim > axis and tensor.shape[axis] % tiles == 0 and tensor.shape[axis] // tiles in groups
    ]


def kill(network: Network, axis: int) -> Network:
    """Let nothing be written to the last channels of each group (axis 0), or nothing be read from them (axis 1)."""
    unsettle(network)
    for tensor, size, tiles in each_channel_axis(network, axis):
        dead = [tile * size + size - 1 - number for tile in range(tiles) for number in range(CUT[size])]
        tensor.index_fill_(axis, torch.tensor(dead), 0.0)
    return network


def assert_same(network: Network, pruned: Network, tolerance: float = 1e-5) -> None:
    before = answer(network)
    for output, tensor in answer(pruned).items():
        torch.testing.assert_close(tensor, before[output], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("data", [False, True], ids=["weights", "positions"])
@pytest.mark.parametrize("axis", [0, 1], ids=["never-written", "never-read"])
@pytest.mark.parametrize("name", NETWORKS)
def test_dead_channels_go_and_answers_stay(name: str, axis: int, data: bool) -> None:
    network = kill(NETWORKS[name](), axis)
    kept = {key: tensor.clone() for key, tensor in network.state_dict().items()}
    pruned = prune(network, 15, batches=batches_of(network) if data else ())
    assert_same(network, pruned)
    assert all(torch.equal(kept[key], tensor) for key, tensor in network.state_dict().items()), "the original changed"
    numbers = [sum(t.numel() for t in one.parameters()) for one in (network, pruned)]
    assert numbers[1] < numbers[0]
    assert not any({20, 40} & set(tensor.shape) for tensor in pruned.state_dict().values())


def test_katago_blocks_keep_the_trunks_share() -> None:
    config = prune(katago(), 15).config
    first, second, third = config.blocks
    assert (config.channels, first.channels, second.channels, second.pooled) == (15, 10, 8, 5)
    assert (third.channels, third.blocks[0].channels, third.blocks[0].pooled) == (7, 10, 4)
    wide = prune(create("katago-b6c96"), 64).config
    assert {(block.channels, getattr(block, "pooled", 0)) for block in wide.blocks} == {(64, 0), (40, 24)}
    assert (wide.policy, wide.value) == (create("katago-b6c96").config.policy, create("katago-b6c96").config.value)


@pytest.mark.parametrize("name", ["katago", "katago-without-statistics", "alphago-zero", "lc0", "lc0-without-se"])
def test_what_two_channels_say_alike_is_fitted_into_one(name: str) -> None:
    network = unsettle(NETWORKS[name]())
    for tensor, size, tiles in each_channel_axis(network, 0):
        for tile in range(tiles):
            tensor[tile * size + 2] = tensor[tile * size + 3]
    fitted = prune(network, 19, batches=batches_of(network))
    by_weights = prune(network, 19)
    before, *after = (
        torch.cat([answer(one)[key].flatten() for key in ("policy", "value")]) for one in (network, fitted, by_weights)
    )
    errors = [float((one - before).square().mean().sqrt()) for one in after]
    assert errors[0] < 0.02 * float(before.std())
    assert errors[0] < 0.1 * errors[1]


@pytest.mark.parametrize("name", ["katago", "alphago-zero", "lc0", "lc0-without-se"])
def test_refitted_weights_are_nearer_than_those_left(name: str) -> None:
    network = unsettle(NETWORKS[name]())
    batches = batches_of(network)
    held_out = [inputs(network, 24, 99)]
    shares = [agreement(network, prune(network, 14, batches=used), held_out) for used in (batches, ())]
    assert shares[0].value < shares[1].value
    assert shares[0].positions == 24


@pytest.mark.parametrize("data", [False, True], ids=["weights", "positions"])
@pytest.mark.parametrize("name", ["katago", "alphago-zero", "leela-zero", "lc0", "lc0-without-se"])
def test_a_block_that_adds_nothing_goes(name: str, data: bool) -> None:
    network = unsettle(NETWORKS[name]())
    idle = ("blocks.1.conv2", "tower.1.convolution2", "tower.1.norm2", "tower.1.conv2", "tower.1.se")
    for key, tensor in network.state_dict().items():
        if key.startswith(idle) and tensor.is_floating_point():
            tensor.zero_()
    pruned = prune(network, blocks=2, batches=batches_of(network) if data else ())
    assert_same(network, pruned)
    assert len(pruned.blocks if isinstance(pruned, KataGoNetwork) else pruned.tower) == 2


def test_what_a_lost_block_did_is_made_up_for_in_part() -> None:
    network = unsettle(AlphaGoZeroNetwork(3, 20, board_size=9, value_hidden=16))
    held_out = [inputs(network, 24, 99)]
    with_positions = agreement(network, prune(network, blocks=2, batches=batches_of(network)), held_out)
    assert with_positions.value < agreement(network, prune(network, blocks=2), held_out).value


def test_padded_boards_are_measured_where_the_board_is() -> None:
    network = kill(katago(), 1)
    padded = []
    for batch in batches_of(network):
        planes = torch.nn.functional.pad(batch["planes"], (0, 3, 0, 3))
        mask = torch.zeros(len(planes), 1, 12, 12)
        mask[:, :, :9, :9] = 1
        padded.append({**batch, "planes": planes, "mask": mask})
    assert_same(network, prune(network, 15, batches=padded))


@pytest.mark.parametrize(
    ("name", "file", "tolerance"),
    [
        ("katago", "net.bin.gz", 1e-5),
        ("leela-zero", "net.txt.gz", 1e-5),
        ("lc0", "net.pb.gz", 2e-2),  # 16 bits
        ("alphago-zero", "net.safetensors", 0),
    ],
)
def test_files(name: str, file: str, tolerance: float, tmp_path: Path) -> None:
    network = unsettle(NETWORKS[name]() if name != "leela-zero" else LeelaZeroNetwork(3, 20, board_size=9))
    keima.save(network, tmp_path / f"whole-{file}")
    network = keima.load(tmp_path / f"whole-{file}")
    pruned = prune(network, 15, blocks=2)
    keima.save(pruned, tmp_path / file)
    again = keima.load(tmp_path / file)
    assert_same(pruned, again, tolerance)
    assert pruned.pedigree.name == f"{network.pedigree.name}-pruned-b2c15"
    assert pruned.pedigree.details["pruned from"].endswith(f"whole-{file}")
    if file.endswith("safetensors"):
        assert again.pedigree.details == pruned.pedigree.details
    if file.endswith("bin.gz"):
        assert again.pedigree.name == pruned.pedigree.name


@pytest.mark.parametrize("file", ["g170-b6c96-s175395328-d26788732.bin.gz", "maia-1500.pb.gz"])
def test_published_networks(reference: Path, file: str, tmp_path: Path) -> None:
    network = keima.load(reference / "nets" / file)
    pruned = prune(network, 32, blocks=3)
    keima.save(pruned, tmp_path / file)
    assert_same(pruned, keima.load(tmp_path / file), 5e-2 if file.endswith("pb.gz") else 1e-5)


class TestErrors:
    @pytest.mark.parametrize(
        ("sizes", "message"),
        [
            ({"channels": 0}, "cannot keep 0 channels of 20; choose 1 to 20"),
            ({"channels": 21}, "cannot keep 21 channels of 20"),
            ({"blocks": 4}, "cannot keep 4 blocks of 3"),
            ({"channels": 20, "blocks": 3}, "nothing to prune"),
            ({}, "nothing to prune"),
        ],
    )
    def test_sizes_that_cannot_be(self, sizes: dict[str, int], message: str) -> None:
        with pytest.raises(BadRequest, match=message):
            prune(lc0(), **sizes)

    @pytest.mark.parametrize("name", ["katago-b7c96h3tfrs", "lc0-transformer-10x256", "alphago-policy", "alphago-zero"])
    def test_networks_that_are_not_pruned(self, name: str) -> None:
        sizes = {"alphago-zero": {"tower": "convolution"}, "katago-b7c96h3tfrs": {}}
        small = {"lc0-transformer-10x256": {"embedding": 32, "heads": 2}, "alphago-policy": {"filters": 8}}
        with pytest.raises(UnsupportedNetwork, match="prune"):
            prune(create(name, **sizes.get(name, small.get(name, {}))), 4)

    def test_a_tower_without_blocks(self) -> None:
        with pytest.raises(UnsupportedNetwork, match="it has no blocks"):
            prune(AlphaGoZeroNetwork(0, 8, board_size=9), 4)

    def test_a_folded_network(self) -> None:
        with pytest.raises(BadRequest, match="prune first, fold afterwards"):
            prune(keima.compress.fold(NETWORKS["alphago-zero"]().eval()), 15)
