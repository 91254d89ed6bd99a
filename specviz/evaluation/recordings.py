"""The recorded runs that come with the page, decoded anew: `python -m specviz.evaluation.recordings [NAME …]`.

Each is a real run of the bundled target, its plain lane beside it, written to `assets/traces/` as `NN-NAME.json.gz`:
in bfloat16, as a visitor runs it on a machine that has it natively, or in float32 where the run is there to be exact.
EAGLE-3 and ConFu need the trained drafters in `assets/drafters/`; where there is none, their runs are left out and
this says so.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specviz.decoding.engine import Engine
from specviz.errors import SpecVizError, exit_status
from specviz.metrics import compute_metrics
from specviz.settings import make_settings
from specviz.trace import BatchTrace, RunTrace, from_json, to_json

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "traces"
MAX_BYTES = 300_000
DTYPES = ("float32", "bfloat16")
DIGITS = 7  # float32 has no more

PROSE = "Describe a harbour town on a foggy morning in four sentences."
CODE = "Write a Python function that counts the vowels of a string, with a docstring and one example."
ARITHMETIC = "A baker makes 14 trays of 6 rolls and sells 59 of them. How many rolls are left? Show your steps."
QUESTION = "Why do leaves change their colour in autumn? Answer in three sentences."
STORY = "Tell a very short story about a clock that runs backwards."
BATCH = (
    "Name three rivers of Europe.",
    "Write one sentence about snow.",
    "What is the opposite of loud? Explain in one sentence.",
)


@dataclass(frozen=True)
class Recording:
    """One run to record; a drafter is needed for methods that have one."""

    name: str
    prompts: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    max_new_tokens: int = 96
    dtype: str = "bfloat16"

    @property
    def is_lossy(self) -> bool:
        """Whether the run is here to leave the target's text."""
        return self.settings.get("selection") == "self-consistent"


RECORDINGS = (  # the first is what a visitor sees first
    Recording("confu-arithmetic", (ARITHMETIC,), {"method": "confu", "nodes": 30}),
    Recording("confu-code", (CODE,), {"method": "confu", "nodes": 30}),
    Recording("confu-prose", (PROSE,), {"method": "confu", "nodes": 30}, dtype="float32"),
    Recording("eagle3", (PROSE,), {"method": "eagle3", "nodes": 30}, dtype="float32"),
    Recording("lookahead-tree", (CODE,), {"method": "lookahead", "attention_row": 1}),
    Recording("lookahead-chain", (QUESTION,), {"method": "lookahead", "k": 4, "candidates": 1}, dtype="float32"),
    Recording(
        "self-consistent",
        (STORY,),
        {"method": "lookahead", "selection": "self-consistent", "k": 2, "threshold": 0.3},
        dtype="float32",
    ),
    Recording("batch", BATCH, {"method": "lookahead"}, max_new_tokens=40, dtype="float32"),
    Recording("plain", (QUESTION,), {"method": "plain"}, max_new_tokens=64, dtype="float32"),
)


def main() -> None:
    names = [recording.name for recording in RECORDINGS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all without a name: {', '.join(names)}")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tokens", type=int, help="a smaller budget, for a try")
    parser.add_argument("--untrained", action="store_true", help="random weights too, for a try: not for the page")
    chosen = parser.parse_args()
    unknown = set(chosen.names) - set(names)
    if unknown:
        raise SpecVizError(
            f"There is no recording called {', '.join(sorted(unknown))}; choose from {', '.join(names)}."
        )
    engines = {dtype: Engine(["bundled"], dtype=dtype, device=chosen.device) for dtype in DTYPES}
    chosen.out.mkdir(parents=True, exist_ok=True)
    for number, recording in enumerate(RECORDINGS, start=1):
        if not chosen.names or recording.name in chosen.names:
            path = chosen.out / f"{number:02}-{recording.name}.json.gz"
            print(record(engines[recording.dtype], recording, path, chosen.tokens, chosen.untrained), flush=True)


def record(engine: Engine, recording: Recording, path: Path, tokens: int | None, untrained: bool) -> str:
    """Decode and write one recording; return what happened in a sentence."""
    trace = engine.run(list(recording.prompts), _settings_of(recording, tokens))
    runs = _runs_of(trace)
    drafter = runs[0].drafter
    if drafter is not None and drafter.source == "random" and not untrained:
        return f"{recording.name} is left out: there is no trained drafter for it."
    _check(recording, runs)
    packed = pack_trace(trace)
    if len(packed) > MAX_BYTES:
        raise SpecVizError(f"{recording.name} takes {len(packed)} bytes, more than {MAX_BYTES}: give it fewer tokens.")
    path.write_bytes(packed)
    tau = ", ".join("–" if run.metrics["tau"] is None else f"{run.metrics['tau']:.2f}" for run in runs)
    return f"{path.name}: {len(packed) // 1000} kB, {len(runs[0].steps)} steps, {tau} tokens per target pass."


def pack_trace(trace: RunTrace | BatchTrace) -> bytes:
    """Return a trace as gzipped JSON, its numbers as long as float32 knows them and its metrics of these numbers."""
    short = from_json(json.dumps(_shorten(json.loads(to_json(trace)))))
    runs = [run.model_copy(update={"metrics": compute_metrics(run)}) for run in _runs_of(short)]
    whole = BatchTrace(batch=runs) if isinstance(short, BatchTrace) else runs[0]
    return gzip.compress(to_json(whole).encode(), 9, mtime=0)


def _settings_of(recording: Recording, tokens: int | None) -> Any:
    budget = min(tokens or recording.max_new_tokens, recording.max_new_tokens)
    compare = recording.settings["method"] != "plain"
    return make_settings(**recording.settings, max_new_tokens=budget, compare_plain=compare)


def _check(recording: Recording, runs: Iterable[RunTrace]) -> None:
    """Refuse a run that does not show what it is recorded for."""
    for run in runs:
        equal = run.baseline is None or run.baseline.equal
        if equal == recording.is_lossy:
            raise SpecVizError(
                f"{recording.name} {'equals' if equal else 'leaves'} plain decoding: not what it is for."
            )


def _runs_of(trace: RunTrace | BatchTrace) -> list[RunTrace]:
    return trace.batch if isinstance(trace, BatchTrace) else [trace]


def _shorten(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_shorten(entry) for entry in value]
    return {key: _shorten(entry) for key, entry in value.items()} if isinstance(value, dict) else value


if __name__ == "__main__":
    sys.exit(exit_status(main))
