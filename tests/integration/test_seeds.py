"""The seeds' setups, on a target that is here: the lanes that have a drafter run, the others are named."""

import json
import sys
from pathlib import Path

import pytest

from specviz.drafters.checkpoint_eagle3 import save_eagle3
from specviz.evaluation.report import Report
from specviz.evaluation.seeds import SETUPS, choose_lanes, main
from tests.heads import random_head
from tests.kit import save_target, tiny_target


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("seeds")
    target = tiny_target()
    save_target(target, folder / "tiny")
    save_eagle3(folder / "head", random_head(target, 0))
    question = {"question_id": 1, "category": "a", "turns": ["the sea"]}
    (folder / "questions.jsonl").write_text(json.dumps(question) + "\n", encoding="utf-8")
    return folder


def run(folder: Path, setup: str, monkeypatch, *arguments: str) -> None:
    common = ["--questions", str(folder / "questions.jsonl"), "--model", str(folder / "tiny"), "--dtype", "float32"]
    monkeypatch.setattr(
        sys, "argv", ["seeds", setup, *common, "--tokens", "6", "--out", str(folder / setup), *arguments]
    )
    main()


def lanes_of(path: Path) -> set[str]:
    return set(Report.model_validate_json((path / "report.json").read_text(encoding="utf-8")).lanes)


def test_lookahead_runs_each_model_at_the_seed_s_k(folder, monkeypatch, capsys):
    run(folder, "lookahead", monkeypatch)
    printed = capsys.readouterr().out
    for seed_run in SETUPS["lookahead"]:
        lanes = lanes_of(folder / "lookahead" / seed_run.name)
        assert {f"verified k={k} candidates=1 selection=verified" for k in (2, 4, 8, 16)} <= lanes
        assert seed_run.quoted in printed


def test_confu_runs_every_temperature_with_the_drafters_that_are_there(folder, monkeypatch, capsys):
    run(folder, "confu-3b", monkeypatch, "--drafter", f"eagle3={folder / 'head'}")
    told = capsys.readouterr()
    assert told.err.count("confu nodes=") == len(SETUPS["confu-3b"])
    assert "--drafter confu=PATH" in told.err and "tau EAGLE-3 4.00, ConFu 4.41" in told.out
    nodes = {"t0-30": 30, "t07-30": 30, "t1-60": 60}
    for name, n in nodes.items():
        assert lanes_of(folder / "confu-3b" / name) == {"plain", f"eagle3 nodes={n}"}


def test_a_public_drafter_is_taken_unless_another_is_given():
    (run_8b, *_) = SETUPS["confu-8b"]
    (_, public), _ = choose_lanes(run_8b, {})
    assert public.drafter == "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"
    (_, *own), notices = choose_lanes(run_8b, {"eagle3": "mine", "confu": "mine too"})
    assert [lane.drafter for lane in own] == ["mine", "mine too"] and notices == []
