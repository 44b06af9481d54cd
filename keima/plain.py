"""Plain data: what JSON, TOML and keyword arguments hold by name; checked where it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Data = dict[str, Any]
Fields = Mapping[str, Any]
