"""Everyone can use the page: axe finds nothing of ours, and the whole walk works by keyboard."""

from __future__ import annotations

import pytest
from stage_driver import Visitor

axe_module = pytest.importorskip("axe_playwright_python.sync_playwright")


def faults_of(tab) -> list[str]:
    """Return what axe finds in the stage, as rule and place."""
    found = axe_module.Axe().run(tab, context=".stage")
    return [
        f"{violation['id']}: {node['target']} {node.get('failureSummary', '')[:200]}"
        for violation in found.response["violations"]
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(open_tab, recorded_url, theme):
    visitor = Visitor(open_tab(f"{recorded_url}?__theme={theme}"))
    visitor.wait_for_end().wait_for_charts()
    for summary in visitor.tab.locator(".stage summary >> visible=true").all():
        summary.click()
    visitor.tab.locator(".stage .levels button").nth(1).click()
    found = []
    for width in (1280, 320):
        visitor.tab.set_viewport_size({"width": width, "height": 900})
        visitor.tab.wait_for_timeout(500)
        for view in visitor.tab.locator(".stage [role=tab]").all():
            view.click()
            visitor.tab.wait_for_timeout(1500)
            found += [f"{width} {view.inner_text()} {fault}" for fault in faults_of(visitor.tab)]
    assert found == []


def test_the_walk_by_keyboard(open_tab, recorded_url):
    """From the chooser through every control of the stage with Tab alone; a node is chosen with Enter."""
    visitor = Visitor(open_tab(recorded_url))
    visitor.wait_for_end().wait_for_charts()
    visitor.tab.get_by_label("Run shown").focus()
    seen: list[str] = []
    for _ in range(60):
        visitor.tab.keyboard.press("Tab")
        seen.append(
            visitor.tab.evaluate(
                """() => {
                    const { activeElement: own } = document;
                    return own.getAttribute('aria-label') ?? own.textContent.trim().slice(0, 40);
                }"""
            )
        )
    for name in ("Copy link", "Save trace", "Play", "Step", "Draft", "Pace of playing", "Drafted tokens by level"):
        assert name in seen
    assert any(name.startswith("root:") for name in seen) and "Save Draft tree as PNG" in seen
    visitor.tab.locator(".stage .levels button").nth(1).focus()
    visitor.tab.keyboard.press("Enter")
    visitor.tab.wait_for_selector(".stage .why")
    visitor.tab.get_by_role("tab", name="Step").focus()
    visitor.tab.keyboard.press("ArrowRight")
    visitor.tab.wait_for_selector(".stage [role=tab][aria-selected=true] >> text=Run")


def test_reduced_motion_is_respected(open_tab, recorded_url):
    tab = open_tab(recorded_url)
    tab.emulate_media(reduced_motion="reduce")
    moving = tab.evaluate(
        """() => [...document.querySelectorAll('.stage *')].filter((own) => {
            const { transitionDuration, animationName } = getComputedStyle(own);
            return parseFloat(transitionDuration) > 0 || animationName !== 'none';
        }).length"""
    )
    assert moving == 0
