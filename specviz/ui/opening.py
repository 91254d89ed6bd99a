"""What the controls open on: the prompt and the method of the run that the page shows first."""

from __future__ import annotations

from specviz.trace import RunTrace
from specviz.ui.backend import Backend

EXAMPLES = {
    "code": "Write a Python function that returns the n-th Fibonacci number, with a docstring.",
    "repetition": "Repeat this sentence three times: The quick brown fox jumps over the lazy dog.",
    "prose": "Explain in three short sentences why the sky is blue.",
    "list": "List the planets of the solar system, one on each line.",
    "arithmetic": "A baker makes 14 trays of 6 rolls and sells 59 of them. How many rolls are left? Show your steps.",
}


def choose_prompt(shown: RunTrace | None) -> str:
    """Return the example that a run was asked, else the first one."""
    asked = "".join(token.piece for token in shown.prompt) if shown else ""
    return next((text for text in EXAMPLES.values() if text in asked), next(iter(EXAMPLES.values())))


def choose_method(backend: Backend, shown: RunTrace | None) -> str:
    """Return the method of a run whose model is offered here: its drafter is too. Else one that needs none."""
    if shown and shown.settings.get("model") in backend.model_names and shown.method in backend.methods:
        return shown.method
    return "lookahead" if "lookahead" in backend.methods else backend.methods[0]
