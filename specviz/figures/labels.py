"""Model text as safe, short labels.

Plotly's labels are a small HTML, and with MathJax on the page a `$` starts a formula. So a piece goes
through two functions: `show_piece` makes it short and visible (plain text, for the narration and for
`textContent`), `escape_html` makes it inert (for plotly); `label_piece` does both.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata

from specviz.mask_trace import ADDED, Kind, MaskColumn, MaskRow
from specviz.sentence import change_text, say

LEARNED: frozenset[Kind] = ADDED | {"soft_prompt"}  # rows and columns that hold no token
_VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "⟨CR⟩"}
_HIDDEN_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}
_UNSPACED = re.compile("[\u3000-\u9fff\uff00-\uffef]")
_UNITS = re.compile("(?:[\u2e80-\uffff]|[^\\s\u2e80-\uffff]+|\\s+)[，。；：？！、）”]*")
_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"


def escape_html(text: str) -> str:
    """Escape what plotly's labels would take as markup or as a formula."""
    return "".join(_ENTITIES.get(character, character) for character in text)


def show_piece(piece: str, limit: int = 24, *, token_id: int | None = None, raw_bytes: str | None = None) -> str:
    """Return a piece with whitespace and controls visible, cut to about `limit` columns; plain text.

    An empty piece is shown by its bytes (a part of a character) or by its token id (end of text, say).
    """
    if piece == "":
        return _name_empty_piece(token_id, raw_bytes)
    shown = _cut(piece, limit)
    return f"{_ISOLATE}{shown}{_END_ISOLATE}" if _is_right_to_left(shown) else shown


def label_piece(piece: str, limit: int = 12, *, token_id: int | None = None, raw_bytes: str | None = None) -> str:
    """Return `show_piece` escaped for a plotly label."""
    return escape_html(show_piece(piece, limit, token_id=token_id, raw_bytes=raw_bytes))


def name_learned(kind: Kind, node: int | None, slot: int | None) -> str:
    """Name a row or column that holds no token of the text: a soft one, or slot `slot` behind `node`."""
    if kind == "soft_prompt":
        return say("soft {slot}", slot=slot)
    if kind == "lookahead":
        return say("slot {slot} #{node}", slot=slot, node=node)
    return say("con #{node}", node=node) if slot == 1 else say("con {slot} #{node}", slot=slot, node=node)


def name_row(row: MaskRow | MaskColumn) -> str:
    """Name a row or column by what it holds: its token as saved, with its node where it has one; plain text."""
    if row.kind in LEARNED:
        return name_learned(row.kind, row.node, row.slot)
    piece = show_piece(row.label, 12)
    return piece if row.node is None else f"{piece} #{row.node}"


def wrap_html(sentence: str, width: int = 46) -> str:
    """Escape a sentence and break it into lines for a plotly hover box."""
    return change_text(sentence, lambda text: "<br>".join(escape_html(line) for line in _break_lines(text, width)))


def format_prob(prob: float | None) -> str:
    """Return a probability in two significant digits; "unknown" where there is none."""
    if prob is None:
        return say("unknown")
    if 0 < prob < 0.0001:
        return say("below 0.0001")
    return f"{prob:.2g}" if prob < 0.1 else f"{prob:.2f}"


def _break_lines(text: str, width: int) -> list[str]:
    """Break a text between words, and between wide characters, which have no spaces; none begins with a full stop."""
    if not _UNSPACED.search(text):
        return textwrap.wrap(text, width)
    lines, used = [""], 0
    for unit in _UNITS.findall(text):
        columns = sum(_width(character, character) for character in unit)
        if used and used + columns > width:
            lines, used = [*lines, ""], 0
        lines[-1] += unit if lines[-1] else unit.lstrip()
        used += columns
    return [line.rstrip() for line in lines]


def _name_empty_piece(token_id: int | None, raw_bytes: str | None) -> str:
    if raw_bytes:
        return f"⟨{_group_hex(raw_bytes)}⟩"
    return "⟨empty⟩" if token_id is None else f"⟨id {token_id}⟩"


def _group_hex(raw_bytes: str) -> str:
    shown = escape_html(raw_bytes[:12]).upper()
    pairs = " ".join(shown[i : i + 2] for i in range(0, len(shown), 2))
    return pairs + ("…" if len(raw_bytes) > 12 else "")


def _cut(piece: str, limit: int) -> str:
    units: list[str] = []
    width = 0
    for i, character in enumerate(piece):
        unit = _show_character(character, first=i == 0)
        width += _width(character, unit)
        if width > limit or i >= 2 * limit:  # the second bound stops endless combining marks
            return "".join(units) + "…"
        units.append(unit)
    return "".join(units)


def _show_character(character: str, *, first: bool) -> str:
    if character in _VISIBLE:
        return _VISIBLE[character]
    category = unicodedata.category(character)
    if category in _HIDDEN_CATEGORIES:
        return f"⟨U+{ord(character):04X}⟩"
    return f"◌{character}" if first and category.startswith("M") else character


def _width(character: str, unit: str) -> int:
    if len(unit) > 2:
        return len(unit)
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _is_right_to_left(text: str) -> bool:
    return any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text)
