"""Training on TINY: losses fall, only what is trained moves, runs resume on their curve, drafters load and decode."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from specviz.__main__ import main
from specviz.decoding.engine import Engine
from specviz.drafters.checkpoint import load_slot_table, save_slot_table
from specviz.drafters.checkpoint_confu import load_confu
from specviz.drafters.checkpoint_eagle3 import load_eagle3
from specviz.drafters.lookahead import SlotTable
from specviz.evaluation.slots import compare_slots
from specviz.settings import make_settings
from specviz.training.anchors import AnchorConfig
from specviz.training.features import PARTS, FeatureStore
from specviz.training.loop import STATE, Training, TrainingConfig
from specviz.training.plan import plan_batches
from specviz.training.seeds import derive_draws
from specviz.training.unroll import pack
from tests.kit import tiny_target
from tests.training import TRAINEES, eagle3_trainee, slot_trainee, tiny_corpus

CONFIG = TrainingConfig(
    steps=12, batch_tokens=60, learning_rate=5e-3, warm_up=2, measure_every=6, save_every=3, average=0.5
)


def train(method: str, folder, config: TrainingConfig = CONFIG, target=None) -> Training:
    target = target or tiny_target()
    training = Training(TRAINEES[method](target, folder / "features"), config, folder / "out")
    training.run()
    return training


def test_a_grown_corpus_finds_the_features_of_its_old_answers(tmp_path, monkeypatch):
    """Guards: a corpus computed again from its first answer because one was added."""
    target, answers = tiny_target(), tiny_corpus()
    layers = tuple(sorted(target.feature_layers))
    kept = FeatureStore(tmp_path, answers[:8], target, layers).take(range(8))
    grown = FeatureStore(tmp_path, [*answers[8:], *answers[:8]], target, layers)
    grown.take(range(4))
    (tmp_path / "half.part").write_bytes(b"half written")
    again = FeatureStore(tmp_path, [*answers[8:], *answers[:8]], target, layers)
    monkeypatch.setattr(target, "forward", None)  # nothing may be computed now
    for old, new in zip(kept, again.take(range(4, 12)), strict=True):
        assert all(torch.equal(getattr(old, part), getattr(new, part)) for part in PARTS)
        assert torch.equal(old.ids, new.ids) and old.n_prompt == new.n_prompt


def test_a_feature_file_that_was_cut_off_is_computed_again(tmp_path):
    target, answers = tiny_target(), tiny_corpus()[:3]
    layers = tuple(sorted(target.feature_layers))
    whole = FeatureStore(tmp_path, answers, target, layers).take(range(3))
    (path,) = tmp_path.rglob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-100])
    again = FeatureStore(tmp_path, answers, target, layers).take(range(3))
    assert all(torch.equal(old.features, new.features) for old, new in zip(whole, again, strict=True))
    assert not path.exists()


def whole_loss(trainee) -> float:
    """Return the mean loss over all answers, with the same few choices of anchors every time."""
    with torch.no_grad():
        everything, n_tokens = range(len(trainee.lengths)), sum(trainee.lengths)
        losses = [trainee.loss(everything, n_tokens, derive_draws(everything, choice)).total for choice in range(4)]
        return float(torch.stack(losses).mean())


def losses(training: Training) -> list[float]:
    return [row["loss"] for row in training.curve.steps]


@pytest.mark.parametrize("method", TRAINEES)
def test_the_loss_falls_and_only_the_drafter_moves(method: str, tmp_path):
    target = tiny_target()
    before = {name: tensor.clone() for name, tensor in target.model.state_dict().items()}
    fresh = TRAINEES[method](target, tmp_path / "features")
    start = {name: tensor.clone() for name, tensor in fresh.module.state_dict().items()}
    n_steps = 40 if method == "lookahead" else 12  # a few vectors before a whole frozen target learn slowly
    training = train(method, tmp_path, replace(CONFIG, steps=n_steps), target=target)
    assert whole_loss(training.trainee) < 0.99 * whole_loss(fresh)
    assert all(torch.equal(tensor, before[name]) for name, tensor in target.model.state_dict().items())
    moved = training.trainee.module.state_dict()
    assert [name for name, tensor in start.items() if torch.equal(tensor, moved[name])] == []


@pytest.mark.parametrize("method", TRAINEES)
def test_an_interrupted_run_goes_on_along_its_curve_and_a_seed_gives_one_curve(method: str, tmp_path):
    whole = train(method, tmp_path / "whole")
    target = tiny_target()
    part = Training(TRAINEES[method](target, tmp_path / "features"), CONFIG, tmp_path / "part")
    part._after_step = lambda original=part._after_step: (original(), _interrupt(part))[0]  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        part.run()
    assert torch.load(tmp_path / "part" / STATE, weights_only=True)["step"] == 6
    resumed = Training(TRAINEES[method](target, tmp_path / "features"), CONFIG, tmp_path / "part")
    resumed.run()
    assert losses(resumed) == pytest.approx(losses(whole), abs=1e-6)
    assert [row["tau"] for row in resumed.curve.measures] == [row["tau"] for row in whole.curve.measures]


def _interrupt(training: Training) -> None:
    if training.step == 8:  # the last checkpoint is step 6's
        raise KeyboardInterrupt


@pytest.mark.parametrize("method", TRAINEES)
def test_what_was_trained_loads_and_decodes_losslessly(method: str, tmp_path):
    target = tiny_target()
    train(method, tmp_path, target=target)
    engine = Engine(models=["tiny"], drafters=[str(tmp_path / "out")])
    engine.add_target("tiny", target)
    common = {"model": "tiny", "raw": True, "max_new_tokens": 24}
    run = engine.run("abc", make_settings(method=method, drafter="out", **common))
    plain = engine.run("abc", make_settings(method="plain", **common))
    assert [t.token_id for t in run.answer] == [t.token_id for t in plain.answer]
    assert run.drafter.trained and run.drafter.source == "trained with specviz"
    for name in ("curve.html", "curve.json", "training.json"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    assert json.loads((tmp_path / "out" / "config.json").read_text())["training"]["steps_done"] == 12


def test_saved_weights_score_as_the_averaged_ones_in_training(tmp_path):
    """The scale of the features is folded into what is saved: the head that loads accepts what training measured."""
    target = tiny_target()
    training = train("eagle3", tmp_path, target=target)
    again = eagle3_trainee(target, tmp_path / "features", load_eagle3(tmp_path / "out", target))
    assert again.measure(again.module) == pytest.approx(training.trainee.measure(training.average.module))


def test_saved_routers_route_as_in_training(tmp_path):
    """What the routers' inputs are brought to in training is folded into both: as loaded, they read plain states."""
    target = tiny_target()
    training = train("confu", tmp_path, target=target)
    trainee, module = training.trainee, training.average.module
    loaded, saved = load_confu(tmp_path / "out", target)
    features = pack(trainee.store.take([0, 1]), 3).features
    states = trainee.fused(module.head, features)
    assert torch.allclose(loaded.head.fuse(features), states, atol=1e-5)
    for learned, plain, inputs in (
        (module.parts.con_experts, saved.con_experts, (trainee.con_input(features), features)),
        (module.parts.f_experts, saved.f_experts, (trainee.f_input(states), states)),
    ):
        probs = learned.route(inputs[0]).probabilities.detach()
        assert torch.allclose(plain.route(inputs[1]).probabilities, probs, atol=1e-5) and float(probs.std()) > 0
    again = TRAINEES["confu"](target, tmp_path / "features", start=(loaded, saved))
    again.con_input, again.f_input = trainee.con_input, trainee.f_input  # else measured anew, on the trained head
    for experts, plain, router_input in (
        (again.module.parts.con_experts, saved.con_experts, trainee.con_input),
        (again.module.parts.f_experts, saved.f_experts, trainee.f_input),
    ):
        experts.router.weight.data = router_input.unfold(plain.router.weight.data)
    assert again.measure(again.module) == pytest.approx(trainee.measure(module))


def test_groups_of_slots_do_not_depend_on_the_pass_they_are_in(tmp_path, monkeypatch):
    trainee = slot_trainee(tiny_target(), tmp_path, n_prefix=2)
    taken = trainee.store.take([0, 1, 2])
    batch = pack(taken, 3)
    whole, rows = trainee.run(trainee.module, taken, batch, 2, derive_draws(range(3)))
    monkeypatch.setattr("specviz.training.lookahead.GROUPS_OF_A_PASS", 4)
    parts, same_rows = trainee.run(trainee.module, taken, batch, 2, derive_draws(range(3)))
    assert len(whole) > 8 and torch.equal(rows, same_rows)
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-5)


def test_learned_slots_are_held_against_the_training_free_ones(tmp_path):
    target = tiny_target()
    training = train("lookahead", tmp_path, target=target)
    held_out = training.trainee.held_out
    compared = compare_slots(target, held_out, tmp_path / "out")
    measured = training.curve.measures[-1]
    assert [own for _, _, own in compared] == [measured[f"accuracy_{slot}"] for slot in range(3)]
    placeholder = SlotTable(target.mean_embedding.expand(3, -1).clone(), None)
    save_slot_table(tmp_path / "free", placeholder, causal=False)
    same = compare_slots(target, held_out, tmp_path / "free")
    assert same == [(slot, free, free) for slot, free, _ in compared]


def test_a_run_continues_from_weights(tmp_path):
    target = tiny_target()
    train("eagle3", tmp_path, target=target)
    loaded, parts = load_confu(tmp_path / "out", target)
    assert float(parts.f_gate) == 0 and loaded.info.trained
    train("lookahead", tmp_path / "slots", target=target)
    table, _ = load_slot_table(tmp_path / "slots" / "out", target)
    assert table.slots.shape == (3, target.hidden_size)


SCRIPT = """
import sys
from pathlib import Path
import torch
from specviz.training.loop import Training, TrainingConfig
from tests.kit import tiny_target
from tests.training import TRAINEES
torch.set_num_threads(1)
out, batch = Path(sys.argv[1]), int(sys.argv[2])
config = TrainingConfig(steps=5, batch_tokens=batch, warm_up=1, measure_every=5, save_every=5)
for method, trainee in TRAINEES.items():
    Training(trainee(tiny_target(), out / "features"), config, out / method).run()
"""


@pytest.fixture(scope="module")
def curves(tmp_path_factory) -> dict[str, tuple[dict, dict]]:
    """Each method's curve by one process, and by two with half the batch each."""
    folder = tmp_path_factory.mktemp("processes")
    (folder / "script.py").write_text(SCRIPT)
    one = [sys.executable, str(folder / "script.py"), str(folder / "one"), "62"]
    launch = "accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1"
    launch += " --mixed_precision no --dynamo_backend no"
    two = [sys.executable, "-m", *launch.split(), str(folder / "script.py"), str(folder / "two"), "31"]
    for command in (one, two):
        done = subprocess.run(command, capture_output=True, text=True, env=_environment())
        assert done.returncode == 0, done.stderr[-2000:]
    found = {
        method: [json.loads((folder / name / method / "curve.json").read_text()) for name in ("one", "two")]
        for method in TRAINEES
    }
    return {method: (one, two) for method, (one, two) in found.items()}


@pytest.mark.parametrize("method", TRAINEES)
def test_two_processes_do_what_one_does_with_twice_the_batch(curves: dict[str, tuple[dict, dict]], method: str):
    one, two = curves[method]
    assert [r["loss"] for r in two["steps"]] == pytest.approx([r["loss"] for r in one["steps"]], rel=1e-4)
    assert two["measures"][0]["tau"] == pytest.approx(one["measures"][0]["tau"], abs=0.02)


def test_one_of_the_five_steps_has_fewer_answers_than_processes():
    """What the test before says of an epoch's last batch holds only if there is one of a single answer."""
    plan = plan_batches([len(answer.answer_ids) for answer in tiny_corpus()], 62, seed=0)
    assert 1 in [len(next(plan)) for _ in range(5)]


@pytest.mark.parametrize("method", TRAINEES)
def test_a_step_of_one_short_answer_is_a_step(method: str, tmp_path):
    """An epoch's last batch, or a process's share of one, may be an answer shorter than a stride."""
    trainee = TRAINEES[method](tiny_target(), tmp_path)
    if method == "confu":
        trainee.config = replace(trainee.config, anchors=AnchorConfig(stride=32, window=4))
    elif method == "lookahead":
        trainee.config = replace(trainee.config, stride=32)
    shortest = min(range(len(trainee.lengths)), key=trainee.lengths.__getitem__)
    totals = []
    for choice in range(12):
        loss = trainee.loss([shortest], trainee.lengths[shortest], derive_draws(range(1), choice))
        loss.total.backward()
        totals.append(loss.total.detach())
    # A single step may count nothing: ConFu's anchor may serve rows alone whose tokens the head cannot draft.
    assert bool(torch.stack(totals).isfinite().all()) and float(max(totals)) > 0


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["eagle3", "--corpus", "/nowhere/at/all", "--out", "x", "--steps", "1"], "could not be read"),
        (["eagle3", "--corpus", "x", "--out", "x", "--steps", "0"], "--steps must be at least 1, not 0."),
        (["lookahead", "--corpus", "x", "--out", "x", "--steps", "1", "--prefix", "-1"], "must not be negative"),
        (["eagle3", "--corpus", "x", "--out", "x", "--steps", "1", "--learning-rate", "nan"], "between 0 and 1"),
        (["confu", "--corpus", "x", "--out", "x", "--steps", "1", "--selected-experts", "9"], "9 of 8 experts"),
        (["confu", "--corpus", "/nowhere", "--out", "x", "--steps", "1"], "ConFu starts from a trained head"),
    ],
)
def test_mistakes_are_sentences(arguments: list[str], sentence: str, capsys):
    assert main(["train", *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
