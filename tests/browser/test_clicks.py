"""Choosing with the mouse on what is drawn, and with the keyboard alone: events of the browser, no call of a script."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_engine import FakeEngine, make_run
from marks import (
    BOXED_EXPERTS,
    BOXED_ROWS,
    CHIPS,
    RINGED,
    TOKENS,
    choose_nothing,
    expect_one_node_everywhere,
)
from stage_driver import Visitor, serve

from specviz.settings import make_settings
from specviz.trace import RoutingTrace, StepTrace, save_trace
from specviz.ui import build_page

N_LAYERS, N_EXPERTS = 4, 8
# The pixel of a place in a chart, given in the numbers of its axes; a category is its index.
PIXEL = """([selector, x, y, suffix]) => {
    const plot = document.querySelector(selector);
    plot.scrollIntoView({ block: 'center' });
    const { left, top } = plot.querySelector('.main-svg').getBoundingClientRect();
    const { [`xaxis${suffix}`]: across, [`yaxis${suffix}`]: down } = plot._fullLayout;
    return [left + across._offset + across.c2p(x), top + down._offset + down.c2p(y)];
}"""


def click_chart(visitor: Visitor, kind: str, x: float, y: float, suffix: str = "") -> None:
    """Move the mouse over a chart that no longer moves itself, and press it."""
    place, before = None, [0.0, 0.0]
    while place != before:
        before = place
        place = visitor.tab.evaluate(PIXEL, [f".plot.{kind}", x, y, suffix])
        visitor.tab.wait_for_timeout(150)
    visitor.tab.mouse.move(*place)
    visitor.tab.mouse.click(*place)


def route_target(step: StepTrace) -> StepTrace:
    """Return the step as a target with experts in every layer gives it: each node has experts of its own."""
    routing = [
        RoutingTrace(
            site=f"target.{layer}",
            node=node.idx,
            probabilities=[1 / N_EXPERTS] * N_EXPERTS,
            selected=[(layer + node.idx) % N_EXPERTS, (layer + node.idx + 4) % N_EXPERTS],
            weights=[0.5, 0.5],
        )
        for layer in range(N_LAYERS)
        for node in step.nodes
    ]
    return step.model_copy(update={"routing": routing})


@pytest.fixture(scope="module")
def page_url(tmp_path_factory) -> Iterator[str]:
    """Serve a run whose drafter has routers, and one whose target has."""
    folder = tmp_path_factory.mktemp("traces")
    run = make_run(0, "hello experts", make_settings(max_new_tokens=40, k=3), FakeEngine().info("scripted"))
    save_trace(run, folder / "drafter.json")
    routed = run.model_copy(update={"steps": [route_target(step) for step in run.steps]})
    save_trace(routed, folder / "target.json")
    yield from serve(build_page(FakeEngine(), recordings=folder))


@pytest.fixture(scope="module")
def tab(open_shared, page_url):
    return open_shared(page_url)


def show(tab, name: str) -> Visitor:
    visitor = Visitor(tab)
    tab.get_by_label("Run shown").select_option(name)
    tab.wait_for_selector(f'.stage .source:has-text("{name}: ")')
    visitor.wait_for_end().wait_for_charts()
    for summary in reversed(tab.locator(".stage .twins details:not([open]) summary").all()):
        summary.click()  # from the last on: an open one is no longer counted
    choose_nothing(visitor)
    visitor.expect(
        "document.querySelector('.plot.routing').data[0].type", {"drafter": "bar", "target": "heatmap"}[name]
    )
    return visitor


@pytest.fixture
def visitor(tab) -> Visitor:
    return show(tab, "drafter")


def accepted_node(visitor: Visitor) -> int:
    return int(visitor.tab.get_attribute(".stage .levels .token[data-status=accepted]", "data-node"))


def test_a_click_on_a_node_of_the_tree(visitor):
    node = accepted_node(visitor)
    x, y = visitor.tab.evaluate(
        """(node) => {
            const { x, y, customdata } = document.querySelector('.plot.tree').data[3];
            return [x, y].map((values) => values[customdata.indexOf(node)]);
        }""",
        node,
    )
    click_chart(visitor, "tree", x, y)
    expect_one_node_everywhere(visitor)
    assert visitor.tab.get_attribute(".stage .answer .chosen", "data-node") == str(node)


@pytest.mark.parametrize("seen", [True, False])
def test_a_click_on_a_cell_of_the_mask(visitor, seen):
    """A cell stands for its row, whether it is filled or blank."""
    node = accepted_node(visitor)
    row, column = visitor.tab.evaluate(
        """([node, seen]) => {
            const { data: [, { z, customdata }] } = document.querySelector('.plot.mask');
            const row = customdata.indexOf(node);
            const visible = z[row][row + z[row].length - z.length];  // a row sees itself
            const column = seen ? z[row].indexOf(visible) : z[row].length - 1;
            return [row, column];
        }""",
        [node, seen],
    )
    first_x = visitor.tab.evaluate("document.querySelector('.plot.mask').data[1].meta.first_x")
    click_chart(visitor, "mask", first_x + column, row)
    expect_one_node_everywhere(visitor)
    assert visitor.tab.get_attribute(".stage .answer .chosen", "data-node") == str(node)


@pytest.mark.parametrize(("site", "suffix"), [(0, ""), (1, "2")])
def test_a_click_on_an_expert_of_the_drafter(visitor, site, suffix):
    expert, height = visitor.tab.evaluate(
        """(site) => {
            const { text, y } = document.querySelector('.plot.routing').data[site];
            const used = text.findIndex((weight) => weight !== '');
            return [used, y[used]];
        }""",
        site,
    )
    click_chart(visitor, "routing", expert, height / 2, suffix)
    visitor.expect(BOXED_EXPERTS, 1)
    visitor.expect(RINGED, 1)
    visitor.expect(CHIPS, 1)
    visitor.expect(f"{BOXED_ROWS} >= 4", True)  # the root's row, and those of its slots
    pressed = visitor.tab.locator(".stage .twins button[data-expert][aria-pressed=true]")
    assert pressed.all_inner_texts() == [f"expert {expert}"]
    assert pressed.get_attribute("data-site") == ("con", "f")[site]
    assert visitor.tab.locator(".stage .answer .group.linked").count() >= 1


@pytest.mark.parametrize("node", [0, 1])
def test_a_click_on_an_expert_of_a_layer(tab, node):
    """A cell that carries the mark of being used is clicked as any other; its nodes are marked, and no others."""
    visitor = show(tab, "target")
    layer, expert = 2, 2 + node
    click_chart(visitor, "routing", expert, layer)
    visitor.expect(BOXED_EXPERTS, 1)
    visitor.expect("document.querySelector('.plot.routing').layout.shapes[0].x0", expert - 0.5)
    chosen = (
        "[...document.querySelectorAll('.stage .levels [aria-pressed=true]')].map((own) => Number(own.dataset.node))"
    )
    visitor.expect(chosen, [node])
    visitor.expect(RINGED, 1)
    visitor.expect(f"{BOXED_ROWS} >= 4", True)


def test_a_click_on_a_token_of_the_ribbon(visitor):
    token = visitor.tab.locator(".stage .answer .token[data-status=accepted]").first
    token.scroll_into_view_if_needed()
    box = token.bounding_box()
    visitor.tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect_one_node_everywhere(visitor)


def press_until(visitor: Visitor, key: str, selector: str) -> None:
    """Press a key until what has the focus matches."""
    for _ in range(400):
        visitor.tab.keyboard.press(key)
        if visitor.tab.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


def test_the_keyboard_alone_reaches_and_marks_everything(page_url, open_tab):
    """From the top of the page with Tab, arrows and Enter: a step, another view and back, node, row, expert."""
    visitor = Visitor(open_tab(page_url))
    visitor.wait_for_end().wait_for_charts()
    press = visitor.tab.keyboard.press
    press_until(visitor, "Tab", ".stage .answer")
    for _ in range(20):
        if visitor.tab.locator(".stage .answer .group.current .token[data-status=accepted]").count():
            break
        press("ArrowRight")
        visitor.tab.wait_for_timeout(50)
    press_until(visitor, "Tab", ".stage [role=tab]")
    press("ArrowRight")
    visitor.tab.wait_for_selector("#tab-run[aria-selected=true]")
    press("ArrowLeft")
    visitor.tab.wait_for_selector("#tab-step[aria-selected=true]")
    press_until(visitor, "Tab", ".stage .levels button[data-node='0']")
    press("Enter")
    visitor.expect(BOXED_EXPERTS, 4)  # two of each router
    press_until(visitor, "Tab", ".stage .levels button[data-status=accepted]")
    press("Space")
    visitor.expect(BOXED_EXPERTS, 0)
    visitor.expect(RINGED, 1)
    visitor.expect(TOKENS, 1)
    node = visitor.tab.get_attribute(".stage .answer .chosen", "data-node")
    # The root is no token of this step, and it alone was routed.
    for place, choice, n_tokens, n_experts in (
        (1, "[data-node='0']", 0, 4),
        (2, f"[data-node='{node}']", 1, 0),
        (3, "[data-expert]", 0, 1),
    ):
        twin = f".stage .twins details:nth-of-type({place})"
        press_until(visitor, "Tab", f"{twin} summary")
        press("Enter")
        press_until(visitor, "Tab", f"{twin} button{choice}")
        press("Enter")
        visitor.expect(TOKENS, n_tokens)
        visitor.expect(BOXED_EXPERTS, n_experts)
        visitor.expect(CHIPS, 1)
        visitor.expect(RINGED, 1)
        visitor.expect(f"{BOXED_ROWS} >= 4", True)
        assert visitor.tab.locator(f"{twin} [aria-pressed=true]").count() >= 1
