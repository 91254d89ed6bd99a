"""A mask that leaks is flagged: traces with a leak made by hand, looked at in the mask proof."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_engine import FakeEngine, make_run
from stage_driver import Visitor, serve

from specviz.figures.mask_proof import LEAK
from specviz.mask_trace import expand_rule, pack_bits
from specviz.settings import make_settings
from specviz.trace import RunTrace, StepTrace, save_trace
from specviz.ui import build_page
from specviz.ui.offline import offline_page

STEP, ROW = 1, 1
PROOF = """document.querySelector('.mask-proof .plot').data[0]"""


def masked_column(step: StepTrace) -> int:
    """Return the first column that the row may not see."""
    return expand_rule(step.mask.rule).matrix()[ROW].index(False)


def flow_into(step: StepTrace, leak: float) -> StepTrace:
    """Return the step with attention in all that the row sees, and `leak` in a column that it may not see."""
    largest = [0.5 if seen else 0.0 for seen in expand_rule(step.mask.rule).matrix()[ROW]]
    largest[masked_column(step)] = leak
    flow = {"row": ROW, "mean": [value / 2 for value in largest], "max": largest, "error": 1e-7}
    return step.model_copy(update={"attention": flow})


def record_wrongly(step: StepTrace) -> StepTrace:
    """Return the step with a cell recorded as visible that the rule masks."""
    mask = expand_rule(step.mask.rule)
    cells = mask.matrix()
    cells[ROW][masked_column(step)] = True
    return step.model_copy(update={"mask": mask.model_copy(update={"bits": pack_bits(cells)})})


def with_step(run: RunTrace, step: StepTrace) -> RunTrace:
    return run.model_copy(update={"steps": [step if own.index == STEP else own for own in run.steps]})


@pytest.fixture(scope="module")
def runs() -> dict[str, RunTrace]:
    run = make_run(0, "hello", make_settings(max_new_tokens=20, k=3), FakeEngine().info("scripted"))
    step = run.steps[STEP]
    return {
        "a-tight": with_step(run, flow_into(step, 0.0)),
        "b-flow": with_step(run, flow_into(step, 1e-6)),
        "c-record": with_step(run, record_wrongly(step)),
    }


@pytest.fixture(scope="module")
def page_url(runs, tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("traces")
    for name, run in runs.items():
        save_trace(run, folder / f"{name}.json")
    yield from serve(build_page(FakeEngine(), recordings=folder))


@pytest.fixture(scope="module")
def visitor(open_shared, page_url) -> Visitor:
    return Visitor(open_shared(page_url))


def prove(visitor: Visitor, name: str) -> None:
    visitor.tab.get_by_label("Run shown").select_option(name)
    visitor.tab.wait_for_selector(f'.stage .source:has-text("{name}: ")')
    visitor.wait_for_end().wait_for_analyses()
    visitor.tab.select_option(".mask-proof select", str(ROW))
    visitor.tab.wait_for_selector(".mask-proof .plot .main-svg")


def leaking_lines(visitor: Visitor, column: int) -> list[str]:
    """Return the lines of the proof in which a column has the colour of a leak, and only that column may have it."""
    found = visitor.tab.evaluate(f"{PROOF}.z.flatMap((line, i) => line.map((value, x) => [{PROOF}.y[i], x, value]))")
    leaks = [(line, x) for line, x, value in found if value == LEAK]
    assert {x for _, x in leaks} <= {column}
    return [line for line, _ in leaks]


def test_attention_of_zero_is_no_leak(visitor, runs):
    prove(visitor, "a-tight")
    visitor.expect_text("No leak", ".mask-proof .verdict")
    visitor.expect_text("with attention of exactly zero", ".mask-proof .verdict")
    assert leaking_lines(visitor, -1) == []
    assert visitor.tab.locator(".mask-proof .verdict.bad").count() == 0


def test_attention_into_a_masked_column_is_flagged(visitor, runs):
    column = masked_column(runs["b-flow"].steps[STEP])
    prove(visitor, "b-flow")
    visitor.tab.wait_for_selector(".mask-proof .verdict.bad")
    visitor.expect_text("A LEAK: ", ".mask-proof .verdict")
    visitor.expect_text("can be read although masked", ".mask-proof .verdict")
    visitor.expect(f"{PROOF}.z.length", 3)  # the rule, and attention's two; the mask itself was not recorded
    assert leaking_lines(visitor, column) == ["attention, largest", "attention, mean"]
    told = visitor.tab.evaluate(f"{PROOF}.text.map((line) => line[{column}])")
    assert told[1].endswith("(a leak: this column is masked)") and told[0] == "masked"
    name = visitor.tab.evaluate(f"{PROOF}.x[{column}]").split(": ")[1]
    visitor.expect_text(name, ".mask-proof .verdict")


def test_a_cell_recorded_against_its_rule_is_flagged(visitor, runs):
    column = masked_column(runs["c-record"].steps[STEP])
    prove(visitor, "c-record")
    visitor.tab.wait_for_selector(".mask-proof .verdict.bad")
    visitor.expect_text("A LEAK: ", ".mask-proof .verdict")
    assert leaking_lines(visitor, column) == ["recorded mask"]


def test_a_page_to_take_along_flags_it_too(runs, context, problems, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(offline_page([runs["b-flow"]]), encoding="utf-8")
    tab = context.new_page()
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.goto(file.as_uri())
    visitor = Visitor(tab).wait_for_end()
    visitor.expect_text("A LEAK: ", ".mask-proof .verdict")
    tab.close()
