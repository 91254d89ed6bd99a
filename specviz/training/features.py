"""What the target computes over an answer, kept on disk: a corpus is passed over many times, the target once.

Letters: L tokens of a sequence (prompt and answer), F width of the features, H hidden.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from specviz.target.model import Target
from specviz.training.corpus import Answer

ROWS_OF_A_PASS = 4096  # padded rows of one pass over the target
SCALED_ANSWERS = 64  # answers that tell the spread of each feature


@dataclass(frozen=True)
class AnsweredPrompt:
    """A prompt with its answer, and what the target computed at each of its L tokens.

    `features` (L, F) are the inputs of the feature layers, `last` (L, H) the final normed state, and
    `argmax` (L,) the target's own next token from the prompt's last token on, 0 before it.
    """

    ids: Tensor
    n_prompt: int
    features: Tensor
    last: Tensor
    argmax: Tensor

    @property
    def n_rows(self) -> int:
        """Rows of the draft with something to predict: row t predicts token t + 2, from the prompt's last row on."""
        return len(self.ids) - self.n_prompt - 1


class FeatureStore:
    """The answers of a corpus with the target's features, computed when first asked for and kept in `folder`."""

    def __init__(self, folder: Path, answers: Sequence[Answer], target: Target, layers: tuple[int, ...]) -> None:
        self.answers = answers
        self._target, self._layers = target, layers
        self._starts = np.cumsum([0, *(len(a.prompt_ids) + len(a.answer_ids) for a in answers)])
        n_tokens, width = int(self._starts[-1]), target.hidden_size
        base = folder / _fingerprint(answers, target, layers)
        base.mkdir(parents=True, exist_ok=True)
        self._features = _memory(base / "features", (n_tokens, len(layers) * width), target.dtype)
        self._last = _memory(base / "last", (n_tokens, width), target.dtype)
        self._argmax = _memory(base / "argmax", (n_tokens,), torch.int32)
        self._filled = _memory(base / "filled", (len(answers),), torch.bool)

    def __len__(self) -> int:
        return len(self.answers)

    def take(self, indices: Sequence[int]) -> list[AnsweredPrompt]:
        """Return these answers, running the target over those that were never asked for."""
        missing = [i for i in dict.fromkeys(indices) if not self._filled[i]]
        for group in _groups_of_rows(missing, [self._length(i) for i in missing]):
            self._fill(group)
        return [self._read(i) for i in indices]

    def scale(self) -> Tensor:
        """Return the root mean square (F,) of each feature over the first answers, the first token left out.

        The residual stream has a few dimensions a hundred times wider than the rest.
        """
        first = self.take(range(min(SCALED_ANSWERS, len(self))))
        squares = torch.cat([answer.features[1:].float().square() for answer in first])
        return squares.mean(dim=0).sqrt().clamp(min=1e-3)

    def _length(self, index: int) -> int:
        return int(self._starts[index + 1] - self._starts[index])

    def _token_ids(self, index: int) -> list[int]:
        answer = self.answers[index]
        return [*answer.prompt_ids, *answer.answer_ids]

    def _read(self, index: int) -> AnsweredPrompt:
        place = slice(int(self._starts[index]), int(self._starts[index + 1]))
        device = self._target.device
        return AnsweredPrompt(
            ids=torch.tensor(self._token_ids(index), device=device),
            n_prompt=len(self.answers[index].prompt_ids),
            features=self._features[place].to(device),
            last=self._last[place].to(device),
            argmax=self._argmax[place].to(device).long(),
        )

    def _fill(self, group: Sequence[int]) -> None:
        """Run a padded batch; padding stands behind the tokens, where a causal mask hides it."""
        target, width = self._target, max(self._length(i) for i in group)
        padded = [self._token_ids(i) + [0] * (width - self._length(i)) for i in group]
        positions = torch.arange(width, device=target.device).expand(len(group), -1)
        mask = torch.ones(width, width, dtype=torch.bool, device=target.device).tril().expand(len(group), 1, -1, -1)
        hidden = target.forward(target.embed(padded), positions, mask, None, self._layers)
        assert hidden.features is not None, "features were asked for"
        for row, index in enumerate(group):
            place, n = slice(int(self._starts[index]), int(self._starts[index + 1])), self._length(index)
            first = len(self.answers[index].prompt_ids) - 1
            self._features[place] = hidden.features[row, :n].cpu()
            self._last[place] = hidden.last[row, :n].cpu()
            self._argmax[place][first:] = target.logits(hidden.last[row, first:n]).argmax(dim=-1).int().cpu()
            self._filled[index] = True


def _groups_of_rows(indices: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """Group answers of like length so that each padded group has at most ROWS_OF_A_PASS rows."""
    groups: list[list[int]] = []
    for length, index in sorted(zip(lengths, indices, strict=True)):
        if not groups or (len(groups[-1]) + 1) * length > ROWS_OF_A_PASS:
            groups.append([])
        groups[-1].append(index)
    return groups


def _memory(path: Path, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return a tensor whose memory is a file, zeros where the file is new."""
    n_elements = int(np.prod(shape))
    return torch.from_file(str(path), shared=True, size=n_elements, dtype=dtype).view(shape)


def _fingerprint(answers: Sequence[Answer], target: Target, layers: tuple[int, ...]) -> str:
    """Return a name that changes with the answers, the target and the layers."""
    digest = hashlib.sha256(json.dumps([target.info.name, str(target.dtype), layers]).encode())
    for answer in answers:
        digest.update(np.asarray([*answer.prompt_ids, -1, *answer.answer_ids, -2], dtype=np.int32).tobytes())
    return digest.hexdigest()[:16]
