"""OpenVINO, imported so that nothing leaves the machine: `from keima.inference.offline import openvino`.

OpenVINO's converter reports what it converts to its makers, by the package `openvino_telemetry`, unless a file in the
user's home says no. Where that package is absent it falls back on a stub that sends nothing; here it is absent while
OpenVINO is imported. A program that had imported OpenVINO itself before gets the same stub put in.
"""

from __future__ import annotations

import sys
from importlib import import_module

_TELEMETRY = "openvino_telemetry"
_REPORTING = "convert_impl", "telemetry_utils", "utils"
"""The modules of `openvino.tools.ovc` that a conversion goes through and that report, as the global name `tm`."""

_MISSING = object()
_before = sys.modules.get(_TELEMETRY, _MISSING)
sys.modules[_TELEMETRY] = None  # type: ignore[assignment]  # importing it fails
try:
    import openvino as openvino

    _stub = import_module("openvino.tools.ovc.telemetry_stub")
    for _name in _REPORTING:
        import_module(f"openvino.tools.ovc.{_name}").tm = _stub  # type: ignore[attr-defined]
finally:
    del sys.modules[_TELEMETRY]
    if _before is not _MISSING:
        sys.modules[_TELEMETRY] = _before  # type: ignore[assignment]

__all__ = ["openvino"]
