"""A Hugging Face tokenizer behind the small interface that the rest needs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from specviz.errors import SpecVizError

BYTE_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


class Tokenizer:
    """Encodes prompts, decodes answers and tells the bytes of a token (implements text.TextCodec)."""

    def __init__(self, hf_tokenizer: Any) -> None:
        self._hf = hf_tokenizer
        self._special = set(hf_tokenizer.all_special_ids)
        self._added = {int(i) for i in getattr(hf_tokenizer, "added_tokens_decoder", {})}
        self._n_known = len(hf_tokenizer)
        self._style = _decoder_style(hf_tokenizer)
        self._entries: dict[int, str | None] = {}  # a record asks for hundreds of tokens a step

    @property
    def eos_id(self) -> int | None:
        """The tokenizer's own end-of-text id, if it has one."""
        return self._hf.eos_token_id

    def encode(self, text: str) -> list[int]:
        """Encode raw text, with the special tokens that the tokenizer adds by itself."""
        return list(self._hf(text)["input_ids"])

    def encode_chat(self, text: str) -> list[int]:
        """Encode one user turn with the chat template, up to the start of the answer."""
        if not getattr(self._hf, "chat_template", None):
            raise SpecVizError("This model has no chat template: use raw prompts (--raw).")
        messages = [{"role": "user", "content": text}]
        rendered = self._hf.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return list(self._hf(rendered, add_special_tokens=False)["input_ids"])

    def decode(self, token_ids: Sequence[int]) -> str:
        return self._hf.decode(list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def is_known(self, token_id: int) -> bool:
        return self._entry(token_id) is not None

    def shares_ids_with(self, other: Tokenizer) -> bool:
        """Return whether both give every token the same id."""
        return self._hf.get_vocab() == other._hf.get_vocab()

    def token_bytes(self, token_id: int) -> bytes | None:
        token = self._entry(token_id)
        if token is None or self._style is None:
            return None
        if token_id in self._special or token_id in self._added:
            return token.encode("utf-8")
        if self._style == "byte_level":
            return bytes(BYTE_OF_CHAR[char] for char in token)
        match = BYTE_FALLBACK.fullmatch(token)
        return bytes.fromhex(match[1]) if match else token.replace("▁", " ").encode("utf-8")

    def _entry(self, token_id: int) -> str | None:
        """Return the vocabulary's own spelling of a token, or None where it has none."""
        if token_id not in self._entries:
            inside = 0 <= token_id < self._n_known
            self._entries[token_id] = self._hf.convert_ids_to_tokens(token_id) if inside else None
        return self._entries[token_id]


def _decoder_style(hf_tokenizer: Any) -> str | None:
    """Return `byte_level`, `byte_fallback`, or None where the tokenizer does not tell its bytes."""
    backend = getattr(hf_tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    decoder = json.dumps(json.loads(backend.to_str())["decoder"])
    if '"ByteLevel"' in decoder:
        return "byte_level"
    return "byte_fallback" if '"ByteFallback"' in decoder else None


def _byte_of_char() -> dict[str, int]:
    """Return the table of byte-level BPE (GPT-2): printable bytes stand for themselves, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    return table | {chr(0x100 + i): byte for i, byte in enumerate(others)}


BYTE_OF_CHAR = _byte_of_char()
