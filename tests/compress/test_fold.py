"""Folding batch norm changes no answer and leaves fewer numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import keima
from keima.compress import fold
from keima.systems.alphago.network import AlphaGoPolicyNetwork
from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork
from keima.systems.alphago_zero.network import AlphaGoZeroNetwork
from keima.systems.comparison.trunks import InceptionNetwork, TransformerNetwork, VggNetwork
from keima.systems.katago.config import NormConfig, PoolingConfig, ResidualConfig
from keima.systems.katago.layers import NormAct
from keima.systems.katago.network import KataGoNetwork, by_name
from keima.systems.katago_guide.network import KataGoGuideNetwork
from keima.systems.lc0.network import Lc0Config, Lc0Network
from keima.systems.network import Network
from keima.systems.registry import NetworkEntry, create, list_networks

torch.set_num_threads(1)


def unsettle(network: Network) -> Network:
    """Give every weight and statistic a value that folding must not lose."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if name.endswith("running_var"):
                tensor.uniform_(0.3, 3.0, generator=generator)
            elif name.endswith("running_mean"):
                tensor.normal_(0, 0.3, generator=generator)
            elif "norm" in name and tensor.is_floating_point():
                tensor.add_(torch.empty_like(tensor).normal_(0, 0.2, generator=generator))
    return network.eval()


def answer(network: Network, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    height, width = (min(side, 9) for side in network.encoding.board)
    inputs = {
        "planes": torch.randint(0, 2, (3, network.encoding.planes, height, width), generator=generator).float(),
        "globals": torch.rand((3, network.encoding.globals), generator=generator),
    }
    with torch.inference_mode():
        output = network(*(inputs[name] for name in network.input_names))
    return {name: getattr(output, name) for name in network.output_names}


def small_katago() -> KataGoNetwork:
    """Batch norms with statistics, pooling blocks, nested bottlenecks and a pass branch of two layers."""
    norm = NormConfig("relu", statistics=True, epsilon=1e-4)
    unscaled = replace(norm, scale=False)
    blocks = (
        ResidualConfig(12, norm, unscaled),
        PoolingConfig(8, 4, norm, norm, norm),
        replace(by_name("b18c384nbt").blocks[2], channels=8, blocks=(PoolingConfig(6, 4, norm, norm, norm),)),
    )
    config = by_name("b6c96")
    policy = replace(config.policy, channels=6, pooled=5, pool=norm, board=unscaled)
    value = replace(config.value, channels=5, hidden=7, norm=norm)
    return KataGoNetwork(replace(config, channels=12, blocks=blocks, policy=policy, value=value))


NETWORKS = {
    "alphago-zero": lambda: AlphaGoZeroNetwork(2, 8, board_size=9, value_hidden=16),
    "alphago-zero-plain": lambda: AlphaGoZeroNetwork(2, 8, "convolution", board_size=9, value_hidden=16),
    "leela-zero": lambda: LeelaZeroNetwork(2, 8, board_size=9, value_hidden=16),
    "katago-guide": lambda: KataGoGuideNetwork(6, 8, board_size=9),
    "vgg": lambda: VggNetwork(2, 8, 9, 16),
    "transformer": lambda: TransformerNetwork(1, 8, 2, 9, 16),
    "inception": lambda: InceptionNetwork(2, 8, 9, 16),
    "lc0": lambda: Lc0Network(Lc0Config(blocks=2, channels=8, se_channels=4)),
    "lc0-mish-classical": lambda: Lc0Network(
        Lc0Config(2, 8, 0, policy="classical", value="classical", activation="mish", moves_left=False)
    ),
    "katago": small_katago,
}
NORMS_LEFT = {"katago-guide": 6}
"""Of a pre-activation tower the first norm of each block reads the trunk, and stays."""


@pytest.mark.parametrize("name", NETWORKS)
def test_answers_stay_and_numbers_go(name: str) -> None:
    network = unsettle(NETWORKS[name]())
    before = answer(network)
    folded = fold(network)
    for output, tensor in answer(folded).items():
        torch.testing.assert_close(tensor, before[output], rtol=1e-5, atol=1e-5)
    for output, tensor in answer(network).items():
        assert torch.equal(tensor, before[output]), "the original was changed"
    assert sum(t.numel() for t in folded.state_dict().values()) < sum(t.numel() for t in network.state_dict().values())
    norms = [module for module in folded.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) == NORMS_LEFT.get(name, 0)


@pytest.mark.parametrize("entry", list_networks(), ids=lambda entry: entry.name)
def test_every_registered_network_folds(entry: NetworkEntry) -> None:
    network = unsettle(create(entry.name, **entry.small))
    before = answer(network)
    for output, tensor in answer(fold(network)).items():
        torch.testing.assert_close(tensor, before[output], rtol=1e-5, atol=1e-5)


def test_katago_norms_after_convolutions_keep_only_a_bias() -> None:
    folded = fold(unsettle(small_katago()))
    assert isinstance(folded, KataGoNetwork)
    norms = {name: module for name, module in folded.named_modules() if isinstance(module, NormAct)}
    scaled = {name for name, norm in norms.items() if norm.weight is not None}
    assert scaled == {
        "blocks.0.norm1",
        "blocks.1.norm1",
        "blocks.2.norm1",
        "blocks.2.norm2",
        "blocks.2.blocks.0.norm1",
        "tip",
    }
    assert not any(norm.config.statistics for norm in norms.values())


def test_a_network_without_batch_norm_stays_as_it_is() -> None:
    network = AlphaGoPolicyNetwork(8, 2, board_size=9).eval()
    folded = fold(network)
    assert folded is not network
    for name, tensor in network.state_dict().items():
        assert torch.equal(folded.state_dict()[name], tensor)


def test_folding_twice_is_folding_once() -> None:
    once = fold(unsettle(NETWORKS["alphago-zero"]()))
    twice = fold(once)
    assert twice.state_dict().keys() == once.state_dict().keys()
    assert all(torch.equal(twice.state_dict()[name], tensor) for name, tensor in once.state_dict().items())


class Shared(AlphaGoZeroNetwork):
    """A tower whose first convolution's output is read by its norm and by the policy head as well."""

    def forward(self, planes: Tensor) -> object:
        raw = self.stem.convolution(planes)
        x = self.tower(self.stem.norm(raw).relu())
        return type(self).output(self.policy_head(x + raw), self.value_head(x))


def test_a_convolution_that_others_read_too_is_left_alone() -> None:
    from keima.systems.layers import PolicyValue

    Shared.output = PolicyValue
    network = unsettle(Shared(1, 8, board_size=9, value_hidden=16))
    folded = fold(network)
    assert isinstance(folded.stem.norm, nn.BatchNorm2d)
    assert isinstance(folded.tower[0].norm1, nn.Identity)
    for output, tensor in answer(folded).items():
        torch.testing.assert_close(tensor, answer(network)[output], rtol=1e-5, atol=1e-5)


def test_folded_files_of_katago_and_lc0_answer_the_same(tmp_path: Path) -> None:
    for network, file in ((small_katago(), "net.bin.gz"), (NETWORKS["lc0"](), "net.pb.gz")):
        before = answer(unsettle(network))
        keima.save(fold(network), tmp_path / file)
        tolerance = 1e-4 if file.endswith("bin.gz") else 2e-2  # Lc0 keeps weights in 16 bits
        for output, tensor in answer(keima.load(tmp_path / file)).items():
            torch.testing.assert_close(tensor, before[output], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("file", ["leela-zero-random-3x32.txt.gz", "lc0-random-classical.pb.gz"])
def test_files_with_batch_norm_fold(reference: Path, file: str) -> None:
    network = keima.load(reference / "nets" / file)
    folded = fold(network)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())
    planes = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (2, network.encoding.planes, 19, 19), "int32"))
    planes = planes[:, :, :8, :8].float() if network.encoding.game == "chess" else planes.float()
    with torch.inference_mode():
        plain, after = network(planes), folded(planes)
    # answers, not logits: those reach 30 here, where float32 itself is no better than 2e-5 (against float64)
    torch.testing.assert_close(after.policy.softmax(1), plain.policy.softmax(1), rtol=0, atol=1e-5)
    torch.testing.assert_close(after.value, plain.value, rtol=0, atol=1e-5)
