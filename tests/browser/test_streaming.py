"""While a run streams: following it, leaving it, playing it at each pace; and what was zoomed stays zoomed."""

from __future__ import annotations

import pytest
from stage_driver import Visitor

STEP = "document.querySelector('.stage .transport input').valueAsNumber"
N_STEPS = "document.querySelectorAll('.stage .answer .group').length"
FOLLOWS = "document.querySelector('.stage .follow').ariaPressed"
PLACE = """[
    document.querySelector('.stage .transport input').valueAsNumber,
    document.querySelector('.stage .moments [aria-pressed=true]').dataset.moment,
]"""
RANGES = """() => ['tree', 'mask'].flatMap((name) => {
    const { xaxis, yaxis } = document.querySelector(`.plot.${name}`)._fullLayout;
    return [...xaxis.range, ...yaxis.range].map((edge) => Math.round(1000 * edge));
})"""
IS_WHOLE = """((name) => {
    const { xaxis, yaxis } = document.querySelector(`.plot.${name}`)._fullLayout;
    return Boolean(xaxis.autorange && yaxis.autorange);
})"""
DRAWN = """(name) => {
    const plot = document.querySelector(`.plot.${name}`);
    window.drawn ??= {};
    plot.on('plotly_afterplot', () => { window.drawn[name] = (window.drawn[name] ?? 0) + 1; });
}"""


@pytest.fixture(scope="module")
def visitor(open_shared, url) -> Visitor:
    return Visitor(open_shared(url))


@pytest.fixture
def running(visitor):
    """A run with a step each half second, of which some steps are there; it is stopped behind the test."""
    before = visitor.tab.get_attribute(".stage", "data-run") or ""
    visitor.ask("slow experts", max_new_tokens="500", k="3")
    visitor.tab.wait_for_selector(f".stage[data-phase=running]:not([data-run='{before}'])")
    wait_for_steps(visitor, 4)
    yield visitor
    visitor.tab.click("#stop-run")
    visitor.tab.wait_for_selector(".stage[data-phase=idle]")


def wait_for_steps(visitor: Visitor, n: int) -> None:
    visitor.tab.wait_for_function(f"{N_STEPS} >= {n}")


def count(visitor: Visitor) -> int:
    return visitor.tab.evaluate(N_STEPS)


def expect_to_follow(visitor: Visitor) -> None:
    visitor.expect(FOLLOWS, "true")
    for _ in range(2):
        wait_for_steps(visitor, count(visitor) + 1)
        visitor.tab.wait_for_function(f"{STEP} === {N_STEPS} - 1")


def expect_to_stay(visitor: Visitor, step: int) -> None:
    visitor.expect(FOLLOWS, "false")
    wait_for_steps(visitor, count(visitor) + 2)
    assert visitor.tab.evaluate(STEP) == step


def test_a_run_is_followed_until_somebody_looks_back(running):
    expect_to_follow(running)
    running.tab.locator(".stage .answer .group[data-step='1'] .token").first.click()
    expect_to_stay(running, 1)
    running.tab.get_by_role("button", name="Follow live").click()
    expect_to_follow(running)
    running.tab.locator(".stage .answer").focus()
    running.tab.keyboard.press("Home")
    expect_to_stay(running, 0)
    running.tab.keyboard.press("ArrowRight")
    running.expect(STEP, 1)
    running.tab.get_by_role("button", name="Follow live").click()
    expect_to_follow(running)
    running.tab.get_by_role("button", name="Follow live").click()
    expect_to_stay(running, running.tab.evaluate(STEP))
    running.tab.locator(".stage .answer").focus()
    last = count(running) - 1
    running.tab.keyboard.press("End")
    running.tab.wait_for_function(f"{STEP} >= {last}")


def test_playing_waits_at_the_newest_step_for_the_next_one(running):
    running.tab.get_by_label("Pace of playing").select_option("fast")
    running.tab.get_by_role("button", name="Play", exact=True).click()
    running.expect(FOLLOWS, "false")
    for _ in range(2):
        wait_for_steps(running, count(running) + 1)
        running.tab.wait_for_function(f"{STEP} === {N_STEPS} - 1")
    running.tab.get_by_role("button", name="Pause", exact=True).click()
    expect_to_stay(running, running.tab.evaluate(STEP))


@pytest.mark.parametrize("handle", [".nsewdrag", ".nedrag"])
def test_zoom_is_kept_while_steps_go_on_streaming(running, handle):
    running.wait_for_charts()
    for name in ("tree", "mask"):
        running.tab.evaluate(DRAWN, name)
        pull(running, name, handle)
    zoomed = running.tab.evaluate(RANGES)
    running.tab.evaluate("window.drawn = {}")
    before = count(running)
    running.tab.wait_for_function(f"window.drawn.tree >= 3 && window.drawn.mask >= 3 && {N_STEPS} >= {before + 2}")
    assert running.tab.evaluate(FOLLOWS) == "true"
    assert running.tab.evaluate(RANGES) == zoomed
    for name in ("tree", "mask"):
        running.tab.locator(f".pane.{name}").get_by_role("button", name="Reset zoom").click()
        running.expect(f"{IS_WHOLE}('{name}')", True)


def pull(visitor: Visitor, name: str, handle: str) -> None:
    """Pull until the chart has another range: a step that is drawn meanwhile may let go of it."""
    for _ in range(5):
        visitor.drag_over(f".plot.{name}", handle)
        visitor.tab.wait_for_timeout(100)
        if not visitor.tab.evaluate(f"{IS_WHOLE}('{name}')"):
            return
    raise AssertionError(f"{name} was not moved by {handle}")


def test_each_pace_goes_on_when_its_time_is_over(open_apart, recorded_url):
    """The clock of the browser is set by hand."""
    visitor = Visitor(open_apart(recorded_url))
    visitor.wait_for_end().wait_for_charts()
    clock = visitor.tab.clock
    clock.install()
    clock.pause_at("2100-01-01")
    pace = visitor.tab.get_by_label("Pace of playing")
    visitor.tab.get_by_role("button", name="First step").click()

    def after(milliseconds: int) -> list:
        clock.run_for(milliseconds)
        clock.run_for(20)  # the frame that shows it
        return visitor.tab.evaluate(PLACE)

    visitor.tab.get_by_role("button", name="Play", exact=True).click()
    assert after(0) == [0, "commit"]
    assert after(500) == [0, "commit"] and after(100) == [1, "commit"] and after(600) == [2, "commit"]
    pace.select_option("fast")
    assert after(100) == [3, "commit"] and after(100) == [4, "commit"]
    pace.select_option("moments")
    assert after(800) == [4, "commit"] and after(100) == [5, "draft"]
    assert after(900) == [5, "verify"] and after(900) == [5, "commit"] and after(900) == [6, "draft"]
    visitor.tab.get_by_role("button", name="Pause", exact=True).click()
    assert after(5000) == [6, "draft"]
    visitor.tab.get_by_role("button", name="Commit", exact=True).click()
    pace.select_option("fast")
    last = visitor.tab.evaluate("document.querySelector('.stage .transport input').max")
    visitor.tab.get_by_role("button", name="Play", exact=True).click()
    assert after(20)[0] == 6 and after(10_000) == [int(last), "commit"]
    assert visitor.tab.get_by_role("button", name="Play", exact=True).is_visible()  # it ended by itself
    visitor.tab.get_by_role("button", name="Play", exact=True).click()
    assert after(20)[0] == 0  # from the end it begins anew
