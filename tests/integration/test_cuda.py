"""On a CUDA device: every method gives the plain answer, eagerly and with its passes held in graphs."""

import pytest
import torch
from transformers import LlamaForCausalLM

from specviz.decoding.sampling import Sampler
from specviz.settings import make_settings
from specviz.target.loading import wrap_model
from specviz.target.model import Target
from tests.heads import guided
from tests.kit import (
    TINY_INFO,
    OracleDrafter,
    answer_of,
    byte_tokenizer,
    plain_answer,
    run_lane,
    tiny_config,
    tiny_engine,
)

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
PROMPT = list(b"the quick brown fox")
N_NEW = 60


@pytest.fixture(scope="module", params=[False, True], ids=["eager", "graphs"])
def target(request: pytest.FixtureRequest) -> Target:
    torch.manual_seed(0)
    model = LlamaForCausalLM(tiny_config()).to("cuda")
    made = wrap_model(model, byte_tokenizer(), TINY_INFO.model_copy(update={"device": "cuda"}))
    if request.param:
        assert made.use_cuda_graphs() is None
    return made


@pytest.mark.parametrize("sampler", [Sampler(), Sampler(0.8, 0.9, 3)], ids=str)
@pytest.mark.parametrize("method", ["eagle3", "confu"])
def test_good_proposals_give_the_plain_answer(target: Target, method: str, sampler: Sampler):
    plain = plain_answer(target, PROMPT, N_NEW, sampler=sampler)
    drafter = guided(target, method, OracleDrafter(PROMPT + plain, 5, 5, nodes=30))
    _, steps = run_lane(target, drafter, PROMPT, N_NEW, sampler=sampler)
    assert answer_of(steps) == plain
    assert sum(len(step.accepted) for step in steps) > N_NEW // 2


@pytest.mark.parametrize("method", ["lookahead", "eagle3", "confu"])
def test_a_run_of_the_engine_gives_the_plain_answer(target: Target, method: str):
    settings = make_settings(method=method, model="tiny", raw=True, max_new_tokens=N_NEW, compare_plain=True)
    trace = tiny_engine(target).run("the quick brown fox", settings)
    assert trace.baseline is not None and trace.baseline.equal


def test_the_plain_lane_is_generate_s(target: Target):
    ids = torch.tensor([PROMPT], device="cuda")
    generated = target.model.generate(ids, max_new_tokens=N_NEW, do_sample=False, eos_token_id=None, pad_token_id=0)
    assert plain_answer(target, PROMPT, N_NEW) == generated[0, len(PROMPT) :].tolist()
