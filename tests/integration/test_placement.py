"""Where a model is placed: spread over what there is, or whole on the one device that was named."""

import pytest
import torch

from specviz.commands import train
from specviz.errors import SpecVizError
from specviz.target import loading


@pytest.mark.parametrize(
    ("device", "placed"),
    [
        (torch.device("cpu"), None),
        (torch.device("cuda"), "auto"),
        (torch.device("cuda", 1), {"": torch.device("cuda", 1)}),
    ],
    ids=str,
)
def test_a_model_is_spread_unless_one_device_was_named(
    device: torch.device, placed: object, monkeypatch: pytest.MonkeyPatch
):
    asked: dict = {}
    monkeypatch.setattr(loading.AutoModelForCausalLM, "from_pretrained", lambda folder, **given: asked.update(given))
    loading._load_model("folder", None, torch.bfloat16, device)
    assert asked.get("device_map") == placed


@pytest.mark.parametrize(
    ("rank", "device", "expected"),
    [(None, "auto", "auto"), ("1", "auto", "cuda:1"), ("0", "cuda", "cuda:0"), ("1", "cpu", "cpu")],
)
def test_each_process_of_a_training_has_a_device_of_its_own(
    rank: str | None, device: str, expected: str, monkeypatch: pytest.MonkeyPatch
):
    """Guards against a target that every process spreads over all devices; CUDA is played."""
    loaded: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
    monkeypatch.setattr(loading, "load_target", lambda name, device, dtype, progress: loaded.append(device))
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    train._load_target({"model": "bundled", "device": device, "dtype": "auto"})
    assert loaded == [expected]


def test_more_processes_than_gpus_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(SpecVizError, match="this machine has 2: start no more processes"):
        train._load_target({"model": "bundled", "device": "auto", "dtype": "auto"})


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_device_that_is_not_there_is_a_sentence(device: str):
    with pytest.raises(SpecVizError, match="No CUDA device"):
        loading.choose_device(device)
