"""The card of a trained drafter says what it learned from and what came out, and names no machine's paths."""

import json

import pytest

from specviz.decoding.engine import DRAFTERS
from specviz.errors import SpecVizError
from specviz.training.card import write_card
from specviz.training.lineage import KEPT, earlier_trainings

TRAINING = {
    "method": "eagle3",
    "target": "SmolLM2-135M-Instruct",
    "model": "bundled",
    "corpus": ["answers-000.jsonl.gz"],
    "answers": 2378,
    "answer_tokens": 454365,
    "hardware": "2-core x86_64 CPU with AMX, 1 thread(s)",
    "steps": 900,
    "steps_done": 900,
    "hours": 1.5,
    "seed": 0,
    "batch_tokens": 800,
    "clip": 1.0,
    "parent": "eagle3",
}
MEASURES = [{"step": 100, "tau": 1.2}, {"step": 900, "tau": 1.91, "accuracy_0": 0.46, "accuracy_1": 0.4}]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "training.json").write_text(json.dumps(TRAINING))
    (tmp_path / "curve.json").write_text(json.dumps({"steps": [], "measures": MEASURES}))
    return tmp_path


def test_a_card_tells_data_steps_hardware_and_the_outcome(folder):
    write_card(folder)
    card = (folder / "README.md").read_text()
    assert card.startswith("# EAGLE-3 draft head for SmolLM2-135M-Instruct")
    for part in (
        "2,378 answers",
        "454,365 tokens",
        "900, in 1.5 hours",
        "with AMX",
        "Apache-2.0",
        "tau of a greedy chain 1.910",
    ):
        assert part in card
    assert "0.460, 0.400" in card
    assert "train eagle3 --corpus answers-000.jsonl.gz --model bundled --steps 900 --seed 0" in card
    assert "--from eagle3" in card
    assert "--clip" not in card  # not an argument of the command


def test_a_card_tells_what_its_weights_learned_before(folder, tmp_path_factory):
    parent = tmp_path_factory.mktemp("parent")
    before = {"method": "eagle3", "steps_done": 100, "hours": 0.25}
    (parent / "training.json").write_text(json.dumps(TRAINING | {"history": [before]}))
    earlier = earlier_trainings(parent)
    assert earlier == [before, {key: TRAINING[key] for key in KEPT}]
    training = TRAINING | {"method": "confu", "steps_done": 300, "hours": 1.0, "history": earlier}
    (folder / "training.json").write_text(json.dumps(training))
    write_card(folder)
    told = "eagle3 100 steps in 0.25 hours, eagle3 900 steps in 1.5 hours; in all 1,300 steps in 2.75 hours."
    assert told in (folder / "README.md").read_text()


def test_weights_from_elsewhere_have_no_trainings(tmp_path):
    assert earlier_trainings(tmp_path) == []


def report(lane: str) -> dict:
    lanes = {lane: {"head": {"settings": {"nodes": 30}}, "overall": {"tau": 2.3}, "by_category": {"qa": {"tau": 2.25}}}}
    return {"n_questions": 26, "settings": {"temperature": 0.0, "max_new_tokens": 128}, "lanes": lanes}


def test_a_report_of_bench_adds_tau_by_category(folder):
    write_card(folder, report("eagle3"))
    card = (folder / "README.md").read_text()
    assert "| qa | 2.25 |" in card and "26 questions" in card and "30 nodes" in card and "tau 2.30" in card


def test_a_card_before_the_first_measurement_says_so(folder):
    """A run that saves before it measures must not end there."""
    (folder / "curve.json").write_text(json.dumps({"steps": [], "measures": []}))
    write_card(folder)
    assert "Not measured yet." in (folder / "README.md").read_text()


def test_a_report_without_the_lane_is_a_sentence(folder):
    with pytest.raises(SpecVizError, match="no lane 'eagle3'; it has confu"):
        write_card(folder, report("confu"))


@pytest.mark.parametrize("key", ["method", "target", "corpus", "answers", "answer_tokens", "steps_done", "hours"])
def test_weights_that_do_not_tell_their_training_are_refused_before_a_training_from_them(folder, key: str):
    """Guards against a run whose card, written at its first checkpoint, ended it."""
    (folder / "training.json").write_text(json.dumps({name: value for name, value in TRAINING.items() if name != key}))
    for read in (earlier_trainings, write_card):
        with pytest.raises(SpecVizError, match=f"does not tell the {key} of a training"):
            read(folder)
    assert not (folder / "README.md").exists()


@pytest.mark.parametrize("drafter", ["eagle3", "confu", "lookahead"])
def test_the_bundled_drafters_tell_their_training(drafter: str):
    assert earlier_trainings(DRAFTERS / "smollm2-135m-instruct" / drafter)[-1]["steps_done"] > 0
