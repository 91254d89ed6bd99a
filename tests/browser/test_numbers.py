"""Every number that the page shows of a run is `metrics.py` on the trace that it saves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from fake_engine import FakeEngine
from stage_driver import Visitor, serve

from specviz.metrics import METRIC_DEFINITIONS, compute_metrics
from specviz.trace import BatchTrace, RunTrace, load_trace
from specviz.ui import build_page
from specviz.ui.assets import ASSETS
from specviz.ui.trace_file import list_recordings

RECORDINGS = list_recordings(ASSETS / "traces")

CARDS = """() => [...document.querySelectorAll('.stage .cards .card')].map((card) => [
    card.querySelector('dt').textContent,
    card.querySelector('dd').firstChild.textContent,
    card.querySelector('dd small').textContent,
])"""


TABLE = """() => [...document.querySelectorAll('.stage .compare tbody tr')]
    .slice(0, 7).map((line) => [...line.children].slice(1).map((cell) => cell.textContent))"""
COMPARED = {
    "tau": 2,
    "tau_draft": 2,
    "tokens_per_second": 1,
    "rows_per_pass": 1,
    "draft_ms": 1,
    "verify_ms": 1,
    "speedup": 2,
}


def write(value: float, digits: int, unit: str = "") -> str:
    """Round a half up, as JavaScript does."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)}{unit}"


def write_percent(rate: float) -> str:
    return str(math.floor(100 * rate + 0.5))


def expected_cards(metrics: dict[str, Any]) -> list[list[str]]:
    """Return label, text and origin of each card, spelled here once more and not by the page."""
    depths = list(metrics["acceptance_by_depth"].values())[:8]
    texts = {
        "tau": lambda value: write(value, 2),
        "tau_draft": lambda value: write(value, 2),
        "speedup": lambda value: write(value, 2, "×"),
        "tokens_per_second": lambda value: write(value, 1),
        "acceptance_rate": lambda value: f"{write_percent(value)} %",
        "acceptance_by_depth": lambda _: " · ".join(map(write_percent, depths)) + " %",
        "n_tokens": str,
        "n_passes": str,
        "rows_per_pass": lambda value: write(value, 1),
        "draft_ms": lambda value: write(value, 1, " ms"),
        "verify_ms": lambda value: write(value, 1, " ms"),
        "slot_kv_percent": lambda value: write(value, 1, " %"),
    }
    return [
        [str(METRIC_DEFINITIONS[name].label), text(metrics[name]), METRIC_DEFINITIONS[name].origin]
        for name, text in texts.items()
        if metrics[name] not in (None, {})
    ]


def runs_of(trace: RunTrace | BatchTrace) -> list[RunTrace]:
    return trace.batch if isinstance(trace, BatchTrace) else [trace]


@pytest.fixture(scope="module")
def page_url() -> Iterator[str]:
    yield from serve(build_page(FakeEngine()))


@pytest.fixture(scope="module")
def visitor(open_shared, page_url) -> Visitor:
    return Visitor(open_shared(page_url)).wait_for_end()


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_cards_of_a_recorded_run_are_its_metrics(visitor, name, tmp_path):
    visitor.tab.get_by_label("Run shown").select_option(name)
    visitor.tab.wait_for_selector(f'.stage .source:has-text("{name}: ")')
    visitor.wait_for_end()
    visitor.save(tmp_path)
    (saved,) = tmp_path.iterdir()
    trace = load_trace(saved)
    assert trace == load_trace(RECORDINGS[name])
    for row, run in enumerate(runs_of(trace)):
        if row:
            visitor.tab.locator(".stage .rows button").nth(row).click()
        expected = expected_cards(compute_metrics(run))
        assert len(expected) >= 6
        visitor.expect(CARDS, expected)


def test_a_comparison_shows_the_metrics_of_both_runs(visitor):
    names = ("06-lookahead-chain", "09-plain")
    visitor.tab.get_by_label("Run shown").select_option(names[0])
    visitor.tab.wait_for_selector(f'.stage .source:has-text("{names[0]}: ")')
    visitor.wait_for_end()
    visitor.tab.click("#tab-compare")
    visitor.tab.select_option(".compare select", f"recorded/{names[1]}")
    both = [compute_metrics(load_trace(RECORDINGS[name])) for name in names]
    shown = [[metrics[name] for metrics in both] for name in COMPARED]
    assert shown[-1][0] is not None and shown[-1][1] is None
    expected = [
        ["not measured" if value is None else write(value, digits) for value in values]
        for values, digits in zip(shown, COMPARED.values(), strict=True)
    ]
    visitor.expect(TABLE, expected)


def test_the_cards_of_a_live_run_are_its_metrics(visitor, tmp_path):
    visitor.tab.click("text=More settings")
    visitor.tab.get_by_label("Decode plainly too, to measure the speed-up").check()
    visitor.tab.click("#method input")
    visitor.tab.get_by_role("option", name="Lookahead Attention").click()
    visitor.run("hello", max_new_tokens="40", k="3")
    visitor.save(tmp_path)
    (saved,) = tmp_path.iterdir()
    metrics = compute_metrics(load_trace(saved))
    assert metrics["speedup"] and metrics["acceptance_rate"] is not None
    visitor.expect(CARDS, expected_cards(metrics))
