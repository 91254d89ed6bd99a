"""Sentences that know what they were made of, so that they can be said again in another language.

`say("{n} tokens", n=3)` is the English text, a `str` like any other. It keeps its template, the key of the table of a
language, and its slots: `translate` puts the translated template in its place. Figures and analyses speak English and
know of no language; the page translates what they return.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Table = Mapping[str, str]
Change = Callable[[str], str]

_SLOT = re.compile(r"\{(\w+)\}")


class Sentence(str):
    """English text with the template and the slots it was made of.

    `changes` are applied to the filled template in turn: what follows the wording (line breaks, escapes) is done anew
    in every language. A slot may be a sentence itself.
    """

    template: str
    slots: dict[str, Any]
    changes: tuple[Change, ...]

    def __new__(cls, template: str, slots: dict[str, Any] | None = None, changes: tuple[Change, ...] = ()) -> Sentence:
        """Fill the template; a slot without a value stays as it is."""
        made = super().__new__(cls, _fill(template, slots or {}, changes))
        made.template, made.slots, made.changes = template, slots or {}, changes
        return made

    def __add__(self, other: str) -> Sentence:
        """Return both in one."""
        return Sentence("{one}{other}", {"one": self, "other": other})

    def __radd__(self, other: str) -> Sentence:
        """Return both in one, a plain text first."""
        return Sentence("{other}{one}", {"one": self, "other": other})

    def __deepcopy__(self, memo: dict[int, Any]) -> Sentence:
        """Return itself, as texts do: `dataclasses.asdict` copies what it finds."""
        return self

    def fill(self, **slots: Any) -> Sentence:
        """Return the sentence with more slots filled."""
        return Sentence(self.template, self.slots | slots, self.changes)


def say(template: str, **slots: Any) -> Sentence:
    """Return the sentence of a template; `{name}` in it stands for the slot of that name."""
    return Sentence(template, slots)


def say_count(n: int, one: str, many: str) -> Sentence:
    """Say a number of things: the template `one` for 1, else `many`, each with the slot `{n}`."""
    return Sentence(one if n == 1 else many, {"n": n})


def say_both(one: str, other: str) -> str:
    """Return two sentences one after the other; either may be empty."""
    return say("{one} {other}", one=one, other=other) if one and other else one or other


def join_parts(separator: str, parts: list[str]) -> Sentence:
    """Join sentences and texts with a separator that is the same in every language."""
    names = [f"part_{place}" for place in range(len(parts))]
    return Sentence(separator.join(f"{{{name}}}" for name in names), dict(zip(names, parts, strict=True)))


def change_text(text: str, change: Change) -> str:
    """Change a text, and a sentence in whatever language it is said."""
    if not isinstance(text, Sentence):
        return change(text)
    return Sentence(text.template, text.slots, (*text.changes, change))


def translate(value: Any, table: Table) -> Any:
    """Return plain values with every sentence in them said by a table; a template that it lacks stays English."""
    if isinstance(value, Sentence):
        slots = {name: translate(slot, table) for name, slot in value.slots.items()}
        return _fill(table.get(value.template, value.template), slots, value.changes)
    if isinstance(value, dict):
        return {name: translate(entry, table) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [translate(entry, table) for entry in value]
    return value


def _fill(template: str, slots: Mapping[str, Any], changes: tuple[Change, ...]) -> str:
    text = _SLOT.sub(lambda slot: str(slots.get(slot[1], slot[0])), template)
    for change in changes:
        text = change(text)
    return text
