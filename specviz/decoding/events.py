"""What a run tells while it goes on. Plain data: no torch."""

from __future__ import annotations

from dataclasses import dataclass

from specviz.trace import BatchTrace, RunTrace, StepTrace


@dataclass(frozen=True)
class Started:
    """The run is set up: one trace a prompt, with prompt, model, drafter and notices, without steps."""

    runs: list[RunTrace]


@dataclass(frozen=True)
class Passing:
    """A pass of the target is about to begin: whoever closes the run here has none of it computed in vain."""


@dataclass(frozen=True)
class Stepped:
    """One step of one batch row, held back while its text may still become a stop text.

    `text` is the row's answer up to this step as it may be shown: cut before a stop text, though the
    step's own tokens go through the one that completes it.
    """

    row: int
    step: StepTrace
    text: str = ""


@dataclass(frozen=True)
class Finished:
    """The whole trace, with text, finish reason, metrics and baseline."""

    trace: RunTrace | BatchTrace


Told = Started | Stepped | Finished  # what a reader wants to know
Event = Told | Passing
