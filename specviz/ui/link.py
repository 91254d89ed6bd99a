"""What a link says of a run: prompts and settings by name, in the page's address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specviz.settings import RunSettings
from specviz.trace import RunTrace

PROMPT = "prompt"
NOT_ASKED = {"device", "dtype", "record"}  # the operator's, or the page's own

Pairs = list[list[str]]


def write_link(prompts: Sequence[str], run: RunTrace) -> Pairs:
    """Return names and texts that describe a live run completely, defaults filled in as they were."""
    settings = [
        [name, _text(value)]
        for name, values in run.settings.items()
        if name not in NOT_ASKED
        for value in (values if isinstance(values, (list, tuple)) else [values])
        if value is not None
    ]
    return [[PROMPT, text] for text in prompts] + settings


def read_link(query: Sequence[tuple[str, str]]) -> tuple[list[str], Mapping[str, Any]]:
    """Return the prompts and the settings, as texts, of the pairs of an address; neither is checked."""
    prompts = [text for name, text in query if name == PROMPT]
    return prompts, {name: text for name, text in query if name != PROMPT}


def read_run(link: Sequence[tuple[str, str]]) -> tuple[list[str], dict[str, Any]]:
    """Return the prompts and the settings' fields of a link, as texts; what is no setting of a run is left out."""
    prompts, texts = read_link(link)
    asked: dict[str, Any] = {name: texts[name] for name in RunSettings.model_fields if name in texts}
    if "stop" in asked:
        asked["stop"] = [text for name, text in link if name == "stop"]  # the one setting that may repeat
    return prompts, {name: value for name, value in asked.items() if name not in NOT_ASKED}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
