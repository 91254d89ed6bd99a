"""The page over the bundled target: the real thing, from a prompt to a saved trace."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from stage_driver import Visitor, serve

from specviz.trace import RunTrace, from_json
from specviz.ui import build_page

pytestmark = pytest.mark.bundled


@pytest.fixture(scope="module")
def bundled_url() -> Iterator[str]:
    engine_module = pytest.importorskip("specviz.decoding.engine")
    engine = engine_module.Engine(["bundled"], dtype="float32", device="cpu")
    engine.info("bundled")
    yield from serve(build_page(engine))


def test_a_prompt_becomes_coloured_tokens_beside_their_mask(open_tab, bundled_url, tmp_path):
    visitor = Visitor(open_tab(bundled_url))
    visitor.run("List the planets of the solar system.", max_new_tokens="24").wait_for_charts()
    trace = from_json(json.dumps(visitor.save(tmp_path)))
    assert isinstance(trace, RunTrace) and visitor.answer() == trace.text and trace.exact
    assert {"correction", "bonus"} & set(visitor.statuses())
    drawn = visitor.tab.evaluate("document.querySelector('.plot.mask').data[1].z.length")
    assert drawn == len(trace.steps[-1].mask.matrix()) or drawn >= 48


def test_lookahead_says_what_plain_decoding_says(open_tab, bundled_url):
    visitor = Visitor(open_tab(bundled_url))
    visitor.tab.click("#method input")
    visitor.tab.get_by_role("option", name="Lookahead Attention").click()
    visitor.tab.click("text=More settings")
    visitor.tab.get_by_label("Decode plainly too, to measure the speed-up").check()
    visitor.run("Repeat three times: the quick brown fox.", max_new_tokens="16")
    visitor.expect_text("Output equals plain decoding: yes", ".equality")


def test_a_prompt_longer_than_the_context_is_refused(open_tab, bundled_url):
    visitor = Visitor(open_tab(bundled_url))
    visitor.ask("\U00012000" * 3900, max_new_tokens="8")  # a cuneiform sign is several tokens
    visitor.tab.wait_for_selector(".stage .alert:not([hidden])")
    visitor.expect_text("context holds", ".alert")
    visitor.run("Say hi.", max_new_tokens="4")
    assert visitor.answer()
