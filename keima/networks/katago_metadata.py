"""KataGo's human networks: who plays, at what rank, when and how fast, as one more bias on the trunk."""

from __future__ import annotations

from torch import Tensor, nn

from keima.networks.katago_config import METADATA, MetadataConfig
from keima.networks.layers import activate_rows, activation_layer


class MetadataEncoder(nn.Module):
    """192 facts about the players → one bias per trunk channel, through two hidden layers.

    Follows `SGFMetadataEncoderDesc` in KataGo's `cpp/neuralnet/desc.cpp`; what the 192 numbers mean is documented with
    the encoding that makes them.
    """

    def __init__(self, channels: int, config: MetadataConfig) -> None:
        super().__init__()
        self.config = config
        first, second = config.hidden
        self.linear1 = nn.Linear(METADATA, first)
        self.act1 = activation_layer(config.activations[0])
        self.linear2 = nn.Linear(first, second)
        self.act2 = activation_layer(config.activations[1])
        self.linear3 = nn.Linear(second, channels, bias=False)

    def forward(self, metadata: Tensor) -> Tensor:
        """[N, 192] → [N, C]."""
        hidden = activate_rows(self.act1, self.linear1(metadata))
        bias: Tensor = self.linear3(activate_rows(self.act2, self.linear2(hidden)))
        return bias
