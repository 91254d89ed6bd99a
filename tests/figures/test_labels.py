"""Model text in labels: inert, visible and short."""

from __future__ import annotations

import json

import pytest
from figure_steps import make_node, make_step, make_token

from specviz import figures
from specviz.figures.labels import escape_html, format_prob, label_piece, show_piece, wrap_html
from specviz.trace import MaskRule, expand_rule

HOSTILE = [
    "<img onerror=alert(1) src=x>",
    "${alert(1)}",
    "$\\frac{1}{2}$",
    "a&lt;b",
    "\u202eevil",
    "%{x} %{customdata}",
    "\x00\x07\x1b[31m",
    "\ud83d",
    "x" * 10_000,
    "\u0301" * 10_000,
    "👩\u200d👩",
    "</script><script>alert(1)</script>",
    "a\u2028b",
]


@pytest.mark.parametrize(
    ("piece", "shown"),
    [
        (" the", "␣the"),
        ("\n\n", "↵↵"),
        ("\ta", "⇥a"),
        ("\u202ea", "⟨U+202E⟩a"),
        ("\u00a0", "⟨U+00A0⟩"),
        ("\u0301", "◌\u0301"),
        ("abcdefghijklmnop", "abcdefghijkl…"),
        ("日本語日本語日本語", "日本語日本語…"),
        ("<b>", "&lt;b&gt;"),
        ("$x$", "&#36;x&#36;"),
        ("&amp;", "&amp;amp;"),
    ],
)
def test_labels(piece: str, shown: str) -> None:
    assert label_piece(piece) == shown


def test_right_to_left_pieces_are_isolated() -> None:
    assert show_piece("שלום") == "\u2068שלום\u2069"


def test_empty_pieces_have_a_name() -> None:
    assert show_piece("", token_id=2) == "⟨id 2⟩"
    assert show_piece("", token_id=2, raw_bytes="f09f98") == "⟨F0 9F 98⟩"
    assert show_piece("") == "⟨empty⟩"


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_pieces_are_inert_and_short(piece: str) -> None:
    label = label_piece(piece)
    assert len(show_piece(piece)) < 64
    assert not set(label) & set('<>$"\u202e\x00\x1b\ud83d\u2028\u200d')


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_pieces_are_inert_in_whole_figures(piece: str) -> None:
    nodes = [
        make_node(0, -1, 0, piece, "root"),
        make_node(1, 0, 1, piece, "accepted"),
        make_node(2, 0, 1, piece, "rejected"),
    ]
    mask = expand_rule(MaskRule(name="contemplate", prefix=4, parents=[-1, 0, 0], k=1, s=1))
    step = make_step(nodes, [1], [make_token(piece, "draft"), make_token(piece, "bonus")], mask)
    for figure in (figures.mask_figure(step, [piece] * 4), figures.tree_figure(step)):
        text = json.dumps(figure, ensure_ascii=False).replace("<br>", "").replace("<b>", "").replace("</b>", "")
        assert "<" not in text.replace("<extra></extra>", "")
        assert "$" not in text
        assert "\u202e" not in text
        assert len(text) < 20_000
        text.encode("utf-8")


def test_model_text_never_reaches_a_hover_template() -> None:
    """Guards: a piece such as %{x} that plotly would expand."""
    step = make_step([make_node(0, -1, 0, "%{x}", "root")], [], [make_token("%{y}", "bonus")])
    for figure in (figures.mask_figure(step, ["%{z}"] * 9), figures.tree_figure(step)):
        for trace in figure["data"]:
            template = trace.get("hovertemplate", "")
            assert isinstance(template, str)
            assert "%{z}" not in template


def test_wrap_and_numbers() -> None:
    assert wrap_html("one two three", 8) == "one two<br>three"
    assert escape_html('a"b & <c>') == 'a"b &amp; &lt;c&gt;'  # plotly shows &quot; as it stands
    assert [format_prob(p) for p in (None, 0.0, 0.00001, 0.0123, 0.5, 1.0)] == [
        "unknown",
        "0",
        "below 0.0001",
        "0.012",
        "0.50",
        "1.00",
    ]
