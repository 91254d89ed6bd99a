"""Seeds that depend on what is generated and on nothing else, neither on its place in a batch nor on the order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch


def derive_seed(*parts: object) -> int:
    """Return a 63-bit seed that is a pure function of the parts' texts."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def derive_draws(places: Iterable[int], *parts: object) -> list[torch.Generator]:
    """Return a random generator for each place of a batch: the same whichever process has the place."""
    return [torch.Generator().manual_seed(derive_seed(*parts, place)) for place in places]
