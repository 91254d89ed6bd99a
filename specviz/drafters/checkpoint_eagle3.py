"""EAGLE-3 heads from files: the layouts of EAGLE, SpecForge and speculators, and heads that were never trained.

Tensors (EAGLE and SpecForge): `fc.weight`, `midlayer.{hidden_norm,input_layernorm,post_attention_layernorm}.weight`,
`midlayer.self_attn.{q,k,v,o}_proj.weight`, `midlayer.mlp.{gate,up,down}_proj.weight`, `norm.weight`, `lm_head.weight`,
`d2t` (offsets: target id = draft id + d2t), `t2d` (mask), optional `embed_tokens.weight`. speculators names the layer
`layers.0` and adds `input_norm.weight` (norm_before_fc) and `fc_norm.{0,1,2}.weight`.

Feature layers. We name a layer whose *input* is the feature. speculators' `eagle_aux_hidden_state_layer_ids` at the top
level means the same; the list inside `eagle_config` (EAGLE, SpecForge, SGLang) means the *output* of a layer, so one is
added. Our own files say `feature_layers`, which goes before both and is the place to override a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specviz.drafters.checkpoint_files import (
    DrafterFiles,
    fill_module,
    open_drafter,
    refuse_left_over,
    write_drafter,
)
from specviz.drafters.draft_vocabulary import DraftVocabulary
from specviz.drafters.eagle3 import LoadedHead
from specviz.drafters.eagle3_head import DraftHead, HeadConfig, Rotary
from specviz.errors import SpecVizError
from specviz.target.model import Target
from specviz.trace import DrafterInfo

PADDING = 1024  # vocabularies that differ by no more rows than this are one vocabulary, padded differently
RANDOM_DRAFT_VOCABULARY = 8192
HARMLESS = ("midlayer.self_attn.rotary_emb.inv_freq",)  # a buffer that old files carry; it follows from the config
ROPE_FIELDS = ("rope_theta", "rope_scaling", "rope_parameters")
Fields = dict[str, Any]


def load_eagle3(name: str | Path, target: Target) -> LoadedHead:
    """Load an EAGLE-3 head by folder or hub id; raise SpecVizError with a sentence where it does not fit."""
    files = open_drafter(name)
    if files.config.get("method", "eagle3") != "eagle3":
        raise SpecVizError(f"The drafter {files.name!r} is for {files.config['method']}, not for eagle3.")
    loaded = take_head(files, target)
    refuse_left_over(files.tensors, files.name)
    return loaded


def save_eagle3(folder: Path, loaded: LoadedHead, **extra: Any) -> None:
    """Write a head in EAGLE's layout, with our own field names beside EAGLE's."""
    write_drafter(folder, {**config_fields(loaded, "eagle3"), **extra}, head_tensors(loaded))


def take_head(files: DrafterFiles, target: Target) -> LoadedHead:
    """Build the head of a checkpoint, taking its tensors out of the files, on the target's device and in its dtype."""
    name, config, tensors = files.name, files.config, files.tensors
    _use_eagle_names(tensors, name)
    notes: list[str] = [str(note) for note in config.get("notes", [])]
    head_config = _read_head_config(config, tensors, target, name, notes)
    vocabulary = _take_vocabulary(head_config, tensors, target, name, notes)
    head = _empty_head(replace(head_config, draft_vocab_size=vocabulary.n_draft), name)
    fill_module(head, tensors, name)
    _pad_embedding(head, target)
    _note_positions(head_config, target, notes)
    info = DrafterInfo(name=name, source=files.source, trained=bool(config.get("trained", True)), notes=notes)
    return _place(head, vocabulary, info, target)


def random_eagle3(target: Target) -> LoadedHead:
    """Return a head of the target's own shape that was never trained; its weights are the same every time."""
    config = _config_like(target, min(target.vocab_size, RANDOM_DRAFT_VOCABULARY))
    head = _random_head(config, seed=0)
    info = DrafterInfo(name="untrained EAGLE-3 head", source="random", trained=False)
    return _place(head, DraftVocabulary.first(config.draft_vocab_size, target.vocab_size), info, target)


def start_eagle3(target: Target, vocabulary: DraftVocabulary, seed: int) -> LoadedHead:
    """Return a head that training starts from: a random layer, and the target's own rows as its output embedding."""
    config = _config_like(target, vocabulary.n_draft)
    head = _random_head(config, seed)
    with torch.no_grad():
        head.lm_head.weight.copy_(target.output_embedding(vocabulary.target_ids))
    info = DrafterInfo(name="EAGLE-3 head", source="random", trained=False)
    return _place(head, vocabulary, info, target)


def _random_head(config: HeadConfig, seed: int) -> DraftHead:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DraftHead(config)


def head_tensors(loaded: LoadedHead) -> dict[str, Tensor]:
    """Return a head's tensors by EAGLE's names, the vocabulary's maps among them."""
    vocabulary = loaded.vocabulary
    return {**loaded.head.state_dict(), "d2t": vocabulary.offsets, "t2d": vocabulary.mask}


def config_fields(loaded: LoadedHead, method: str) -> Fields:
    """Return what config.json says of a head: EAGLE's field names, and ours for what EAGLE leaves open."""
    config, info = loaded.head.config, loaded.info
    return {
        "method": method,
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "hidden_size": config.hidden_size,
        "target_hidden_size": config.target_hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_kv_heads,
        "head_dim": config.head_dim,
        "vocab_size": loaded.vocabulary.n_target,
        "draft_vocab_size": config.draft_vocab_size,
        "max_position_embeddings": config.n_positions,
        "rms_norm_eps": config.rms_norm_eps,
        "hidden_act": config.hidden_act,
        "attention_bias": config.attention_bias,
        "mlp_bias": config.mlp_bias,
        "norm_before_residual": config.norm_before_residual,
        "norm_before_fc": config.norm_before_fc,
        "fc_norm": config.fc_norm,
        "norm_output": config.norm_output,
        **config.rope,
        "feature_layers": list(config.feature_layers),
        "trained": info.trained,
        "source": info.source,
        "notes": info.notes,
    }


def _empty_head(config: HeadConfig, name: str) -> DraftHead:
    """Return a head without weights; a config that no head can be built from becomes a sentence."""
    try:
        with torch.device("meta"):
            head = DraftHead(config)
        Rotary(config).at(0, 1, torch.zeros(1))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise SpecVizError(f"No head can be built from the config of the drafter {name!r}: {error}.") from None
    return head


def _use_eagle_names(tensors: dict[str, Tensor], name: str) -> None:
    """Rename speculators' tensors to EAGLE's, in place, and drop harmless buffers."""
    if deeper := sorted(key for key in tensors if key.startswith("layers.") and not key.startswith("layers.0.")):
        raise SpecVizError(f"The drafter {name!r} has more than one layer ({deeper[0]}); SpecViz runs heads of one.")
    for key in [key for key in tensors if key.startswith("layers.0.")]:
        tensors["midlayer." + key.removeprefix("layers.0.")] = tensors.pop(key)
    for key in HARMLESS:
        tensors.pop(key, None)


def _read_head_config(
    config: Fields, tensors: Mapping[str, Tensor], target: Target, name: str, notes: list[str]
) -> HeadConfig:
    fields = {**config, **config.get("transformer_layer_config", {})}
    hidden_size, n_heads = _whole(fields, "hidden_size", name), _whole(fields, "num_attention_heads", name)
    head_config = HeadConfig(
        hidden_size=hidden_size,
        target_hidden_size=config.get("target_hidden_size") or hidden_size,
        intermediate_size=_whole(fields, "intermediate_size", name),
        n_heads=n_heads,
        n_kv_heads=fields.get("num_key_value_heads") or n_heads,
        head_dim=fields.get("head_dim") or hidden_size // n_heads,
        vocab_size=fields.get("vocab_size") or target.vocab_size,
        draft_vocab_size=config.get("draft_vocab_size") or _rows_of(tensors, "lm_head.weight", name),
        n_positions=fields.get("max_position_embeddings") or target.n_positions,
        feature_layers=_feature_layers(config, target, name, notes),
        rope={key: fields[key] for key in ROPE_FIELDS if fields.get(key) is not None},
        rms_norm_eps=fields.get("rms_norm_eps") or 1e-6,
        hidden_act=fields.get("hidden_act") or "silu",
        attention_bias=fields.get("attention_bias", "midlayer.self_attn.q_proj.bias" in tensors),
        output_bias="midlayer.self_attn.o_proj.bias" in tensors,
        mlp_bias=bool(fields.get("mlp_bias", False)),
        qk_norm="midlayer.self_attn.q_norm.weight" in tensors,
        norm_before_residual=bool(config.get("norm_before_residual", False)),
        norm_before_fc=bool(config.get("norm_before_fc", False)),
        fc_norm=bool(config.get("fc_norm", False)),
        norm_output=_feeds_back_normed(config, name, notes),
        own_embedding="embed_tokens.weight" in tensors,
    )
    _check_fit(head_config, target, name)
    return head_config


def _whole(fields: Fields, key: str, name: str) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or value < 1:
        raise SpecVizError(f"The config of the drafter {name!r} has no usable {key}: {value!r}.")
    return value


def _rows_of(tensors: Mapping[str, Tensor], key: str, name: str) -> int:
    if key not in tensors:
        raise SpecVizError(f"The drafter {name!r} lacks the tensor {key}.")
    return tensors[key].shape[0]


def _feature_layers(config: Fields, target: Target, name: str, notes: list[str]) -> tuple[int, ...]:
    """Return the layers whose inputs are the features, and note a guess."""
    nested = _layer_ids(config.get("eagle_config") or {}, "eagle_aux_hidden_state_layer_ids", name)
    if ids := _layer_ids(config, "feature_layers", name):
        layers = ids
    elif nested:
        layers = tuple(layer + 1 for layer in nested)
        notes.append(f"Features are the outputs of the layers {_listed(nested)} that eagle_config names.")
    elif ids := _layer_ids(config, "eagle_aux_hidden_state_layer_ids", name):
        layers = ids
    else:
        layers = target.feature_layers
        notes.append(
            f"The drafter's config names no feature layers: the inputs of the layers {_listed(layers)} were guessed "
            "(EAGLE-3's default)."
        )
    if list(layers) != sorted(layers) or not all(0 <= layer < target.n_layers for layer in layers):
        raise SpecVizError(
            f"The drafter {name!r} wants the inputs of the layers {_listed(layers)}; this target has the layers "
            f"0 to {target.n_layers - 1}, and features go from low to high."
        )
    return layers


def _layer_ids(fields: Any, key: str, name: str) -> tuple[int, ...]:
    ids = fields.get(key) if isinstance(fields, dict) else fields
    if ids is not None and not (isinstance(ids, list) and all(type(layer) is int for layer in ids)):
        raise SpecVizError(f"The config of the drafter {name!r} has no usable {key}: {ids!r}.")
    return tuple(ids or ())


def _listed(layers: Any) -> str:
    return ", ".join(map(str, layers))


def _feeds_back_normed(config: Fields, name: str, notes: list[str]) -> bool:
    """Read `norm_output`, which means the fed-back feature in speculators and the head's norm in SpecForge."""
    value = config.get("norm_output")
    if value is None or "method" in config or "speculators_model_type" in config:
        return bool(value)
    if not value:
        raise SpecVizError(f"The drafter {name!r} has no norm before its head (norm_output is false).")
    notes.append("norm_output was read as SpecForge means it: a norm before the head, the raw feature fed back.")
    return False


def _check_fit(config: HeadConfig, target: Target, name: str) -> None:
    if config.target_hidden_size != target.hidden_size:
        raise SpecVizError(
            f"The drafter {name!r} was made for a target of hidden size {config.target_hidden_size}; "
            f"this one has {target.hidden_size}."
        )
    if config.hidden_size != config.target_hidden_size and not config.own_embedding:
        raise SpecVizError(
            f"The drafter {name!r} lacks the tensor embed_tokens.weight, which it needs because its hidden size "
            f"{config.hidden_size} is not the target's {config.target_hidden_size}."
        )
    if config.n_heads % config.n_kv_heads:
        raise SpecVizError(
            f"The drafter {name!r} has {config.n_heads} attention heads, which its {config.n_kv_heads} key/value heads "
            "cannot share evenly."
        )
    if abs(config.vocab_size - target.vocab_size) > PADDING:
        raise SpecVizError(
            f"The drafter {name!r} was made for a vocabulary of {config.vocab_size} tokens; "
            f"this target has {target.vocab_size}."
        )


def _take_vocabulary(
    config: HeadConfig, tensors: dict[str, Tensor], target: Target, name: str, notes: list[str]
) -> DraftVocabulary:
    """Take the maps out of `tensors` and cut vocabulary and head to the ids that the target knows."""
    vocabulary = _read_maps(config, tensors, name, notes)
    known = vocabulary.known_to(target.vocab_size)
    if config.vocab_size != target.vocab_size:
        notes.append(
            f"The drafter's vocabulary has {config.vocab_size} rows, the target's {target.vocab_size}: "
            "only common ids are drafted."
        )
    if not bool(known.all()) and "lm_head.weight" in tensors:
        tensors["lm_head.weight"] = tensors["lm_head.weight"][known]
    return vocabulary.cut(target.vocab_size)


def _read_maps(config: HeadConfig, tensors: dict[str, Tensor], name: str, notes: list[str]) -> DraftVocabulary:
    d2t, t2d = tensors.pop("d2t", None), tensors.pop("t2d", None)
    n_draft = config.draft_vocab_size
    if d2t is None and n_draft != config.vocab_size:
        raise SpecVizError(
            f"The drafter {name!r} lacks the tensor d2t, which says what its {n_draft} draft tokens mean "
            f"among the {config.vocab_size} of the target."
        )
    if d2t is None:
        return DraftVocabulary.first(n_draft, config.vocab_size)
    for key, tensor, size in (("d2t", d2t, n_draft), ("t2d", t2d, config.vocab_size)):
        if tensor is not None and tuple(tensor.shape) != (size,):
            raise SpecVizError(
                f"{key} of the drafter {name!r} has shape {tuple(tensor.shape)}; its config needs ({size},)."
            )
    if t2d is None:
        notes.append("The drafter has no t2d: its vocabulary was read from d2t alone.")
    try:
        return DraftVocabulary.from_maps(d2t, t2d, config.vocab_size)
    except SpecVizError as error:
        raise SpecVizError(f"The maps of the drafter {name!r} cannot be used: {error}") from None


def _pad_embedding(head: DraftHead, target: Target) -> None:
    """Give ids that only the target knows the mean embedding: they are read in the text, never drafted."""
    if not head.config.own_embedding:
        return
    table = head.embed_tokens.weight
    missing = target.vocab_size - table.shape[0]
    if missing > 0:
        mean = table.mean(dim=0, keepdim=True).expand(missing, -1)
        head.embed_tokens.weight = torch.nn.Parameter(torch.cat([table, mean]), requires_grad=False)


def _note_positions(config: HeadConfig, target: Target, notes: list[str]) -> None:
    if config.n_positions < target.n_positions:
        notes.append(
            f"The drafter knows {config.n_positions} positions, the target {target.n_positions}: "
            "beyond its own the drafter proposes nothing and decoding goes on plainly."
        )


def _config_like(target: Target, n_draft: int) -> HeadConfig:
    """Return the shape of a head that is built as the target's own layers are."""
    config, n_heads = target.config, target.config.num_attention_heads
    rope = getattr(config, "rope_parameters", None) or {}
    return HeadConfig(
        hidden_size=target.hidden_size,
        target_hidden_size=target.hidden_size,
        intermediate_size=getattr(config, "intermediate_size", None) or 4 * target.hidden_size,
        n_heads=n_heads,
        n_kv_heads=getattr(config, "num_key_value_heads", None) or n_heads,
        head_dim=getattr(config, "head_dim", None) or target.hidden_size // n_heads,
        vocab_size=target.vocab_size,
        draft_vocab_size=n_draft,
        n_positions=target.n_positions,
        feature_layers=tuple(sorted(target.feature_layers)),
        rope={"rope_parameters": dict(rope)} if "rope_theta" in rope else {},
        rms_norm_eps=getattr(config, "rms_norm_eps", None) or 1e-6,
    )


def _place(head: DraftHead, vocabulary: DraftVocabulary, info: DrafterInfo, target: Target) -> LoadedHead:
    head.eval().requires_grad_(False)
    return LoadedHead(head.to(target.device, target.dtype), vocabulary.to(target.device), info)
