"""Convolutions written as matrix products answer as convolutions do."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import openvino
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from keima.games.go.position import Position
from keima.inference import winograd
from keima.inference.backend import rows_per_request
from keima.inference.evaluator import Evaluator
from keima.inference.openvino_backend import OpenVINOBackend, convert
from keima.inference.winograd import TURN, by_winograd, filtering, least_batch, product
from keima.systems.alphago_zero.network import AlphaGoZeroNetwork

BOARDS = [(6, 7), (7, 7), (8, 8), (9, 9), (10, 3), (13, 19), (19, 19)]
number = st.integers(-50, 50)


@given(st.sampled_from(sorted(winograd._POINTS)), st.data())
def test_a_filter_over_a_tile(m: int, data: st.DataObject) -> None:
    a, g, b = filtering(m)
    tile = data.draw(st.lists(number, min_size=m + 2, max_size=m + 2))
    taps = data.draw(st.lists(number, min_size=3, max_size=3))
    found = a.T @ ((g @ taps) * (b.T @ tile))
    np.testing.assert_allclose(found, [np.dot(tile[k : k + 3], taps) for k in range(m)], atol=1e-8)


class Everything(nn.Module):
    """Convolutions to be rewritten and not, and what may stand between them."""

    def __init__(self) -> None:
        super().__init__()
        conv = partial(nn.Conv2d, padding=1)
        self.stem, self.first, self.second, self.third = (
            conv(3, 48, 3),
            conv(48, 80, 3),
            conv(80, 48, 3),
            conv(48, 48, 3),
        )
        self.point, self.wide = nn.Conv2d(48, 48, 1), nn.Conv2d(48, 48, 5, padding=2)
        self.strided, self.squeeze, self.heads = conv(48, 64, 3, stride=2), nn.Linear(48, 96), conv(96, 24, 3)

    def forward(self, planes: Tensor) -> tuple[Tensor, ...]:
        mask = planes[:, :1]
        x = torch.relu(self.stem(planes)) * mask
        y = nn.functional.mish(self.second(torch.relu(self.first(x) * 0.5 + 0.1)))
        scale, shift = self.squeeze(y.mean(dim=(2, 3)))[:, :, None, None].chunk(2, dim=1)
        x = torch.relu(x + y * torch.sigmoid(scale) + shift)
        most = (x + (mask - 1)).amax(dim=(2, 3), keepdim=True)
        x = self.third(x - most) + self.point(x) + self.wide(x)
        both = self.heads(torch.cat([x, torch.tanh(x)], dim=1))
        return both, both.flatten(1).sum(1), self.strided(x), most.flatten(1), x.sum(dim=1)


def as_model(network: nn.Module, board: tuple[int, int]) -> openvino.Model:
    example = torch.rand(1, 3, *board)
    model = openvino.convert_model(torch.jit.trace(network, example), example_input=example)
    model.reshape({0: [1, 3, *board]})
    return model


def answers(model: openvino.Model, planes: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    model = model.clone()
    model.reshape({0: list(planes.shape)})
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled(planes)
    return [found[output].copy() for output in compiled.outputs]


@pytest.mark.parametrize("board", BOARDS)
def test_a_network_answers_as_in_double_precision(board: tuple[int, int]) -> None:
    torch.manual_seed(0)
    network = Everything().eval()
    planes = torch.rand(5, 3, *board)
    planes[:, 0] = (planes[:, 0] > 0.2).float()
    with torch.no_grad():
        truth = network.double()(planes.double())
        model = as_model(network.float(), board)
    by_winograd(model)
    found = answers(model, planes.numpy())
    assert len(found) == len(truth)
    for array, wanted in zip(found, truth, strict=True):
        assert array.shape == wanted.shape
        np.testing.assert_allclose(array, wanted, atol=2e-5 * float(wanted.abs().max()))


def test_which_convolutions_become_products() -> None:
    model = as_model(Everything().eval(), (9, 9))
    by_winograd(model)
    left = [
        node.input_value(1).get_shape() for node in model.get_ordered_ops() if node.get_type_name() == "Convolution"
    ]
    assert sorted(map(tuple, left)) == sorted([(48, 3, 3, 3), (48, 48, 5, 5), (64, 48, 3, 3)])


def test_activations_are_turned_once_on_the_way_through_a_tower() -> None:
    network = AlphaGoZeroNetwork(4, 48, board_size=9, value_hidden=16).eval()
    model = convert(network, {"planes": np.zeros((1, 17, 9, 9), np.float32)})
    by_winograd(model)
    nodes = [node for node in model.get_ordered_ops() if node.get_type_name() == "Transpose"]
    turned = [node for node in nodes if tuple(node.input_value(1).get_node().data) == TURN]
    shapes = [list(node.input_value(0).get_partial_shape().to_shape()) for node in turned]
    assert shapes == [[1, 48, 9, 9], [9, 9, 1, 1], [9, 9, 1, 2]]  # in, and back after the heads' few channels


@given(st.lists(st.integers(1, 4), min_size=2, max_size=3), st.integers(1, 70), st.integers(1, 20), st.integers(0, 99))
def test_rows_times_weights(before: list[int], channels: int, filters: int, seed: int) -> None:
    numbers = np.random.default_rng(seed)
    x, weights = numbers.integers(-9, 9, (*before, channels)), numbers.integers(-9, 9, (channels, filters))
    given_ = openvino.opset13.parameter(list(x.shape), np.float32)
    found = product(given_.output(0), weights.astype(np.float32))
    model = openvino.Model([openvino.opset13.relu(found).output(0)], [given_], "rows")
    np.testing.assert_array_equal(answers(model, x.astype(np.float32))[0], np.maximum(x @ weights, 0))


@given(st.integers(1, 361), st.integers(1, 300), st.integers(1, 3000))
def test_requests_are_even_and_not_too_large(points: int, batch: int, most: int) -> None:
    rows = rows_per_request(points, batch, most)
    requests = -(-batch // rows)
    assert rows * points <= max(most, points)
    assert requests * rows - batch < requests  # none has two rows fewer than another
    assert rows == batch or (rows + 1) * points > most or -(-batch // (rows + 1)) == requests


@pytest.mark.parametrize("board", [(8, 8), (19, 19)])
def test_every_row_has_the_same_bits_at_every_width(board: tuple[int, int]) -> None:
    torch.manual_seed(1)
    model = as_model(Everything().eval(), board)
    by_winograd(model)
    one = np.random.default_rng(0).random((1, 3, *board), np.float32)
    alone = [array[0].tobytes() for array in answers(model, one)]
    for rows in (2, 3, 8):
        for array, wanted in zip(answers(model, np.repeat(one, rows, axis=0)), alone, strict=True):
            assert {row.tobytes() for row in array} == {wanted}


def test_when_it_pays() -> None:
    with torch.device("meta"):
        small, large = AlphaGoZeroNetwork(2, 48), AlphaGoZeroNetwork(39, 256)
        points = nn.Conv2d(64, 64, 1)
    assert [least_batch(small, (size, size)) for size in (3, 8, 9, 16, 17, 19)] == [32, 32, 32, 32, 1, 1]
    assert least_batch(large, (19, 19)) is None  # too large
    assert least_batch(AlphaGoZeroNetwork(2, 16), (19, 19)) is None  # too few channels
    assert least_batch(points, (19, 19)) is None  # nothing to write so


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_the_bits_do_not_depend_on_the_number_of_cores(cores: int) -> None:
    network = AlphaGoZeroNetwork(2, 48, board_size=9, value_hidden=16)
    rows, products = OpenVINOBackend(network, "f32", 32, threads=cores)._rows((9, 9))
    assert products
    assert rows == min(16, -(-32 // cores))
    assert not OpenVINOBackend(network, "f32", 31, threads=cores)._rows((9, 9))[1]


def test_an_evaluator_of_large_batches_answers_as_one_of_single_positions() -> None:
    """The one by products, the other by convolutions, whatever the batch that comes."""
    torch.manual_seed(0)
    network = AlphaGoZeroNetwork(2, 48, board_size=9, value_hidden=16).eval()
    position = Position.start(9).play("E5", "C3")
    many, single = (Evaluator(network, "openvino", "f32", size, threads=1) for size in (32, 1))
    (left,), (right,) = many([position]), single([position])
    assert left.value == many([position] * 20)[7].value
    assert left.value == pytest.approx(right.value, abs=1e-5)
    assert left.policy == pytest.approx(right.policy, abs=1e-5)
