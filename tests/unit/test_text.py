"""Pieces, partial characters and stop text."""

import pytest

from specviz.text import Detokenizer, StopText, partial_bytes, piece_of
from tests.kit import EOS_ID, byte_tokenizer

CODEC = byte_tokenizer()


def pieces_of(token_ids: list[int]) -> list[str]:
    detokenizer = Detokenizer(CODEC)
    pieces = [detokenizer.add(token_id) for token_id in token_ids]
    return [*pieces, detokenizer.flush()]


def test_a_split_character_is_held_until_it_is_complete():
    """Guards F40: an emoji over four tokens comes with its last one, and the space after it stays a space."""
    ids = [*"a😀 b".encode()]
    assert pieces_of(ids) == ["a", "", "", "", "😀", " ", "b", ""]


def test_a_character_cut_at_the_end_is_flushed_and_its_bytes_are_told():
    """Guards F40: the leftover of F0 9F is shown, not lost."""
    assert pieces_of([97, 0xF0, 0x9F]) == ["a", "", "", "\N{REPLACEMENT CHARACTER}"]
    assert [partial_bytes(CODEC, i) for i in (97, 0xF0, 0x9F)] == [None, "f0", "9f"]


@pytest.mark.parametrize("text", ["naïve 日本語 👩‍👩‍👧 \r\n\t x", "‮abc", "<img onerror=x>${alert(1)}", "�"])
def test_joined_pieces_are_the_decoded_text(text: str):
    ids = list(text.encode())
    assert "".join(pieces_of(ids)) == CODEC.decode(ids) == text


@pytest.mark.parametrize("ids", [[255, 97, 98], [0xE2, 97, 0x82, 98], [128] * 9, [0xF0, 0x9F, 32, 97]])
def test_invalid_bytes_lose_nothing_and_stop_nothing(ids: list[int]):
    assert "".join(pieces_of(ids)) == CODEC.decode(ids)


def test_an_id_without_an_entry_is_shown():
    """Guards F37: a padded id is a visible placeholder and what follows is untouched."""
    assert pieces_of([97, 509, 98]) == ["a", "⟨id 509⟩", "b", ""]
    assert piece_of(CODEC, 509) == "⟨id 509⟩"


def test_special_tokens_have_no_text_in_an_answer_and_a_name_in_a_tree():
    assert pieces_of([97, EOS_ID]) == ["a", "", ""]
    assert piece_of(CODEC, EOS_ID) == "<|end|>"


def test_stop_text_over_several_pieces_is_found_at_its_first_completion():
    """Guards F11."""
    watch = StopText(["END"])
    assert [watch.add(piece) for piece in ("abc ", "E", "N")] == [None, None, None]
    assert watch.pending
    assert watch.add("D xyz END") == len("END xyz END")


def test_a_broken_start_is_released():
    watch = StopText(["END"])
    watch.add("EN")
    assert watch.pending
    watch.add("T")
    assert not watch.pending


def test_of_several_stops_the_earliest_cut_wins():
    watch = StopText(["bcd", "c"])
    assert watch.add("abcd") == 3
