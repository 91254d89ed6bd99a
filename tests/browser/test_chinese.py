"""A page in a Chinese browser: what a reader sees of a recorded run says no English sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fake_engine import FakeEngine
from stage_driver import Visitor, serve

from specviz.ui import build_page, make_i18n

# What stands on the page without the model's own text; two words in a row are English unless they are a name.
# Rows and columns carry the labels of the trace ("12: slot 1 of 0", "cups #13"): tokens and names of rows, as saved.
SEEN = """(selector) => {
  const box = document.querySelector(selector).cloneNode(true);
  box.querySelectorAll('style, .token, .tokens, .source, .scatterlayer text').forEach((part) => part.remove());
  const named = [...box.querySelectorAll('[aria-label], [title]')].flatMap((own) => [own.ariaLabel, own.title]);
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode.nodeValue);
  return [...texts, ...named].filter(Boolean);
}"""
QUOTED = re.compile(r"“[^”]*”|specviz/[\w/]+")
LABELLED = re.compile(r"^\d+: .*|\S+ [·#]\d+")
ENGLISH = re.compile(r"[A-Za-z]{2,}[ ,:;]+[A-Za-z]{2,}|\b[a-z]{4,}\b")
NAMES = re.compile(r"Lookahead Attention|EAGLE-3|ConFu|SmolLM2[\w-]*|bfloat16|cpu|logits?|specviz|nat\b")


@pytest.fixture(scope="module")
def chinese_url() -> Iterator[str]:
    yield from serve(build_page(FakeEngine()), i18n=make_i18n())


@pytest.fixture
def visitor(open_apart, chinese_url) -> Visitor:
    tab = open_apart(chinese_url, locale="zh-CN")
    tab.wait_for_selector(".stage[data-phase=idle] .answer .token")
    return Visitor(tab)


def english_in(visitor: Visitor, selector: str) -> list[str]:
    texts = (NAMES.sub("", LABELLED.sub("", QUOTED.sub("", text))) for text in visitor.tab.evaluate(SEEN, selector))
    return [text for text in texts if ENGLISH.search(text)]


def test_no_english_in_a_step(visitor):
    visitor.tab.click(".levels [data-node='1']")
    for moment in ("draft", "verify", "commit"):
        visitor.tab.click(f"[data-moment={moment}]")
        visitor.expect("() => document.querySelector('.narration').textContent.startsWith('第 1 步')", True)
        assert english_in(visitor, ".drafted") == []
    visitor.tab.wait_for_selector(".inspector .facts")
    visitor.tab.wait_for_selector(".what-if .outcome p")
    visitor.tab.wait_for_selector(".mask-proof .plot .main-svg")
    for twin in visitor.tab.locator(".twins summary:visible").all():
        twin.click()
    visitor.wait_for_charts()
    assert english_in(visitor, ".inspector .why") == []
    assert english_in(visitor, ".stage") == []


def test_choices_are_chinese_and_still_chosen_by_their_values(visitor):
    visitor.tab.click("#method input")
    offered = visitor.tab.locator("#method [role=option]").all_inner_texts()
    assert any("普通解码" in text for text in offered)
    visitor.tab.locator("#method [role=option]").filter(has_text="Lookahead").click()
    visitor.expect("() => document.querySelector('#selection input').value", "经验证（无损）")
    visitor.tab.click("#selection input")
    visitor.tab.locator("#selection [role=option]").filter(has_text="自洽").click()
    visitor.tab.wait_for_selector("#threshold input, #threshold textarea")
    visitor.run("hello", max_new_tokens="9")
    visitor.expect("() => new URLSearchParams(location.search).get('selection')", "self-consistent")


def test_no_english_about_a_run(visitor):
    visitor.tab.click("#tab-run")
    visitor.tab.wait_for_selector(".race .lane")
    visitor.tab.wait_for_selector(".overview .plot .main-svg")
    visitor.tab.wait_for_selector(".hindsight .plot .main-svg")
    visitor.expect_text("与普通解码", ".losslessness .verdict")
    assert english_in(visitor, ".stage") == []


def test_no_english_in_a_comparison_and_in_other_runs(visitor):
    for name in ("05-lookahead-tree", "07-self-consistent"):
        visitor.tab.select_option(".run-chooser select", name)
        visitor.tab.wait_for_selector(f".stage[data-run^='{name}'][data-phase=idle]")
        visitor.tab.wait_for_selector(".what-if .outcome p")
        visitor.wait_for_charts()
        assert english_in(visitor, ".stage") == []
    visitor.tab.click("#tab-compare")
    visitor.tab.select_option(".compare select", "recorded/06-lookahead-chain")
    visitor.tab.wait_for_selector(".compare table")
    assert english_in(visitor, ".compare") == []
