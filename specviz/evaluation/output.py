"""The files of a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specviz.errors import SpecVizError
from specviz.evaluation.figures import build_figures, make_page
from specviz.evaluation.misses import list_all_misses
from specviz.evaluation.records import LaneRecord
from specviz.evaluation.report import Report
from specviz.evaluation.tables import show_report

MARKDOWN, JSON, PLOTS, MISSES = "report.md", "report.json", "plots.html", "misses.md"


def write_report(folder: Path, report: Report, records: Sequence[LaneRecord]) -> list[Path]:
    """Write the report beside its records and return the files."""
    texts = {
        MARKDOWN: show_report(report),
        JSON: report.model_dump_json(indent=1),
        PLOTS: make_page(build_figures(report)),
    }
    if report.misses:
        texts[MISSES] = f"# Misses\n\n{list_all_misses(records)}\n"
    try:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpecVizError(f"The report could not be written to {folder}: {error.strerror}.") from None
    return [folder / name for name in texts]
