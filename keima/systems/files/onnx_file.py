"""ONNX files: the network's graph for any runtime, and in it everything `keima.load` needs (docs/onnx.md).

`torch.export` draws the graph; batch, and where the network takes boards of several sizes height and width, are free
in it. Weights lie in it as the module names them (`blocks.0.conv1.weight`) and nothing is folded into them, so that the
file opens again as the same network; runtimes fold for themselves when they open it. The metadata are those of
keima's own files (`safetensors.py`), and beside them, to be read by anyone:

    keima.system     "katago", "lc0", ...
    keima.encoding   the planes it takes, as `keima planes` names them
    keima.precision  "f32"; "f16": weights and arithmetic in float16, inputs and outputs float32; "int8": see below
    keima.counters   JSON: batches that each batch norm has seen, which no graph needs

In int8 the convolutions of the network's `quantization` stand between QuantizeLinear and DequantizeLinear. Their
tensors are named as in keima's own files (`int8/blocks.0.conv1.weight`), a bias as the module's where its convolution
has one. Their float weights are left out: opened again, these are what the int8 ones stand for.

Nothing in such a file is executed; files that keep tensors elsewhere are refused, for a path may point anywhere.
"""

from __future__ import annotations

import copy
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from keima.errors import BadRequest, BadWeights, UnsupportedNetwork
from keima.systems.files.contents import FilePath, Format, atomic_write, read_bytes
from keima.systems.files.int8 import dequantized, is_packed, pack, packed, unpack
from keima.systems.files.safetensors import VERSION, blaming, build, checked, parse_json, to_metadata, whole
from keima.systems.layers import QuantizedConvolution, quantized
from keima.systems.network import Network, OnnxGraph, evaluating
from keima.systems.registry import example_inputs

if TYPE_CHECKING:
    import onnx

OPSET = 18
PRECISIONS = ("f32", "f16", "int8")
_PREFIX = "network."
_AXES = {0: "N", 2: "H", 3: "W"}
_CONSTANT = "constant/"  # before names of what is no weight
_MAX_BYTES = 2**31 - 1  # protobuf's own limit
_LOUD = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")


def export(network: Network, precision: str = "f32") -> bytes:
    """The network as an ONNX file's bytes: inputs by `input_names`, outputs by `output_names`, float32.

    Raises:
        BadRequest: an unknown precision, int8 of a network that has no numbers for it, or `keima[export]` is missing.
        UnsupportedNetwork: a network that ONNX cannot express, or with weights too large for float16.
    """
    metadata = {
        **to_metadata(network),
        "keima.system": network.system,
        "keima.encoding": network.encoding.name,
        "keima.precision": precision,
    }
    module = Traced(network, precision)
    examples, free = example_inputs(network, 2), _AXES
    if any_size(network):  # height and width that differ, lest they be taken for one number
        height, width = network.encoding.board
        examples["planes"] = examples["planes"][:, :, : height - 1, : width - 2].contiguous()
    else:
        free = {0: "N"}
    model = draw(module, examples, free)
    metadata["keima.counters"] = json.dumps(_complete(model, module.tensors()))
    return finished(model, network, metadata)


def any_size(network: Network) -> bool:
    """Whether the network takes boards of other sizes than its encoding's full one: found by trying one."""
    height, width = network.encoding.board
    room = network.encoding.room(1, (height - 1, width - 2)).inputs
    inputs = [torch.zeros(room[name].shape) for name in network.input_names]
    with evaluating(network), torch.no_grad():
        try:
            network(*inputs)
        except (RuntimeError, IndexError):
            return False
    return True


def write_onnx(network: Network, path: FilePath, precision: str = "f32") -> None:
    """Write a network as an ONNX file, whole or not at all; raises as `export`, and BadWeights where it cannot be."""
    atomic_write(path, export(network, precision))


def read_onnx(path: FilePath) -> Network:
    """The network in an ONNX file that keima wrote, in evaluation mode; the backend "onnx" runs the file's own graph.

    Raises:
        BadRequest: `keima[export]` is not installed.
        BadWeights: a file that is cut short or corrupt, or whose tensors are not exactly the network's.
        UnsupportedNetwork: an ONNX file of another program, or of a later version.
    """
    with blaming(path) as source:
        data = read_bytes(path, _MAX_BYTES)
        model = _parse(data)
        metadata = checked(_metadata(model), "an ONNX file")
        precision = metadata.get("keima.precision", "f32")
        weights, numbers = _weights(model)
        network = build(metadata, weights, source)
        _check_ends(model, network)
        network.quantization = unpack(network, numbers) if numbers else None
        network.onnx = OnnxGraph(data, precision)
        return network


def holds(graph: OnnxGraph, network: Network) -> bool:
    """Whether the graph still computes with the network's weights, which may have been trained since."""
    weights, numbers = _weights(_parse(graph.model))
    found, half = weights | numbers, graph.precision == "f16"
    state = network.state_dict() | (pack(network) if numbers else {})
    return state.keys() == found.keys() and all(
        torch.equal((now.half().float() if half else now).cpu(), found[name]) for name, now in state.items()
    )


def looks_like_onnx(data: bytes) -> bool:
    """Is this the beginning of an ONNX model: its version of the format, then its producer's name?"""
    return len(data) > 4 and data[0] == 0x08 and 3 <= data[1] < 0x20 and data[2] == 0x12


ONNX = Format("ONNX files that keima wrote (.onnx)", looks_like_onnx, read_onnx, write_onnx)


# --- Writing ----------------------------------------------------------------------------------------------------------


class Traced(nn.Module):
    """A network that returns a plain tuple, as `TensorsOnly`; if wanted in int8, or in float16 between float32 ends."""

    names: tuple[str, ...]  # of the outputs

    def __init__(self, network: Network, precision: str) -> None:
        if precision not in PRECISIONS:
            raise BadRequest(f"unknown precision {precision!r}; an ONNX file has one of {', '.join(PRECISIONS)}")
        super().__init__()
        self.half_inside = precision == "f16"
        self.network = _halved(network) if self.half_inside else _between(network) if precision == "int8" else network
        self.names = network.output_names

    def tensors(self) -> dict[str, Tensor]:
        """The network's tensors by their names in the file."""
        own = dict(self.network.state_dict())
        for name, part in self.network.named_modules():
            if isinstance(part, _Between):
                for each in part.PARTS if part.without_bias else part.PARTS[1:]:
                    own[packed(f"{name}.{each}")] = own.pop(f"{name}.{each}")
        return own

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Inputs in the order of `input_names` → outputs [N, ...] in the order of `output_names`, all float32."""
        output = self.network(*([each.half() for each in inputs] if self.half_inside else inputs))
        return tuple(getattr(output, name).float() for name in self.names)


class _Between(nn.Module):
    """A convolution in int8 as ONNX says it, its inputs and its weights between QuantizeLinear and DequantizeLinear."""

    PARTS = ("bias", "weight", "scale", "input_scale", "input_zero")

    bias: Tensor
    weight: Tensor
    scale: Tensor
    input_scale: Tensor
    input_zero: Tensor
    one: Tensor

    def __init__(self, convolution: QuantizedConvolution, without_bias: bool) -> None:
        super().__init__()
        self.padding, self.without_bias = convolution.padding, without_bias
        for name, tensor in convolution.layer().items():
            self.register_buffer(name, tensor.squeeze(0) if name == "input_zero" else tensor)
        self.register_buffer("one", torch.ones(()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """[N, I, H, W] → [N, O, H, W]."""
        x = x * (1 / self.input_scale)[:, None, None]
        x = self._stand("QuantizeLinear", (x, self.one, self.input_zero), torch.uint8)
        x = self._stand("DequantizeLinear", (x, self.one, self.input_zero), torch.float32)
        weight = self._stand("DequantizeLinear", (self.weight, self.scale), torch.float32, axis=0)
        return F.conv2d(x, weight, self.bias, padding=self.padding)

    @staticmethod
    def _stand(kind: str, inputs: tuple[Tensor, ...], dtype: torch.dtype, **settings: int) -> Tensor:
        """An operator of ONNX that answers with zeros until it is drawn."""
        shape = inputs[0].shape
        return torch.onnx.ops.symbolic(kind, inputs, {**settings}, dtype=dtype, shape=shape, version=OPSET)


def _between(network: Network) -> Network:
    """A copy with its quantized convolutions as ONNX says them."""
    found = quantized(network)
    for name, part in list(found.named_modules()):
        if isinstance(part, QuantizedConvolution):
            found.set_submodule(name, _Between(part, network.get_submodule(name).bias is None))
    return found


def _halved(network: Network) -> Network:
    """A copy in float16."""
    half = copy.deepcopy(network).half()
    for name, tensor in half.state_dict().items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            message = "too large for float16; fold the network first (keima compress fold), or write it in f32"
            raise UnsupportedNetwork(message, place=name)
    return half


def draw(module: Traced, examples: Mapping[str, Tensor], free: Mapping[int, str]) -> onnx.ModelProto:
    """The module's graph, what follows from shapes alone worked out, weights by their own names.

    Args:
        module: what to draw.
        examples: inputs by their names in the graph, in order, two of each.
        free: axes of the first input that may have any length, by their names; axis 0 is so in every input.
    """
    _onnx()
    with _quiet():
        try:
            model = _drawn(module, examples, free)
        except Exception as error:  # whatever the exporter may raise
            raise UnsupportedNetwork(f"cannot be drawn as an ONNX graph: {error}") from error
    _name_axes(model, free)
    return model


def finished(model: onnx.ModelProto, network: Network, metadata: Mapping[str, str]) -> bytes:
    """The graph with its maker, its name and its metadata, as a file's bytes."""
    model.producer_name, model.producer_version = "keima", VERSION
    model.graph.name = network.pedigree.name
    for key, value in sorted(metadata.items()):
        model.metadata_props.add(key=key, value=value)
    if model.ByteSize() > _MAX_BYTES:
        raise UnsupportedNetwork(f"{model.ByteSize():,} bytes; an ONNX file holds at most 2 GiB")
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def _drawn(module: Traced, examples: Mapping[str, Tensor], free: Mapping[int, str]) -> onnx.ModelProto:
    from onnxscript import optimizer

    tensors = module.tensors()
    axes = [list(free), *([0] for _ in range(len(examples) - 1))]
    shapes = tuple(dict.fromkeys(each, torch.export.Dim.DYNAMIC) for each in axes)
    with evaluating(module):
        program = torch.onnx.export(
            module,
            tuple(examples.values()),
            input_names=list(examples),
            output_names=list(module.names),
            dynamic_shapes=(shapes,),
            opset_version=OPSET,
            dynamo=True,
            optimize=False,
            verbose=False,
        )
    assert program is not None
    weights = set(program.model.graph.initializers)

    def follows_from_shapes(node: object) -> bool | None:
        inputs = getattr(node, "inputs", ())
        return False if any(each is not None and each.name in weights for each in inputs) else None

    optimizer.fold_constants(program.model, onnx_shape_inference=False, should_fold=follows_from_shapes)
    optimizer.remove_unused_nodes(program.model)
    for value in list(program.model.graph.initializers.values()):
        name = str(value.name).removeprefix(_PREFIX)
        own = (each for each in (name, packed(name)) if each in tensors)
        value.name = next(own, f"{_CONSTANT}{name}")
    for node in program.model.graph:  # where in the source each came from: longer than the graph itself
        node.metadata_props.clear()
    model: onnx.ModelProto = program.model_proto
    return model


def _complete(model: onnx.ModelProto, tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Weights the graph has no use for, as a head for training alone, lie in it too; counters are returned."""
    from onnx import numpy_helper

    there = {tensor.name for tensor in model.graph.initializer}
    rest = {name: tensor.cpu() for name, tensor in tensors.items() if name not in there}
    counters = {name: int(tensor) for name, tensor in rest.items() if tensor.dtype == torch.int64 and tensor.ndim == 0}
    for name in rest.keys() - counters.keys():
        model.graph.initializer.append(numpy_helper.from_array(rest[name].numpy(), name))
    return counters


def _name_axes(model: onnx.ModelProto, free: Mapping[int, str]) -> None:
    """N, H and W in place of the exporter's names for free axes; nothing said of shapes between."""
    planes = model.graph.input[0].type.tensor_type.shape.dim
    names = {planes[axis].dim_param: name for axis, name in free.items()}
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            for old, new in names.items():
                if old in dim.dim_param:
                    dim.dim_param = dim.dim_param.replace(old, new)
    del model.graph.value_info[:]


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter without its warnings and log lines, and without gradients."""
    loggers = [logging.getLogger(name) for name in _LOUD]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


# --- Reading ----------------------------------------------------------------------------------------------------------


def _onnx() -> None:
    """Raise BadRequest where what ONNX files need is not installed."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        message = f"ONNX files need more than keima itself: pip install 'keima[export]' ({error})"
        raise BadRequest(message) from error


def _parse(data: bytes) -> onnx.ModelProto:
    """The model, checked by `onnx.checker`, all of its tensors in the file itself."""
    _onnx()
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise BadWeights("not an ONNX file, or cut short; write it again or download it again") from error
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            raise UnsupportedNetwork("keeps its numbers in another file; keima reads whole files", place=tensor.name)
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise BadWeights(f"not a valid ONNX model: {error}") from error
    return model


def _metadata(model: onnx.ModelProto) -> dict[str, str]:
    return {each.key: each.value for each in model.metadata_props}


def _weights(model: onnx.ModelProto) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The network's tensors by the module's names, weights as float32, counters among them; and its int8 numbers."""
    from onnx import numpy_helper

    found: dict[str, Tensor] = {}
    for tensor in model.graph.initializer:
        if not tensor.name.startswith(_CONSTANT):
            found[tensor.name] = whole(torch.from_numpy(numpy_helper.to_array(tensor).copy()))
    numbers = {name: found.pop(name) for name in list(found) if is_packed(name)}
    weights = dequantized(numbers)
    for name in weights:
        layer = name.removesuffix("weight")
        zero = packed(f"{layer}input_zero")
        numbers[zero] = numbers[zero].reshape(1)
        if f"{layer}bias" in found:
            numbers[packed(f"{layer}bias")] = found[f"{layer}bias"]
    counters = parse_json(_metadata(model).get("keima.counters", "{}"), "keima.counters")
    return found | weights | {name: torch.tensor(count, dtype=torch.int64) for name, count in counters.items()}, numbers


def _check_ends(model: onnx.ModelProto, network: Network) -> None:
    """The graph's inputs and outputs are the network's, by name and in order."""
    pairs = ((model.graph.input, network.input_names), (model.graph.output, network.output_names))
    for found, wanted in pairs:
        names = tuple(each.name for each in found)
        if names != wanted:
            raise BadWeights(f"the graph has {', '.join(names)} where the network has {', '.join(wanted)}")
