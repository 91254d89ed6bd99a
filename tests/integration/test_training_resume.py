"""A training goes on under the conditions that it was begun under, and says what differs where it cannot."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from specviz.__main__ import main
from specviz.errors import SpecVizError
from specviz.training.loop import STATE, Training, TrainingConfig
from tests.kit import save_target, tiny_target
from tests.training import eagle3_trainee, save_corpus

CONFIG = TrainingConfig(steps=4, batch_tokens=60, warm_up=1, cool_down=0.5, measure_every=2, save_every=1)


def begin(
    folder: Path, config: TrainingConfig = CONFIG, stop_after: int | None = None, **conditions: object
) -> Training:
    """Return a training in `folder`; with `stop_after` it has been interrupted behind so many steps."""
    training = Training(
        eagle3_trainee(tiny_target(), folder / "features"), config, folder / "out", None, None, conditions
    )
    if stop_after is not None:
        training._after_step = lambda original=training._after_step: (original(), _stop(training, stop_after))[0]  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            training.run()
    return training


def _stop(training: Training, n_steps: int) -> None:
    if training.step == n_steps:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, "another seed (0, not 1)"),
        ({"learning_rate": 0.01}, "another learning_rate (0.002, not 0.01)"),
        ({"batch_tokens": 80}, "another batch_tokens (60, not 80)"),
        ({"cool_down": 0.2}, "another cool_down (0.5, not 0.2)"),
    ],
    ids=str,
)
def test_another_configuration_is_refused(tmp_path: Path, changes: dict, words: str):
    """Guards against a curve of two trainings."""
    begin(tmp_path, stop_after=1)
    with pytest.raises(SpecVizError) as caught:
        begin(tmp_path, replace(CONFIG, **changes)).run()
    assert words in str(caught.value) and "choose another --out folder" in str(caught.value)


def test_all_that_differs_is_named(tmp_path: Path):
    begin(tmp_path, stop_after=1, corpus="one")
    with pytest.raises(SpecVizError) as caught:
        begin(tmp_path, replace(CONFIG, seed=1, batch_tokens=80), corpus="two").run()
    for words in ("another corpus ('one', not 'two')", "another seed (0, not 1)", "another batch_tokens (60, not 80)"):
        assert words in str(caught.value)
    assert "ask for the same, or choose another --out folder" in str(caught.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:1000]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("hello"),
        lambda path: torch.save([1], path),
        lambda path: torch.save({k: v for k, v in torch.load(path).items() if k != "conditions"}, path),
    ],
    ids=["cut off", "empty", "text", "a list", "of a version without conditions"],
)
def test_a_checkpoint_that_cannot_be_read_is_told_and_kept(tmp_path: Path, damage: Callable[[Path], object]):
    begin(tmp_path, stop_after=1)
    damage(tmp_path / "out" / STATE)
    before = (tmp_path / "out" / STATE).read_bytes()
    with pytest.raises(SpecVizError, match=r"is not a checkpoint of this version, or damaged.*with --from"):
        begin(tmp_path).run()
    assert (tmp_path / "out" / STATE).read_bytes() == before


def test_a_folder_that_cannot_be_made_is_told_before_the_first_step(tmp_path: Path):
    training = begin(tmp_path)
    (tmp_path / "out").write_text("a file")
    with pytest.raises(SpecVizError, match="cannot be written to"):
        training.run()
    assert training.step == 0


def test_another_corpus_is_refused_and_measuring_oftener_is_not(tmp_path: Path):
    begin(tmp_path, stop_after=1, corpus="one", target={"dtype": "float32"})
    with pytest.raises(SpecVizError, match=r"another corpus \('one', not 'two'\)"):
        begin(tmp_path, corpus="two", target={"dtype": "float32"}).run()
    with pytest.raises(SpecVizError, match=r"another target \(dtype 'float32', not 'bfloat16'\)"):
        begin(tmp_path, corpus="one", target={"dtype": "bfloat16"}).run()
    curve = begin(tmp_path, replace(CONFIG, measure_every=1), corpus="one", target={"dtype": "float32"}).run()
    assert len(curve.steps) == 4 and len(curve.measures) == 3


def test_the_number_of_steps_may_change_while_the_rate_has_not_begun_to_fall(tmp_path: Path):
    begin(tmp_path, stop_after=2)
    longer = begin(tmp_path, replace(CONFIG, steps=6))
    curve = longer.run()
    whole = begin(tmp_path / "whole", replace(CONFIG, steps=6)).run()
    assert [row["loss"] for row in curve.steps] == pytest.approx([row["loss"] for row in whole.steps], abs=1e-6)


def test_the_number_of_steps_may_not_change_later(tmp_path: Path):
    begin(tmp_path).run()
    with pytest.raises(SpecVizError, match="has done 4 of 4 steps at a rate that falls towards the last"):
        begin(tmp_path, replace(CONFIG, steps=9)).run()
    assert begin(tmp_path).run().steps[-1]["step"] == 4


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny target and two corpora that both leave answers to measure."""
    folder = tmp_path_factory.mktemp("files")
    save_target(tiny_target(), folder / "tiny")
    for seed in (0, 1):
        save_corpus(folder / f"{seed}.jsonl", seed)
    return folder


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--corpus", "1.jsonl"], "another corpus"),
        (["--unroll", "3"], "another unroll (2, not 3)"),
        (["--draft-vocabulary", "50"], "another draft_vocabulary (100, not 50)"),
        (["--dtype", "bfloat16"], "another target (dtype 'float32', not 'bfloat16')"),
        (["--seed", "7"], "another seed"),
    ],
    ids=str,
)
def test_the_command_line_names_what_differs(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture, changes: list[str], words: str
):
    settings = {"--corpus": "0.jsonl", "--unroll": "2", "--draft-vocabulary": "100", "--dtype": "float32"}
    paths = ["--model", str(files / "tiny"), "--out", str(tmp_path / "out"), "--features", str(tmp_path / "features")]

    def train(settings: dict[str, str]) -> int:
        named = {**settings, "--corpus": str(files / settings["--corpus"])}
        flags = [part for pair in named.items() for part in pair]
        return main(["train", "eagle3", *paths, *flags, "--steps", "1", "--batch-tokens", "60"])

    assert train(settings) == 0
    capsys.readouterr()
    assert train({**settings, **dict([changes])}) == 2
    error = capsys.readouterr().err
    assert words in error and "choose another --out folder" in error
    assert train(settings) == 0


def test_a_training_does_not_write_over_the_weights_it_starts_from(tmp_path: Path, capsys: pytest.CaptureFixture):
    (tmp_path / "head").mkdir()
    paths = ["--from", str(tmp_path / "head"), "--out", str(tmp_path / "head" / ".." / "head")]
    assert main(["train", "eagle3", "--corpus", str(tmp_path), "--steps", "1", *paths]) == 2
    assert "holds the weights of --from" in capsys.readouterr().err
    assert list((tmp_path / "head").iterdir()) == []
