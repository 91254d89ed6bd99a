"""The model that is decoded: one forward pass over rows, and the logits of chosen rows.

Letters: B batch, R rows of a pass, C cache columns, H hidden, V vocabulary.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache

from specviz.target.attention import probed
from specviz.target.cache import Capture, RowCache, SoftRows
from specviz.target.experts import captured_routing, find_routers
from specviz.target.fixed_pass import fits, run_fixed
from specviz.target.hidden import Hidden
from specviz.target.place_cache import PlaceCache
from specviz.target.replayed import capture_cuda_graph
from specviz.target.tokenizer import Tokenizer
from specviz.trace import ModelInfo


@dataclass(frozen=True)
class AttentionWindows:
    """Which layers see only a sliding window of positions; `by_kind` names the kinds of layers."""

    window: int | None = None
    by_kind: tuple[str, ...] = ()

    @property
    def mixed(self) -> bool:
        return len(self.by_kind) > 1


class Target:
    """A causal language model, its tokenizer, and what the decoding loop needs to know of both."""

    def __init__(self, model: Any, tokenizer: Tokenizer, info: ModelInfo) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.info = info
        self.base: Any = model.base_model
        self.config = model.config.get_text_config()
        self.windows = _read_windows(self.config)
        self._lock = threading.Lock()  # hooks that capture features belong to one pass at a time
        self.cache_argument = _cache_argument(self.base)
        self._routers = find_routers(self.base)
        self.eos_ids = _eos_ids(model, tokenizer)
        self.n_layers: int = self.config.num_hidden_layers
        self.n_positions: int = getattr(self.config, "max_position_embeddings", None) or 2**31
        self.feature_layers = default_feature_layers(self.n_layers)
        self.fixed_shapes = False  # whether passes over few rows are padded to fixed shapes (`fixed_pass.py`)
        self.capture: Capture | None = None  # what makes a graph of a pass of fixed shape

    @property
    def device(self) -> torch.device:
        """Device of the input embeddings, where passes begin."""
        return self.model.get_input_embeddings().weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.get_input_embeddings().weight.dtype

    @property
    def hidden_size(self) -> int:
        return self.config.hidden_size

    @property
    def vocab_size(self) -> int:
        return self.model.get_output_embeddings().weight.shape[0]

    @property
    def n_embeddings(self) -> int:
        """Rows of the input embedding, padding rows included."""
        return self.model.get_input_embeddings().weight.shape[0]

    @cached_property
    def mean_embedding(self) -> Tensor:
        """The mean (H,) of all input embeddings; kept, because a vocabulary is long."""
        return self.embed(torch.arange(self.n_embeddings)).float().mean(dim=0).to(self.dtype)

    def output_embedding(self, token_ids: Tensor) -> Tensor:
        """Return the rows (N, H) of the output embedding that belong to token ids (N,)."""
        weight = self.model.get_output_embeddings().weight
        return weight[token_ids.to(weight.device)].detach()

    def new_cache(self, n_batch: int, capacity: int, soft: SoftRows | None = None) -> RowCache:
        """Return an empty cache for B prefixes with room for `capacity` columns each."""
        return RowCache(self.n_layers, n_batch, capacity, soft, self.capture)

    def embed(self, token_ids: Sequence[int] | Sequence[Sequence[int]] | Tensor) -> Tensor:
        """Return the input embeddings (..., H) of token ids (...)."""
        ids = torch.as_tensor(token_ids, dtype=torch.long, device=self.device)
        return self.model.get_input_embeddings()(ids)

    @torch.inference_mode()
    def forward(
        self,
        embeds: Tensor,
        positions: Tensor,
        mask: Tensor,
        cache: RowCache | PlaceCache | None,
        feature_layers: tuple[int, ...] | None = None,
        attention_row: int | None = None,
    ) -> Hidden:
        """Run rows (B, R, H) at positions (B, R) under a boolean mask (B, 1, R, C), writing into the cache.

        `feature_layers` are the layers whose inputs a drafter wants, ascending; None for none.
        `attention_row` is a row whose attention weights are wanted; None for none.
        """
        if self.fixed_shapes and attention_row is None and isinstance(cache, RowCache) and fits(embeds, cache):
            layers = feature_layers or ()

            def run(fixed_embeds: Tensor, fixed_positions: Tensor, fixed_mask: Tensor) -> Hidden:
                return self.forward_with_graph(fixed_embeds, fixed_positions, fixed_mask, cache, layers)

            return run_fixed(run, embeds, positions, mask, cache, layers)
        return self.forward_with_graph(embeds, positions, mask, cache, feature_layers, attention_row)

    def use_cuda_graphs(self) -> str | None:
        """Hold passes over few rows in CUDA graphs; return None, or in a sentence why this target cannot."""
        if self.windows.window is not None or self._routers:
            return "CUDA graphs hold no sliding windows and no mixtures of experts: they are off for this model."
        devices = {parameter.device for parameter in self.model.parameters()}
        if self.device.type != "cuda" or len(devices) > 1:
            return "CUDA graphs need the whole model on one CUDA device: they are off."
        self.fixed_shapes, self.capture = True, capture_cuda_graph
        self.info = self.info.model_copy(update={"device": f"{self.info.device}, graphs"})
        return None

    def forward_with_graph(
        self,
        embeds: Tensor,
        positions: Tensor,
        mask: Tensor,
        cache: Cache | None,
        feature_layers: tuple[int, ...] | None = None,
        attention_row: int | None = None,
    ) -> Hidden:
        """Do what `forward` does and keep the graph: trained rows get their gradients through frozen weights."""
        by_layer = self._mask_by_layer(mask, positions, cache)
        hooked = self._captured(feature_layers or ()), captured_routing(self._routers, embeds.shape[0])
        with self._lock, hooked[0] as captured, hooked[1] as routing, probed(attention_row) as attention:
            output = self.base(
                inputs_embeds=embeds,
                position_ids=positions,
                attention_mask=by_layer,
                use_cache=cache is not None,
                **{self.cache_argument: cache},
            )
        joined = torch.cat([state.to(self.device) for state in captured], dim=-1) if captured else None  # (B, R, 3H)
        used = mask if isinstance(by_layer, dict) else by_layer
        return Hidden(output.last_hidden_state, used, joined, tuple(routing), attention)

    @torch.inference_mode()
    def logits(self, last: Tensor) -> Tensor:
        """Return the float32 logits (..., V) of final states (..., H)."""
        head = self.model.get_output_embeddings()
        return self.finish_logits(head(last.to(head.weight.device)).float())

    def finish_logits(self, logits: Tensor) -> Tensor:
        """Scale and cap the head's products (..., V) as the model's configuration says."""
        for factor in (_factor(self.config, "logit_scale"), 1 / _factor(self.config, "logits_scaling")):
            if factor != 1:  # a product of all logits is a copy of them all
                logits = logits * factor
        cap = getattr(self.config, "final_logit_softcapping", None)
        return torch.tanh(logits / cap) * cap if cap else logits

    @contextmanager
    def _captured(self, layers: tuple[int, ...]) -> Iterator[list[Tensor]]:
        """Collect the states that enter these layers (EAGLE-3: the raw residual stream, before any norm)."""
        captured: list[Tensor] = []

        def keep(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            captured.append(args[0] if args else kwargs["hidden_states"])

        with ExitStack() as hooks:
            for layer in layers:
                handle = self.base.layers[layer].register_forward_pre_hook(keep, with_kwargs=True)
                hooks.callback(handle.remove)
            yield captured

    def _mask_by_layer(self, mask: Tensor, positions: Tensor, cache: Cache | None) -> Tensor | dict[str, Tensor]:
        """Return the mask, narrowed by the sliding window for the layers that have one."""
        window = self.windows.window
        if window is None:
            return mask
        narrow = mask & _inside_window(positions, mask.shape[-1], window, cache)
        if not self.windows.mixed:
            return narrow
        return {kind: narrow if kind == "sliding_attention" else mask for kind in self.windows.by_kind}


def _factor(config: Any, name: str) -> float:
    return float(getattr(config, name, None) or 1.0)


def default_feature_layers(n_layers: int) -> tuple[int, int, int]:
    """Return the layers whose *input* is a feature: 2, L // 2, L - 3 (EAGLE-3, `modeling_llama_kv.py`)."""
    return (min(2, n_layers - 1), n_layers // 2, max(n_layers - 3, 0))


def _inside_window(positions: Tensor, n_columns: int, window: int, cache: Cache | None) -> Tensor:
    """Return (B, 1, R, C): whether a key is fewer than `window` positions behind its query.

    By position and not by column, because the siblings of a tree share a position.
    """
    n_soft = getattr(cache, "n_soft", 0)
    n_cached = n_columns - positions.shape[1]
    cached = torch.arange(-n_soft, n_cached - n_soft, device=positions.device).expand(positions.shape[0], -1)
    keys = torch.cat([cached, positions], dim=1)  # (B, C)
    near = positions[:, :, None] - keys[:, None, :] < window
    near[:, :, :n_soft] = True
    return near[:, None]


def _read_windows(config: Any) -> AttentionWindows:
    kinds = tuple(sorted(set(getattr(config, "layer_types", None) or ())))
    window = getattr(config, "sliding_window", None)
    if kinds and "sliding_attention" not in kinds:
        window = None
    return AttentionWindows(window, kinds)


def _cache_argument(base: Any) -> str:
    """transformers renamed the argument between 5.17 and 5.24: ask the installed signature."""
    return "cache" if "cache" in inspect.signature(base.forward).parameters else "past_key_values"


def _eos_ids(model: Any, tokenizer: Tokenizer) -> frozenset[int]:
    """Return every id that ends an answer: the generation config's, the model's and the tokenizer's."""
    named = [
        getattr(getattr(model, "generation_config", None), "eos_token_id", None),
        getattr(model.config, "eos_token_id", None),
        tokenizer.eos_id,
    ]
    ids = (i for value in named for i in (value if isinstance(value, (list, tuple)) else [value]))
    return frozenset(int(i) for i in ids if i is not None)
