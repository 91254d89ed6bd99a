"""A real Chromium, and what it can say of a tab: long tasks, times of arrival, bytes on the wire."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from specviz.errors import SpecVizError

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
NEEDS = "This measurement drives a browser: `pip install playwright`, and Chromium (`apt-get install chromium`)."
TIMEOUT_MS = 180_000

TASK, MAIN_THREAD = "RunTask", "CrRendererMain"
CATEGORIES = ["disabled-by-default-devtools.timeline", "__metadata"]

IS_RUNNING = """() => document.querySelector('.stage').dataset.phase === 'running'
  && document.querySelectorAll('.stage .answer .group').length > 3"""

# Notes on the page's own clock (milliseconds after the navigation): when something was there to see, and when values
# for the stage came in; when Stop was pressed, on the machine's clock.
NOTEBOOK = """
window.notes = { seen: {}, values: [], stops: [] };
const shows = {
  ribbon: () => document.querySelector('.stage .answer .token'),
  tree: () => document.querySelector('.plot.tree .scatterlayer .point'),
  mask: () => document.querySelector('.plot.mask .heatmaplayer image, .plot.mask .hm'),
};
function look() {
  for (const [name, isThere] of Object.entries(shows)) {
    if (!notes.seen[name] && isThere()) requestAnimationFrame(() => { notes.seen[name] ??= performance.now(); });
  }
  if (Object.keys(notes.seen).length < Object.keys(shows).length) setTimeout(look, 20);
}
look();
const parse = JSON.parse;
const known = new Set();
JSON.parse = function (text, ...rest) {
  if (typeof text === 'string' && text.includes('"packed"') && !known.has(text)) {
    known.add(text);
    notes.values.push(performance.now());
  }
  return parse.call(this, text, ...rest);
};
addEventListener('click', (event) => { if (event.target.closest('#stop-run')) notes.stops.push(Date.now()); }, true);
"""


@contextmanager
def start_chromium() -> Iterator[Any]:
    """Start a browser without a profile of its own; raise SpecVizError where there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise SpecVizError(NEEDS) from None
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise SpecVizError(NEEDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@dataclass(frozen=True)
class Task:
    """One task of the main thread in milliseconds: by the clock, and of a processor's time."""

    clock_ms: float
    processor_ms: float


def read_tasks(trace: bytes) -> list[Task]:
    """Return the tasks of the page's main thread in one of Chromium's traces."""
    events = json.loads(trace)["traceEvents"]
    named = [event for event in events if event["name"] == "thread_name"]
    main = {(event["pid"], event["tid"]) for event in named if event["args"]["name"] == MAIN_THREAD}
    return [
        Task(event["dur"] / 1000, event["tdur"] / 1000)
        for event in events
        if event["name"] == TASK and "tdur" in event and (event["pid"], event["tid"]) in main
    ]


class Tab:
    """One tab in a fresh profile, with a notebook from its first script on."""

    def __init__(self, browser: Any, address: str, width: int = 1280, height: int = 900) -> None:
        self._browser = browser
        self._context = browser.new_context(viewport={"width": width, "height": height})
        self._context.set_default_timeout(TIMEOUT_MS)
        self._context.add_init_script(NOTEBOOK)
        self.page = self._context.new_page()
        self.n_bytes = 0
        self._streams: set[str] = set()
        self._count_bytes()
        self.page.goto(address)

    def close(self) -> None:
        self._context.close()

    def read(self, script: str) -> Any:
        """Return what a script gives."""
        return self.page.evaluate(script)

    def wait_until_seen(self) -> dict[str, float]:
        """Return after how many milliseconds ribbon, tree and mask were there."""
        self.page.wait_for_function("Object.keys(notes.seen).length === 3")
        seen: dict[str, float] = self.read("notes.seen")
        return seen

    def wait_for_rest(self) -> None:
        """Wait until the run is complete and nothing is drawn any more."""
        self.page.wait_for_selector(".stage[data-phase=idle] .answer .token")
        self.page.wait_for_timeout(1500)

    def press_run(self) -> None:
        """Press Run and wait until the run streams."""
        self.page.click("#run")
        self.page.wait_for_function(IS_RUNNING, polling=100)

    @contextmanager
    def watch_tasks(self) -> Iterator[list[Task]]:
        """Give a list that holds every task of the main thread at the end."""
        tasks: list[Task] = []
        self._browser.start_tracing(page=self.page, categories=CATEGORIES)
        yield tasks
        tasks += read_tasks(self._browser.stop_tracing())

    def _count_bytes(self) -> None:
        session = self._context.new_cdp_session(self.page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", self._note_request)
        session.on("Network.dataReceived", self._note_bytes)

    def _note_request(self, event: dict[str, Any]) -> None:
        if "/queue/data" in event["request"]["url"]:
            self._streams.add(event["requestId"])

    def _note_bytes(self, event: dict[str, Any]) -> None:
        self.n_bytes += event["dataLength"] if event["requestId"] in self._streams else 0
