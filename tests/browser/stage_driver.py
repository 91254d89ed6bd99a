"""The page in a visitor's words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Error

UNTOUCHED = {"k": "", "max_new_tokens": "30", "temperature": "0"}


def serve(page: Any, **options: Any) -> Iterator[str]:
    """Serve a page while the caller waits."""
    page.launch(prevent_thread_lock=True, quiet=True, run_history=False, server_name="127.0.0.1", **options)
    yield page.local_url
    page.close()


class Visitor:
    """Drives one tab."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab

    def ask(self, prompt: str, **fields: str) -> Visitor:
        """Fill the controls in and press Run; on a phone they wait behind a button."""
        if not self.tab.is_visible("#run"):
            self.tab.click("#open-controls")
        self.tab.fill("#prompt-0 textarea", prompt)
        for name, value in {**UNTOUCHED, **fields}.items():
            if name not in fields and not self.tab.is_visible(f"#{name}"):
                continue
            self.tab.locator(f"#{name} input, #{name} textarea").first.fill(value)
        self.tab.click("#run")
        return self

    def wait_for_end(self, after: str = "") -> Visitor:
        """Wait until another run than `after` is on the stage, and at its end."""
        self.tab.wait_for_selector(f".stage[data-phase=idle]:not([data-run='{after}'])", timeout=90000)
        return self

    def run(self, prompt: str, **fields: str) -> Visitor:
        """Run to the end."""
        before = self.tab.get_attribute(".stage", "data-run") or ""
        return self.ask(prompt, **fields).wait_for_end(after=before)

    def wait_for_charts(self) -> Visitor:
        self.tab.wait_for_selector(".plot.mask .main-svg", timeout=90000)
        self.tab.wait_for_timeout(300)
        return self

    def expect(self, script: str, value: Any) -> None:
        """Wait until a script gives a value; what it reads may not be there yet, or be drawn anew just now."""
        found = None
        for _ in range(300):
            found = self._try(script)
            if found == value:
                return
            self.tab.wait_for_timeout(100)
        assert found == value, f"{script} gives {found!r}"

    def _try(self, script: str) -> Any:
        try:
            return self.tab.evaluate(script)
        except Error as error:
            return error

    def expect_text(self, fragment: str, selector: str) -> None:
        """Wait until an element of the stage says something, in capitals or not."""
        script = "([selector, said]) => document.querySelector(selector).innerText.toLowerCase().includes(said)"
        self.tab.wait_for_function(script, arg=[f".stage {selector}", fragment.lower()], timeout=90000)

    def wait_for_analyses(self) -> Visitor:
        """Wait until what stands in the panes is about the step that is shown."""
        self.tab.wait_for_timeout(50)
        self.tab.wait_for_selector(".analysis [aria-busy=true]", state="detached")
        return self

    def drag_over(self, chart: str, handle: str = ".nsewdrag") -> None:
        """Pull at a chart with the mouse: inside it moves, at a corner (`.nedrag`) it zooms."""
        plot = self.tab.locator(chart)
        plot.scroll_into_view_if_needed()
        box, inside = (plot.locator(name).first.bounding_box() for name in (handle, ".nsewdrag"))
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.tab.mouse.move(x, y)
        self.tab.mouse.down()
        self.tab.mouse.move(x - 0.3 * inside["width"], y + 0.3 * inside["height"], steps=4)
        self.tab.mouse.up()

    def text(self, selector: str) -> str:
        return self.tab.inner_text(f".stage {selector}")

    def answer(self) -> str:
        return self.tab.eval_on_selector(".stage .answer", "box => box.textContent")

    def where(self) -> str:
        return self.text(".where")

    def statuses(self) -> list[str]:
        return self.tab.eval_on_selector_all(".stage .answer .token", "all => all.map(chip => chip.dataset.status)")

    def save(self, folder: Path) -> dict[str, Any]:
        """Save the trace and return it."""
        with self.tab.expect_download() as download:
            self.tab.click("text=Save trace")
        path = folder / download.value.suggested_filename
        download.value.save_as(path)
        return json.loads(path.read_text(encoding="utf-8"))
