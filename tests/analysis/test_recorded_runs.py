"""The analyses on every recorded run: unchanged settings give what happened, and every answer is plain JSON."""

import json
from pathlib import Path

import pytest

from specviz.analysis.what_if import change_step, describe_change
from specviz.trace import BatchTrace, RunTrace, load_trace
from specviz.ui.analyses import ANALYSES

TRACES = sorted((Path(__file__).resolve().parents[2] / "assets" / "traces").glob("*.json*"))


def runs_of(path: Path) -> list[RunTrace]:
    trace = load_trace(path)
    return trace.batch if isinstance(trace, BatchTrace) else [trace]


class AskedOf:
    """Stands in for a question about one run."""

    def __init__(self, run: RunTrace, **values) -> None:
        self._run, self.values = run, values

    def run(self, handle: str = "run", row: str = "row") -> RunTrace:
        return self._run

    def runs(self, handle: str = "run") -> list[RunTrace]:
        return [self._run]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_unchanged_settings_give_what_happened(path):
    for run in runs_of(path):
        for place, step in enumerate(run.steps):
            if step.index == 0 or len(step.nodes) == 1:
                continue
            following = [token for later in run.steps[place + 1 :] for token in later.committed]
            outcome = change_step(step, describe_change(step, run.settings), run.settings, following)
            assert not outcome.unknown, (run.run_id, step.index, outcome.unknown)
            assert outcome.n_tokens == len(step.committed)
            if run.exact:
                assert [token.node for token in outcome.accepted] == step.accepted
                assert {token.node for token in outcome.tree} == {node.idx for node in step.nodes}


@pytest.mark.parametrize("kind", ANALYSES)
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_every_answer_is_plain(path, kind):
    for run in runs_of(path):
        question = AskedOf(run, step=len(run.steps) - 1, change={"nodes": 2}, mask_row=0)
        json.dumps(ANALYSES[kind](question), allow_nan=False)
