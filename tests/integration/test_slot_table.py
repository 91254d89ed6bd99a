"""Learned slot embeddings: written, read strictly, and decoded with, losslessly."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from specviz.decoding.engine import Engine
from specviz.drafters.checkpoint import SLOT_TABLE, load_slot_table, save_slot_table
from specviz.drafters.checkpoint_files import WEIGHTS
from specviz.drafters.lookahead import SlotTable
from specviz.errors import SpecVizError
from specviz.settings import make_settings
from tests.kit import Target, tiny_target


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


@pytest.fixture
def folder(tmp_path):
    save_slot_table(tmp_path / "table", SlotTable(torch.randn(3, 64)), source="test", notes=["made by a test"])
    return tmp_path / "table"


def run(target: Target, folder, **fields):
    engine = Engine(models=["tiny"], drafters=[str(folder)])
    engine.add_target("tiny", target)
    common = {"model": "tiny", "raw": True, "max_new_tokens": 20}
    learned = {"method": "lookahead", "drafter": "table"} | fields
    return engine.run("abc", make_settings(method="plain", **common)), engine.run(
        "abc", make_settings(**(common | learned))
    )


def test_round_trip(target: Target, folder):
    table, info = load_slot_table(folder, target)
    assert table.slots.equal(load_file(folder / WEIGHTS)[SLOT_TABLE])
    assert (info.trained, info.source, info.notes) == (True, "test", ["made by a test"])


@pytest.mark.parametrize("slot_attention", ["causal", "diagonal"])
def test_a_table_is_the_default_placeholder_and_lossless(target: Target, folder, slot_attention: str):
    plain, learned = run(target, folder, k=3, slot_attention=slot_attention)
    assert [t.token_id for t in learned.answer] == [t.token_id for t in plain.answer]
    assert learned.settings["placeholder"] == "learned"
    assert learned.drafter.name == "table"


def test_a_table_is_what_the_slots_are_given(target: Target, folder):
    """With other embeddings the slots propose other tokens, and a training-free placeholder ignores the table."""
    _, one = run(target, folder, k=2)
    save_slot_table(folder, SlotTable(torch.randn(3, 64)))
    _, other = run(target, folder, k=2)
    drafts = [[node.token_id for step in trace.steps for node in step.nodes[1:]] for trace in (one, other)]
    assert drafts[0] != drafts[1]
    assert run(target, folder, k=2, placeholder="prompt-mean")[1].settings["placeholder"] == "prompt-mean"


def test_more_slots_than_the_table_has_is_a_sentence(target: Target, folder):
    with pytest.raises(SpecVizError, match="has 3 slots: k 4 is too many"):
        run(target, folder, k=4)


@pytest.mark.parametrize(
    ("tensors", "config", "words"),
    [
        ({}, {}, "lacks the tensor slot_embeddings"),
        ({SLOT_TABLE: torch.zeros(3, 64), "extra": torch.zeros(1)}, {}, "tensors nobody reads: extra"),
        ({SLOT_TABLE: torch.zeros(3, 63)}, {}, r"shape \(3, 63\)"),
        ({SLOT_TABLE: torch.zeros(3)}, {}, "shape"),
        ({SLOT_TABLE: torch.zeros(3, 64)}, {"method": "eagle3"}, "is for 'eagle3'"),
    ],
)
def test_what_does_not_fit_is_named(target: Target, folder, tensors: dict, config: dict, words: str):
    save_file(tensors or {"other": torch.zeros(1)}, folder / WEIGHTS)
    (folder / "config.json").write_text(json.dumps({"method": "lookahead"} | config))
    with pytest.raises(SpecVizError, match=words):
        load_slot_table(folder, target)


def test_damaged_files_are_sentences(target: Target, folder):
    (folder / WEIGHTS).write_bytes(b"not safetensors")
    with pytest.raises(SpecVizError, match="could not be read"):
        load_slot_table(folder, target)
    (folder / "config.json").write_text("{")
    with pytest.raises(SpecVizError, match="is not JSON"):
        load_slot_table(folder, target)
    (folder / "config.json").unlink()
    with pytest.raises(SpecVizError, match=r"has no config.json"):
        load_slot_table(folder, target)
