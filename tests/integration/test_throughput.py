"""The benchmark of training runs every method and prints its two rates."""

import re
from pathlib import Path

import pytest
import torch

from specviz.training import throughput
from specviz.training.loop import TrainingConfig
from specviz.training.throughput import _rate, generation_rates, trainees
from tests.kit import tiny_target
from tests.training import tiny_corpus


def test_generation_has_a_rate_of_the_whole_and_one_while_there_are_prompts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(throughput, "MAX_NEW_TOKENS", 9)
    told = generation_rates(tiny_target(), tiny_corpus(), 20, n_places=4)
    found = re.fullmatch(
        r" *(\d+) answer tokens/s over 20 answers \((\d+) tokens\), +(\d+) while there are prompts", told
    )
    assert found and int(found[2]) <= 180 and int(found[1]) > 0 and int(found[3]) > 0


def test_every_method_has_a_rate(tmp_path: Path):
    target, answers = tiny_target(), tiny_corpus()
    target.model.to(torch.bfloat16)  # where the methods differ in the precision of their losses
    assert target.dtype == torch.bfloat16
    config = TrainingConfig(steps=1, batch_tokens=30, measure_every=10**9, save_every=10**9)
    built = trainees(target, answers, n_draft=100)
    assert list(built) == ["eagle3", "confu", "lookahead"]
    for name, build in built.items():
        assert _rate(build, answers, target, tmp_path / name, config) > 0
