"""Training-time test (EAGLE-3, `traineagle3/cnets.py`): the head unrolled over its own features, as it will draft.

Row t holds the embedding of token t + 1 and the feature of token t. At step i the same row holds the
embedding of token t + 1 + i and the head's own output of step i - 1, stands at position t + i and predicts
token t + 2 + i. It sees the keys of step 0 up to its own column and its own keys of the steps since:

    columns of step 0   own keys of step 1, 2          (rows 1 to 3 of four columns, at step 2)
    1 1 0 0             1 0 0   1 0 0
    1 1 1 0             0 1 0   0 1 0
    1 1 1 1             0 0 1   0 0 1

All sequences of a batch lie one after the other, without padding; only attention goes sequence by sequence.

Letters: C columns (the tokens of all sequences that have a next one), R rows among them (those with a loss),
I unrolled steps, H hidden, F width of the features, N draft vocabulary, Hq and Hkv heads, D width of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.drafters.eagle3_head import Angles, DraftHead
from specviz.training.features import AnsweredPrompt

KeysValues = tuple[Tensor, Tensor]  # (Hkv, C or R, D) each


@dataclass(frozen=True)
class Span:
    """Where a sequence lies: its columns and rows; its first row is its column `first`."""

    columns: slice
    rows: slice
    first: int

    def visible(self) -> Tensor:
        """Return (R, C) of this sequence: which columns of step 0 each row sees."""
        n_rows, n_columns = self.rows.stop - self.rows.start, self.columns.stop - self.columns.start
        return torch.ones(n_rows, n_columns, dtype=torch.bool).tril(self.first)


@dataclass(frozen=True)
class UnrollBatch:
    """Packed sequences. `following[i]` (R,) are the tokens that rows hold at step i, `predicted[i]` what they predict.

    `target_rows[i]` (R,) say at which token of all tokens (`last`, `argmax`) the target predicts the same; `valid[i]`
    (R,) where that token is in the answer.
    """

    features: Tensor  # (C, F)
    positions: Tensor  # (C,)
    next_ids: Tensor  # (C,)
    row_columns: Tensor  # (R,)
    spans: list[Span]
    following: Tensor  # (I, R)
    predicted: Tensor  # (I, R)
    target_rows: Tensor  # (I, R)
    valid: Tensor  # (I, R)
    last: Tensor  # (tokens, H)
    argmax: Tensor  # (tokens,)

    @property
    def n_rows(self) -> int:
        return len(self.row_columns)


def pack(answers: Sequence[AnsweredPrompt], n_steps: int) -> UnrollBatch:
    """Lay sequences one after the other and align rows, tokens and targets for `n_steps` steps."""
    spans, positions, row_columns, own_tokens = [], [], [], []
    column = row = token = 0
    for answer in answers:
        n_columns, n_rows, first = len(answer.ids) - 1, answer.n_rows, answer.n_prompt - 1
        spans.append(Span(slice(column, column + n_columns), slice(row, row + n_rows), first))
        positions.append(torch.arange(n_columns))
        row_columns.append(column + first + torch.arange(n_rows))
        own_tokens.append(
            torch.stack([token + first + torch.arange(n_rows), torch.full((n_rows,), token + len(answer.ids))])
        )
        column, row, token = column + n_columns, row + n_rows, token + len(answer.ids)
    ids, device = torch.cat([answer.ids for answer in answers]), answers[0].ids.device
    own, end = torch.cat(own_tokens, dim=1).to(device)  # (R,) each: the row's token t and the sequence's end
    steps = torch.arange(n_steps, device=device)[:, None]
    following = own + 1 + steps  # (I, R) places of token t + 1 + i
    valid = following + 1 < end
    place = following.clamp(max=len(ids) - 1)
    return UnrollBatch(
        features=torch.cat([answer.features[:-1] for answer in answers]),
        positions=torch.cat(positions).to(device),
        next_ids=torch.cat([answer.ids[1:] for answer in answers]),
        row_columns=torch.cat(row_columns).to(device),
        spans=spans,
        following=ids[place],
        predicted=ids[(following + 1).clamp(max=len(ids) - 1)],
        target_rows=place,
        valid=valid,
        last=torch.cat([answer.last for answer in answers]),
        argmax=torch.cat([answer.argmax for answer in answers]),
    )


@dataclass(frozen=True)
class Future:
    """ConFu's future tokens, one for each row: a key and a value (Hkv, R, D) and the gate ()."""

    keys_values: KeysValues
    gate: Tensor


def unroll(
    head: DraftHead, batch: UnrollBatch, states: Tensor, embed: Callable[[Tensor], Tensor], future: Future | None = None
) -> Iterator[Tensor]:
    """Run the head step by step and yield the normed outputs (R, H) of each; `states` (C, H) are the fused features."""
    inputs = head.inputs(embed(batch.next_ids), states)  # (C, 2H)
    cosines, sines = head.rotary.at(0, int(batch.positions.max()) + 1 + len(batch.following), states)
    columns = head.midlayer.self_attn.keys_values(inputs, _angles_at(cosines, sines, batch.positions))
    inputs, states = inputs[batch.row_columns], states[batch.row_columns]
    own: list[KeysValues] = []
    for step in range(len(batch.following)):
        angles = _angles_at(cosines, sines, batch.positions[batch.row_columns] + step)
        if step > 0:
            inputs = head.inputs(embed(batch.following[step]), states)
            own.append(head.midlayer.self_attn.keys_values(inputs, angles))
        queries = head.midlayer.self_attn.queries(inputs, angles)
        attended = torch.cat([_attend_span(queries, columns, own, span, future) for span in batch.spans])
        output = head.midlayer.finish(attended, states)
        normed = head.norm(output)
        states = normed if head.config.norm_output else output
        yield normed


def _angles_at(cosines: Tensor, sines: Tensor, positions: Tensor) -> Angles:
    return cosines[positions], sines[positions]


def _attend_span(
    queries: Tensor, columns: KeysValues, own: Sequence[KeysValues], span: Span, future: Future | None
) -> Tensor:
    """Attend in one sequence, from its rows to its columns and to each row's own keys; returns (R, Hq * D)."""
    keys, values = (part[:, span.columns] for part in columns)
    private = [(k[:, span.rows], v[:, span.rows]) for k, v in own]
    asked = queries[:, span.rows].unflatten(0, (len(keys), -1)) * queries.shape[-1] ** -0.5  # (Hkv, G, R, D)
    visible = span.visible().to(queries.device)
    shared = (asked.flatten(1, 2) @ keys.transpose(1, 2)).unflatten(1, asked.shape[1:3]).float()  # (Hkv, G, R, C)
    scores = [shared.masked_fill(~visible, float("-inf")), *(_own_scores(asked, k) for k, _ in private)]
    if future is None:
        seen = _weigh(torch.cat(scores, dim=-1).softmax(dim=-1), values, [v for _, v in private])
    else:
        seen = _attend_gated(scores, asked, values, private, span, future)
    return seen.flatten(0, 1).transpose(0, 1).flatten(1)


def _attend_gated(
    scores: list[Tensor], asked: Tensor, values: Tensor, private: list[KeysValues], span: Span, future: Future
) -> Tensor:
    """Return without + gate * (with - without), mixed in the weights, as `eagle3_head.attend` does."""
    future_keys, future_values = (part[:, span.rows] for part in future.keys_values)
    with_future = torch.cat([*scores, _own_scores(asked, future_keys)], dim=-1).softmax(dim=-1)
    without = torch.nn.functional.pad(torch.cat(scores, dim=-1).softmax(dim=-1), (0, 1))
    weights = without + future.gate * (with_future - without)
    return _weigh(weights, values, [*(v for _, v in private), future_values])


def _own_scores(asked: Tensor, keys: Tensor) -> Tensor:
    """Return (Hkv, G, R, 1): each row's score for its own key (Hkv, R, D)."""
    return (asked * keys[:, None]).sum(dim=-1, keepdim=True).float()


def _weigh(weights: Tensor, values: Tensor, own_values: Sequence[Tensor]) -> Tensor:
    """Return (Hkv, G, R, D) of weights (Hkv, G, R, C + own) over shared values (Hkv, C, D) and own ones (Hkv, R, D)."""
    n_columns = values.shape[1]
    weights = weights.to(values.dtype)
    seen = (weights[..., :n_columns].flatten(1, 2) @ values).unflatten(1, weights.shape[1:3])
    for place, own in enumerate(own_values):
        seen = seen + weights[..., n_columns + place, None] * own[:, None]
    return seen
