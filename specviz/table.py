"""The steps of a run as a table, for a spreadsheet or a data frame."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from specviz.trace import RunTrace, StepTrace

COUNTED = ("accepted", "rejected", "unreached", "cut", "unverified")


def steps_csv(run: RunTrace) -> str:
    """Return one line a step, step 0 the prefill; model text is quoted as JSON, so that no program takes it for more.

    Times are milliseconds, measured; `divergence` is the KL (nats) of draft and target at the root, where recorded.
    """
    file = io.StringIO()
    lines = [_describe_step(step) for step in run.steps]
    writer = csv.DictWriter(file, list(lines[0]) if lines else ["step"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return file.getvalue()


def _describe_step(step: StepTrace) -> dict[str, Any]:
    drafted = [node for node in step.nodes if node.status != "root"]
    after_root = step.nodes[0].next if step.nodes else None
    return {
        "step": step.index,
        "prefix_len": step.prefix_len,
        "drafted": len(drafted),
        **{name: sum(node.status == name for node in drafted) for name in COUNTED},
        "depth": max((node.depth for node in drafted), default=0),
        "committed": len(step.committed),
        "sources": " ".join(token.source for token in step.committed),
        "token_ids": " ".join(str(token.token_id) for token in step.committed),
        "text": json.dumps("".join(token.piece for token in step.committed), ensure_ascii=False),
        "rows": step.n_rows,
        "kv_prefix": step.kv.prefix,
        "kv_speculative": step.kv.speculative,
        "kv_kept": step.kv.kept,
        "draft_ms": step.times_ms.draft,
        "verify_ms": step.times_ms.verify,
        "commit_ms": step.times_ms.commit,
        "record_ms": step.times_ms.record,
        "divergence": "" if after_root is None or after_root.kl is None else after_root.kl,
    }
