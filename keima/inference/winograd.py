"""3×3 convolutions by fewer multiplications: as matrix products of an OpenVINO model, in float32.

Winograd's minimal filtering F(m × m, 3 × 3), after A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural
Networks" (CVPR 2016): a tile of m × m outputs is A^T [(G g G^T) ⊙ (B^T d B)] A. OpenVINO computes convolutions
directly, nine products for each output, channel and filter; here they are (m + 2)² / m², 2.25 for m = 4. The transforms
are products too, by constant matrices that hold all tiles of an axis and leave out what lies beside the board.

Between two such convolutions activations stay [H, W, N, C], where each product reads and writes what lies in one piece;
layers that work number by number, 1×1 convolutions, means and maxima over the board follow. Every row N gets the same
bits.

Error, of the largest of a layer's outputs: 3e-6 to 6e-6, where direct convolutions have 7e-7. Weights take (m + 2)² / 9
of their memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from torch import nn

from keima.inference.offline import openvino

TURN = (2, 3, 0, 1)
"""[N, C, H, W] to [H, W, N, C], and back."""
LEAST = 48 * 48
"""Channels in times channels out from which on a convolution is written so: what the transforms cost grows with the
channels, what they save with their square. Towers of 32 on 9×9 are no faster, of 48 on 6×7 level (1.0–1.1)."""
TILES, BATCH = 25, 32
"""Tiles of a board, as 19×19 has, from which on this is quicker for one position alone, too. With fewer, one position
takes longer so (100 visits on 9×9: 1.2 times), and only evaluators of such batches, made for many at once, do it."""
LARGEST = 1 << 29
"""Bytes that a network's weights may take so; one with more stays as it is."""
_POINTS = {2: (0, 1, -1), 3: (0, 1, -1, 2), 4: (0, 1, -1, 2, -2)}
"""Where the polynomials of F(m, 3) are evaluated, beside infinity; more points would be shorter, and round more."""
_BY_NUMBER = {
    *("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Power"),
    *("Relu", "Mish", "Sigmoid", "Tanh", "Swish", "Elu", "Gelu", "HSwish", "HardSigmoid", "SoftPlus", "Exp", "Clamp"),
}
_OVER_BOARD = {"ReduceMean", "ReduceSum", "ReduceMax"}

Matrix = NDArray[np.float64]


def filtering(m: int) -> tuple[Matrix, Matrix, Matrix]:
    """A [m + 2, m], G [m + 2, 3] and B [m + 2, m + 2] of F(m, 3): filter g over data d is A^T ((G g) · (B^T d)).

    Toom and Cook's construction: row i of B^T is the polynomial that has all the other points as its roots.
    """
    points = np.array(_POINTS[m], np.float64)
    others = [np.delete(points, i) for i in range(m + 1)]
    scales = np.array([np.prod(point - rest) for point, rest in zip(points, others, strict=True)])
    a = np.vstack([points[:, None] ** np.arange(m), np.eye(m)[-1]])
    g = np.vstack([points[:, None] ** np.arange(3) / scales[:, None], np.eye(3)[-1]])
    b = np.zeros((m + 2, m + 2))
    for column, roots in enumerate([*others, points]):
        coefficients = np.poly(roots)[::-1]
        b[: len(coefficients), column] = coefficients
    return a, g, b


class _Axis:
    """One axis of the board in T tiles of m points: the shortest way to cover it.

    Attributes:
        numbers: m + 2, those of a tile; tiles: T.
        into: [numbers · T, size], B^T of all tiles; out_of: [size, numbers · T], A^T; filters: G [numbers, 3].
    """

    def __init__(self, size: int) -> None:
        self.size = size
        m = min(_POINTS, key=lambda m: ((m + 2) * -(-size // m), -m))
        a, self.filters, b = filtering(m)
        self.numbers, self.tiles = m + 2, -(-size // m)
        padded = self.tiles * m + 2
        into = np.zeros((self.numbers, self.tiles, padded))
        out_of = np.zeros((self.tiles * m, self.numbers, self.tiles))
        for tile in range(self.tiles):
            into[:, tile, tile * m : tile * m + m + 2] = b.T
            out_of[tile * m : tile * m + m, :, tile] = a.T
        self.into = into.reshape(-1, padded)[:, 1 : size + 1]
        self.out_of = out_of[:size].reshape(size, -1)


@cache
def _axis(size: int) -> _Axis:
    return _Axis(size)


def least_batch(network: nn.Module, board: tuple[int, int]) -> int | None:
    """The `batch_size` from which on this is for a network on boards [H, W]; None: it never is."""
    height, width = map(_axis, board)
    kernels = [layer.weight.shape for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    weights = sum(kernel[0] * kernel[1] for kernel in kernels if _is_worth_it(kernel))
    if not 0 < 4 * weights * height.numbers * width.numbers <= LARGEST:
        return None
    return 1 if height.tiles * width.tiles >= TILES else BATCH


def by_winograd(model: openvino.Model) -> None:
    """Rewrite the 3×3 convolutions of a model of one board shape and any number of rows; see this file's head."""
    turned = _Turned()
    for node in model.get_ordered_ops():
        kind, kernel = node.get_type_name(), _kernel(node)
        if kernel is not None and _is_worth_it(kernel.shape):
            turned.give_back(node, _convolution(node, kernel, turned(node.input_value(0))))
        elif kernel is not None and kernel.shape[2:] == (1, 1) and node.input_value(0) in turned:
            turned.give_back(node, product(turned(node.input_value(0)), kernel[:, :, 0, 0].T))
        elif kind in _BY_NUMBER and turned.holds(node):
            for place in node.inputs():
                place.replace_source_output(turned(place.get_source_output()))
            turned.give_back(node)
        elif kind in _OVER_BOARD and node.input_value(0) in turned and _axes(node) == {2, 3}:
            node.input(0).replace_source_output(turned(node.input_value(0)))
            node.input(1).replace_source_output(_constant(np.array([0, 1])))
            if node.get_attributes()["keep_dims"]:  # else [N, C], as before
                turned.give_back(node)
    model.validate_nodes_and_infer_types()


class _Turned:
    """Activations as [H, W, N, C]."""

    def __init__(self) -> None:
        self._made: dict[openvino.Output, openvino.Output] = {}  # by those made back to [N, C, H, W]
        self._turned: dict[openvino.Output, openvino.Output] = {}

    def __contains__(self, output: openvino.Output) -> bool:
        return output in self._made

    def __call__(self, output: openvino.Output) -> openvino.Output:
        """An activation or a constant [N, C, H, W] as [H, W, N, C]; a single number as it is."""
        if output in self._made:
            return self._made[output]
        if output not in self._turned:
            node, found = output.get_node(), output
            if node.get_type_name() != "Constant":
                found = openvino.opset13.transpose(output, np.array(TURN)).output(0)
            elif node.data.ndim:
                data = node.data.reshape((1,) * (4 - node.data.ndim) + node.data.shape)
                found = _constant(data.transpose(TURN))
            self._turned[output] = found
        return self._turned[output]

    def holds(self, node: openvino.Node) -> bool:
        """Has a layer that works number by number an input that stands so, and can the others?"""
        given = [node.input_value(i) for i in range(node.get_input_size())]
        ranks = [len(each.get_partial_shape()) for each in given]
        constant = [each.get_node().get_type_name() == "Constant" for each in given]
        return any(each in self for each in given) and all(
            rank == 4 or (fixed and rank < 4) for rank, fixed in zip(ranks, constant, strict=True)
        )

    def give_back(self, node: openvino.Node, made: openvino.Output | None = None) -> None:
        """`made`, [H, W, N, C], is what the node answers, by default its own output: others see it turned back."""
        users = node.output(0).get_target_inputs()
        if made is None:
            node.constructor_validate_and_infer_types()
            made = node.output(0)
        back = openvino.opset13.transpose(made, np.array(TURN)).output(0)
        for user in users:
            user.replace_source_output(back)
        self._made[back] = made


def _convolution(node: openvino.Node, kernel: NDArray[np.float32], x: openvino.Output) -> openvino.Output:
    """A convolution of x [H, W, N, C] by a kernel [K, C, 3, 3]: [H, W, N, K]."""
    ops = openvino.opset13
    height, width = (_axis(node.input_value(0).get_partial_shape()[axis].get_length()) for axis in (2, 3))
    filters, channels = kernel.shape[:2]
    u = np.einsum("ia,jb,kcab->ijck", height.filters, width.filters, kernel, optimize=True)

    def transform(matrix: Matrix, shape: tuple[int, ...]) -> None:
        nonlocal x
        x = ops.matmul(_constant(matrix.astype(np.float32)), ops.reshape(x, np.array(shape), False), False, False)

    transform(height.into, (height.size, -1))
    transform(width.into[None], (len(height.into), width.size, -1))
    tiles = ops.reshape(x, np.array((height.numbers, height.tiles, width.numbers, -1, channels)), False)
    x = ops.matmul(tiles, _constant(u[:, None].astype(np.float32)), False, False)
    transform(width.out_of[None], (len(height.into), len(width.into), -1))
    transform(height.out_of, (len(height.into), -1))
    return ops.reshape(x, np.array((height.size, width.size, -1, filters)), False).output(0)


def product(x: openvino.Output, weights: NDArray[np.float32]) -> openvino.Output:
    """x [..., N, C] times weights [C, K], of three axes and more: the same bits in every row, however many there are.

    Two axes OpenVINO computes by other means: in float32 its sums differ by row in the last bit where the processor has
    AVX-512, in bfloat16 by how many rows there are.
    """
    axes = len(x.get_partial_shape()) - 2
    return openvino.opset13.matmul(x, _constant(weights[(None,) * axes]), False, False).output(0)


def _kernel(node: openvino.Node) -> NDArray[np.float32] | None:
    """The constant kernel [K, C, height, width] of a convolution of every point; None: it is another layer."""
    if node.get_type_name() != "Convolution" or node.input_value(1).get_node().get_type_name() != "Constant":
        return None
    kernel: NDArray[np.float32] = node.input_value(1).get_node().data
    how = node.get_attributes()
    pads = tuple((size - 1) // 2 for size in kernel.shape[2:])
    ones = set(how["strides"]) == set(how["dilations"]) == {1}
    return kernel if ones and tuple(how["pads_begin"]) == tuple(how["pads_end"]) == pads else None


def _is_worth_it(kernel: Sequence[int]) -> bool:
    """Is a kernel [K, C, height, width] 3×3, and of enough channels?"""
    filters, channels, *size = kernel
    return size == [3, 3] and filters * channels >= LEAST


def _axes(node: openvino.Node) -> set[int]:
    """Of a reduction of four axes."""
    axes = node.input_value(1).get_node()
    return {int(axis) % 4 for axis in np.ravel(axes.data)} if axes.get_type_name() == "Constant" else set()


def _constant(data: NDArray[np.float32] | NDArray[np.int64]) -> openvino.Output:
    return openvino.opset13.constant(np.ascontiguousarray(data)).output(0)
