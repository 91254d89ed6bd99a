"""The data model: what happened in a run, as plain values.

Everything right of the decoding loop (metrics, figures, page, exports) knows only this file, so a
saved trace replays without a model. `from_json(to_json(x)) == x`; unknown fields of a newer minor
version are kept, a newer major version is refused. Masks and their rules live in `mask_trace.py`.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from specviz.errors import SpecVizError
from specviz.mask_trace import MaskColumn, MaskRow, MaskRule, MaskTrace, expand_rule

__all__ = [
    "N_CANDIDATES",
    "SCHEMA_VERSION",
    "BaselineTrace",
    "BatchTrace",
    "CandidateTrace",
    "DivergenceTrace",
    "DrafterInfo",
    "KvTrace",
    "LateVerdict",
    "MaskColumn",
    "MaskRow",
    "MaskRule",
    "MaskTrace",
    "MissTrace",
    "ModelInfo",
    "NextTrace",
    "NodeTrace",
    "RoutingTrace",
    "RunTrace",
    "StepTimes",
    "StepTrace",
    "TokenTrace",
    "TopToken",
    "expand_rule",
    "from_json",
    "load_trace",
    "save_trace",
    "to_json",
]

SCHEMA_VERSION = 1
GZIP_MAGIC = b"\x1f\x8b"
N_CANDIDATES = 64  # of the unsent drafts, a record lists the best

Status = Literal["root", "accepted", "rejected", "unreached", "cut", "unverified"]
Source = Literal["prompt", "target", "draft", "correction", "bonus", "unverified"]
FinishReason = Literal["eos", "length", "stop_text", "stopped", "context_full", "error"]
MissReason = Literal["out_of_draft_vocab", "below_top_k", "pruned", "depth_limit"]


class _Record(BaseModel):
    """Base of every trace object: unknown fields are kept, NaN and infinity are refused."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class TokenTrace(_Record):
    """One token of the prompt or of the answer.

    `piece` is display text: the pieces of the answer joined are exactly its decoded text. `bytes`
    is hex and set where the piece alone is not valid UTF-8 (a part of a character). `step` and
    `node` say where the token came from; both are None for the prompt.
    """

    token_id: int
    piece: str
    bytes: str | None = None
    source: Source
    step: int | None = None
    node: int | None = None


class TopToken(_Record):
    """One entry of a top-five list."""

    token_id: int
    piece: str
    prob: float


class NextTrace(_Record):
    """What draft and target say comes after a reached node.

    `kl` is KL(target || draft) in nats, renormalised over the draft vocabulary; `outside_mass` is
    the target's probability outside that vocabulary. Both are None where the drafter gave no
    distribution at this node.
    """

    draft_top5: list[TopToken] | None = None
    target_top5: list[TopToken]
    kl: float | None = None
    outside_mass: float | None = None


class MissTrace(_Record):
    """Why the target's token was not among a reached node's children."""

    token_id: int
    reason: MissReason
    draft_rank: int | None = None
    draft_prob: float | None = None


class NodeTrace(_Record):
    """One node of the draft tree; node 0 is the root, the last committed token.

    `target_prob`, `target_rank` (0 is the best) and `target_argmax` belong to the target's
    distribution at the node's *parent*: the probability is taken after temperature and top-p when
    sampling, and at temperature 1 when greedy. All three are None for the root and, in the
    self-consistent selection, until the next pass has run the token.
    """

    idx: int
    parent: int
    depth: int
    token_id: int
    piece: str
    bytes: str | None = None
    draft_prob: float | None = None
    target_prob: float | None = None
    target_rank: int | None = None
    target_argmax: int | None = None
    score: float | None = None
    status: Status
    next: NextTrace | None = None
    miss: MissTrace | None = None
    contemplate_top5: list[TopToken] | None = None


class CandidateTrace(_Record):
    """A drafted node that was not sent to verification; best scores come first.

    `parent` is a node index of the same tree, or -1 where the parent itself was not sent: then `behind` is
    the parent's index among the step's candidates.
    """

    parent: int
    behind: int | None = None
    depth: int
    token_id: int
    piece: str
    draft_prob: float | None = None
    score: float | None = None


class RoutingTrace(_Record):
    """One routing decision of a mixture of experts.

    `probabilities` is the softmax over all experts; `selected` and `weights` are what was used.
    """

    site: str
    node: int | None = None
    probabilities: list[float]
    selected: list[int]
    weights: list[float]


class KvTrace(_Record):
    """Cache rows of a step: `prefix` before the pass, `speculative` written by it, `kept` of those.

    `added` counts the slots and contemplate tokens among the written rows: they are always dropped.
    """

    prefix: int
    speculative: int
    kept: int
    added: int = 0


class StepTimes(_Record):
    """Milliseconds of one step, measured."""

    draft: float
    verify: float
    commit: float
    record: float


class LateVerdict(_Record):
    """What the target says of an `unverified` token one pass later (self-consistent selection).

    `step` and `node` name the token; `argmax_piece` is the target's own choice as text and `gap`
    the difference of its two best logits there.
    """

    step: int
    node: int
    target_prob: float
    target_rank: int
    target_argmax: int
    argmax_piece: str
    gap: float


class StepTrace(_Record):
    """One pass of the target. Step 0 is the prefill.

    `prefix_len` counts the tokens that were committed before this step, prompt and root included, so
    the root sits at position `prefix_len - 1` and a node of depth d at `prefix_len - 1 + d`.
    """

    index: int
    prefix_len: int
    nodes: list[NodeTrace]
    accepted: list[int]
    committed: list[TokenTrace]
    mask: MaskTrace
    routing: list[RoutingTrace] = Field(default_factory=list)
    n_rows: int
    kv: KvTrace
    times_ms: StepTimes
    candidates: list[CandidateTrace] | None = None
    late: list[LateVerdict] = Field(default_factory=list)
    shadow: list[NodeTrace] | None = None
    attention: dict[str, Any] | None = None


class ModelInfo(_Record):
    """The target that was decoded."""

    name: str
    source: str
    revision: str | None = None
    dtype: str
    device: str


class DrafterInfo(_Record):
    """The drafter that proposed. `trained` is False for random weights."""

    name: str
    source: str
    trained: bool
    notes: list[str] = Field(default_factory=list)


class DivergenceTrace(_Record):
    """The first place where two decodings of one prompt part.

    `index` counts answer tokens from 0; `gap` is the difference of the target's two best logits
    there (teacher-forced); `prob` is the target's probability of the token that was taken.
    """

    index: int
    step: int | None = None
    token_id: int | None
    piece: str
    expected_id: int | None
    expected_piece: str
    gap: float | None = None
    prob: float | None = None


class BaselineTrace(_Record):
    """The plain lane on the same prompt, decoded in the same process."""

    token_ids: list[int]
    pieces: list[str]
    text: str
    seconds: float
    times_ms: list[float]
    equal: bool
    n_equal: int
    divergence: DivergenceTrace | None = None


class RunTrace(_Record):
    """One prompt, decoded."""

    schema_version: int | str = SCHEMA_VERSION
    run_id: str
    created: str
    method: Literal["plain", "lookahead", "eagle3", "confu"]
    exact: bool
    settings: dict[str, Any]
    model: ModelInfo
    drafter: DrafterInfo | None = None
    versions: dict[str, str]
    prompt: list[TokenTrace]
    steps: list[StepTrace]
    text: str
    text_cut: int = 0
    finish_reason: FinishReason
    notices: list[str] = Field(default_factory=list)
    metrics: dict[str, Any] = Field(default_factory=dict)
    baseline: BaselineTrace | None = None
    divergence: DivergenceTrace | None = None
    row: int = 0
    padding: int = 0

    @property
    def answer(self) -> list[TokenTrace]:
        """The committed tokens in order."""
        return [token for step in self.steps for token in step.committed]


class BatchTrace(_Record):
    """Several prompts decoded together."""

    schema_version: int | str = SCHEMA_VERSION
    batch: list[RunTrace]


def to_json(trace: RunTrace | BatchTrace) -> str:
    """Serialise a trace; fields that are None are written as null."""
    return trace.model_dump_json()


def from_json(text: str | bytes) -> RunTrace | BatchTrace:
    """Read a trace; raise SpecVizError with a sentence where `text` is not one."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise SpecVizError("This file is not a SpecViz trace: it is not JSON.") from None
    if not isinstance(values, dict) or "schema_version" not in values:
        raise SpecVizError("This file is not a SpecViz trace: it has no schema_version.")
    _check_version(values["schema_version"])
    try:
        kind = BatchTrace if "batch" in values else RunTrace
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top level"
        raise SpecVizError(f"This trace is damaged at {where}: {first['msg']}.") from None


def check_trace_path(path: str | Path) -> None:
    """Raise SpecVizError where no trace can be written to `path`: asked before a run, so that none is lost."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise SpecVizError(f"The trace could not be written to {path}: there is no folder {folder}.")
    if Path(path).is_dir():
        raise SpecVizError(f"The trace could not be written to {path}: it is a folder.")
    if not os.access(path if Path(path).exists() else folder, os.W_OK):
        raise SpecVizError(f"The trace could not be written to {path}: it is not allowed.")


def save_trace(trace: RunTrace | BatchTrace, path: str | Path) -> None:
    """Write a trace to `path` as JSON, gzipped where it ends in `.gz`; raise SpecVizError where that fails."""
    raw = to_json(trace).encode("utf-8")
    try:
        Path(path).write_bytes(gzip.compress(raw, mtime=0) if str(path).endswith(".gz") else raw)
    except OSError as error:
        raise SpecVizError(f"The trace could not be written to {path}: {error.strerror}.") from None


def load_trace(path: str | Path) -> RunTrace | BatchTrace:
    """Read a trace from `path`, gzipped or not; raise SpecVizError with a sentence where that is not possible."""
    try:
        raw = Path(path).read_bytes()
        return from_json(gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise SpecVizError(f"The trace {path} could not be read: {reason}.") from None


def _check_version(version: Any) -> None:
    major = str(version).split(".")[0]
    if not major.isdigit():
        raise SpecVizError(f"This file is not a SpecViz trace: its schema_version is {version!r}.")
    if int(major) != SCHEMA_VERSION:
        raise SpecVizError(
            f"This trace has schema version {version}, this SpecViz reads version {SCHEMA_VERSION}: update SpecViz."
        )
