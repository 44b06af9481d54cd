"""OpenVINO answers as PyTorch does; what it compiled is used again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import keima
from keima.inference import openvino_backend
from keima.inference.backend import TorchBackend, rows_per_request
from keima.inference.evaluator import Evaluator
from keima.inference.openvino_backend import ALONE, CompiledShape, OpenVINOBackend, convert
from keima.systems.alphago_zero.network import AlphaGoZeroNetwork
from keima.systems.network import Network
from tests.inference.fakes import GridEncoding, GridNetwork, random_grid

BF16 = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def network() -> AlphaGoZeroNetwork:
    torch.manual_seed(0)
    return AlphaGoZeroNetwork(2, 16, board_size=9, value_hidden=16).eval()


def planes(count: int) -> dict[str, np.ndarray[Any, Any]]:
    return {"planes": np.random.default_rng(1).integers(0, 2, (count, 17, 9, 9)).astype(np.float32)}


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Network]:
    """Every network that gets traced and converted from here on."""
    seen: list[Network] = []

    def counting(converted: Network, *rest: Any) -> Any:
        seen.append(converted)
        return real(converted, *rest)

    real: Callable[..., Any] = openvino_backend.convert
    monkeypatch.setattr(openvino_backend, "convert", counting)
    return seen


def test_both_backends_answer_the_same_in_float32() -> None:
    inputs = planes(5)
    left = TorchBackend(network(), "f32", 8, threads=1).submit(inputs).result()
    right = OpenVINOBackend(network(), "f32", 8, threads=1).submit(inputs).result()
    assert list(left) == list(right) == ["policy", "value"]
    for name, array in left.items():
        assert array.dtype == right[name].dtype == np.float32
        np.testing.assert_allclose(array, right[name], atol=2e-6)


@pytest.mark.parametrize(("cores", "pinned"), [(2, False), (1, True)])
def test_an_evaluator_on_some_of_the_cores_leaves_them_to_the_system(
    cores: int, pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pinned, two with one thread each would both be on the first core; with all cores there is nothing to share."""
    monkeypatch.setattr(openvino_backend, "usable_cores", lambda: cores)
    backend, converted = OpenVINOBackend(network(), "f32", 8, threads=1), partial(convert, network(), planes(1))
    compiled = backend._compile(planes(1), converted, ALONE)
    assert compiled.get_property("ENABLE_CPU_PINNING") is pinned


@pytest.mark.skipif(not BF16, reason="this processor does not compute in bfloat16")
def test_bfloat16_is_near_float32_and_not_the_same() -> None:
    inputs = planes(5)
    exact = OpenVINOBackend(network(), "f32", 8, threads=1).submit(inputs).result()["value"]
    rough = OpenVINOBackend(network(), "bf16", 8, threads=1).submit(inputs).result()["value"]
    assert np.abs(exact - rough).max() < 0.02
    assert not np.array_equal(exact, rough)


@pytest.mark.parametrize("make", [TorchBackend, OpenVINOBackend])
def test_a_row_is_the_same_to_the_last_bit_wherever_it_stands(make: Any) -> None:
    inputs = planes(11)
    backend = make(network(), "f32", 8, threads=1)
    together = backend.submit(inputs).result()
    for row in range(11):
        alone = backend.submit({"planes": inputs["planes"][row : row + 1]}).result()
        behind = backend.submit({"planes": np.roll(inputs["planes"], 1, axis=0)}).result()
        for name, array in together.items():
            assert array[row].tobytes() == alone[name][0].tobytes()
            assert array[row].tobytes() == behind[name][(row + 1) % 11].tobytes()


def test_the_second_start_converts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conversions: list[Network]
) -> None:
    monkeypatch.setenv("KEIMA_CACHE", str(tmp_path))
    inputs = planes(3)
    first = OpenVINOBackend(network(), "f32", 8, threads=1).submit(inputs).result()
    assert len(conversions) == 1
    second = OpenVINOBackend(network(), "f32", 8, threads=1).submit(inputs).result()
    assert len(conversions) == 1
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_all_widths_of_a_board_come_of_one_conversion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conversions: list[Network]
) -> None:
    monkeypatch.setenv("KEIMA_CACHE", str(tmp_path))
    backend = OpenVINOBackend(network(), "f32", 64, threads=1)
    for size in (64, 3, 1):
        backend.submit(planes(size)).result()
    (compiled,) = backend._compiled.values()
    assert len(compiled._slots) > 1
    assert len(conversions) == 1


def test_other_weights_are_not_taken_for_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conversions: list[Network]
) -> None:
    monkeypatch.setenv("KEIMA_CACHE", str(tmp_path))
    position = random_grid(3, 3, 0)
    Evaluator(GridNetwork(), "openvino", threads=1)([position])
    other = GridNetwork()
    other.tower[1].weight.data[0, 0] = 1.0
    doubled = Evaluator(other, "openvino", threads=1)([position])[0]
    assert len(conversions) == 2
    assert doubled.value == pytest.approx(np.tanh(2 * position.array.mean()), abs=1e-6)


@pytest.mark.parametrize("damage", [b"nonsense", None])
def test_a_damaged_cache_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conversions: list[Network], damage: bytes | None
) -> None:
    monkeypatch.setenv("KEIMA_CACHE", str(tmp_path))
    inputs = planes(1)
    first = OpenVINOBackend(network(), "f32", 8, threads=1).submit(inputs).result()
    stored = next(tmp_path.rglob("*.bin"))
    if damage is None:  # whole, but nothing that OpenVINO can import
        openvino_backend.cache.write(stored.stem, b"not a compiled network")
    else:
        stored.write_bytes(damage)
    again = OpenVINOBackend(network(), "f32", 8, threads=1).submit(inputs).result()
    assert len(conversions) == 2
    assert first["policy"].tobytes() == again["policy"].tobytes()


def test_shapes_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino_backend, "SHAPES_KEPT", 2)
    evaluator = Evaluator(GridNetwork(), "openvino", threads=1)
    for size in (2, 3, 4, 2, 3):
        position = random_grid(size, size, size)
        assert evaluator([position])[0].value == pytest.approx(np.tanh(position.array.mean()), abs=1e-6)


def test_the_network_given_stays_in_its_mode() -> None:
    training = network().train()
    OpenVINOBackend(training, "f32", 8, threads=1).submit(planes(1)).result()
    assert all(module.training for module in training.modules())


def test_small_batches_go_by_narrower_requests(conversions: list[Network]) -> None:
    inputs = planes(8)
    backend = OpenVINOBackend(network(), "f32", 8, threads=1)
    few = backend.submit({"planes": inputs["planes"][:3]}).result()
    (compiled,) = backend._compiled.values()
    assert sorted(compiled._slots) == [(1, 1), (2, 1)]
    many = backend.submit(inputs).result()
    assert sorted(compiled._slots) == [(1, 1), (2, 1), (8, 1)]
    assert all(many[name][:3].tobytes() == few[name].tobytes() for name in few)


@given(rows=st.sampled_from([1, 2, 4, 8, 16, 32]), streams=st.integers(1, 4), size=st.integers(1, 200))
@example(rows=2, streams=3, size=4)
@example(rows=8, streams=4, size=6)
def test_a_batch_is_divided_once_and_whole(rows: int, streams: int, size: int) -> None:
    parts = CompiledShape(lambda width: [], rows, streams)._parts(size)
    assert [row for part, _ in parts for row in range(size)[part]] == [*range(size)]
    for part, width in parts:
        assert 3 * width.rows < 4 * len(range(size)[part]) <= 4 * width.rows
    if size >= streams:
        assert len(parts) >= streams


def test_products_of_rows_are_alike_in_every_row() -> None:
    inputs = planes(6)
    model = openvino_backend.convert(network(), inputs)
    openvino_backend.rows_alike(model)
    products = [node for node in model.get_ops() if node.get_type_name() == "MatMul"]
    assert products
    assert all(len(node.input_value(0).get_partial_shape()) == 3 for node in products)
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    same = np.repeat(inputs["planes"][:1], 6, axis=0)
    reference = TorchBackend(network(), "f32", 8, threads=1).submit(inputs).result()
    for fed, one in ((inputs["planes"], False), (same, True)):
        for (name, expected), answers in zip(reference.items(), compiled([fed]).values(), strict=True):
            np.testing.assert_allclose(answers[:1], expected[:1], atol=2e-6, err_msg=name)
            if one:
                assert len({row.tobytes() for row in answers}) == 1
            else:
                np.testing.assert_allclose(answers, expected, atol=2e-6)


KINDS = {entry.kind: entry for entry in reversed(keima.list_networks())}


@pytest.mark.parametrize("precision", ["f32", *["bf16"] * BF16])
@pytest.mark.parametrize("kind", KINDS)
def test_requests_of_every_width_give_the_same_bits(kind: str, precision: str) -> None:
    """Of every system: OpenVINO sums the products of two axes by how many rows there are."""
    entry = KINDS[kind]
    created = keima.create(entry.name, **entry.small).eval()
    backend = OpenVINOBackend(created, precision, 48, threads=2)
    board = created.encoding.board or (9, 9)
    room, numbers = created.encoding.room(48, board).inputs, np.random.default_rng(0)
    inputs = {key: numbers.integers(0, 2, room[key].shape).astype(np.float32) for key in created.input_names}
    inputs["planes"][:, 0] = 1
    rows = rows_per_request(board[0] * board[1], 24)
    whole = backend.submit(inputs).result()
    for size in (1, 3, 7, 13):
        part = backend.submit({key: array[:size] for key, array in inputs.items()}).result()
        for key, array in whole.items():
            assert part[key].tobytes() == array[:size].tobytes()
    (compiled,) = backend._compiled.values()
    assert set(compiled._slots) == {*((width, 2) for width in (rows, rows // 4, 1)), ALONE}
    assert not compiled._refused


def test_a_position_alone_has_all_threads() -> None:
    inputs = planes(1)
    backend = OpenVINOBackend(network(), "f32", 8, threads=2)
    first = backend.submit(inputs)
    second = backend.submit(inputs)  # while the first is under way
    (compiled,) = backend._compiled.values()
    assert set(compiled._slots) == {(1, 2)}
    answers = [first.result(), second.result(), backend.submit(inputs).result()]
    assert set(compiled._slots) == {(1, 2), ALONE}
    for name in answers[0]:
        assert len({answer[name].tobytes() for answer in answers}) == 1


class Uneven(GridNetwork):
    """Answers differently in each row of a request, as a kernel might in its last bits."""

    def forward(self, planes: Any, globals: Any) -> Any:
        output = super().forward(planes, globals)
        return dataclasses.replace(output, value=output.value + 1e-6 * torch.arange(planes.shape[0]))


class Wide(GridNetwork):
    """Answers differently in a request of several rows."""

    def forward(self, planes: Any, globals: Any) -> Any:
        output = super().forward(planes, globals)
        return dataclasses.replace(output, value=output.value + 1e-6 * torch.ones_like(output.value).sum())


@pytest.mark.parametrize("sizes", [(8, 3), (3, 8), (8, 11), (5, 3)])
@pytest.mark.parametrize("kind", [GridNetwork, Uneven, Wide])
def test_a_position_has_one_answer_whatever_comes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[GridNetwork], sizes: tuple[int, ...]
) -> None:
    monkeypatch.setenv("KEIMA_CACHE", str(tmp_path))
    for _ in range(2):  # the second time from the disk
        backend = OpenVINOBackend(kind(), "f32", 8, threads=1)
        values = set()
        for size in sizes:
            inputs = GridEncoding().encode([random_grid(3, 3, 0)] * size).inputs
            values |= {value.tobytes() for value in backend.submit(inputs).result()["value"]}
        assert len(values) == 1
        (compiled,) = backend._compiled.values()
        if kind is Uneven:
            assert sorted(compiled._slots) == [(1, 1)]
        elif kind is Wide:
            assert len(compiled._slots) == 1
