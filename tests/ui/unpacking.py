"""Reads stage values back, as assets/stage/inbox.js does."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any


def read_parts(parts: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the items of one run's stream, which arrives in parts."""
    inflate, items = zlib.decompressobj(), []
    for part in parts:
        *lines, end, rest = inflate.decompress(part).decode("utf-8", "replace").split("\n")
        assert end == rest == "", "an empty line ends a part"
        items += [json.loads(line) for line in lines]
    return items


def read_values(values: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of the stage values of one run."""
    return read_parts(base64.b64decode(value["packed"]) for value in values)


def read_answer(packed: str) -> Any:
    """Return what a question was answered with, packed."""
    return json.loads(zlib.decompress(base64.b64decode(packed)))
