"""ConFu checkpoints: written and read back, started from an EAGLE-3 head, and strict."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from specviz.drafters.checkpoint_confu import load_confu, random_confu, save_confu
from specviz.drafters.checkpoint_eagle3 import load_eagle3, save_eagle3
from specviz.drafters.confu import ConfuConfig
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.drafters.expert_embedding import ExpertConfig
from specviz.errors import SpecVizError
from tests.heads import SHAPE, confu_drafter, random_head, random_parts
from tests.kit import Target, answer_of, plain_answer, run_lane, tiny_target

PROMPT = list(b"the quick brown fox")
EXTRA = {
    "soft_prompt",
    "con_experts.router.weight",
    "con_experts.experts",
    "f_experts.router.weight",
    "f_experts.experts",
    "f_gate",
}


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


@pytest.fixture
def folder(target: Target, tmp_path: Path) -> Path:
    loaded = random_head(target)
    config = ConfuConfig(n_soft=5, experts=ExpertConfig(n_experts=6, n_selected=3, renormalise=False))
    save_confu(tmp_path / "own", loaded, random_parts(target, loaded, gate=0.25, config=config), source="here")
    return tmp_path / "own"


def test_what_is_written_is_read_back(target: Target, folder: Path):
    loaded, parts = load_confu(folder, target)
    own = random_head(target)
    written = random_parts(target, own, gate=0.25, config=parts.config)
    assert parts.config == ConfuConfig(5, ExpertConfig(6, 3, False))
    assert loaded.head.config == own.head.config
    assert loaded.info.source == "here"
    for name, tensor in written.state_dict().items():
        assert torch.equal(parts.state_dict()[name], tensor), name
    for name, tensor in own.head.state_dict().items():
        assert torch.equal(loaded.head.state_dict()[name], tensor), name


def test_the_format_is_eagle3_with_named_extra_tensors(target: Target, folder: Path, tmp_path: Path):
    save_eagle3(tmp_path / "parent", random_head(target))
    parent, own = (set(load_file(path / "model.safetensors")) for path in (tmp_path / "parent", folder))
    assert own - parent == EXTRA
    assert parent <= own


def test_an_eagle3_checkpoint_is_a_start(target: Target, tmp_path: Path):
    """Gate 0, routers zero, experts around the mean embedding: it drafts as its parent does, and says so."""
    save_eagle3(tmp_path / "parent", random_head(target))
    loaded, parts = load_confu(tmp_path / "parent", target)
    assert (parts.config.n_soft, parts.config.experts) == (16, ExpertConfig(8, 2, True))
    assert float(parts.f_gate) == 0
    assert not parts.con_experts.router.weight.any() and not parts.f_experts.router.weight.any()
    mean = target.model.get_input_embeddings().weight.mean(dim=0)
    assert torch.allclose(parts.con_experts.experts.mean(dim=0), mean, atol=0.05)
    assert any("started from an EAGLE-3 head" in note for note in loaded.info.notes)

    _, own = run_lane(target, confu_drafter(target, loaded, parts), PROMPT, 16)
    parent = Eagle3Drafter(target, load_eagle3(tmp_path / "parent", target), SHAPE)
    _, parents = run_lane(target, parent, PROMPT, 16)
    assert [[n.token_id for n in step.nodes] for step in own] == [[n.token_id for n in step.nodes] for step in parents]


@pytest.mark.parametrize("name", sorted(EXTRA))
def test_a_missing_tensor_is_named(target: Target, folder: Path, name: str):
    tensors = load_file(folder / "model.safetensors")
    del tensors[name]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(SpecVizError, match=f"lacks the tensor {name}"):
        load_confu(folder, target)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("n_soft", 7, r"soft_prompt .* has shape \(5, 64\).*need \(7, 64\)"),
        ("n_experts", 9, r"con_experts\.experts .* has shape \(6, 64\)"),
        ("n_experts", None, "no usable n_experts: None"),
        ("n_selected_experts", 0, "no usable n_selected_experts: 0"),
        ("n_selected_experts", 7, "selects 7 of 6 experts"),
        ("method", "lookahead", "is for lookahead, not for confu"),
    ],
)
def test_a_config_that_does_not_fit_is_named(target: Target, folder: Path, field: str, value: object, sentence: str):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, field: value}))
    with pytest.raises(SpecVizError, match=sentence):
        load_confu(folder, target)


def test_a_confu_drafter_is_not_taken_for_an_eagle3_head(target: Target, folder: Path):
    with pytest.raises(SpecVizError, match="is for confu, not for eagle3"):
        load_eagle3(folder, target)


def test_left_over_tensors_are_refused(target: Target, folder: Path):
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "g_gate": torch.zeros(1)}, folder / "model.safetensors")
    with pytest.raises(SpecVizError, match="nobody reads: g_gate"):
        load_confu(folder, target)


def test_an_untrained_drafter_decodes_losslessly(target: Target):
    loaded, parts = random_confu(target)
    assert not loaded.info.trained and float(parts.f_gate) == 1
    drafter = confu_drafter(target, loaded, parts)
    assert answer_of(run_lane(target, drafter, PROMPT, 16)[1]) == plain_answer(target, PROMPT, 16)
