"""What the target computes over an answer, kept on disk: a corpus is passed over many times, the target once.

Letters: L tokens of a sequence (prompt and answer), F width of the features, H hidden.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from specviz.target.model import Target
from specviz.training.corpus import Answer

ROWS_OF_A_PASS = 4096  # padded rows of one pass over the target
PARTS = ("features", "last", "argmax")  # of a text, as `AnsweredPrompt` names them
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
    """The answers of a corpus with the target's features, computed when first asked for and kept in `folder`.

    What is kept belongs to a text and not to a corpus: a corpus that grew finds the features of its old answers. Each
    request that computes some writes one file of its own, so that several processes may fill one folder.
    """

    def __init__(self, folder: Path, answers: Sequence[Answer], target: Target, layers: tuple[int, ...]) -> None:
        self.answers = answers
        self._target, self._layers = target, layers
        self._folder = folder / _name_folder(target, layers)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._names = [_name_text(answer) for answer in answers]
        self._files: dict[str, Path] = {}  # the file that holds a text, by the text's name
        for path in sorted(self._folder.glob("*.safetensors")):
            self._list(path)

    def __len__(self) -> int:
        return len(self.answers)

    def take(self, indices: Sequence[int]) -> list[AnsweredPrompt]:
        """Return these answers, running the target over those whose text was never asked for."""
        missing = [i for i in dict.fromkeys(indices) if self._names[i] not in self._files]
        if missing:
            self._compute(missing)
        return [self._read(i) for i in indices]

    def scale(self) -> Tensor:
        """Return the root mean square (F,) of each feature over the first answers, the first token left out.

        The residual stream has a few dimensions a hundred times wider than the rest.
        """
        first = self.take(range(min(SCALED_ANSWERS, len(self))))
        squares = torch.cat([answer.features[1:].float().square() for answer in first])
        return squares.mean(dim=0).sqrt().clamp(min=1e-3)

    def _token_ids(self, index: int) -> list[int]:
        answer = self.answers[index]
        return [*answer.prompt_ids, *answer.answer_ids]

    def _read(self, index: int) -> AnsweredPrompt:
        name, device = self._names[index], self._target.device
        with safe_open(self._files[name], framework="pt") as file:
            kept = {part: file.get_tensor(f"{name}.{part}").to(device) for part in PARTS}
        return AnsweredPrompt(
            ids=torch.tensor(self._token_ids(index), device=device),
            n_prompt=len(self.answers[index].prompt_ids),
            features=kept["features"],
            last=kept["last"],
            argmax=kept["argmax"].long(),
        )

    def _compute(self, missing: Sequence[int]) -> None:
        """Compute texts and write them to a file; one that is half written never counts."""
        tensors: dict[str, Tensor] = {}
        for group in _groups_of_rows(missing, [len(self._token_ids(i)) for i in missing]):
            tensors |= self._run(group)
        path = self._folder / f"{uuid4().hex}.safetensors"
        save_file(tensors, path.with_suffix(".part"))
        os.replace(path.with_suffix(".part"), path)
        self._list(path)

    def _list(self, path: Path) -> None:
        """Note what a file holds; one that cannot be read (a full disk cut it off, say) goes, its texts run again."""
        try:
            with safe_open(path, framework="pt") as file:
                self._files |= {key.partition(".")[0]: path for key in file.keys()}  # noqa: SIM118 - not a dictionary
        except SafetensorError:
            path.unlink(missing_ok=True)

    def _run(self, group: Sequence[int]) -> dict[str, Tensor]:
        """Run a padded batch; padding stands behind the tokens, where a causal mask hides it."""
        target, texts = self._target, [self._token_ids(i) for i in group]
        width = max(map(len, texts))
        padded = [ids + [0] * (width - len(ids)) for ids in texts]
        positions = torch.arange(width, device=target.device).expand(len(group), -1)
        mask = torch.ones(width, width, dtype=torch.bool, device=target.device).tril().expand(len(group), 1, -1, -1)
        hidden = target.forward(target.embed(padded), positions, mask, None, self._layers)
        assert hidden.features is not None, "features were asked for"
        tensors: dict[str, Tensor] = {}
        for row, (index, ids) in enumerate(zip(group, texts, strict=True)):
            n_tokens, first = len(ids), len(self.answers[index].prompt_ids) - 1
            argmax = torch.zeros(n_tokens, dtype=torch.int32)
            argmax[first:] = target.logits(hidden.last[row, first:n_tokens]).argmax(dim=-1).int().cpu()
            parts = (hidden.features[row, :n_tokens], hidden.last[row, :n_tokens], argmax)
            named = zip(PARTS, parts, strict=True)
            tensors |= {f"{self._names[index]}.{part}": kept.cpu().clone() for part, kept in named}
        return tensors


def _groups_of_rows(indices: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """Group answers of like length so that each padded group has at most ROWS_OF_A_PASS rows."""
    groups: list[list[int]] = []
    for length, index in sorted(zip(lengths, indices, strict=True)):
        if not groups or (len(groups[-1]) + 1) * length > ROWS_OF_A_PASS:
            groups.append([])
        groups[-1].append(index)
    return groups


def _name_folder(target: Target, layers: tuple[int, ...]) -> str:
    """Return a name that changes with the target and the layers."""
    return hashlib.sha256(json.dumps([target.info.name, str(target.dtype), layers]).encode()).hexdigest()[:16]


def _name_text(answer: Answer) -> str:
    """Return a name that changes with the tokens and with where the answer begins."""
    ids = np.asarray([*answer.prompt_ids, -1, *answer.answer_ids], dtype=np.int32)
    return hashlib.sha256(ids.tobytes()).hexdigest()[:24]
