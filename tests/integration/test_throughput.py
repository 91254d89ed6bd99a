"""The benchmark of training runs every method and prints its two rates."""

from pathlib import Path

import torch

from specviz.training.loop import TrainingConfig
from specviz.training.throughput import _rate, trainees
from tests.kit import tiny_target
from tests.training import tiny_corpus


def test_every_method_has_a_rate(tmp_path: Path):
    target, answers = tiny_target(), tiny_corpus()
    target.model.to(torch.bfloat16)  # where the methods differ in the precision of their losses
    assert target.dtype == torch.bfloat16
    config = TrainingConfig(steps=1, batch_tokens=30, measure_every=10**9, save_every=10**9)
    built = trainees(target, answers, n_draft=100)
    assert list(built) == ["eagle3", "confu", "lookahead"]
    for name, build in built.items():
        assert _rate(build, answers, target, tmp_path / name, config) > 0
