"""A second EAGLE-3 head for tests, with the future token: whole sequences, no cache, from the description alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.decoding.tree import DraftTree
from specviz.drafters.eagle3 import LoadedHead
from specviz.target.model import Target

THETA = 5000.0


@dataclass(frozen=True)
class Future:
    """The future token: embedding (H,) and state (H,), its position, and its gate; rows from `first_row` on see it."""

    embed: Tensor
    state: Tensor
    position: int
    gate: float
    first_row: int


class PlainHead:
    """EAGLE-3's layer as a causal transformer over rows at positions 0, 1, 2 ..."""

    def __init__(self, loaded: LoadedHead, target: Target) -> None:
        self.w, self.config = loaded.head.state_dict(), loaded.head.config
        self.embeddings = self.w.get("embed_tokens.weight", target.model.get_input_embeddings().weight)

    def path_log_probs(self, next_ids: list[int], features: Tensor, path: list[int], future: Future | None = None):
        """Return the log-probabilities (N,) after the drafted `path`, growing one row at a time."""
        states, ids = self.fuse(features), list(next_ids)
        for token_id in [*path, None]:
            output = self.layer(ids, states, future)[-1:]
            normed = norm(self.w["norm.weight"], output)
            if token_id is None:
                return (normed @ self.w["lm_head.weight"].T).log_softmax(-1)[0]
            states = torch.cat([states, normed if self.config.norm_output else output])
            ids.append(token_id)
        raise AssertionError("the path ends with None")

    def fuse(self, features: Tensor) -> Tensor:
        if self.config.norm_before_fc:
            features = norm(self.w["input_norm.weight"], features)
        if self.config.fc_norm:
            parts = features.chunk(3, -1)
            features = torch.cat([norm(self.w[f"fc_norm.{i}.weight"], part) for i, part in enumerate(parts)], -1)
        return features @ self.w["fc.weight"].T

    def layer(self, token_ids: list[int], states: Tensor, future: Future | None = None) -> Tensor:
        """Return the outputs (R, H) of rows (embedding of the next token, state)."""
        w = {key.removeprefix("midlayer."): value for key, value in self.w.items()}
        residual = norm(w["hidden_norm.weight"], states) if self.config.norm_before_residual else states
        rows = self._inputs(w, self.embeddings[token_ids], states)
        positions = torch.arange(len(rows))
        q, k, v = (self._heads(w, kind, rows, positions) for kind in "qkv")
        blind = torch.ones(len(rows), len(rows)).triu(1).bool()
        seen = self._attend(q, k, v, blind)
        if future is not None:
            row, place = self._inputs(w, future.embed[None], future.state[None]), torch.tensor([future.position])
            k, v = (torch.cat([x, self._heads(w, kind, row, place)]) for kind, x in (("k", k), ("v", v)))
            late = positions >= future.first_row
            more = self._attend(q, k, v, torch.cat([blind, ~late[:, None]], 1))
            seen = seen + future.gate * (more - seen)
        middle = residual + seen.flatten(1) @ w["self_attn.o_proj.weight"].T
        x = norm(w["post_attention_layernorm.weight"], middle)
        gate, up = x @ w["mlp.gate_proj.weight"].T, x @ w["mlp.up_proj.weight"].T
        return middle + (F.silu(gate) * up) @ w["mlp.down_proj.weight"].T

    def _inputs(self, w: dict[str, Tensor], embeds: Tensor, states: Tensor) -> Tensor:
        return torch.cat([norm(w["input_layernorm.weight"], embeds), norm(w["hidden_norm.weight"], states)], -1)

    def _heads(self, w: dict[str, Tensor], kind: str, rows: Tensor, positions: Tensor) -> Tensor:
        out = rows @ w[f"self_attn.{kind}_proj.weight"].T + w.get(f"self_attn.{kind}_proj.bias", 0)
        out = out.view(len(rows), -1, self.config.head_dim)
        if self.config.qk_norm and kind != "v":
            out = norm(w[f"self_attn.{kind}_norm.weight"], out)
        if kind != "q":
            out = out.repeat_interleave(self.config.n_heads // self.config.n_kv_heads, dim=1)
        return out if kind == "v" else turn(out, positions)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, blind: Tensor) -> Tensor:
        scores = torch.einsum("rhd,chd->hrc", q, k) / self.config.head_dim**0.5
        return torch.einsum("hrc,chd->rhd", scores.masked_fill(blind, float("-inf")).softmax(-1), v)


def norm(weight: Tensor, states: Tensor) -> Tensor:
    return states / (states.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * weight


def turn(states: Tensor, positions: Tensor) -> Tensor:
    """Rotate (R, heads, D) at positions (R,)."""
    width = states.shape[-1]
    angles = positions[:, None] / THETA ** (torch.arange(0, width, 2) / width)  # (R, D / 2)
    cos, sin = (table.repeat(1, 2)[:, None] for table in (angles.cos(), angles.sin()))
    return states * cos + torch.cat([-states[..., width // 2 :], states[..., : width // 2]], -1) * sin


def path_to(tree: DraftTree, node: int) -> list[int]:
    """Return the drafted tokens from the root (not among them) to a node."""
    path: list[int] = []
    while node > 0:
        path.insert(0, tree.token_ids[node])
        node = tree.parents[node]
    return path
