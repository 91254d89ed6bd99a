"""What an evaluation keeps: one JSON line a question and lane, the trace of each in a file beside them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from specviz.analysis.expert_usage import ExpertUsage
from specviz.analysis.token_kind import TokenKind
from specviz.errors import SpecVizError
from specviz.evaluation.counts import PassCounts
from specviz.trace import MissReason, RunTrace, save_trace

RECORDS = "records.jsonl"
TRACES = "traces"
QuestionId = int | str
Verdict = Literal["equal", "near_tie", "departed"]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Exactness(_Line):
    """An answer against the plain lane's.

    `near_tie`: the two part at token `index` of the answer, where the target's two best logits are nearly equal and
    the arithmetic is not float32; `departed`: any other difference. `gap` is the difference of those logits.
    """

    verdict: Verdict
    index: int | None = None
    gap: float | None = None


class MissRecord(_Line):
    """One token of the target's that no draft had: `depth` is where it would have stood in the tree."""

    step: int
    depth: int
    reason: MissReason
    kind: TokenKind
    piece: str
    draft_rank: int | None
    draft_prob: float | None


class LaneRecord(_Line):
    """One question, answered by one lane.

    `seconds` is the decoding time, prefill included; `misses` is None where they were not recorded; `experts` is by
    routing site, empty where nothing routes; `trace` is the file of the trace, relative to the folder of the
    evaluation, or None where the lane has none.
    """

    question_id: QuestionId
    category: str
    lane: str
    token_ids: tuple[int, ...]
    seconds: float
    counts: PassCounts
    exactness: Exactness | None = None
    misses: tuple[MissRecord, ...] | None = None
    experts: dict[str, ExpertUsage] = {}
    trace: str | None = None


class RecordFile:
    """The records of an evaluation's folder: those of earlier runs are read, new ones are appended at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / RECORDS
        self._by_key = {(record.question_id, record.lane): record for record in _read(self._path)}

    def find(self, question_id: QuestionId, lane: str) -> LaneRecord | None:
        """Return the record of a question and lane, if there is one."""
        return self._by_key.get((question_id, lane))

    def keep_trace(self, question_id: QuestionId, lane: str, run: RunTrace) -> str:
        """Save a trace and return its path relative to the folder."""
        path = Path(TRACES) / _file_name(lane) / f"{_file_name(str(question_id))}.json.gz"
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        save_trace(run, self.folder / path)
        return path.as_posix()

    def add(self, record: LaneRecord) -> None:
        """Append a record; it is in the file when this returns."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(record.model_dump_json() + "\n")
        self._by_key[record.question_id, record.lane] = record


def _read(path: Path) -> list[LaneRecord]:
    """Return the whole lines of a file; a line that an interruption left half is dropped."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    try:
        return [LaneRecord.model_validate_json(line) for line in whole.split("\n") if line]
    except ValidationError:
        raise SpecVizError(f"{path} does not hold records of this version: choose another --out folder.") from None


def _file_name(text: str) -> str:
    """Return a name without separators or spaces."""
    return re.sub(r"[^\w.=+-]+", "_", text).lstrip(".") or "_"
