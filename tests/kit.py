"""Small, offline stand-ins that the tests share.

TINY: a random Llama whose three feature layers differ, with a byte-level tokenizer.
SCRIPT: a target that puts its mass on the next id of a list, by position.
ORACLE: a drafter that proposes a known answer, with every m-th token replaced by a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer as RawTokenizer
from tokenizers import decoders, models, pre_tokenizers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedConfig, PreTrainedTokenizerFast

from specviz.decoding.engine import Engine
from specviz.decoding.limits import Ending
from specviz.decoding.loop import decode
from specviz.decoding.record import StepRecorder
from specviz.decoding.sampling import Sampler
from specviz.decoding.sequence import Sequence as DecodedSequence
from specviz.decoding.tree import DraftTree
from specviz.drafters.base import Drafter, PassResult, Proposal, UnverifiedToken
from specviz.drafters.plain import PlainDrafter
from specviz.target.cache import RowCache
from specviz.target.hidden import Hidden
from specviz.target.loading import wrap_model
from specviz.target.model import AttentionWindows, Target
from specviz.target.tokenizer import BYTE_OF_CHAR, Tokenizer
from specviz.trace import DrafterInfo, ModelInfo, StepTrace

N_VOCAB = 512
EOS_ID = 257
TINY_INFO = ModelInfo(name="tiny", source="random", dtype="float32", device="cpu")


def byte_tokenizer() -> Tokenizer:
    """Return a tokenizer with one id for each byte (id = byte), EOS at 257, and nothing for ids above 259."""
    char_of_byte = {byte: char for char, byte in BYTE_OF_CHAR.items()}
    vocabulary = {char_of_byte[byte]: byte for byte in range(256)}
    raw = RawTokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>", bos_token="<|begin|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|user|>", "<|assistant|>"]})
    fast.chat_template = (
        "{% for m in messages %}{{ '<|user|>' + m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    )
    return Tokenizer(fast)


def tiny_config(**changes: object) -> LlamaConfig:
    """Return the TINY configuration: 8 layers, hidden 64, 4 query and 2 key/value heads, 512 ids."""
    fields = {
        "vocab_size": N_VOCAB,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 8,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "bos_token_id": 256,
        "eos_token_id": EOS_ID,
        "initializer_range": 0.2,  # spreads the logits, so that greedy answers are not one token repeated
    }
    return LlamaConfig(**{**fields, **changes})


def tiny_target(config: PreTrainedConfig | None = None, model_class: type = LlamaForCausalLM, seed: int = 0) -> Target:
    """Return a random target in float32, probed like any other."""
    torch.manual_seed(seed)
    return wrap_model(model_class(config or tiny_config()), byte_tokenizer(), TINY_INFO)


def save_target(target: Target, folder: Path) -> Path:
    """Write a target as a model folder that loads by its path; return it."""
    target.tokenizer._hf.save_pretrained(folder)
    target.model.save_pretrained(folder)
    return folder


def tiny_engine(target: Target) -> Engine:
    """Return an engine that has `target` loaded under the name `tiny`."""
    engine = Engine(models=["tiny"])
    engine.add_target("tiny", target)
    return engine


class ScriptTarget(Target):
    """A target whose logits depend on the position alone: all mass on `script[position + 1]`."""

    def __init__(self, script: Sequence[int], n_vocab: int = N_VOCAB, eos_ids: Sequence[int] = (EOS_ID,)) -> None:
        self.tokenizer = byte_tokenizer()
        self.info = TINY_INFO
        self.eos_ids = frozenset(eos_ids)
        self.n_positions = 2**20
        self.windows = AttentionWindows()
        self._script = list(script)
        self._n_vocab = n_vocab

    device = torch.device("cpu")  # type: ignore[assignment]
    dtype = torch.float32  # type: ignore[assignment]

    def new_cache(self, n_batch: int, capacity: int, soft: object = None) -> RowCache:
        return RowCache(0, n_batch, capacity)

    def embed(self, token_ids: Sequence[int] | Tensor) -> Tensor:
        return torch.zeros(*torch.as_tensor(token_ids).shape, 1)

    def forward(
        self,
        embeds: Tensor,
        positions: Tensor,
        mask: Tensor,
        cache: object,
        features: object = None,
        attention_row: int | None = None,
    ) -> Hidden:
        return Hidden(positions[..., None].float(), mask)

    def logits(self, last: Tensor) -> Tensor:
        following = [self._script[min(int(p) + 1, len(self._script) - 1)] for p in last[..., 0].flatten()]
        logits = torch.full((len(following), self._n_vocab), -20.0)
        logits[torch.arange(len(following)), torch.tensor(following)] = 20.0
        return logits.reshape(*last.shape[:-1], self._n_vocab)


class OracleDrafter:
    """Proposes `answer` (all tokens, prompt included) as a chain of k; every m-th proposal is `wrong(right)`.

    With `n_siblings` above 1 the right token comes last among siblings, so that accepted rows lie scattered; `nodes`
    spreads so many nodes, root included, over the levels instead.
    """

    info = DrafterInfo(name="oracle", source="test", trained=True)
    feature_layers = None
    soft_rows = None
    max_batch = None

    def __init__(
        self,
        answer: Sequence[int],
        k: int,
        m: int = 0,
        n_siblings: int = 1,
        wrong: Callable[[int], int] = lambda right: (right + 1) % 256,
        nodes: int | None = None,
    ) -> None:
        self._answer, self._m, self._wrong = list(answer), m, wrong
        self._sizes = [n_siblings] * k if nodes is None else _spread(nodes - 1, k)

    def begin(self, prompt_ids: Sequence[int], *_: object) -> OracleSession:
        return OracleSession(self, len(prompt_ids))

    def draft(self, root_id: int, place: int, max_depth: int) -> DraftTree:
        """Return the tree that continues the answer from `place` on."""
        token_ids, parents = [root_id], [-1]
        parent = 0
        following = self._answer[place : place + max_depth]
        for depth, (right, n_siblings) in enumerate(zip(following, self._sizes, strict=False)):
            is_wrong = self._m > 0 and (place + depth) % self._m == 0
            decoys = [(right + 2 + i) % 256 for i in range(n_siblings - 1)]
            siblings = [*decoys, self._wrong(right) if is_wrong else right]
            token_ids += siblings
            parents += [parent] * len(siblings)
            parent = len(token_ids) - 1
        n = len(token_ids)
        return DraftTree(tuple(token_ids), tuple(parents), (1.0,) * n, (0.0,) * n)


def _spread(n: int, n_levels: int) -> list[int]:
    """Return `n` as a sum of at most `n_levels` sizes that differ by one at the most, none of them zero."""
    sizes = [n // n_levels + (level < n % n_levels) for level in range(n_levels)]
    return [size for size in sizes if size]


class OracleSession:
    def __init__(self, oracle: OracleDrafter, n_prompt: int) -> None:
        self._oracle = oracle
        self._n_known = n_prompt
        self._started = False

    def propose(self, root_id: int, max_depth: int) -> Proposal:
        if not self._started:
            return Proposal(DraftTree((root_id,)))
        return Proposal(self._oracle.draft(root_id, self._n_known, max_depth))

    def take_unverified(self, result: PassResult) -> Sequence[UnverifiedToken]:
        return ()

    def observe(self, result: PassResult) -> None:
        self._started = True
        self._n_known += len(result.committed)


def run_lane(
    target: Target,
    drafter: Drafter,
    prompt_ids: Sequence[int],
    max_new_tokens: int = 40,
    stop: Sequence[str] = (),
    sampler: Sampler | None = None,
    full: bool = True,
) -> tuple[DecodedSequence, list[StepTrace]]:
    """Decode one prompt without an engine and return the sequence and its steps."""
    sampler = sampler or Sampler()
    sequence = DecodedSequence(
        row=0,
        token_ids=list(prompt_ids),
        session=drafter.begin(prompt_ids),
        sampler=sampler,
        ending=Ending(target.tokenizer, target.eos_ids, stop, max_new_tokens, target.n_positions - len(prompt_ids)),
        recorder=StepRecorder(target, sampler, full, plain=isinstance(drafter, PlainDrafter)),
    )
    return sequence, [step for _, step in decode(target, drafter, [sequence])]


def answer_of(steps: Sequence[StepTrace]) -> list[int]:
    """Return the committed ids of all steps."""
    return [token.token_id for step in steps for token in step.committed]


def plain_answer(target: Target, prompt_ids: Sequence[int], max_new_tokens: int = 40, **run: object) -> list[int]:
    """Return the ids of the plain lane."""
    return answer_of(run_lane(target, PlainDrafter(), prompt_ids, max_new_tokens, **run)[1])  # type: ignore[arg-type]
