"""Links lead back to the same step and node, over a reload and in another browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from fake_engine import FakeEngine, make_run
from marks import BOXED_ROWS
from stage_driver import Visitor, serve

from specviz.settings import make_settings
from specviz.trace import BatchTrace, save_trace
from specviz.ui import build_page

WHERE = "document.querySelector('.stage .where').textContent"


def wait_for_address(visitor: Visitor, **expected: str | None) -> str:
    for name, value in expected.items():
        visitor.expect(f"new URLSearchParams(location.search).get({json.dumps(name)})", value)
    return visitor.tab.url


def test_a_recorded_run_reopens_on_the_same_step_and_node(open_tab, recorded_url):
    visitor = Visitor(open_tab(recorded_url))
    visitor.tab.get_by_label("Run shown").select_option("b-second")
    visitor.tab.wait_for_selector('.stage .source:has-text("b-second")')
    visitor.wait_for_end()
    visitor.tab.locator(".stage .answer").focus()
    visitor.tab.keyboard.press("ArrowRight")
    visitor.tab.locator(".stage .levels button[data-node='1']").click()
    address = wait_for_address(visitor, trace="b-second", step="2", node="1")
    again = Visitor(open_tab(address))
    again.tab.wait_for_selector(".stage .levels button[data-node='1'][aria-pressed=true]")
    again.expect_text("step 2 of", ".where")
    again.expect_text("b-second", ".source")


def test_a_live_run_stays_over_a_reload_and_its_link_says_what_it_was(open_tab, url, tmp_path):
    visitor = Visitor(open_tab(url))
    visitor.run("hello ${1} & <b>", max_new_tokens="20", k="2")
    answer, run = visitor.answer(), visitor.tab.get_attribute(".stage", "data-run")
    trace = visitor.save(tmp_path)
    address = wait_for_address(visitor, trace=run, prompt="hello ${1} & <b>", k="2", seed="0", method="lookahead")
    assert visitor.tab.evaluate(
        "document.querySelector('.stage .run-chooser select').selectedOptions[0].text"
    ).endswith("<b>")
    visitor.tab.reload()
    visitor.tab.wait_for_selector('.stage .badge:has-text("SAVED")', timeout=90000)
    visitor.wait_for_end()
    assert visitor.answer() == answer and visitor.save(tmp_path) == trace
    assert visitor.tab.input_value("#prompt-0 textarea") == "hello ${1} & <b>"
    assert parse_qs(urlsplit(address).query)["trace"] == [run]


def test_another_browser_offers_to_run_it_again(open_tab, url):
    link = f"{url}?trace=elsewhere&prompt=bytes+please&method=lookahead&k=2&max_new_tokens=6&selection=verified"
    visitor = Visitor(open_tab(link))
    visitor.tab.wait_for_selector('.stage .offer:has-text("bytes please")')
    visitor.expect("document.querySelector('#prompt-0 textarea').value", "bytes please")
    visitor.tab.click("text=Run it again")
    visitor.tab.wait_for_selector('.stage .badge:has-text("LIVE")')
    visitor.wait_for_end()
    assert visitor.answer().startswith("😀") and len(visitor.statuses()) == 6


def test_a_link_to_nowhere_says_so(open_tab, recorded_url):
    visitor = Visitor(open_tab(f"{recorded_url}?trace=%3Cimg%20src%3Dx%3E&step=99999&node=777&view=none"))
    visitor.tab.wait_for_selector(".stage .answer .token")
    visitor.expect_text("not kept in this browser", ".alert")
    visitor.expect_text("a-first", ".source")
    assert visitor.tab.locator(".stage [role=tab][aria-selected=true]").count() == 1


@pytest.fixture(scope="module")
def batch_url(tmp_path_factory) -> Iterator[str]:
    """Serve a run, and a batch of two."""
    folder, model = tmp_path_factory.mktemp("traces"), FakeEngine().info("scripted")
    settings = make_settings(max_new_tokens=30, k=2)
    rows = [make_run(row, f"hello number {row}", settings, model) for row in range(2)]
    save_trace(make_run(0, "first", settings, model), folder / "a-first.json")
    save_trace(BatchTrace(batch=rows), folder / "b-batch.json")
    yield from serve(build_page(FakeEngine(), recordings=folder))


def test_a_link_holds_row_step_node_and_view(open_tab, batch_url):
    """From the Run view, with the node of a row of the mask chosen, on a batch's second row and on the first run."""
    visitor = Visitor(open_tab(batch_url))
    for name, row in (("b-batch", "1"), ("a-first", None)):
        choose_a_mask_row(visitor, name, row)
        visitor.tab.goto(wait_for_address(visitor, trace=name, row=row, step="3", node="2", view="run"))
        visitor.tab.wait_for_selector("#tab-run[aria-selected=true]")
        visitor.expect_text("step 3 of", ".where")
        visitor.expect_text(f"{name}: ", ".source")
        if row:
            visitor.expect(f"document.querySelectorAll('.stage .rows button')[{row}].ariaPressed", "true")
        visitor.tab.click("#tab-step")
        visitor.wait_for_charts()
        visitor.tab.wait_for_selector(".stage .levels button[data-node='2'][aria-pressed=true]")
        visitor.expect(f"{BOXED_ROWS} >= 3", True)  # the row of the node, and those of its two slots


def choose_a_mask_row(visitor: Visitor, name: str, row: str | None) -> None:
    visitor.tab.get_by_label("Run shown").select_option(name)
    visitor.tab.wait_for_selector(f'.stage .source:has-text("{name}: ")')
    visitor.wait_for_end()
    if row:
        visitor.tab.locator(".stage .rows button").nth(int(row)).click()
    visitor.tab.locator(".stage .answer").focus()
    visitor.tab.keyboard.press("Home")
    for _ in range(3):
        visitor.tab.keyboard.press("ArrowRight")
    visitor.expect_text("step 3 of", ".where")
    visitor.tab.click("text=The mask in words")
    visitor.tab.locator(".stage .rows-list button[data-node='2']").first.click()
    visitor.tab.click("#tab-run")


def test_a_race_is_run_with_the_settings_of_its_run(open_tab, url, tmp_path):
    """Guards a race that took what the controls held by then."""
    visitor = Visitor(open_tab(url))
    visitor.run("hello there", max_new_tokens="20", k="2", seed="5")
    own = visitor.save(tmp_path)
    visitor.tab.fill("#prompt-0 textarea", "something else")
    visitor.tab.fill("#k input, #k textarea", "4")
    run = visitor.tab.get_attribute(".stage", "data-run")
    visitor.tab.click("#tab-run")
    visitor.tab.click("text=Run again against plain decoding")
    visitor.wait_for_end(after=run).tab.wait_for_selector(".race .lane")
    raced = visitor.save(tmp_path)
    assert raced["settings"] == own["settings"] | {"compare_plain": True}
    assert raced["prompt"] == own["prompt"] and raced["text"] == own["text"]
    assert visitor.tab.input_value("#prompt-0 textarea") == "something else"
    visitor.expect("document.querySelector('#run').disabled", False)


def test_a_saved_run_is_raced_with_its_own_settings(open_tab, url, tmp_path):
    visitor = Visitor(open_tab(url))
    visitor.run("hello there", max_new_tokens="12", k="2", seed="5")
    wait_for_address(visitor, seed="5")
    visitor.expect("document.querySelector('#run').disabled", False)
    visitor.tab.reload()
    visitor.tab.wait_for_selector('.stage .badge:has-text("SAVED")', timeout=90000)
    visitor.wait_for_end().tab.fill("#seed input, #seed textarea", "6")
    visitor.tab.click("#tab-run")
    visitor.tab.click("text=Run again against plain decoding")
    visitor.tab.wait_for_selector('.stage .badge:has-text("LIVE")')
    visitor.wait_for_end()
    raced = visitor.save(tmp_path)["settings"]
    assert (raced["seed"], raced["k"], raced["compare_plain"]) == (5, 2, True)


def test_a_run_that_the_browser_has_kept_can_be_compared(open_tab, url):
    """Guards a list of runs that left out those of this browser, which the server may have forgotten."""
    visitor = Visitor(open_tab(url))
    visitor.run("hello kept run", max_new_tokens="12", k="2")
    kept = visitor.tab.get_attribute(".stage", "data-run")
    wait_for_address(visitor, trace=kept)
    visitor.expect("document.querySelector('#run').disabled", False)
    visitor.tab.goto(url)
    visitor.tab.wait_for_selector(".stage .head")
    visitor.run("hello kept run", max_new_tokens="12", k="3").tab.click("#tab-compare")
    titles = "[...document.querySelectorAll('.compare select option')].map((own) => own.textContent)"
    visitor.expect(f"{titles}.filter((title) => title === 'saved run: lookahead: hello kept run').length", 1)
    visitor.tab.select_option(".compare select", kept)
    visitor.expect_text("Both answers are the same 12 tokens", ".compare")
    assert visitor.tab.locator(".compare .lane").count() == 2


def test_a_run_whose_tab_was_closed_is_kept_as_far_as_it_came(open_tab, url, tmp_path):
    """Guards a live run that was lost where its end did not arrive."""
    visitor = Visitor(open_tab(url))
    visitor.ask("hello slow one", max_new_tokens="60", k="2")
    visitor.expect("document.querySelectorAll('.stage .answer .group').length >= 3", True)
    run = visitor.tab.get_attribute(".stage", "data-run")
    address = wait_for_address(visitor, trace=run)
    visitor.tab.close()
    visitor = Visitor(open_tab(address))
    for _ in range(2):
        visitor.tab.wait_for_selector('.stage .badge:has-text("SAVED")')
        visitor.wait_for_end().expect_text("the end of this run did not arrive", ".status")
        assert visitor.statuses()
        visitor.tab.reload()
    visitor.tab.wait_for_selector('.stage .badge:has-text("SAVED")')
    title = "document.querySelector('.stage .run-chooser select').selectedOptions[0].text"
    visitor.expect(title, "lookahead: hello slow one (incomplete)")
    trace = visitor.save(tmp_path)
    assert trace["finish_reason"] == "stopped" and visitor.answer() == trace["text"]


def test_a_run_whose_connection_was_lost_is_kept(open_tab, url):
    visitor = Visitor(open_tab(url))
    visitor.ask("hello slow two", max_new_tokens="60", k="2")
    visitor.expect("document.querySelectorAll('.stage .answer .group').length >= 2", True)
    run = visitor.tab.get_attribute(".stage", "data-run")
    visitor.tab.evaluate("document.dispatchEvent(new CustomEvent('specviz:over'))")  # as after a lost connection
    visitor.expect_text("the end of this run did not arrive", ".status")
    visitor.expect("document.querySelector('.stage .run-chooser select').value", run)
    wait_for_address(visitor, trace=run)
    visitor.tab.click("#stop-run")
    visitor.expect("document.querySelector('#run').disabled", False)
    visitor.tab.reload()
    visitor.tab.wait_for_selector('.stage .badge:has-text("SAVED")')


def test_a_full_store_says_so_and_loses_nothing(open_apart, url):
    """Guards: a store that refused a run at its commit was not noticed, and nothing was said."""
    tab = open_apart(url)
    quota = {"origin": url.rstrip("/"), "quotaSize": 200_000}
    tab.context.new_cdp_session(tab).send("Storage.overrideQuotaForOrigin", quota)
    visitor = Visitor(tab).run("hello room", max_new_tokens="12", k="2")
    titles = "[...document.querySelectorAll('.stage .run-chooser option')].map((own) => own.text)"
    visitor.expect(f"{titles}.includes('lookahead: hello room')", True)
    assert not tab.is_visible(".stage .alert")
    visitor.run("hello no room", max_new_tokens="1200", k="2").expect_text("store is full", ".alert")
    visitor.expect("document.querySelector('#run').disabled", False)
    tab.reload()
    tab.wait_for_selector(".stage .head")
    visitor.expect(f"{titles}.includes('lookahead: hello room')", True)
    visitor.expect(f"{titles}.includes('lookahead: hello no room')", False)
