"""EAGLE-3 checkpoints: public layouts read, ours written and read back, and every misfit named in a sentence."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from specviz.decoding.engine import Engine
from specviz.drafters.checkpoint_eagle3 import load_eagle3, random_eagle3, save_eagle3
from specviz.drafters.draft_tree import TreeShape
from specviz.drafters.draft_vocabulary import DraftVocabulary
from specviz.drafters.eagle3 import Eagle3Drafter, LoadedHead
from specviz.errors import SpecVizError
from specviz.settings import make_settings
from tests.heads import ODD_IDS, random_head
from tests.kit import Target, answer_of, plain_answer, run_lane, tiny_config, tiny_target

PROMPT = list(b"the quick brown fox")
Tensors = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


def eagle_tensors(loaded: LoadedHead) -> Tensors:
    vocabulary = loaded.vocabulary
    return {**loaded.head.state_dict(), "d2t": vocabulary.offsets, "t2d": vocabulary.mask}


def eagle_config(loaded: LoadedHead, **changes: object) -> dict:
    """Return config.json as EAGLE and SpecForge write it."""
    config = loaded.head.config
    fields = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "num_hidden_layers": 36,  # wrong in some public files; there is one midlayer
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_kv_heads,
        "head_dim": config.head_dim,
        "vocab_size": config.vocab_size,
        "draft_vocab_size": config.draft_vocab_size,
        "max_position_embeddings": config.n_positions,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": 5000.0,
        "rope_scaling": None,
        "hidden_act": "silu",
    }
    return {**fields, **changes}


def write(folder: Path, config: dict, tensors: Tensors, binary: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    if binary:
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(tensors, folder / "model.safetensors")
    return folder


def nodes_of(target: Target, loaded: LoadedHead) -> list[list[int]]:
    """Return the trees of a short run: two heads are the same where these are."""
    _, steps = run_lane(target, Eagle3Drafter(target, loaded, TreeShape(12, 3, 4)), PROMPT, 6)
    return [[node.token_id for node in step.nodes] for step in steps]


def test_offsets_by_hand():
    """Guards F32: draft ids 0, 1, 2 mean the target ids 5, 6 and 40."""
    mask = torch.zeros(50, dtype=torch.bool)
    mask[[5, 6, 40]] = True
    vocabulary = DraftVocabulary.from_maps(torch.tensor([5, 5, 38]), mask, 50)
    assert vocabulary.target_ids.tolist() == [5, 6, 40]
    assert vocabulary.offsets.tolist() == [5, 5, 38]
    assert torch.equal(vocabulary.mask, mask)
    spread = vocabulary.spread(torch.tensor([0.1, 0.2, 0.3]))
    assert spread[[5, 6, 40]].tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert int(spread.isfinite().count_nonzero()) == 3


@pytest.mark.parametrize("binary", [False, True])
def test_eagle_layout(target: Target, tmp_path: Path, binary: bool):
    own = random_head(target)
    folder = write(tmp_path / "head", eagle_config(own), eagle_tensors(own), binary)
    loaded = load_eagle3(folder, target)
    assert loaded.vocabulary.target_ids.tolist() == list(ODD_IDS)
    assert nodes_of(target, loaded) == nodes_of(target, own)
    assert loaded.info.trained and loaded.info.name == "head"
    assert loaded.head.config.feature_layers == (2, 4, 5)
    assert any("2, 4, 5 were guessed" in note for note in loaded.info.notes)  # guards F35


def test_specforge_layout_names_layers_by_their_outputs(target: Target, tmp_path: Path):
    own = random_head(target)
    nested = {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": [0, 3, 6]}
    loaded = load_eagle3(write(tmp_path / "a", eagle_config(own, eagle_config=nested), eagle_tensors(own)), target)
    assert loaded.head.config.feature_layers == (1, 4, 7)
    assert not any("guessed" in note for note in loaded.info.notes)
    assert target.feature_layers == (2, 4, 5)  # the target keeps its own


def test_specforge_s_norm_output_is_the_norm_before_the_head_and_not_what_is_fed_back(target: Target, tmp_path: Path):
    own = random_head(target)
    loaded = load_eagle3(write(tmp_path / "a", eagle_config(own, norm_output=True), eagle_tensors(own)), target)
    assert loaded.head.config.norm_output is False
    assert nodes_of(target, loaded) == nodes_of(target, own)
    assert any("norm_output was read as SpecForge means it" in note for note in loaded.info.notes)


def speculators_files(own: LoadedHead, **changes: object) -> tuple[dict, Tensors]:
    layer = eagle_config(own)
    del layer["architectures"], layer["draft_vocab_size"]
    config = {
        "speculators_model_type": "eagle3",
        "speculators_config": {"algorithm": "eagle3", "proposal_methods": [{"proposal_type": "greedy"}]},
        "transformer_layer_config": layer,
        "draft_vocab_size": own.head.config.draft_vocab_size,
        "norm_before_residual": own.head.config.norm_before_residual,
        "norm_before_fc": own.head.config.norm_before_fc,
        "fc_norm": own.head.config.fc_norm,
        "norm_output": own.head.config.norm_output,
        "eagle_aux_hidden_state_layer_ids": [2, 4, 5],
        **changes,
    }
    tensors = {name.replace("midlayer.", "layers.0."): tensor for name, tensor in eagle_tensors(own).items()}
    return config, tensors


@pytest.mark.parametrize("variant", ["norm_before_residual", "norm_before_fc", "fc_norm", "norm_output"])
def test_speculators_layout(target: Target, tmp_path: Path, variant: str):
    own = random_head(target, **{variant: True})
    loaded = load_eagle3(write(tmp_path / "a", *speculators_files(own)), target)
    assert getattr(loaded.head.config, variant) is True
    assert loaded.info.notes == []
    assert nodes_of(target, loaded) == nodes_of(target, own)


def test_a_head_of_another_width_brings_its_embedding(target: Target, tmp_path: Path):
    own = random_head(target, own_embedding=True, hidden_size=48, head_dim=12)
    config = eagle_config(own, target_hidden_size=64)
    loaded = load_eagle3(write(tmp_path / "a", config, eagle_tensors(own)), target)
    assert nodes_of(target, loaded) == nodes_of(target, own)
    without = {name: tensor for name, tensor in eagle_tensors(own).items() if name != "embed_tokens.weight"}
    with pytest.raises(SpecVizError, match=r"lacks the tensor embed_tokens\.weight"):
        load_eagle3(write(tmp_path / "b", config, without), target)


def test_biases_are_read_where_the_file_has_them(target: Target, tmp_path: Path):
    own = random_head(target, attention_bias=True, output_bias=True)
    loaded = load_eagle3(write(tmp_path / "a", eagle_config(own), eagle_tensors(own)), target)
    assert loaded.head.config.attention_bias and loaded.head.config.output_bias


VARIANTS: list[dict] = [
    {},
    {"norm_output": True, "fc_norm": True},
    {"norm_before_residual": True, "norm_before_fc": True, "attention_bias": True},
    {"own_embedding": True, "hidden_size": 48, "head_dim": 12},
    {"feature_layers": (1, 3, 7), "draft_vocab_size": 512},
    {"qk_norm": True, "mlp_bias": True, "rope": {"rope_parameters": {"rope_theta": 100.0, "rope_type": "default"}}},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_what_is_written_is_read_back(target: Target, tmp_path: Path, variant: dict):
    own = random_head(target, **variant)
    save_eagle3(tmp_path / "head", own, notes=["a note"])
    loaded = load_eagle3(tmp_path / "head", target)
    assert loaded.head.config == own.head.config
    assert loaded.info.notes == ["a note"]
    for name, tensor in own.head.state_dict().items():
        assert torch.equal(loaded.head.state_dict()[name], tensor), name
    assert torch.equal(loaded.vocabulary.target_ids, own.vocabulary.target_ids)


Edit = Callable[[dict, Tensors], None]


def drop(name: str) -> Edit:
    return lambda config, tensors: tensors.pop(name)


def put(name: str, tensor: torch.Tensor) -> Edit:
    return lambda config, tensors: tensors.update({name: tensor})


def set_field(name: str, value: object) -> Edit:
    return lambda config, tensors: config.update({name: value})


def corrupt(place: int, value: int) -> Edit:
    def edit(config: dict, tensors: Tensors) -> None:
        tensors["d2t"] = tensors["d2t"].clone()
        tensors["d2t"][place] = value

    return edit


MISTAKES: list[tuple[Edit, str]] = [
    (drop("fc.weight"), r"lacks the tensor fc\.weight"),
    (drop("midlayer.mlp.up_proj.weight"), r"lacks the tensor midlayer\.mlp\.up_proj\.weight"),
    (drop("lm_head.weight"), r"lacks the tensor lm_head\.weight"),
    (drop("d2t"), "lacks the tensor d2t"),
    (put("mask_hidden", torch.zeros(1)), "has tensors nobody reads: mask_hidden"),
    (put("layers.1.mlp.up_proj.weight", torch.zeros(1)), "more than one layer"),
    (put("norm.weight", torch.zeros(65)), r"norm\.weight of the drafter .* has shape \(65,\).*need \(64,\)"),
    (put("fc.weight", torch.zeros(64, 64)), r"fc\.weight .* has shape \(64, 64\).*need \(64, 192\)"),
    (put("d2t", torch.zeros(7, dtype=torch.long)), r"d2t of the drafter .* has shape \(7,\)"),
    (put("t2d", torch.zeros(7, dtype=torch.bool)), r"t2d of the drafter .* has shape \(7,\)"),
    (put("d2t", torch.tensor(ODD_IDS)), "same target id|disagree|outside"),  # absolute ids instead of offsets
    (corrupt(99, 1000), "outside the vocabulary of 512"),
    (corrupt(0, -1), "from -1 to"),
    (corrupt(1, 0), "same target id"),
    (corrupt(1, 3), "d2t and t2d disagree"),
    (set_field("method", "lookahead"), "is for lookahead, not for eagle3"),
    (set_field("hidden_size", "wide"), "no usable hidden_size: 'wide'"),
    (set_field("num_attention_heads", None), "no usable num_attention_heads"),
    (set_field("target_hidden_size", 128), "for a target of hidden size 128; this one has 64"),
    (set_field("vocab_size", 32000), "vocabulary of 32000 tokens; this target has 512"),
    (set_field("eagle_aux_hidden_state_layer_ids", [2, 4, 8]), "wants the inputs of the layers 2, 4, 8"),
    (set_field("eagle_config", {"eagle_aux_hidden_state_layer_ids": [5, 3, 1]}), "features go from low to high"),
    (set_field("feature_layers", "2, 4, 5"), "no usable feature_layers: '2, 4, 5'"),
    (set_field("eagle_config", [2, "4"]), "no usable eagle_aux_hidden_state_layer_ids"),
    (set_field("num_key_value_heads", 3), "4 attention heads, which its 3 key/value heads cannot share"),
    (set_field("hidden_act", "sharp"), "No head can be built from the config"),
    (set_field("rope_scaling", {"rope_type": "spiral"}), "No head can be built from the config"),
    (set_field("norm_output", False), "no norm before its head"),
]


@pytest.mark.parametrize(("edit", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_what_does_not_fit_is_named(target: Target, tmp_path: Path, edit: Edit, sentence: str):
    """Guards F32 and F33 and their kind."""
    own = random_head(target)
    config, tensors = eagle_config(own), eagle_tensors(own)
    edit(config, tensors)
    with pytest.raises(SpecVizError, match=sentence):
        load_eagle3(write(tmp_path / "head", config, tensors), target)


def test_files_that_cannot_be_read_are_named(target: Target, tmp_path: Path):
    own = random_head(target)
    folder = write(tmp_path / "head", eagle_config(own), eagle_tensors(own))
    (folder / "model.safetensors").write_bytes(b"not a tensor file")
    with pytest.raises(SpecVizError, match=r"model\.safetensors of the drafter 'head' could not be read"):
        load_eagle3(folder, target)
    (folder / "model.safetensors").unlink()
    with pytest.raises(SpecVizError, match="has no weights"):
        load_eagle3(folder, target)
    (folder / "config.json").write_text("{")
    with pytest.raises(SpecVizError, match="is not JSON"):
        load_eagle3(folder, target)
    with pytest.raises(SpecVizError, match="no drafter folder 'nowhere'"):
        load_eagle3(tmp_path / "nowhere", target)


def test_a_bin_file_with_code_in_it_is_refused(target: Target, tmp_path: Path):
    own = random_head(target)
    folder = write(tmp_path / "head", eagle_config(own), {})
    (folder / "model.safetensors").unlink()
    torch.save({"fc.weight": Path("code")}, folder / "pytorch_model.bin")
    with pytest.raises(SpecVizError, match=r"pytorch_model\.bin of the drafter 'head' could not be read"):
        load_eagle3(folder, target)


@pytest.mark.parametrize("method", ["eagle3", "confu"])
def test_a_hub_id_is_fetched_and_named_as_it_was_asked_for(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
):
    """The hub's client is a stand-in that gives a folder, as the hub's cache does."""
    own = random_head(target)
    folder = write(tmp_path / "snapshots" / "abc", eagle_config(own), eagle_tensors(own))
    fetched: list[tuple[str, list[str]]] = []

    def fetch(hub_id: str, allow_patterns: list[str]) -> str:
        fetched.append((hub_id, allow_patterns))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    engine = Engine(["tiny"], ["someone/head"])
    engine.add_target("tiny", target)
    settings = make_settings(method=method, model="tiny", drafter="someone/head", raw=True, max_new_tokens=8)
    traces = [engine.run("the quick brown fox", settings) for _ in range(2)]
    assert {(trace.drafter.name, trace.drafter.source) for trace in traces} == {("someone/head", "hub")}
    assert [token.token_id for token in traces[0].answer] == plain_answer(target, PROMPT, 8)
    assert {hub_id for hub_id, _ in fetched} == {"someone/head"}
    assert set(fetched[0][1]) == {"*.json", "*.safetensors", "*.bin"}  # no code is fetched


def test_an_unreachable_hub_is_one_sentence(target: Target, monkeypatch: pytest.MonkeyPatch):
    import huggingface_hub

    def unreachable(*_: object, **__: object) -> None:
        raise OSError("Network is unreachable\nwith a long tail")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(
        SpecVizError, match=r"^The drafter 'org/head' could not be fetched .*: Network is unreachable\.$"
    ):
        load_eagle3("org/head", target)


@pytest.mark.parametrize(("own_rows", "target_rows"), [(500, 512), (512, 500)])
@pytest.mark.parametrize("own_embedding", [False, True])
def test_vocabularies_that_are_padded_differently_are_cut_to_common_ids(
    tmp_path: Path, own_rows: int, target_rows: int, own_embedding: bool
):
    """Guards F36."""
    target = tiny_target(tiny_config(vocab_size=target_rows))
    own = random_head(target, vocab_size=own_rows, draft_vocab_size=own_rows, own_embedding=own_embedding)
    folder = write(tmp_path / "head", eagle_config(own), dict(own.head.state_dict()))
    loaded = load_eagle3(folder, target)
    assert loaded.vocabulary.n_draft == 500
    assert any(f"{own_rows} rows, the target's {target_rows}" in note for note in loaded.info.notes)
    drafter = Eagle3Drafter(target, loaded, TreeShape(30, 3, 6))
    assert answer_of(run_lane(target, drafter, PROMPT, 30)[1]) == plain_answer(target, PROMPT, 30)


def test_missing_config_keys_have_defaults(target: Target, tmp_path: Path):
    """Guards F39: older heads name less."""
    own = random_head(target, n_kv_heads=4, rope={})
    kept = ("hidden_size", "intermediate_size", "num_attention_heads")
    config = {key: value for key, value in eagle_config(own).items() if key in kept}
    loaded = load_eagle3(write(tmp_path / "head", config, eagle_tensors(own)), target).head.config
    assert (loaded.n_kv_heads, loaded.head_dim, loaded.n_positions, loaded.draft_vocab_size) == (4, 16, 512, 100)


def test_fewer_positions_and_guessed_layers_are_notices_of_the_run(target: Target, tmp_path: Path):
    own = random_head(target, n_positions=64)
    folder = write(tmp_path / "head", eagle_config(own), eagle_tensors(own))
    engine = Engine(models=["tiny"], drafters=[str(folder)])
    engine.add_target("tiny", target)
    trace = engine.run("a", make_settings(method="eagle3", model="tiny", drafter="head", raw=True, max_new_tokens=2))
    assert any("guessed" in notice for notice in trace.notices)
    assert any("64 positions" in notice for notice in trace.notices)
    assert trace.drafter.trained


def test_an_untrained_head_is_the_same_every_time(target: Target):
    one, other = random_eagle3(target), random_eagle3(target)
    assert all(torch.equal(a, b) for a, b in zip(one.head.parameters(), other.head.parameters(), strict=True))
    assert (one.info.source, one.info.trained) == ("random", False)
