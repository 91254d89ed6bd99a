"""Axe looks at the whole page in the states that a visit passes through: a lesson, the author, a comparison, a race."""

from __future__ import annotations

import pytest
from stage_driver import Visitor

axe_module = pytest.importorskip("axe_playwright_python.sync_playwright")


def faults_of(tab) -> set[str]:
    """Return what axe finds on the whole page, of every rule and impact; the footer alone is Gradio's own."""
    found = axe_module.Axe().run(tab, context={"exclude": [["footer"]]})
    return {
        f"{violation['id']} ({violation['impact']}): {' '.join(map(str, node['target']))} "
        f"{node.get('failureSummary', '')[:160]}"
        for violation in found.response["violations"]
        for node in violation["nodes"]
    }


def open_a_lesson(visitor: Visitor) -> None:
    visitor.tab.click("#tab-lessons")
    visitor.tab.click("text=Why speculation helps")
    visitor.tab.wait_for_selector(".lesson-card")
    visitor.tab.click(".lesson-card button:text-is('Next')")
    visitor.tab.wait_for_selector(".lesson-card .question")


def write_a_lesson(visitor: Visitor) -> None:
    visitor.tab.click("text=Close the lesson")
    visitor.tab.click("#tab-lessons")
    visitor.tab.click("text=Write a lesson of your own")
    visitor.tab.click("text=Mark the step that is shown")
    visitor.tab.wait_for_selector(".scenes textarea")


def compare_two_runs(visitor: Visitor) -> None:
    visitor.tab.click("#tab-compare")
    visitor.tab.select_option(".compare select", "recorded/03-shorter")
    visitor.tab.wait_for_selector(".compare table")


def race(visitor: Visitor) -> None:
    visitor.tab.click("#tab-run")
    visitor.tab.wait_for_selector(".race .lane")
    visitor.tab.wait_for_selector(".race .plot .main-svg")


STATES = (open_a_lesson, write_a_lesson, compare_two_runs, race)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_the_whole_page(open_tab, analysed_url, theme):
    visitor = Visitor(open_tab(f"{analysed_url}?__theme={theme}"))
    visitor.wait_for_end().wait_for_charts()
    found: set[str] = set()
    for state in STATES:
        visitor.tab.set_viewport_size({"width": 1280, "height": 900})
        state(visitor)
        for width in (1280, 320):
            visitor.tab.set_viewport_size({"width": width, "height": 900})
            visitor.tab.wait_for_timeout(500)
            found |= {f"{state.__name__} {width} {fault}" for fault in faults_of(visitor.tab)}
    assert sorted(found) == []
