"""The published figures: a bench's plots and the drafters' training curves on one page that works offline.

`python -m specviz.evaluation.publish --bench FOLDER --drafters assets/drafters/smollm2-135m-instruct --out FILE` writes
what the README links. `--sweep FOLDER` adds a second bench's curves over what its lanes differ in (node counts, say).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pydantic import ValidationError

from specviz.errors import SpecVizError, exit_status
from specviz.evaluation.figures import build_figures, make_page, sweep_figures
from specviz.evaluation.output import JSON
from specviz.evaluation.report import Report
from specviz.figures.frame import PlotlyDict
from specviz.training.curve import Curve
from specviz.training.lineage import read_json

CURVE = "curve.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True, type=Path, metavar="FOLDER", help="where a bench wrote its report")
    parser.add_argument("--sweep", type=Path, metavar="FOLDER", help="where a bench of several values wrote")
    parser.add_argument("--drafters", required=True, type=Path, metavar="FOLDER", help="holds a folder a drafter")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE")
    chosen = parser.parse_args()
    swept = sweep_figures(read_report(chosen.sweep)) if chosen.sweep else {}
    figures = build_figures(read_report(chosen.bench)) | swept | curve_figures(chosen.drafters)
    try:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(make_page(figures, "SpecViz: tau, speed and training of the drafters"), encoding="utf-8")
    except OSError as error:
        raise SpecVizError(f"The page could not be written to {chosen.out}: {error.strerror}.") from None
    print(f"{len(figures)} figures in {chosen.out}")


def read_report(folder: Path) -> Report:
    """Return a bench's report; raises SpecVizError where there is none in the folder."""
    try:
        return Report.model_validate_json((folder / JSON).read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"{error.error_count()} fields do not fit"
        raise SpecVizError(f"The folder {folder} holds no report of a bench: {reason}.") from None


def curve_figures(drafters: Path) -> dict[str, PlotlyDict]:
    """Return loss and held-out tau over the training of each drafter in a folder, by title."""
    paths = sorted(drafters.glob(f"*/{CURVE}"))
    if not paths:
        raise SpecVizError(f"The folder {drafters} holds no drafter with a training curve.")
    curves = {path.parent.name: Curve.from_dict(read_json(path)) for path in paths}
    return {f"Training of {name}: loss and held-out tau": curve.plot().to_dict() for name, curve in curves.items()}


if __name__ == "__main__":
    sys.exit(exit_status(main))
