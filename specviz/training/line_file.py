"""A file of lines that only grows, plain or gzip, and that an interruption at any moment leaves readable."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

UNFINISHED = ".unfinished"


class LineFile:
    """Appends lines, each handed to the operating system at once; what an earlier run wrote stays."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _drop_half_line(path)
        opened = gzip.open(path, "ab") if path.suffix == ".gz" else path.open("ab")  # noqa: SIM115
        self._file = cast(BinaryIO, opened)

    def append(self, line: str) -> None:
        self._file.write(f"{line}\n".encode())
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> LineFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_lines(path: Path) -> list[str]:
    """Read the whole lines of a plain or gzip file; what an interruption left half written is not one."""
    return [line.decode("utf-8", errors="replace") for line in _whole_lines(path).split(b"\n")[:-1]]


def _whole_lines(path: Path) -> bytes:
    content = path.read_bytes()
    text = _unzip(content) if path.suffix == ".gz" else content
    return text[: text.rfind(b"\n") + 1]


def _drop_half_line(path: Path) -> None:
    """Write the whole lines anew, beside the file first: behind half a gzip member nothing can be appended."""
    if not path.exists():
        return
    beside = path.with_name(path.name + UNFINISHED)
    text = _whole_lines(path)
    beside.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    os.replace(beside, path)


def _unzip(content: bytes) -> bytes:
    """Decompress gzip members up to where an interruption cut the last one short."""
    text = b""
    while content:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            text += member.decompress(content)
        except zlib.error:
            break
        content = member.unused_data
    return text
