"""Kinds of tokens, by hand."""

import pytest
from traces import make_step, make_token

from specviz.analysis.token_kind import KindCount, count_kinds, token_kind


@pytest.mark.parametrize(
    ("piece", "kind"),
    [
        (" the", "word"),
        ("n't", "word"),
        ("é", "word"),
        ("天空", "word"),
        (".", "word"),
        (" (", "word"),
        ("😀", "word"),
        ("——", "word"),
        ("return", "word"),
        (" 12", "number"),
        ("3.5", "number"),
        ("٣", "number"),
        ("_", "code"),
        ("):", "code"),
        ("()", "code"),
        ("[", "code"),
        ("==", "code"),
        ("≤", "code"),
        ("camelCase", "code"),
        ("x1", "code"),
        ("\n    ", "white space"),
        (" ", "white space"),
        ("", "white space"),
    ],
)
def test_the_kind_of_a_piece(piece, kind):
    assert token_kind(piece) == kind


def test_accepted_drafts_are_hits_and_corrections_misses():
    tokens = [
        make_token(" the", "draft"),
        make_token(" a", "draft"),
        make_token(" sky", "correction"),
        make_token("12", "correction"),
        make_token("\n", "bonus"),
        make_token(" x", "unverified"),
    ]
    counts = count_kinds([make_step(tokens), make_step([make_token(" first", "draft")], index=0)])
    assert counts["word"] == KindCount(n_judged=3, n_accepted=2)
    assert counts["number"] == KindCount(1, 0) and counts["number"].rate == 0
    assert counts["white space"].rate is None and counts["code"].rate is None
