"""Counts of passes, by hand: they add up, peers' chunks are cut at the end, conditions and names hold."""

import pytest

from specviz.conditions import hold_conditions
from specviz.drafters.checkpoint_files import digest_drafter
from specviz.errors import SpecVizError
from specviz.evaluation.counts import PassCounts, pool_counts
from specviz.evaluation.markdown import make_table, show_code
from specviz.evaluation.peers import count_chunks
from specviz.evaluation.records import Exactness, LaneRecord
from specviz.evaluation.summary import summarise
from specviz.evaluation.tables import show_exactness


def record(lane: str, n_tokens: int, seconds: float, counts: PassCounts, verdict: str | None = None) -> LaneRecord:
    return LaneRecord(
        question_id=1,
        category="math",
        lane=lane,
        token_ids=range(n_tokens),
        seconds=seconds,
        counts=counts,
        exactness=None if verdict is None else Exactness(verdict=verdict),
    )


def test_ratios_are_pooled_over_passes_not_over_answers():
    short = PassCounts(n_passes=1, n_committed=4, n_drafted=3, judged_at={1: 1, 2: 1}, accepted_at={1: 1})
    long = PassCounts(n_passes=9, n_committed=9, judged_at={1: 9})
    pooled = pool_counts([short, long])
    assert pooled.per_pass(pooled.n_committed) == 1.3
    assert pooled.acceptance_by_depth == {1: 0.1, 2: 0.0}


def test_a_rate_is_of_chains_only():
    chain = PassCounts(n_passes=1, n_judged=4, n_accepted=1)
    assert chain.acceptance_rate == 0.25
    assert (chain + PassCounts(n_passes=1, is_chain=False)).acceptance_rate is None
    assert PassCounts().acceptance_rate is None


def test_what_one_answer_does_not_tell_is_not_known_of_the_pool():
    assert (PassCounts(draft_ms=3.0) + PassCounts(draft_ms=None)).draft_ms is None
    assert PassCounts().per_pass(3) is None


def test_the_speed_up_is_a_ratio_of_means_over_questions():
    """Spec-Bench's way: each question weighs the same, however long its answer."""
    own = [record("a", 10, 1.0, PassCounts(), "equal"), record("a", 100, 5.0, PassCounts(), "near_tie")]
    plain = [record("plain", 10, 2.0, PassCounts()), record("plain", 100, 10.0, PassCounts())]
    summary = summarise(own, plain)
    assert summary.tokens_per_second == 15 and summary.speedup == 2
    assert show_exactness(summary) == "1 of 2 (1 near-tie)"
    assert summarise(own, []).speedup is None


@pytest.mark.parametrize(
    ("sizes", "rows", "n_tokens", "expected"),
    [
        ([1, 1, 1], [9, 1, 1], 3, (2, 2, 0, 2)),
        ([3, 4, 1], [19, 11, 11], 8, (2, 5, 3, 22)),  # the first pass counts as the prefill
        ([1, 4, 4], [9, 11, 11], 4, (1, 3, 3, 11)),  # cut inside a chunk: what is left of it are drafts
        ([1], [9], 1, (0, 0, 0, 0)),
        ([4], [9], 2, (0, 0, 0, 0)),
    ],
)
def test_a_peer_s_chunks_are_passes(sizes, rows, n_tokens, expected):
    counts = count_chunks(sizes, rows, n_tokens)
    assert (counts.n_passes, counts.n_committed, counts.n_drafted, counts.n_rows) == expected
    assert counts.draft_ms is None and counts.acceptance_rate is None


def test_a_folder_is_added_to_and_not_contradicted(tmp_path):
    hold_conditions(tmp_path / "out", {"lane a": {"k": 1}, "batch": 1})
    hold_conditions(tmp_path / "out", {"lane b": {"k": 2}, "batch": 1})
    with pytest.raises(SpecVizError, match=r"another lane a \(k 1, not 3\)"):
        hold_conditions(tmp_path / "out", {"lane a": {"k": 3}})
    (tmp_path / "out" / "conditions.json").write_text("[", encoding="utf-8")
    with pytest.raises(SpecVizError, match="damaged"):
        hold_conditions(tmp_path / "out", {})


def test_other_weights_have_another_digest(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"one")
    before = digest_drafter(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert digest_drafter(tmp_path) != before


def test_a_token_cannot_break_a_table():
    table = make_table(["token"], [[show_code("a|b`*_<i>\n")]])
    assert table.count("\n") == 2
    assert table.splitlines()[2] == "| <code>a&#124;b&#96;&#42;&#95;&lt;i&gt;\\n</code> |"
