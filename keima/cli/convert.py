"""`keima convert`: a network file in another format, or the same one written anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from keima.cli import common
from keima.errors import BadRequest, KeimaError

if TYPE_CHECKING:
    from keima.systems.network import Network

EXAMPLES = """Examples:

\b
  keima convert kata1-b6c96.bin.gz b6c96.safetensors
  keima convert b6c96.safetensors b6c96.bin.gz       (KataGo loads it)
  keima convert maia-1900.pb.gz maia.safetensors
  keima convert b6c96.bin.gz b6c96.onnx              (boards of any size; needs keima[export])
  keima convert b6c96.bin.gz half.onnx --precision f16
  keima convert four.safetensors half.safetensors --precision f16
  keima convert b6c96.bin.gz engine.onnx --engine 19 (KataGo 1.18 runs it, on boards of up to 19)
  keima convert whole.safetensors whole.onnx --precision int8     (after keima compress quantize)
  keima convert elf.txt.gz zero.safetensors --to alphago-zero
  keima convert old.pb.gz new.pb.gz --to VALUE_WDL
"""

ONNX_ENDING, OWN_ENDING = ".onnx", ".safetensors"

Precision = Annotated[
    str, Option(help="f32; f16, half as large, in .safetensors and .onnx; int8, where IN has numbers for it, in .onnx.")
]
Engine = Annotated[
    int | None, Option(help="Write the ONNX file that the network's own engine runs, for boards of up to this size.")
]
To = Annotated[str | None, Option(help="Another form of the network; an unknown one lists those there are.")]


def convert(
    source: common.InArgument,
    target: common.OutArgument,
    to: To = None,
    precision: Precision = "f32",
    engine: Engine = None,
) -> None:
    """Write a network in the format that OUT's ending names: .safetensors, .onnx, .bin.gz, .pb.gz, .txt.gz."""
    from keima.systems.files.load import save
    from keima.systems.files.safetensors import write_safetensors
    from keima.systems.forms import convert

    network = common.open_network(source)
    if to is not None:
        try:
            network = convert(network, to)
        except KeimaError as refusal:
            raise refusal.at(source=source) from refusal
    if engine is not None:
        common.say(f"{target}: {_write_engine_graph(network, target, engine, precision)}")
        return
    if target.lower().endswith(ONNX_ENDING):
        error = _write_onnx(network, target, precision)
        common.say(f"{target}: {network.system} network {network.pedigree.name}, {precision}; {error}")
        return
    if precision == "f16" and target.lower().endswith(OWN_ENDING):
        write_safetensors(network, target, half=True)
    elif precision == "f32":
        save(network, target)
    else:
        endings = f"{OWN_ENDING} and {ONNX_ENDING}" if precision == "f16" else ONNX_ENDING
        raise BadRequest(f"--precision {precision} is for {endings} files; {target} holds float32")
    common.say(f"{target}: {network.system} network {network.pedigree.name}")


def _write_engine_graph(network: Network, target: str, side: int, precision: str) -> str:
    """Write the file; what it is, in words."""
    from keima.systems.files.contents import atomic_write
    from keima.systems.system import system_of

    system = system_of(network)
    if system.engine_graph is None:
        raise BadRequest(f"--engine: {system.title} has no engine that runs ONNX files of such networks")
    if not target.lower().endswith(ONNX_ENDING):
        raise BadRequest(f"--engine writes {ONNX_ENDING} files, not {target}")
    atomic_write(target, system.engine_graph(network, side, precision))
    return f"{network.pedigree.name}, {precision}, for {system.title}, boards of up to {side}×{side}"


def _write_onnx(network: Network, target: str, precision: str) -> str:
    """Write the file; how far ONNX Runtime's answers by it are from PyTorch's, in words."""
    from keima.compress.fold import fold
    from keima.inference.onnx_backend import deviation
    from keima.systems.files.load import load
    from keima.systems.files.onnx_file import write_onnx

    write_onnx(fold(network) if precision == "f16" else network, target, precision)
    written = load(target)
    assert written.onnx is not None
    try:
        error = deviation(network, written.onnx)
    except BadRequest as missing:  # ONNX Runtime
        return f"not run here: {missing.message}"
    exact = "int8" if precision == "int8" else "float32"
    return f"within {error:.1e} of PyTorch's {exact}, of the largest number of each output"
