"""AlphaGo's two networks as one evaluator: the policy's moves and the value network's value for each leaf."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Protocol

from keima.errors import UnsupportedNetwork
from keima.systems.alphago.inputs import POLICY_PLANES, VALUE_PLANES
from keima.systems.encoding import Batch, Encoding
from keima.systems.network import Heads


class _Handle(Protocol):
    def result(self) -> Heads: ...


class _Evaluator(Protocol):
    """`keima.Evaluator`, which this layer does not know."""

    @property
    def encoding(self) -> Encoding: ...

    @property
    def batch_size(self) -> int: ...

    def submit(self, batch: Batch) -> _Handle: ...


@dataclass(frozen=True)
class _PairHandle:
    """Two batches under way."""

    policy: _Handle
    value: _Handle

    def result(self) -> Heads:
        """Wait for both; the policy's logits with the value network's numbers."""
        heads, value = self.policy.result(), self.value.result()
        return replace(heads, wdl=value.wdl, value=value.value)


class PolicyAndValue:
    """An evaluator of two: `Search(PolicyAndValue(policy, value))`.

    Args:
        policy: `Evaluator` of a policy network (48 planes).
        value: `Evaluator` of a value network (49 planes: those and the side to move's colour).

    Raises:
        UnsupportedNetwork: networks of other planes.
    """

    def __init__(self, policy: _Evaluator, value: _Evaluator) -> None:
        planes = policy.encoding.planes, value.encoding.planes
        if planes != (POLICY_PLANES, VALUE_PLANES):
            taken = f"{POLICY_PLANES} and {VALUE_PLANES} planes, not {planes[0]} and {planes[1]}"
            raise UnsupportedNetwork(f"AlphaGo's policy and value networks take {taken}")
        self.network = SimpleNamespace(system="alphago", output_names=("policy", "value"))  # what a search asks of one
        self.encoding = value.encoding
        self.batch_size = min(policy.batch_size, value.batch_size)
        self._policy, self._value = policy, value

    def submit(self, batch: Batch) -> _PairHandle:
        """Start one encoded batch on both networks."""
        fewer = Batch({"planes": batch.inputs["planes"][:, :POLICY_PLANES]}, batch.context)
        return _PairHandle(self._policy.submit(fewer), self._value.submit(batch))
