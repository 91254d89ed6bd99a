"""ConFu's future token, from the target's contemplate row to the head's attention, against plain recomputations."""

import pytest
import torch

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.drafters.base import PassResult
from specviz.drafters.confu import ConfuSwitches
from specviz.drafters.draft_tree import TreeShape
from tests.heads import GuidedConfuDrafter, confu_drafter, random_head, random_parts
from tests.kit import OracleDrafter, Target, plain_answer, run_lane, tiny_target
from tests.plain_head import Future, PlainHead, path_to

PROMPT = list(b"the quick brown fox jumps")


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


@pytest.mark.parametrize("gate", [0.3, 1.0])
@pytest.mark.parametrize("routed", [True, False])
def test_every_node_sees_f_at_the_first_drafted_tokens_row(target: Target, gate: float, routed: bool):
    loaded = random_head(target)
    parts = random_parts(target, loaded, gate=gate)
    shape = TreeShape(nodes=14, depth=3, top_k=3)
    session = confu_drafter(target, loaded, parts, shape, routed=routed).begin(PROMPT)
    torch.manual_seed(1)
    layout = RowLayout((-1,), n_pending=len(PROMPT), k=1, kind="contemplate")
    features = torch.randn(layout.n_rows, 3 * target.hidden_size)
    session.observe(PassResult(layout, features, features, (), (7,)))
    proposal = session.propose(7, 99)

    plain = PlainHead(loaded, target)
    real, con = features[:-1], features[-1:]
    experts, state = parts.f_experts, plain.fuse(real)[-1]
    embed = experts.mix(experts.route(state)) if routed else experts.experts.mean(dim=0)
    n = len(PROMPT)
    future = Future(embed, plain.fuse(con)[0], position=n, gate=gate, first_row=n - 1)
    log_probs = proposal.evidence.log_probs
    assert len(log_probs) > 4
    for node in log_probs:
        expected = plain.path_log_probs([*PROMPT[1:], 7], real, path_to(proposal.tree, node), future)
        assert torch.allclose(log_probs[node][loaded.vocabulary.target_ids], expected, atol=1e-4), node


def features_at_contemplate_row(target: Target, drafter: GuidedConfuDrafter, ids: list[int], embed: torch.Tensor):
    """Return the target's features (1, F) at one contemplate token behind the whole of `ids`, from scratch."""
    layout = RowLayout((-1,), n_pending=len(ids), k=1, kind="contemplate")
    cache = target.new_cache(1, layout.n_rows, drafter.soft_rows)
    rows = torch.cat([target.embed(ids), embed[None]])[None]
    mask = MaskBuilder().build([layout], cache, target.device)
    positions = torch.tensor([layout.positions(0)])
    return target.forward(rows, positions, mask, cache, drafter.feature_layers).features[0, -1:]


@pytest.mark.parametrize("all_nodes", [True, False])
@pytest.mark.parametrize("n_siblings", [1, 3])
def test_f_comes_from_the_contemplate_row_of_the_last_accepted_node(target: Target, n_siblings: int, all_nodes: bool):
    """With contemplate tokens on the root alone, the root's is handed on, whatever was accepted."""
    loaded = random_head(target)
    parts = random_parts(target, loaded)
    plain = plain_answer(target, PROMPT, 30)
    oracle = OracleDrafter(PROMPT + plain, k=4, m=3, n_siblings=n_siblings)
    drafter = GuidedConfuDrafter(target, loaded, parts, oracle, ConfuSwitches(all_nodes=all_nodes))
    seen: list[tuple[int, torch.Tensor, torch.Tensor]] = []

    begin = drafter.begin

    def listening_begin(prompt_ids: list[int]):
        session = begin(prompt_ids)
        observe, own = session.observe, session.own

        def listening(result: PassResult) -> None:
            used = parts.con_experts.mix(own._con)
            n_before = session.n_committed
            observe(result)
            n_read = n_before + (len(result.accepted) if all_nodes else 0)
            seen.append((n_read, used, own._future))

        session.observe = listening
        return session

    drafter.begin = listening_begin
    sequence, steps = run_lane(target, drafter, PROMPT, 30)
    assert any(len(step.accepted) > 1 for step in steps)
    for n_read, used, future in seen:
        expected = features_at_contemplate_row(target, drafter, sequence.token_ids[:n_read], used)
        assert torch.allclose(future, expected, atol=1e-3)
