"""The EAGLE-3 draft head: one decoder layer over (token embedding, feature) pairs, with its own cache.

Row t holds the embedding of token t + 1 and the feature of token t, sits at position t, and predicts
token t + 2 (EAGLE, `cnets.py`). The names of the parameters are those of EAGLE's checkpoints.

Letters: R rows, C cache columns, H hidden of the draft, F width of the target's features, N draft vocabulary,
Hq and Hkv heads of queries and of keys, D width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import LlamaConfig
from transformers.activations import ACT2FN
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

Angles = tuple[Tensor, Tensor]  # cosines and sines of positions, (R, D) or (1, D) each
FIRST_COLUMN = 1  # column 0 of the draft's cache belongs to ConFu's future token


@dataclass(frozen=True)
class HeadConfig:
    """The shape of a head and the variants that public checkpoints use.

    `feature_layers` are the target's layers whose *inputs* are the features. `rope` holds the rope
    fields of a Llama config. `norm_before_residual`: the residual is the normed feature;
    `norm_before_fc`: one norm over all features; `fc_norm`: a norm for each of them; `norm_output`: the
    normed output is fed back.
    """

    hidden_size: int
    target_hidden_size: int
    intermediate_size: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab_size: int
    draft_vocab_size: int
    n_positions: int
    feature_layers: tuple[int, ...]
    rope: dict[str, Any] = field(default_factory=dict)
    rms_norm_eps: float = 1e-6
    hidden_act: str = "silu"
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    norm_before_residual: bool = False
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False
    own_embedding: bool = False

    @property
    def feature_size(self) -> int:
        return len(self.feature_layers) * self.target_hidden_size


class DraftCache:
    """Keys and values (Hkv, C, D) of the verified rows, preallocated; growth doubles.

    Column 0 is the future token's, `length` verified rows follow, and behind them come the rows
    of the tree being drafted, which the next round overwrites.
    """

    def __init__(self, config: HeadConfig, capacity: int, device: torch.device, dtype: torch.dtype) -> None:
        shape = (config.n_kv_heads, FIRST_COLUMN + capacity, config.head_dim)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.length = 0

    @property
    def end(self) -> int:
        """The column behind the verified rows."""
        return FIRST_COLUMN + self.length

    def reserve(self, n_columns: int) -> None:
        """Make room for columns up to `n_columns`."""
        if n_columns > self.keys.shape[1]:
            missing = max(n_columns, 2 * self.keys.shape[1]) - self.keys.shape[1]
            self.keys, self.values = (F.pad(buffer, (0, 0, 0, missing)) for buffer in (self.keys, self.values))

    def write(self, start: int, keys: Tensor, values: Tensor) -> None:
        """Write rows (Hkv, R, D) into the columns from `start` on."""
        self.reserve(start + keys.shape[1])
        self.keys[:, start : start + keys.shape[1]] = keys
        self.values[:, start : start + keys.shape[1]] = values


class Rotary:
    """Cosines and sines of positions, from tables that grow with the positions asked for."""

    def __init__(self, config: HeadConfig) -> None:
        self._config = config
        self._tables: Angles | None = None

    def at(self, start: int, n_rows: int, like: Tensor) -> Angles:
        """Return (cosines, sines), (R, D) each, of the positions from `start` on; one row serves rows that share it."""
        if self._tables is None or len(self._tables[0]) < start + n_rows:
            self._tables = self._build(max(2 * (start + n_rows), 1024), like)
        cosines, sines = self._tables
        return cosines[start : start + n_rows], sines[start : start + n_rows]

    def _build(self, n_positions: int, like: Tensor) -> Angles:
        config = self._config
        llama = LlamaConfig(
            hidden_size=config.hidden_size,
            num_attention_heads=config.n_heads,
            head_dim=config.head_dim,
            max_position_embeddings=config.n_positions,
            **config.rope,
        )
        embedding = LlamaRotaryEmbedding(llama).to(like.device)
        positions = torch.arange(n_positions, device=like.device)[None]
        cosines, sines = embedding(like, positions)
        return cosines[0], sines[0]


class DraftAttention(nn.Module):
    """Grouped-query attention whose inputs are twice as wide as its outputs."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        width, bias = 2 * config.hidden_size, config.attention_bias
        self.q_proj = nn.Linear(width, config.n_heads * config.head_dim, bias=bias)
        self.k_proj = nn.Linear(width, config.n_kv_heads * config.head_dim, bias=bias)
        self.v_proj = nn.Linear(width, config.n_kv_heads * config.head_dim, bias=bias)
        self.o_proj = nn.Linear(config.n_heads * config.head_dim, config.hidden_size, bias=config.output_bias)
        if config.qk_norm:
            self.q_norm = nn.RMSNorm(config.head_dim, config.rms_norm_eps)
            self.k_norm = nn.RMSNorm(config.head_dim, config.rms_norm_eps)

    def queries(self, inputs: Tensor, angles: Angles) -> Tensor:
        """Return queries (Hq, R, D) of inputs (R, 2H)."""
        queries = self._heads(self.q_proj(inputs))
        return rotate(self.q_norm(queries) if self.config.qk_norm else queries, *angles)

    def keys_values(self, inputs: Tensor, angles: Angles) -> tuple[Tensor, Tensor]:
        """Return keys and values, (Hkv, R, D) each, of inputs (R, 2H)."""
        keys = self._heads(self.k_proj(inputs))
        keys = rotate(self.k_norm(keys) if self.config.qk_norm else keys, *angles)
        return keys, self._heads(self.v_proj(inputs))

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (-1, self.config.head_dim)).transpose(0, 1)


class DraftMlp(nn.Module):
    """The gated MLP of a Llama layer."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=config.mlp_bias)
        self.act = ACT2FN[config.hidden_act]

    def forward(self, states: Tensor) -> Tensor:
        return self.down_proj(self.act(self.gate_proj(states)) * self.up_proj(states))


class DraftLayer(nn.Module):
    """The decoder layer: the embedding and the feature are normed, joined, attended; the feature is the residual."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        size, eps = config.hidden_size, config.rms_norm_eps
        self.input_layernorm = nn.RMSNorm(size, eps)
        self.hidden_norm = nn.RMSNorm(size, eps)
        self.self_attn = DraftAttention(config)
        self.post_attention_layernorm = nn.RMSNorm(size, eps)
        self.mlp = DraftMlp(config)

    def inputs(self, embeds: Tensor, states: Tensor) -> Tensor:
        """Join embeddings and features, (R, H) each, to attention inputs (R, 2H), the embedding first."""
        return torch.cat([self.input_layernorm(embeds), self.hidden_norm(states)], dim=-1)

    def finish(self, attended: Tensor, states: Tensor) -> Tensor:
        """Return the layer's output (R, H) from what the heads saw (R, Hq * D) and the features (R, H)."""
        residual = self.hidden_norm(states) if self.config.norm_before_residual else states
        middle = residual + self.self_attn.o_proj(attended)
        return middle + self.mlp(self.post_attention_layernorm(middle))


class DraftHead(nn.Module):
    """The whole head. Its parameters carry the names of EAGLE's checkpoints."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        self.rotary = Rotary(config)
        size, eps = config.hidden_size, config.rms_norm_eps
        if config.own_embedding:
            self.embed_tokens = nn.Embedding(config.vocab_size, size)
        if config.norm_before_fc:
            self.input_norm = nn.RMSNorm(config.feature_size, eps)
        if config.fc_norm:
            self.fc_norm = nn.ModuleList(nn.RMSNorm(config.target_hidden_size, eps) for _ in config.feature_layers)
        self.fc = nn.Linear(config.feature_size, size, bias=False)
        self.midlayer = DraftLayer(config)
        self.norm = nn.RMSNorm(size, eps)
        self.lm_head = nn.Linear(size, config.draft_vocab_size, bias=False)

    def fuse(self, features: Tensor) -> Tensor:
        """Return the draft's states (R, H) of target features (R, F)."""
        if self.config.norm_before_fc:
            features = self.input_norm(features)
        if self.config.fc_norm:
            parts = features.split(self.config.target_hidden_size, dim=-1)
            features = torch.cat([norm(part) for norm, part in zip(self.fc_norm, parts, strict=True)], dim=-1)
        return self.fc(features)

    def inputs(self, embeds: Tensor, states: Tensor) -> Tensor:
        """Return the layer's attention inputs (R, 2H) of embeddings and features, (R, H) each."""
        return self.midlayer.inputs(embeds, states)

    def remember(self, inputs: Tensor, angles: Angles, cache: DraftCache, column: int) -> None:
        """Write the keys and values of rows (R, 2H) into the columns from `column` on."""
        cache.write(column, *self.midlayer.self_attn.keys_values(inputs, angles))

    def read(
        self, inputs: Tensor, states: Tensor, angles: Angles, cache: DraftCache, view: CacheView
    ) -> tuple[Tensor, Tensor]:
        """Run rows (R, 2H) with features (R, H) over what `view` shows of the cache.

        Returns (fed back, normed): the features for the next level and the states for `log_probs`, (R, H) each.
        """
        queries = self.midlayer.self_attn.queries(inputs, angles)
        output = self.midlayer.finish(attend(queries, cache, view), states)
        normed = self.norm(output)
        return (normed if self.config.norm_output else output), normed

    def log_probs(self, normed: Tensor) -> Tensor:
        """Return float32 log-probabilities (R, N) over the draft vocabulary."""
        return self.lm_head(normed).float().log_softmax(dim=-1)


@dataclass(frozen=True)
class CacheView:
    """What rows see of the draft's cache: the columns before `end`, those of the tree by `tree` (R, columns).

    `gate` is the weight of the future token in column 0; None leaves it out.
    """

    end: int
    tree: Tensor | None = None
    gate: Tensor | None = None


def attend(queries: Tensor, cache: DraftCache, view: CacheView) -> Tensor:
    """Attend from queries (Hq, R, D) and return what the heads saw, (R, Hq * D).

    With a gate g the result is without + g * (with - without): attention once without the future
    token and once with it, mixed in the weights, which is the same because values enter linearly.
    """
    n_heads, n_rows, width = queries.shape
    first = FIRST_COLUMN if view.gate is None else 0
    keys, values = cache.keys[:, first : view.end], cache.values[:, first : view.end]
    grouped = queries.reshape(keys.shape[0], -1, width) * width**-0.5  # (Hkv, G * R, D)
    scores = (grouped @ keys.transpose(1, 2)).float().unflatten(1, (-1, n_rows))  # (Hkv, G, R, C)
    if view.tree is not None:
        scores[..., -view.tree.shape[1] :].masked_fill_(~view.tree, float("-inf"))
    weights = scores.softmax(dim=-1)
    if view.gate is not None:
        without = F.pad(scores[..., FIRST_COLUMN:].softmax(dim=-1), (FIRST_COLUMN, 0))
        weights = without + view.gate * (weights - without)
    seen = weights.to(values.dtype).flatten(1, 2) @ values  # (Hkv, G * R, D)
    return seen.reshape(n_heads, n_rows, width).transpose(0, 1).flatten(1)


def rotate(states: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn states (heads, R, D) by the positions' angles, (R, D) or (1, D), as Llama does."""
    first, second = states.chunk(2, dim=-1)
    return states * cosines + torch.cat([-second, first], dim=-1) * sines
