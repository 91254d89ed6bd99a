"""Everything is linked: what is chosen in one place is marked in all the others."""

from __future__ import annotations

import pytest
from marks import BOXED_EXPERTS, BOXED_ROWS, CHIPS, RINGED, choose_nothing, expect_one_node_everywhere
from stage_driver import Visitor


@pytest.fixture(scope="module")
def visitor(shared_tab) -> Visitor:
    visitor = Visitor(shared_tab).run("hello experts", max_new_tokens="60", k="3").wait_for_charts()
    for summary in visitor.tab.locator(".stage .twins summary").all():
        summary.click()
    return visitor


def test_a_token_marks_node_rows_and_lists(visitor):
    choose_nothing(visitor)
    visitor.tab.locator(".stage .answer .token[data-status=accepted]").first.click()
    expect_one_node_everywhere(visitor)


def test_a_node_of_the_tree_marks_token_rows_and_lists(visitor):
    choose_nothing(visitor)
    place = visitor.tab.evaluate("document.querySelector('.plot.tree').data[3].marker.symbol.indexOf('circle')")
    visitor.tab.locator(".plot.tree .scatterlayer .points path").nth(place).click(force=True)
    expect_one_node_everywhere(visitor)


def test_a_row_of_the_mask_marks_token_and_node(visitor):
    choose_nothing(visitor)
    visitor.tab.evaluate(
        """() => {
            const plot = document.querySelector('.plot.mask');
            const cells = plot.data[1];
            const row = cells.customdata.indexOf(1);
            plot.emit('plotly_click', { points: [{ data: cells, pointNumber: [row, 0] }] });
        }"""
    )
    expect_one_node_everywhere(visitor)


def test_a_row_in_words_marks_token_and_node(visitor):
    choose_nothing(visitor)
    visitor.tab.locator(".stage .twins .rows-list button[data-node='1']").first.click()
    expect_one_node_everywhere(visitor)


def test_an_expert_marks_its_tokens_nodes_and_rows(visitor):
    choose_nothing(visitor)
    visitor.tab.evaluate(
        """() => {
            const plot = document.querySelector('.plot.routing');
            const bars = plot.data[0];
            const used = bars.text.findIndex((weight) => weight !== '');
            plot.emit('plotly_click', { points: [{ data: bars, pointNumber: used }] });
        }"""
    )
    visitor.expect(BOXED_EXPERTS, 1)
    visitor.expect(RINGED, 1)
    visitor.expect(f"{BOXED_ROWS} >= 1", True)
    visitor.expect(CHIPS, 1)
    assert visitor.tab.locator(".stage .answer .group.linked").count() >= 1


def test_a_node_marks_the_experts_that_its_routers_chose(visitor):
    choose_nothing(visitor)
    visitor.tab.locator(".stage .levels button[data-node='0']").click()
    visitor.expect(BOXED_EXPERTS, 4)  # two of each router
    visitor.expect_text("experts of con", ".inspector")


def test_the_moments_of_a_step(visitor):
    choose_nothing(visitor)
    tab = visitor.tab
    tab.get_by_role("button", name="Draft", exact=True).click()
    tab.wait_for_selector('.stage .narration:has-text("Which will the target take?")')
    assert tab.locator(".stage .levels .token[data-status=accepted]").count() == 0
    visitor.expect("document.querySelector('.plot.tree').data[3].marker.color", "#808080")
    tab.get_by_role("button", name="Verify", exact=True).click()
    tab.wait_for_selector(".stage .levels .token[data-status=accepted]")
    assert not tab.locator(".stage .answer .group.current").first.is_visible()
    tab.get_by_role("button", name="Commit", exact=True).click()
    tab.wait_for_selector(".stage .answer .group.current >> visible=true")


def test_zoom_is_kept_from_step_to_step(visitor):
    tab = visitor.tab
    tab.evaluate("Plotly.relayout(document.querySelector('.plot.tree'), { 'xaxis.range': [0.5, 1.5] })")
    step = int(visitor.where().split()[1])
    tab.get_by_role("button", name="Previous step" if step > 1 else "Next step").click()
    visitor.expect(f"document.querySelector('.stage .where').textContent.startsWith('step {step} ')", False)
    tab.wait_for_timeout(800)
    visitor.expect("document.querySelector('.plot.tree').layout.xaxis.range.join()", "0.5,1.5")
    tab.locator(".pane.tree").get_by_role("button", name="Reset zoom").click()
    visitor.expect("document.querySelector('.plot.tree').layout.xaxis.range.join() === '0.5,1.5'", False)


@pytest.mark.parametrize("name", ["tree", "mask"])
def test_zoom_by_buttons_is_kept_from_step_to_step(visitor, name):
    tab = visitor.tab
    ranges = f"['xaxis', 'yaxis'].map((axis) => document.querySelector('.plot.{name}')._fullLayout[axis].range)"
    pane = tab.locator(f".pane.{name}")
    whole = tab.evaluate(ranges)
    pane.get_by_role("button", name="Zoom in").click()
    nearer = tab.evaluate(ranges)
    for (begin, end), (left, right) in zip(whole, nearer, strict=True):
        assert left + right == pytest.approx(begin + end)
        assert (right - left) / (end - begin) == pytest.approx(0.6)
    step = int(visitor.where().split()[1])
    tab.get_by_role("button", name="Previous step" if step > 1 else "Next step").click()
    tab.wait_for_timeout(800)
    visitor.expect(ranges, nearer)
    pane.get_by_role("button", name="Zoom out").click()
    back = tab.evaluate(ranges)
    assert [end - begin for begin, end in back] == pytest.approx([end - begin for begin, end in whole])
    pane.get_by_role("button", name="Reset zoom").click()
    visitor.expect(f"{ranges}.join() === '{','.join(str(value) for line in nearer for value in line)}'", False)


def test_experts_are_listed_only_where_a_router_ran(open_tab, url):
    listed = (
        "[...document.querySelectorAll('.stage .twins summary')]"
        ".filter((own) => own.checkVisibility() && own.textContent === 'The experts that were used').length"
    )
    visitor = Visitor(open_tab(url)).run("hello", max_new_tokens="12", k="2")
    visitor.expect(listed, 0)
    visitor.run("hello experts", max_new_tokens="12", k="2")
    visitor.expect(listed, 1)
