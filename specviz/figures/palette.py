"""The one source of colours, glyphs and line styles, for figures, page and exports.

Colours are Okabe and Ito's, never red against green, and each status has a second cue (glyph, line, symbol).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from specviz.sentence import say

ThemeName = Literal["light", "dark"]
StatusName = Literal[
    "accepted", "rejected", "correction", "bonus", "unreached", "cut", "unverified", "root", "prompt", "plain"
]

ACCEPTED_COLOUR = "#0072B2"
REJECTED_COLOUR = "#D55E00"
CORRECTION_COLOUR = "#CC79A7"
BONUS_COLOUR = "#009E73"
UNVERIFIED_COLOUR = "#E69F00"
SKY_COLOUR = "#56B4E9"
GREY_COLOUR = "#808080"
SELECTION_COLOUR = "#8B5CF6"  # of no status; seen on both themes
TEXT_COLOUR = "text"

_NO_LINE = "text-decoration: none"


@dataclass(frozen=True)
class Status:
    """How one status looks; `colour` "text" stands for the text colour of the theme."""

    colour: str
    glyph: str
    line: str
    symbol: str
    label: str


@dataclass(frozen=True)
class Theme:
    """The colours of one theme; figures themselves are transparent, `background` is the page's."""

    text: str
    muted: str
    background: str
    surface: str
    grid: str


STATUSES: dict[StatusName, Status] = {
    "accepted": Status(ACCEPTED_COLOUR, "✓", "text-decoration: underline solid", "circle", say("accepted")),
    "rejected": Status(
        REJECTED_COLOUR, "✗", "text-decoration: line-through; border: 1px dotted currentColor", "x", say("rejected")
    ),
    "correction": Status(CORRECTION_COLOUR, "↺", "text-decoration: underline double", "diamond", say("correction")),
    "bonus": Status(BONUS_COLOUR, "★", "text-decoration: underline solid 3px", "star", say("bonus")),
    "unreached": Status(GREY_COLOUR, "·", "text-decoration: underline dashed", "circle-open", say("unreached")),
    "cut": Status(GREY_COLOUR, "✂", "text-decoration: underline dashed", "square-open", say("cut")),
    "unverified": Status(UNVERIFIED_COLOUR, "?", "text-decoration: underline wavy", "hexagon", say("unverified")),
    "root": Status(TEXT_COLOUR, "▸", _NO_LINE, "square", say("root")),
    "prompt": Status(TEXT_COLOUR, "", _NO_LINE, "square", say("prompt")),
    "plain": Status(TEXT_COLOUR, "", _NO_LINE, "square", say("plain")),
}

STATUS_OF_SOURCE: dict[str, StatusName] = {
    "prompt": "prompt",
    "target": "plain",
    "draft": "accepted",
    "correction": "correction",
    "bonus": "bonus",
    "unverified": "unverified",
}

THEMES: dict[ThemeName, Theme] = {
    "light": Theme("#1f2937", "#5b6472", "#ffffff", "#f8fafc", "rgba(100,116,139,0.25)"),
    "dark": Theme("#e5e7eb", "#a3adba", "#0b0f19", "#1f2937", "rgba(148,163,184,0.25)"),
}


def status_colour(status: StatusName, theme: ThemeName) -> str:
    """Return the colour of a status in a theme."""
    colour = STATUSES[status].colour
    return THEMES[theme].text if colour == TEXT_COLOUR else colour


def status_tint(status: StatusName, theme: ThemeName) -> str:
    """Return the light tint that lies behind a token's text, as rgba; transparent where the colour is the text's."""
    colour = STATUSES[status].colour
    if colour == TEXT_COLOUR:
        return "rgba(0,0,0,0)"
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{0.16 if theme == 'light' else 0.30})"


def palette() -> dict[str, Any]:
    """Return everything as plain values for the page: `{"statuses", "status_of_source", "themes"}`.

    Each status has `glyph, line (CSS), symbol (plotly), label` and `colour` and `tint` by theme.
    """
    return {
        "statuses": {name: _plain_status(name) for name in STATUSES},
        "status_of_source": dict(STATUS_OF_SOURCE),
        "themes": {name: asdict(theme) for name, theme in THEMES.items()},
    }


def _plain_status(name: StatusName) -> dict[str, Any]:
    return asdict(STATUSES[name]) | {
        "colour": {theme: status_colour(name, theme) for theme in THEMES},
        "tint": {theme: status_tint(name, theme) for theme in THEMES},
    }
