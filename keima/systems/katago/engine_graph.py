"""The ONNX file that KataGo itself runs, from 1.18 on, with its backends for ONNX Runtime and TensorRT.

After KataGo's docs/ONNX_Model_Files.md, version 1 of that contract: planes of one size that boards up to it lie in,
under a mask; all tensors [N, C, H, W]; what a `.bin.gz` says of its outputs as metadata `katago.…`, of which KataGo
refuses any that it does not know.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import torch
from torch import Tensor

from keima.errors import BadRequest
from keima.systems.files.onnx_file import Traced, draw, finished
from keima.systems.files.safetensors import to_metadata
from keima.systems.katago.config import GLOBALS, METADATA, PLANES, KataGoConfig
from keima.systems.katago.network import KataGoNetwork
from keima.systems.network import Network

_MULTIPLIERS = {
    "td_score": "tdScore",
    "score_mean": "scoreMean",
    "score_stdev": "scoreStdev",
    "lead": "lead",
    "variance_time": "varianceTime",
    "shortterm_winloss_error": "shorttermValueError",
    "shortterm_score_error": "shorttermScoreError",
}

LARGEST = 19  # KataGo's own as built, and keima's


class _Ends(Traced):
    """The network with the inputs and outputs of KataGo's graphs."""

    def __init__(self, network: KataGoNetwork, precision: str) -> None:
        super().__init__(network, precision)
        self.names = ("OutputPolicyPass", "OutputPolicy", "OutputValue", "OutputScoreValue", "OutputOwnership")

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """InputSpatial, InputGlobal, InputMeta if the network has metadata, InputMask → `names`, all [N, C, H, W]."""
        planes, *rows, mask = inputs
        output = self.network(planes, *(each.flatten(1) for each in rows), mask=mask)
        points = output.policy[:, :, :-1].unflatten(2, planes.shape[2:])
        rows = [each[:, :, None, None] for each in (output.policy[:, :, -1], output.value, output.score)]
        return rows[0], points, rows[1], rows[2], output.ownership[:, None]


def engine_graph(network: Network, side: int, precision: str = "f32") -> bytes:
    """The file's bytes, for boards of up to side × side: KataGo's `maxBoardSizeForNNBuffer`.

    Raises:
        BadRequest: a side KataGo does not have, or a precision its files do not.
    """
    assert isinstance(network, KataGoNetwork)
    if not 2 <= side <= LARGEST:
        raise BadRequest(f"a board of {side}; KataGo's are of 2 to {LARGEST}")
    if precision == "f16":
        raise BadRequest("KataGo's ONNX files are f32 or int8; its backends compute in float16 by themselves")
    sizes = {"InputSpatial": (PLANES, side), "InputGlobal": (GLOBALS, 1)}
    if network.config.metadata is not None:
        sizes["InputMeta"] = (METADATA, 1)
    sizes["InputMask"] = (1, side)  # the last: see the contract
    examples = {name: torch.ones(2, channels, each, each) for name, (channels, each) in sizes.items()}
    model = draw(_Ends(network, precision), examples, {0: "N"})
    metadata = _metadata(network.config, side)
    metadata["katago.name"] = re.sub("[^A-Za-z0-9_-]", "-", network.pedigree.name)[:96] or "keima"
    metadata["keima.pedigree"] = to_metadata(network)["keima.pedigree"]
    return finished(model, network, metadata)


def _metadata(config: KataGoConfig, side: int) -> dict[str, str]:
    has_metadata = config.metadata is not None
    facts: dict[str, object] = {
        "metadataVersion": 1,
        "modelVersion": config.version,
        "numInputChannels": PLANES,
        "numInputGlobalChannels": GLOBALS,
        "numInputMetaChannels": METADATA if has_metadata else 0,
        "numPolicyChannels": config.policy.outputs,
        "numValueChannels": 3,
        "numScoreValueChannels": config.scores,
        "numOwnershipChannels": 1,
        "metaEncoderVersion": int(has_metadata),
        "preferPassAliveUnderSuicideRules": config.pass_alive_suicide,
        "preferExcludeTerritoryAdjacentToAtari": False,  # networks that do are refused when they are read
        "build.nnXLen": side,
        "build.nnYLen": side,
        "build.requireExactNNLen": False,
    }
    multipliers = asdict(config.multipliers)
    facts |= {f"postProcess.{_MULTIPLIERS[name]}Multiplier": value for name, value in multipliers.items()}
    return {f"katago.{name}": json.dumps(value) for name, value in facts.items()}


ENGINE_GRAPH = engine_graph
