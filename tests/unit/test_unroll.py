"""The alignment, the mask and the loss of the training-time test, against cases written by hand."""

import torch
import torch.nn.functional as F

from specviz.training.features import AnsweredPrompt
from specviz.training.soft_cross_entropy import soft_cross_entropy
from specviz.training.unroll import Span, pack


def answered(ids: list[int], n_prompt: int) -> AnsweredPrompt:
    n = len(ids)
    states = torch.arange(n, dtype=torch.float32)[:, None]
    return AnsweredPrompt(torch.tensor(ids), n_prompt, states, states, torch.tensor([*ids[1:], 0]))


def test_rows_hold_and_predict_the_tokens_of_the_paper():
    """Row t holds token t + 1 + i and predicts token t + 2 + i; the first row is the prompt's last token."""
    batch = pack([answered([10, 11, 12, 13, 14, 15], n_prompt=3)], n_steps=2)
    assert batch.n_rows == 2  # tokens 14 and 15; 13 is the prefill's
    assert batch.row_columns.tolist() == [2, 3]
    assert batch.next_ids.tolist() == [11, 12, 13, 14, 15]
    assert batch.following.tolist()[0] == [13, 14] and batch.predicted.tolist()[0] == [14, 15]
    assert batch.following.tolist()[1] == [14, 15] and batch.predicted.tolist()[1][0] == 15
    assert batch.valid.tolist() == [[True, True], [True, False]]
    assert batch.target_rows.tolist()[0] == [3, 4]  # the target predicts token 14 at token 13


def test_sequences_lie_one_after_the_other():
    batch = pack([answered([1, 2, 3, 4], 1), answered([5, 6, 7, 8, 9], 2)], n_steps=1)
    assert [(s.columns, s.rows, s.first) for s in batch.spans] == [
        (slice(0, 3), slice(0, 2), 0),
        (slice(3, 7), slice(2, 4), 1),
    ]
    assert batch.positions.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert batch.row_columns.tolist() == [0, 1, 4, 5]
    assert batch.predicted.tolist() == [[3, 4, 8, 9]]
    assert batch.valid.all()
    assert batch.argmax[batch.target_rows[0]].tolist() == [3, 4, 8, 9]


def test_rows_see_the_columns_up_to_their_own():
    span = Span(slice(0, 4), slice(0, 3), first=1)
    assert span.visible().int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_the_loss_and_its_gradients_are_those_of_soft_cross_entropy():
    generator = torch.Generator().manual_seed(0)
    states, weight = (torch.randn(n, 6, generator=generator, requires_grad=True) for n in (300, 11))
    wanted = torch.randn(300, 11, generator=generator).softmax(dim=-1)
    rows = torch.rand(300, generator=generator)
    total, losses = soft_cross_entropy(states, weight, wanted, rows)
    (3 * total).backward()
    own = states.grad.clone(), weight.grad.clone()
    states.grad = weight.grad = None
    expected = F.cross_entropy(states @ weight.T, wanted, reduction="none")
    (3 * (expected * rows).sum()).backward()
    torch.testing.assert_close(losses, expected)
    torch.testing.assert_close(own[0], states.grad)
    torch.testing.assert_close(own[1], weight.grad)
