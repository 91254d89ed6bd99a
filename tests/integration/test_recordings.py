"""The recorded runs of the page: real, whole, small, and what their prompts give when they are decoded again."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from specviz.evaluation.recordings import FOLDER, MAX_BYTES, RECORDINGS, pack_trace
from specviz.mask_trace import expand_rule
from specviz.metrics import compute_metrics
from specviz.settings import make_settings
from specviz.trace import BatchTrace, NextTrace, RunTrace, from_json
from specviz.ui.trace_file import list_recordings, title_recording

NEAR_TIE = 0.25  # gap of the two best logits up to which another machine, or another dtype, may choose otherwise
N_COMPARED = 48  # tokens decoded again: enough to see, few enough to wait for

PATHS = list_recordings(FOLDER)
NAMES = {recording.name: recording for recording in RECORDINGS}


def read_runs(path: Path) -> list[RunTrace]:
    trace = from_json(gzip.decompress(path.read_bytes()))
    return trace.batch if isinstance(trace, BatchTrace) else [trace]


def test_there_are_recordings_and_each_is_in_the_list():
    assert {name.partition("-")[2] for name in PATHS} == set(NAMES) and len(NAMES) >= 8
    assert all(title_recording(name) for name in PATHS)


@pytest.mark.parametrize("name", PATHS)
def test_a_recording_is_whole_and_small(name):
    assert PATHS[name].stat().st_size <= MAX_BYTES
    recording = NAMES[name.partition("-")[2]]
    for run in read_runs(PATHS[name]):
        assert (
            run.model.name == "SmolLM2-135M-Instruct" and run.model.dtype == recording.dtype and run.versions["torch"]
        )
        assert "".join(token.piece for token in run.answer) == run.text and run.metrics == compute_metrics(run)
        assert run.drafter is None or run.drafter.source != "random"
        assert run.baseline is None or run.baseline.equal != recording.is_lossy
        assert run.exact or (run.divergence is not None and run.divergence.prob is not None)


@pytest.mark.parametrize("name", PATHS)
def test_every_recorded_mask_is_its_rule(name):
    """Guards: a rule that does not know what ran; the page would call right cells a leak."""
    for run in read_runs(PATHS[name]):
        for step in run.steps:
            assert step.mask.rule is not None
            expected = expand_rule(step.mask.rule, step.mask.first_column)
            assert step.mask.matrix() == expected.matrix()
            assert step.mask.bits is None or step.mask.earlier_visible == expected.earlier_visible


def test_packing_keeps_what_was_decided():
    (run,) = read_runs(PATHS[next(name for name in PATHS if name.endswith("-lookahead-chain"))])
    run.steps[1].times_ms.draft = 1.0 / 3
    again = from_json(gzip.decompress(pack_trace(run)))
    assert again.steps[1].times_ms.draft == 0.3333333 and again.text == run.text
    assert [step.accepted for step in again.steps] == [step.accepted for step in run.steps]


@pytest.fixture(scope="module")
def engine():
    from specviz.decoding.engine import Engine

    return Engine(["bundled"], dtype="float32", device="cpu")


@pytest.mark.bundled
@pytest.mark.parametrize("name", PATHS)
def test_its_prompts_give_the_same_tokens_again(name, engine):
    recording, recorded = NAMES[name.partition("-")[2]], read_runs(PATHS[name])
    budget = min(N_COMPARED, recording.max_new_tokens)
    settings = recording.settings | {"record": "light", "attention_row": None}  # what is recorded changes no token
    trace = engine.run(list(recording.prompts), make_settings(**settings, max_new_tokens=budget))
    runs = trace.batch if isinstance(trace, BatchTrace) else [trace]
    for run, old in zip(runs, recorded, strict=True):
        assert [token.token_id for token in run.prompt] == [token.token_id for token in old.prompt]
        new_ids, old_ids = ([token.token_id for token in each.answer[:budget]] for each in (run, old))
        n_equal = next((i for i, pair in enumerate(zip(new_ids, old_ids, strict=False)) if pair[0] != pair[1]), budget)
        assert n_equal >= min(budget, len(old_ids)) or is_near_tie(old, n_equal)


def is_near_tie(run: RunTrace, index: int) -> bool:
    """Whether the recorded top five say that two tokens were about equally probable at this place of the answer."""
    n_before = 0
    for step in run.steps:
        for place, _ in enumerate(step.committed):
            if n_before + place == index:
                reached = [0, *step.accepted][place] if place <= len(step.accepted) else 0
                known = step.nodes[reached].next
                return known is not None and _gap(known) <= NEAR_TIE + 1e-4
        n_before += len(step.committed)
    return False


def _gap(known: NextTrace) -> float:
    best, second = known.target_top5[:2]
    return math.log(best.prob / second.prob) if second.prob else math.inf
