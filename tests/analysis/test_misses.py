"""Reasons of misses, counted."""

from traces import make_node, make_run, make_step, make_token

from specviz.analysis.misses import count_misses, find_miss, pool_misses
from specviz.trace import MissTrace


def miss_step(reason: str, source: str = "correction", rank: int | None = None, index: int = 1):
    miss = MissTrace(token_id=9, reason=reason, draft_rank=rank)
    return make_step([make_token(" sky", source)], [make_node(0, -1, 0, "root", miss=miss)], index=index)


def test_reasons_are_counted_over_a_run():
    run = make_run(
        [
            make_step([make_token("!", "target")], index=0),
            miss_step("below_top_k", rank=12),
            miss_step("below_top_k", rank=30, index=2),
            miss_step("depth_limit", source="bonus", index=3),
            make_step([make_token("7", "correction")], index=4),
            make_step(
                [make_token("x", "draft")], [make_node(0, -1, 0, "root"), make_node(1, 0, 1, "accepted")], index=5
            ),
        ]
    )
    counts = count_misses(run)
    assert (counts.n_passes, counts.n_unrecorded, counts.ranks) == (4, 1, (12, 30))
    assert counts.by_reason == {"out_of_draft_vocab": 0, "below_top_k": 2, "pruned": 0, "depth_limit": 1}
    assert counts.by_kind == {"word": counts.by_reason}
    assert pool_misses([run, run]).by_reason["below_top_k"] == 4


def test_the_miss_stands_at_the_last_accepted_node():
    miss = MissTrace(token_id=9, reason="pruned")
    nodes = [make_node(0, -1, 0, "root"), make_node(1, 0, 1, "accepted", miss=miss)]
    assert find_miss(make_step(nodes=nodes)) == miss
    assert find_miss(make_step()) is None
