"""Analyses of whole runs, on runs written by hand."""

import pytest
from traces import make_node, make_run, make_step, make_token

from specviz.analysis.compare import compare_runs, count_equal
from specviz.analysis.contemplate import count_named, list_thoughts
from specviz.analysis.divergence import diverge_by_depth
from specviz.analysis.hindsight import look_back
from specviz.analysis.losslessness import judge_losslessness
from specviz.analysis.race import make_race
from specviz.analysis.shadow import compare_shadow, total_shadow
from specviz.analysis.waterfall import make_waterfall, share_times
from specviz.trace import (
    BaselineTrace,
    CandidateTrace,
    DivergenceTrace,
    LateVerdict,
    ModelInfo,
    NextTrace,
    StepTimes,
    TopToken,
)


def tokens(*pairs, step=1):
    return [make_token(f" {token_id}", source, token_id, step=step) for token_id, source in pairs]


def prefill(token_id=1):
    return make_step(tokens((token_id, "target"), step=0), index=0, prefix_len=1)


def baseline(ids, **fields):
    values = {"token_ids": ids, "pieces": [f" {i}" for i in ids], "text": "", "seconds": 0.1 * len(ids)}
    return BaselineTrace(**({**values, "times_ms": [100.0] * len(ids), "equal": True, "n_equal": len(ids)} | fields))


def two_steps():
    """Step 1: the draft's favourite is accepted. Step 2: its second choice is, behind it an unsent one was right."""
    first = make_step(
        tokens((11, "draft"), (12, "correction")),
        [
            make_node(0, -1, 0, "root"),
            make_node(1, 0, 1, "accepted", 11, draft_prob=0.6, score=-0.5),
            make_node(2, 0, 1, "rejected", 91, draft_prob=0.3, score=-1.2),
            make_node(3, 1, 2, "rejected", 92, draft_prob=0.9, score=-0.6),
        ],
        prefix_len=2,
        candidates=[],
    )
    second = make_step(
        tokens((21, "draft"), (22, "bonus"), step=2),
        [
            make_node(0, -1, 0, "root"),
            make_node(1, 0, 1, "rejected", 93, draft_prob=0.6, score=-0.5),
            make_node(2, 0, 1, "accepted", 21, draft_prob=0.3, score=-1.2),
            make_node(3, 1, 2, "unreached", 94, draft_prob=0.9, score=-0.6),
        ],
        index=2,
        prefix_len=4,
        candidates=[CandidateTrace(parent=2, depth=2, token_id=22, piece="", draft_prob=0.2, score=-2.8)],
    )
    return [first, second]


def test_two_lanes_run_on_one_clock():
    run = make_run([prefill(), *two_steps()], baseline=baseline([1, 11, 12, 21, 22]))
    race = make_race(run)
    assert [(arrival.ms, arrival.n_tokens) for arrival in race.own.arrivals] == [
        (23, 1), (46, 2), (46, 3), (69, 4), (69, 5)
    ]  # fmt: skip
    assert race.plain.seconds == pytest.approx(0.5) and race.own.seconds == pytest.approx(0.069)
    assert race.speedup == pytest.approx(0.5 / 0.069)
    assert make_race(make_run([prefill()])) is None


def test_a_waterfall_keeps_recording_apart():
    step = make_step(times_ms=StepTimes(draft=2, verify=20, commit=1, record=5))
    fall = make_waterfall(step)
    assert [(span.phase, span.start, span.ms) for span in fall.spans] == [
        ("draft", 0, 2), ("verify", 2, 20), ("commit", 22, 1)
    ]  # fmt: skip
    assert (fall.ms, fall.record_ms) == (23, 5)
    shares = share_times([step, step])
    assert shares.by_phase == {"draft": 4, "verify": 40, "commit": 2} and shares.record_ms == 10


def top(*ids):
    return [TopToken(token_id=i, piece=str(i), prob=0.5 / (place + 1)) for place, i in enumerate(ids)]


def test_divergence_is_averaged_by_depth():
    def judged(idx, depth, kl, draft, target):
        after = NextTrace(draft_top5=top(draft), target_top5=top(target), kl=kl, outside_mass=0.1)
        return make_node(idx, idx - 1, depth, "accepted" if idx else "root", next=after)

    steps = [
        make_step(nodes=[judged(0, 0, 0.2, 1, 1), judged(1, 1, 1.0, 1, 2)]),
        make_step(nodes=[judged(0, 0, 0.4, 1, 2), make_node(1, 0, 1, "rejected")]),
    ]
    root, first = diverge_by_depth(steps)
    assert (root.depth, root.n_nodes, root.kl, root.agree) == (0, 2, pytest.approx(0.3), 0.5)
    assert (first.depth, first.n_nodes, first.kl, first.agree, first.outside) == (1, 1, 1.0, 0.0, 0.1)


def test_steps_behind_the_same_text_are_compared():
    left = make_run([prefill(), *two_steps()])
    slow = [
        make_step(tokens((11, "correction")), index=1, prefix_len=2),
        make_step(tokens((12, "correction"), step=2), index=2, prefix_len=3),
        make_step(tokens((21, "draft"), (99, "bonus"), step=3), index=3, prefix_len=4),
    ]
    right = make_run([prefill(), *slow])
    found = compare_runs(left, right)
    assert found.same_prompt and found.n_equal == 4
    assert [(pair.n_text, pair.left.index, pair.right.index) for pair in found.pairs] == [(2, 1, 1), (4, 2, 3)]
    assert found.first_parting_step.n_text == 2
    parting = found.parting
    assert (parting.index, parting.left_step, parting.right_step) == (4, 2, 3)
    assert (parting.left_piece, parting.right_piece) == (" 22", " 99")
    assert compare_runs(left, left).parting is None


def test_runs_of_other_prompts_are_not_compared():
    other = make_run([prefill()], prompt=[make_token("bye", "prompt", 2)])
    found = compare_runs(make_run([prefill()]), other)
    assert not found.same_prompt and found.pairs == () and found.parting is None
    assert count_equal([1, 2], [1, 2, 3]) == 2


def test_the_tree_without_f_stands_beside_the_one_with_it():
    nodes = two_steps()[0].nodes
    shadow = [make_node(0, -1, 0, "root"), make_node(1, 0, 1, "rejected", 91)]
    step = two_steps()[0].model_copy(update={"shadow": shadow})
    found = compare_shadow(step)
    assert (found.with_f, found.without_f, found.is_open) == (1, 0, False)
    assert (found.n_shared, found.n_nodes) == (1, len(nodes) - 1)
    totals = total_shadow([step, two_steps()[1]])
    assert (totals.n_steps, totals.n_better, totals.n_worse) == (1, 1, 0)
    assert total_shadow(two_steps()) is None


def test_thoughts_stand_beside_what_followed():
    steps = two_steps()
    steps[0].nodes[0].contemplate_top5 = top(12, 5)
    steps[0].nodes[1].contemplate_top5 = top(7, 21)
    steps[0].nodes[2].contemplate_top5 = top(1)  # never reached
    root, accepted = list_thoughts(make_run([prefill(), *steps]))
    assert [token.token_id for token in root.following] == [11, 12, 21, 22]
    assert root.named == (None, 0, None, None)
    assert [token.token_id for token in accepted.following] == [12, 21, 22] and accepted.named == (None, 1, None)
    assert count_named([root, accepted])[:4] == [(0, 2), (2, 2), (0, 2), (0, 1)]


def test_places_that_never_paid_and_the_best_tree():
    found = look_back(make_run([prefill(), *two_steps()]))
    assert (found.n_passes, found.n_sent, found.n_accepted) == (2, 6, 2)
    assert {count.place: (count.n_sent, count.n_accepted) for count in found.counts} == {
        (0,): (2, 1),
        (1,): (2, 1),
        (0, 0): (2, 0),
    }
    assert [count.place for count in found.never_paid] == [(0, 0)]
    assert found.best == ((0,), (1,), (1, 0))
    assert (found.tokens_per_pass, found.best_tokens_per_pass) == (2.0, 2.5)
    assert look_back(make_run([prefill()])) is None


@pytest.mark.parametrize(
    ("dtype", "gap", "verdict"),
    [("float32", 0.1, "different"), ("bfloat16", 0.1, "near tie"), ("bfloat16", 0.9, "different")],
)
def test_a_difference_is_a_near_tie_only_where_kernels_round(dtype, gap, verdict):
    where = DivergenceTrace(index=1, token_id=11, piece="a", expected_id=12, expected_piece="b", gap=gap)
    model = ModelInfo(name="m", source="s", dtype=dtype, device="cpu")
    run = make_run([prefill()], model=model, baseline=baseline([1], equal=False, n_equal=1, divergence=where))
    found = judge_losslessness(run)
    assert (found.verdict, found.n_equal, found.divergence) == (verdict, 1, where)


def test_equal_and_unmeasured_runs():
    assert judge_losslessness(make_run([prefill()], baseline=baseline([1]))).verdict == "equal"
    assert judge_losslessness(make_run([prefill()])).verdict == "not measured"


def test_where_the_self_consistent_selection_left_the_target():
    nodes = [
        make_node(0, -1, 0, "root"),
        make_node(1, 0, 1, "unverified", 11),
        make_node(2, 1, 2, "unverified", 12),
        make_node(3, 2, 3, "cut", 13),
    ]
    taken = tokens((10, "correction"), (11, "unverified"), (12, "unverified"))

    def late(node, rank):
        return LateVerdict(
            step=1, node=node, target_prob=0.2, target_rank=rank, target_argmax=7, argmax_piece=" x", gap=1.5
        )

    steps = [
        make_step(taken, nodes, []),
        make_step(tokens((20, "correction"), step=2), index=2, late=[late(1, 0), late(2, 3)]),
    ]
    found = judge_losslessness(make_run(steps, exact=False))
    assert (found.verdict, found.n_unverified) == ("left the target", 2)
    (departure,) = found.departures
    assert (departure.step, departure.node, departure.prob, departure.gap) == (1, 2, 0.2, 1.5)
    steps[1].late.pop()
    assert judge_losslessness(make_run(steps, exact=False)).verdict == "kept to the target"
