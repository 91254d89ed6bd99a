"""A page over the scripted engine, and a real Chromium that may reach nothing else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui"))

from fake_engine import FakeEngine, make_run
from stage_driver import serve

from specviz.settings import make_settings
from specviz.trace import save_trace
from specviz.ui import VisitorLimits, build_page, make_i18n

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PATIENCE = 90000  # milliseconds; a slow machine is not a fault of the page


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def engine() -> FakeEngine:
    return FakeEngine(delay=0.01)


@pytest.fixture(scope="session")
def url(engine, tmp_path_factory) -> Iterator[str]:
    """Serve a page without recordings."""
    yield from serve(
        build_page(engine, limits=VisitorLimits(new_tokens=2000), recordings=tmp_path_factory.mktemp("no"))
    )


@pytest.fixture(scope="session")
def recorded_url(tmp_path_factory) -> Iterator[str]:
    """Serve a page with two recordings, a run and a batch's row."""
    folder = tmp_path_factory.mktemp("traces")
    model = FakeEngine().info("scripted")
    for name, k in (("a-first", 3), ("b-second", 2)):
        save_trace(
            make_run(0, f"{name} experts", make_settings(max_new_tokens=40, k=k), model), folder / f"{name}.json"
        )
    yield from serve(build_page(FakeEngine(), recordings=folder))


@pytest.fixture(scope="session")
def analysed_url(tmp_path_factory) -> Iterator[str]:
    """Serve a page with a raced run, a lossy one and a second run of the first prompt."""
    folder = tmp_path_factory.mktemp("traces")
    model = FakeEngine().info("scripted")
    for name, fields in {
        "01-lookahead-tree": {"k": 3, "compare_plain": True},
        "02-self-consistent": {"k": 3, "selection": "self-consistent"},
        "03-shorter": {"k": 2},
    }.items():
        run = make_run(0, "hello experts", make_settings(max_new_tokens=40, **fields), model)
        save_trace(run, folder / f"{name}.json")
    yield from serve(build_page(FakeEngine(), recordings=folder), i18n=make_i18n())


@pytest.fixture(scope="session")
def context() -> Iterator:
    """Start one Chromium; all tabs share its cache, since plotly.js is large."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        context = browser.new_context(accept_downloads=True)
        context.set_default_timeout(PATIENCE)
        yield context
        browser.close()


@pytest.fixture(scope="session")
def problems() -> list[str]:
    """Collect what went wrong in any tab: errors, dialogs, requests that leave the host."""
    return []


@pytest.fixture(autouse=True)
def nothing_went_wrong(problems) -> Iterator[None]:
    problems.clear()
    yield
    assert problems == []


@pytest.fixture
def open_tab(context, problems) -> Iterator:
    """Return a function that opens a page in a tab of its own."""
    yield from _lend_tabs(context, problems)


@pytest.fixture(scope="module")
def open_shared(context, problems) -> Iterator:
    """The same for tabs that the tests of one file share."""
    yield from _lend_tabs(context, problems)


def _lend_tabs(context, problems: list[str]) -> Iterator:
    tabs = []

    def open_one(address: str, width: int = 1280, height: int = 900):
        tabs.append(_open(context, problems, address, width, height))
        return tabs[-1]

    yield open_one
    for tab in tabs:
        tab.close()


@pytest.fixture
def open_apart(context, problems) -> Iterator:
    """Return a function that opens a page in a browser context of its own.

    For whatever belongs to the context and not to its tab: the language, the store, and the clock, which once set
    stands still in every tab that is opened later.
    """
    contexts = []

    def open_one(address: str, **options):
        contexts.append(context.browser.new_context(**options))
        contexts[-1].set_default_timeout(PATIENCE)
        return _open(contexts[-1], problems, address, 1280, 900)

    yield open_one
    for own in contexts:
        own.close()


@pytest.fixture(scope="session")
def shared_tab(context, problems, url):
    """One tab for all tests that leave the page as they found it: loading it is most of a test's time."""
    return _open(context, problems, url, 1280, 900)


def _open(context, problems: list[str], address: str, width: int, height: int):
    tab = context.new_page()
    tab.set_viewport_size({"width": width, "height": height})
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("dialog", lambda dialog: (problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
    tab.on("request", lambda request: _note_foreign(request.url, problems))
    tab.goto(address)
    tab.wait_for_selector(".stage .head")
    return tab


def _note_foreign(address: str, problems: list[str]) -> None:
    if not address.startswith(("http://127.0.0.1", "data:", "blob:")):
        problems.append(f"a request left the host: {address}")
