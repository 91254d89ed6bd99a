"""The steps of a run as a table: whole, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui"))

from fake_engine import FakeEngine, make_run

from specviz.settings import make_settings
from specviz.table import steps_csv

RUN = make_run(0, "hello", make_settings(max_new_tokens=40, k=3), FakeEngine().info("scripted"))


def read_table(run) -> list[dict[str, str]]:
    return list(csv.DictReader(steps_csv(run).splitlines()))


def test_one_line_a_step_with_its_counts():
    table = read_table(RUN)
    assert [int(line["step"]) for line in table] == list(range(len(RUN.steps)))
    for line, step in zip(table, RUN.steps, strict=True):
        assert int(line["accepted"]) == len(step.accepted) and int(line["committed"]) == len(step.committed)
        assert float(line["verify_ms"]) == step.times_ms.verify
    assert "".join(json.loads(line["text"]) for line in table) == RUN.text


def test_model_text_is_never_a_formula():
    RUN.steps[1].committed[0].piece = '=HYPERLINK("http://x","\n")'
    line = read_table(RUN.model_copy(update={"steps": RUN.steps[1:2]}))[0]
    assert line["text"].startswith('"=HYPERLINK')


def test_a_run_without_steps_is_an_empty_table():
    assert steps_csv(RUN.model_copy(update={"steps": []})) == "step\n"
