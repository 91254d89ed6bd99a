"""What is trained is what drafts: unrolled rows, future tokens and slots equal those of a real round."""

import torch

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.drafters.confu import run_soft_prompt
from specviz.drafters.draft_round import Levels, SlicedWindow
from specviz.drafters.draft_tree import Frontier
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.drafters.eagle3_head import CacheView
from specviz.training.anchors import AnchorConfig, sample_anchors
from specviz.training.seeds import derive_draws
from specviz.training.unroll import pack, unroll
from tests.heads import SHAPE, random_head
from tests.kit import tiny_target
from tests.training import UNROLLED, confu_trainee, eagle3_trainee, slot_trainee, stores

TOLERANCE = {"rtol": 0, "atol": 2e-5}


def drafted(drafter, answer, row: int, gate=None, future=None) -> list[torch.Tensor]:
    """Run the drafter's own code over the text up to `row`, then levels of the answer's own tokens."""
    from specviz.drafters.eagle3 import HeadRun

    ids = answer.ids.tolist()
    run, head = HeadRun(drafter, ids), drafter.head
    run._news = answer.features[: row + 1]
    run.absorb(len(UNROLLED_STEPS))
    if future is not None:
        run.write_future(*future)
    inputs, state = run._last
    angles = head.rotary.at(run.cache.length - 1, 1, state)
    fed, normed = head.read(inputs, state, angles, run.cache, CacheView(run.cache.end, gate=gate))
    outputs, levels = [head.log_probs(normed)[0]], Levels(drafter, SlicedWindow(head, run.cache), fed, gate)
    for step in UNROLLED_STEPS[1:]:
        token = torch.tensor([ids[row + 1 + step]])
        outputs.append(levels.expand(Frontier(step, token, torch.zeros(1, dtype=torch.long)))[0])
    return outputs


UNROLLED_STEPS = range(UNROLLED.n_steps)


def test_unrolled_rows_are_those_that_the_head_drafts_with(tmp_path):
    target = tiny_target()
    loaded = random_head(target)
    trainee = eagle3_trainee(target, tmp_path, loaded)
    answers = stores(target, tmp_path)[0].take([4, 7])
    batch = pack(answers, UNROLLED.n_steps)
    head = trainee.head_of(trainee.module)
    states = list(unroll(head, batch, trainee.fused(head, batch.features), trainee.embed))
    drafter = Eagle3Drafter(target, loaded, SHAPE)
    for answer, span in zip(answers, batch.spans, strict=True):
        for row in (0, 3):
            expected = drafted(drafter, answer, span.first + row)
            for step in UNROLLED_STEPS:
                own = loaded.head.log_probs(states[step][span.rows.start + row])
                torch.testing.assert_close(own, expected[step], **TOLERANCE)


def contemplated(target, parts, ids, anchor: int, con: torch.Tensor, layers) -> torch.Tensor:
    """Run a real decoding pass: the text in the cache, the anchor as root, one contemplate row behind it."""
    cache = target.new_cache(1, 64, run_soft_prompt(target, parts.soft_prompt))
    masks = MaskBuilder()
    before = RowLayout((-1,), n_pending=anchor)
    embeds = target.embed(ids[:anchor].tolist())[None]
    positions = torch.arange(anchor)[None]
    target.forward(embeds, positions, masks.build([before], cache, target.device), cache)
    cache.keep([range(anchor)])
    layout = RowLayout((-1,), k=1, kind="contemplate")
    rows = torch.cat([target.embed([ids[anchor].item()]), con[None]])[None]
    positions = torch.tensor([layout.positions(anchor)])
    return target.forward(rows, positions, masks.build([layout], cache, target.device), cache, layers).features[0, 1]


def test_a_future_token_is_the_one_of_a_real_round(tmp_path):
    target = tiny_target()
    trainee = confu_trainee(target, tmp_path, gate=0.5)
    loaded = random_head(target)
    parts = trainee.folded_parts(trainee.module)
    answers = stores(target, tmp_path)[0].take([4, 7])
    batch = pack(answers, UNROLLED.n_steps)
    plan = sample_anchors(batch.spans, AnchorConfig(1, 1), derive_draws(range(2)))
    routed_by = torch.where(plan.rows == 0, -1, plan.rows - 1)
    future = trainee.future(trainee.module, answers, batch, plan, routed_by)
    states = list(trainee.outputs_with(trainee.module, batch, future))
    from specviz.drafters.confu import ConfuDrafter, ConfuSwitches

    drafter = ConfuDrafter(target, loaded, parts, SHAPE, ConfuSwitches())
    for answer, span in zip(answers, batch.spans, strict=True):
        for row in (0, 1, 4):
            place = span.first + row
            routing = parts.con_experts.uniform() if row == 0 else parts.con_experts.route(answer.features[place - 1])
            con = parts.con_experts.mix(routing)
            features = contemplated(target, parts, answer.ids, place, con, loaded.head.config.feature_layers)
            last = loaded.head.fuse(answer.features[place])
            embed = parts.f_experts.mix(parts.f_experts.route(last))
            pair = embed[None], loaded.head.fuse(features)[None]
            expected = drafted(drafter, answer, place, parts.f_gate, pair)
            for step in UNROLLED_STEPS:
                own = loaded.head.log_probs(states[step][span.rows.start + row])
                torch.testing.assert_close(own, expected[step], **TOLERANCE)


def test_with_a_closed_gate_confu_is_its_parent(tmp_path):
    """At step 0 the logits are the EAGLE-3 parent's; the f that would be taken in changes nothing."""
    target = tiny_target()
    trainee, parent = confu_trainee(target, tmp_path, gate=0.0), eagle3_trainee(target, tmp_path, random_head(target))
    answers = stores(target, tmp_path)[0].take([0, 1, 2])
    batch = pack(answers, UNROLLED.n_steps)
    head = parent.head_of(parent.module)
    expected = unroll(head, batch, parent.fused(head, batch.features), parent.embed)
    for own, other in zip(trainee.score_batch(trainee.module, answers, batch), expected, strict=True):
        torch.testing.assert_close(head.lm_head(own), head.lm_head(other), rtol=0, atol=1e-5)


def test_slots_are_those_of_a_real_pass(tmp_path):
    target = tiny_target()
    trainee = slot_trainee(target, tmp_path, n_prefix=2)
    answer = stores(target, tmp_path)[0].take([3])[0]
    batch = pack([answer], 3)
    with torch.no_grad():
        states, rows = trainee.run(trainee.module, [answer], batch, 1, derive_draws(range(1)))
    table = trainee.module.table(target.dtype)
    anchor = batch.spans[0].first + int(rows[4])
    cache, masks = target.new_cache(1, 64, table.prefix), MaskBuilder()
    layout = RowLayout((-1,), n_pending=anchor + 1, k=3)
    embeds = torch.cat([target.embed(answer.ids[: anchor + 1].tolist()), table.slots])[None]
    hidden = target.forward(
        embeds, torch.tensor([layout.positions(0)]), masks.build([layout], cache, target.device), cache
    )
    torch.testing.assert_close(states[4], hidden.last[0, anchor + 1 :], **TOLERANCE)


def test_text_by_text_added_rows_give_the_states_and_gradients_of_one_block(tmp_path, monkeypatch):
    target = tiny_target()
    found = []
    for together in (False, True):
        trainee = slot_trainee(target, tmp_path, n_prefix=2)
        taken = stores(target, tmp_path)[0].take([0, 1, 2])
        if together:
            monkeypatch.setattr("specviz.training.added_rows.text_blocks", lambda *args: ())
        states, _ = trainee.run(trainee.module, taken, pack(taken, 3), 2, derive_draws(range(3)))
        (states * torch.linspace(-1, 1, states.numel()).view_as(states)).sum().backward()  # a norm alone is constant
        found.append([states.detach(), *(parameter.grad for parameter in trainee.module.parameters())])
    for own, other in zip(*found, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4)
