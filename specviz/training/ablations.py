"""ConFu with one part left out at a time, each trained for the same short budget from the same EAGLE-3 head.

`python -m specviz.training.ablations --corpus PATH --from EAGLE3 --steps N --out FOLDER` trains every variant by the
command that `train` would take (they are printed), in a folder of its own, and writes `ablations.md`: tau of a greedy
chain on the same held-out answers. Interrupted, it goes on where it was. The control is the head itself, trained for as
many steps on the same batches.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from specviz import terminal
from specviz.errors import SpecVizError, exit_status
from specviz.evaluation.markdown import make_table, show_number
from specviz.training.lineage import read_measures, read_training

TABLE = "ablations.md"
DEPTHS = 4  # whose accuracy the table shows


@dataclass(frozen=True)
class Variant:
    """One training: its folder's name, what it is in words, and the options of `train` that make it."""

    name: str
    words: str
    method: str = "confu"
    options: Mapping[str, int] = field(default_factory=dict)

    def arguments(self, shared: Sequence[str], out: Path) -> list[str]:
        """Return the command line of `python -m specviz`."""
        own = [part for option, value in self.options.items() for part in (f"--{option}", str(value))]
        return ["train", self.method, *shared, *own, "--out", str(out / self.name)]


VARIANTS = (
    Variant("control", "EAGLE-3 alone (the control)", "eagle3"),
    Variant("confu", "ConFu"),
    Variant("no-experts", "ConFu without experts", options={"experts": 1, "selected-experts": 1}),
    Variant("no-soft-prompt", "ConFu without the soft prompt", options={"soft": 0}),
    Variant("no-replication", "ConFu without replication: f serves its anchor's row alone", options={"replication": 1}),
    Variant("every-row", "ConFu with an anchor at every row", options={"anchor-stride": 1, "replication": 1}),
)


def compare_variants(variants: Iterable[Variant], shared: Sequence[str], out: Path) -> str:
    """Train each variant with the `shared` arguments of `train`, and return the table, written to `out` as it grows.

    Raises SpecVizError where a training was refused, after its own sentence.
    """
    from specviz.__main__ import main as specviz

    table, done = "", list[Variant]()
    for variant in variants:
        arguments = variant.arguments(shared, out)
        terminal.tell(f"python -m specviz {shlex.join(arguments)}")
        if specviz(arguments) != 0:
            raise SpecVizError(f"The training of {variant.name!r} did not run; the others stand in {out}.")
        done.append(variant)
        table = show_variants(done, out)
        (out / TABLE).write_text(table, encoding="utf-8")
    return table


def show_variants(variants: Sequence[Variant], out: Path) -> str:
    """Return the Markdown table of trained variants: held-out tau, accuracy of the first depths, and the hours."""
    rows = []
    for variant in variants:
        measure, training = read_measures(out / variant.name)[-1], read_training(out / variant.name)
        shares = [show_number(measure.get(f"accuracy_{depth}"), 3) for depth in range(DEPTHS)]
        rows.append([variant.words, show_number(measure["tau"], 3), *shares, show_number(training["hours"])])
    heads = ["trained", "held-out tau", *(f"right at depth {depth + 1}" for depth in range(DEPTHS)), "hours"]
    return make_table(heads, rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Other options (--learning-rate, --batch-tokens, --seed …) are those of `train`."
    )
    parser.add_argument("--corpus", required=True, nargs="+", metavar="PATH")
    parser.add_argument("--from", dest="parent", required=True, metavar="EAGLE3")
    parser.add_argument("--steps", required=True, type=int, metavar="N")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    names = [variant.name for variant in VARIANTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    chosen, others = parser.parse_known_args()
    shared = ["--corpus", *chosen.corpus, "--from", chosen.parent, "--steps", str(chosen.steps), *others]
    variants = [variant for variant in VARIANTS if variant.name in chosen.only]
    return exit_status(lambda: print(compare_variants(variants, shared, chosen.out)))


if __name__ == "__main__":
    sys.exit(main())
