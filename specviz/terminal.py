"""A run in the terminal: tokens coloured by what happened to them, then the metrics; and what is told beside it.

Colours come with a second cue (underline, strike, bold), as on the page.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from specviz.analysis.losslessness import judge_losslessness
from specviz.metrics import METRIC_DEFINITIONS
from specviz.trace import BaselineTrace, BatchTrace, RunTrace, TokenTrace

STYLES = {
    "draft": "\x1b[4;34m",
    "correction": "\x1b[21;35m",
    "bonus": "\x1b[1;32m",
    "unverified": "\x1b[3;33m",
}
LEGEND = {
    "draft": "accepted draft",
    "correction": "correction",
    "bonus": "bonus",
    "unverified": "unverified",
}
RESET = "\x1b[0m"
CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160)) if chr(code) not in "\n\t"}


def tell(sentence: str) -> None:
    """Say what goes on beside the output, which holds the result alone."""
    print(sentence, file=sys.stderr)


def uses_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that wants colour (NO_COLOR is respected)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def shown_tokens(tokens: Iterable[TokenTrace], n_characters: int, colour: bool) -> str:
    """Return pieces with their styles, up to `n_characters` of their text; control characters are made visible."""
    shown = ""
    for token in tokens:
        piece = token.piece[: max(0, n_characters)].translate(CONTROL)
        n_characters -= len(token.piece)
        style = STYLES.get(token.source) if colour else None
        shown += f"{style}{piece}{RESET}" if style and piece else piece
    return shown


def legend(colour: bool) -> str:
    """Return one line that explains the styles; empty without colour."""
    if not colour:
        return ""
    return "  ".join(f"{STYLES[source]}{label}{RESET}" for source, label in LEGEND.items())


def summary(trace: RunTrace | BatchTrace) -> str:
    """Return the lines under a run: how it ended, its notices, its metrics with their origin."""
    runs = trace.batch if isinstance(trace, BatchTrace) else [trace]
    return "\n\n".join("\n".join(_run_lines(run, len(runs) > 1)) for run in runs)


def _run_lines(run: RunTrace, numbered: bool) -> Iterable[str]:
    if numbered:
        yield f"prompt {run.row}"
        yield run.text.translate(CONTROL)
    yield f"finished: {run.finish_reason} after {run.metrics['n_tokens']} tokens"
    yield from (f"note: {notice}" for notice in run.notices)
    if run.divergence is not None:
        place = run.divergence
        yield (
            f"left greedy decoding at token {place.index}: took {place.piece!r} (p = {place.prob:.3g}), "
            f"the target's own choice was {place.expected_piece!r}"
        )
    if run.baseline is not None:
        yield _compare(run, run.baseline)
    for name, value in run.metrics.items():
        if value is not None and value != {}:
            label, _, origin = METRIC_DEFINITIONS[name]
            yield f"  {label:28} {_number(value):>10}  {origin}"


def _compare(run: RunTrace, baseline: BaselineTrace) -> str:
    """Say whether a run is its plain lane's text and, where it is not, how close the two best logits are."""
    counted = f"({baseline.n_equal} of {len(baseline.token_ids)} tokens)"
    if baseline.equal:
        return f"equal to plain decoding {counted}"
    place = f"parts from plain at token {baseline.n_equal} {counted}"
    if baseline.divergence is None:
        return place
    near = judge_losslessness(run).verdict == "near tie"
    why = f", a near-tie: in {run.model.dtype} another kernel's rounding may choose either" if near else ""
    return f"{place}; the two best logits are {baseline.divergence.gap:.3g} apart there{why}"


def _number(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}:{number:.2f}" for key, number in value.items())
    return f"{value:.3g}" if isinstance(value, float) else str(value)
