"""The card of a trained drafter, a README.md in its folder: what it learned from, how, where, and what came out.

`python -m specviz.training.card FOLDER --bench REPORT.json` writes it anew with tau by category from a report of
`bench` (the lane that is named as the method, or `--lane NAME`).
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specviz.errors import SpecVizError, exit_status
from specviz.training.lineage import read_json, read_measures, read_training

CARD = "README.md"
TITLES = {"lookahead": "Learned lookahead slots", "eagle3": "EAGLE-3 draft head", "confu": "ConFu drafter"}
ASKED = {"nodes": "nodes", "k": "slots", "rows": "rows", "candidates": "candidates"}
NOT_ARGUMENTS = (
    "averaged",
    "remarks",
    "history",
    "clip",
    "average",
    "answers",
    "answer_tokens",
    "hardware",
    "steps_done",
    "hours",
    "threads",
    "method",
    "target",
    "corpus",
)


def hardware() -> str:
    """Return what the machine computes with, in words."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    amx = " with AMX" if torch.cpu._is_amx_tile_supported() else ""
    return f"{os.cpu_count()}-core {platform.machine()} CPU{amx}, {torch.get_num_threads()} thread(s)"


def write_card(folder: Path, report: Mapping[str, Any] | None = None, lane: str | None = None) -> None:
    """Write README.md from training.json and curve.json, with tau by category where a report of bench has it."""
    card = compose_card(read_training(folder), read_measures(folder), report, lane)
    (folder / CARD).write_text(card, encoding="utf-8")


def compose_card(
    training: Mapping[str, Any],
    measures: Sequence[Mapping[str, float]],
    report: Mapping[str, Any] | None = None,
    lane: str | None = None,
) -> str:
    """Return a card's text: of the training (`read_training`), what was measured, and a report of bench."""
    sections = [_head(training), _data(training), _outcome(measures, "averaged" in training)]
    if report is not None:
        sections.append(_by_category(report, lane or training["method"]))
    return "\n\n".join(sections) + "\n"


def _head(training: Mapping[str, Any]) -> str:
    title = TITLES[training["method"]]
    return f"# {title} for {training['target']}\n\nLicence: Apache-2.0, as the target's."


def _data(training: Mapping[str, Any]) -> str:
    options = {key: value for key, value in training.items() if key not in NOT_ARGUMENTS and value not in (None, "")}
    words = " ".join(f"--{_option(key)} {value}" for key, value in options.items())
    corpus = " ".join(training["corpus"])
    return (
        f"Data: {training['answers']:,} answers of the target itself, {training['answer_tokens']:,} tokens, none to a "
        f"prompt of an evaluation set.\n\n"
        f"Steps: {training['steps_done']:,}, in {training['hours']} hours on a {training['hardware']}."
        f"{_before(training)}\n\n"
        f"Command: `python -m specviz train {training['method']} --corpus {corpus} {words} --out FOLDER`"
        + _averaged(training)
        + (f"\n\n{training['remarks']}" if "remarks" in training else "")
    )


def _averaged(training: Mapping[str, Any]) -> str:
    if "averaged" not in training:
        return ""
    return f"\n\nThe weights are the mean (`python -m specviz train average`) of {' and '.join(training['averaged'])}."


def _before(training: Mapping[str, Any]) -> str:
    """Say which trainings its weights came from, and what they come to with this one."""
    history = training.get("history", [])
    if not history:
        return ""
    told = ", ".join(f"{run['method']} {run['steps_done']:,} steps in {run['hours']} hours" for run in history)
    steps, hours = (training[key] + sum(run[key] for run in history) for key in ("steps_done", "hours"))
    return f" Before that: {told}; in all {steps:,} steps in {hours:.2f} hours."


def _option(key: str) -> str:
    return "from" if key == "parent" else key.replace("_", "-")


def _outcome(measures: Sequence[Mapping[str, float]], averaged: bool) -> str:
    if not measures:
        return "Not measured yet."
    last = measures[-1]
    depths = sorted(key for key in last if key.startswith("accuracy_"))
    shares = ", ".join(f"{last[key]:.3f}" for key in depths)
    return (
        f"On held-out greedy answers{', before averaging' if averaged else ''}: tau of a greedy chain "
        f"{last['tau']:.3f}; top-1 accuracy by depth, the tokens before being the answer's own: {shares}. The whole "
        f"curve is in `curve.json`."
    )


def _by_category(report: Mapping[str, Any], lane: str) -> str:
    if lane not in report["lanes"]:
        raise SpecVizError(f"The report has no lane {lane!r}; it has {', '.join(report['lanes'])}.")
    measured, settings = report["lanes"][lane], report["lanes"][lane]["head"]["settings"]
    taus = {category: summary["tau"] for category, summary in measured["by_category"].items()}
    rows = "\n".join(f"| {category} | {tau:.2f} |" for category, tau in taus.items())
    asked = ", ".join(f"{settings[key]} {word}" for key, word in ASKED.items() if settings.get(key) is not None)
    return (
        f"Measured by `python -m specviz bench` on {report['n_questions']} questions of Spec-Bench, temperature "
        f"{report['settings']['temperature']}, {report['settings']['max_new_tokens']} tokens, {asked}: "
        f"tau {measured['overall']['tau']:.2f}.\n\n| category | tau |\n|---|---|\n{rows}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bench", type=Path, metavar="REPORT.json")
    parser.add_argument("--lane")
    chosen = parser.parse_args()
    return exit_status(
        lambda: write_card(chosen.folder, read_json(chosen.bench) if chosen.bench else None, chosen.lane)
    )


if __name__ == "__main__":
    sys.exit(main())
