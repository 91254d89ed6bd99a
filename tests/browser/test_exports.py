"""What a visitor takes along: tables, pictures, a page that works without a server."""

from __future__ import annotations

import csv
import json

from stage_driver import Visitor

from specviz.table import steps_csv
from specviz.trace import from_json


def download(visitor: Visitor, name: str, folder):
    with visitor.tab.expect_download() as started:
        visitor.tab.get_by_role("button", name=name, exact=True).click()
    path = folder / started.value.suggested_filename
    started.value.save_as(path)
    return path


def test_table_pictures_and_page(open_tab, url, context, tmp_path):
    visitor = Visitor(open_tab(url))
    visitor.run("hostile experts", max_new_tokens="40", k="3").wait_for_charts()
    trace = from_json(json.dumps(visitor.save(tmp_path)))
    table = download(visitor, "Save steps", tmp_path).read_text(encoding="utf-8")
    assert table == steps_csv(trace)
    assert "".join(json.loads(line["text"]) for line in csv.DictReader(table.splitlines())) == trace.text
    assert download(visitor, "Save Draft tree as PNG", tmp_path).read_bytes().startswith(b"\x89PNG")
    svg = download(visitor, "Save Attention mask of this step as SVG", tmp_path).read_text(encoding="utf-8")
    assert svg.startswith("<svg") and "rows ask" in svg and "<script" not in svg
    page = download(visitor, "Save page", tmp_path)
    take_a_look(context, page, visitor.answer())


def take_a_look(context, page, answer: str) -> None:
    tab = context.new_page()
    requests, errors = [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(page.as_uri())
    offline = Visitor(tab).wait_for_end().wait_for_charts()
    assert offline.answer() == answer and offline.text(".badge") == "RECORDED"
    tab.locator(".stage .levels button").first.click()
    tab.wait_for_function("document.querySelector('.stage .why')?.textContent.startsWith('Root')")
    assert tab.evaluate("window.hacked") is None and errors == []
    assert all(request.startswith(("file:", "data:", "blob:")) for request in requests)
    tab.close()
