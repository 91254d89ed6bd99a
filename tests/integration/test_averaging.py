"""The mean of checkpoints of one line of training is a drafter that loads, and says what it is."""

import json
import re

import pytest
import torch

from specviz.__main__ import main
from specviz.drafters.checkpoint_confu import load_confu, save_confu
from specviz.drafters.checkpoint_eagle3 import save_eagle3
from specviz.errors import SpecVizError
from specviz.training.averaging import average_drafters, average_tensors
from tests.heads import random_head, random_parts
from tests.kit import tiny_target

TRAINING = {
    "method": "confu",
    "target": "tiny",
    "corpus": ["a"],
    "answers": 3,
    "answer_tokens": 9,
    "steps_done": 4,
    "hours": 0.5,
    "hardware": "a CPU",
}
MEASURES = [{"step": 4, "tau": 2.0, "accuracy_0": 0.5}]


def save(folder, target, gate: float, history: list):
    loaded = random_head(target)
    save_confu(folder, loaded, random_parts(target, loaded, gate), training=TRAINING)
    (folder / "training.json").write_text(json.dumps(TRAINING | {"history": history}))
    (folder / "curve.json").write_text(json.dumps({"steps": [], "measures": MEASURES}))
    (folder / "curve.html").write_text("a plot")
    return folder


def test_a_mean_of_two_loads_and_tells_its_line(tmp_path, capsys):
    target = tiny_target()
    before = {"method": "eagle3", "steps_done": 1000, "hours": 1.0}
    first, last = save(tmp_path / "a", target, 0.5, []), save(tmp_path / "b", target, 0.25, [before])
    assert main(["train", "average", str(first), str(last), "--out", str(tmp_path / "mean")]) == 0
    assert "mean of 2 drafters" in capsys.readouterr().out
    loaded, parts = load_confu(tmp_path / "mean", target)
    assert float(parts.f_gate) == 0.375 and loaded.info.trained
    assert torch.equal(loaded.head.fc.weight, random_head(target).head.fc.weight)
    card = (tmp_path / "mean" / "README.md").read_text()
    assert "the mean (`python -m specviz train average`) of confu after 4 steps in all and confu after 1004" in card
    assert "before averaging: tau of a greedy chain 2.000" in card and "--averaged" not in card


def test_nothing_is_written_where_something_is_missing(tmp_path):
    """Guards against an input that was overwritten, and a drafter without a card."""
    target = tiny_target()
    one, two = save(tmp_path / "one", target, 0.5, []), save(tmp_path / "two", target, 0.25, [])
    weights = (two / "model.safetensors").read_bytes()
    with pytest.raises(SpecVizError, match="is one of the drafters"):
        average_drafters([str(one), str(two)], two)
    with pytest.raises(SpecVizError, match="is one of the drafters"):
        average_drafters([str(one), str(two)], tmp_path / "one" / ".." / "two")
    assert (two / "model.safetensors").read_bytes() == weights
    for name, text, words in (
        ("curve.html", None, "The curve.html of 'two' could not be read"),
        ("curve.json", None, "The curve.json of 'two' could not be read"),
        ("training.json", "[]", "does not tell the method and the steps"),
        ("training.json", '{"method": "confu", "steps_done": 4, "history": [{}]}', "does not tell"),
        ("training.json", "{", "training.json"),
        ("training.json", None, "training.json"),
    ):
        before = (two / name).read_text()
        (two / name).unlink()
        if text is not None:
            (two / name).write_text(text)
        with pytest.raises(SpecVizError, match=words):
            average_drafters([str(one), str(two)], tmp_path / "out")
        assert not (tmp_path / "out").exists()
        (two / name).write_text(before)
    (tmp_path / "out").write_text("a file")
    with pytest.raises(SpecVizError, match="could not be written"):
        average_drafters([str(one), str(two)], tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        *[
            ("training.json", json.dumps({**TRAINING, key: None}), f"does not tell the {key} of a training: None")
            for key in TRAINING
        ],
        ("training.json", json.dumps({**TRAINING, "history": None}), "does not tell the method and the steps"),
        ("training.json", json.dumps({**TRAINING, "history": [1]}), "does not tell the method and the steps"),
        (
            "training.json",
            json.dumps({**TRAINING, "history": [{"method": "eagle3", "steps_done": 1}]}),
            "tell the hours",
        ),
        ("training.json", json.dumps({**TRAINING, "method": "other"}), "is not of a training of lookahead, eagle3"),
        ("training.json", json.dumps({**TRAINING, "corpus": [3]}), "on files of answers"),
        ("curve.json", "{", "curve.json is not JSON"),
        *[
            ("curve.json", text, "The curve.json of 'two' does not hold the measurements")
            for text in ("[]", "{}", '{"measures": 3}', '{"measures": [{}]}', '{"measures": [{"tau": "2"}]}')
        ],
    ],
)
def test_what_a_card_cannot_be_made_of_is_refused_before_anything_is_written(tmp_path, name, text, words):
    """Guards against a drafter without a card, and a traceback."""
    target = tiny_target()
    one, two = save(tmp_path / "one", target, 0.5, []), save(tmp_path / "two", target, 0.25, [])
    (two / name).write_text(text)
    with pytest.raises(SpecVizError, match=re.escape(words)):
        average_drafters([str(one), str(two)], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["README.md", "training.json", "curve.json", "model.safetensors", "config.json"])
def test_a_drafter_stays_whole_where_its_folder_cannot_take_another(tmp_path, name: str):
    target = tiny_target()
    one, two = save(tmp_path / "one", target, 0.5, []), save(tmp_path / "two", target, 0.25, [])
    out = save(tmp_path / "out", target, 0.75, [])
    (out / name).unlink(missing_ok=True)
    (out / name).mkdir()
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    with pytest.raises(SpecVizError, match="could not be written to"):
        average_drafters([str(one), str(two)], out)
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


def test_means_are_taken_in_float32_and_keep_the_type():
    drafters = [{"weight": torch.tensor([1.0, value], dtype=torch.bfloat16)} for value in (2.0, 4.0)]
    mean = average_tensors(drafters)["weight"]
    assert mean.tolist() == [1.0, 3.0] and mean.dtype == torch.bfloat16


def test_what_cannot_be_averaged_is_said(tmp_path):
    target = tiny_target()
    one = save(tmp_path / "one", target, 0.5, [])
    with pytest.raises(SpecVizError, match="two drafters at least"):
        average_drafters([str(one)], tmp_path / "out")
    save_eagle3(tmp_path / "head", random_head(target))
    with pytest.raises(SpecVizError, match=r"differ in .*method"):
        average_drafters([str(one), str(tmp_path / "head")], tmp_path / "out")
    words = [{"d2t": torch.tensor([0, shift])} for shift in (1, 2)]
    with pytest.raises(SpecVizError, match="differ in d2t"):
        average_tensors(words)
    with pytest.raises(SpecVizError, match="same shapes"):
        average_tensors([{"fc": torch.ones(2)}, {"fc": torch.ones(3)}])
    assert not (tmp_path / "out").exists()
