"""What the page costs a visitor: `python -m specviz.ui.measure` serves it, drives a real Chromium and prints figures.

The recorded runs are those that come with the page; the live run is one of them, played again as 300 steps. It needs
`pip install playwright` and Chromium. On a busy machine the figures are those of the machine: its load is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from specviz.errors import SpecVizError, exit_status
from specviz.trace import RunTrace
from specviz.ui.assets import ASSETS
from specviz.ui.measure.chromium import Tab, start_chromium
from specviz.ui.measure.measurements import Figure, measure_opening, measure_scrubbing, measure_stop, measure_stream
from specviz.ui.measure.replay import ReplayEngine
from specviz.ui.page import build_page
from specviz.ui.trace_file import list_recordings, read_trace_file

MAX_BYTES = 64 * 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recording", default="02-confu-code", help="the run that is played again")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--pass-ms", type=float, default=100, help="how long a target pass takes")
    parser.add_argument("--visits", type=int, default=3)
    parser.add_argument("--presses", type=int, default=5)
    chosen = parser.parse_args()
    engine = ReplayEngine(read_recording(chosen.recording), chosen.steps, chosen.pass_ms / 1000)
    with start_chromium() as browser, serve(engine) as address:
        figures = measure_opening(browser, address, chosen.visits)
        tab = Tab(browser, address)
        figures += measure_stream(tab) + measure_scrubbing(tab) + measure_stop(tab, engine, chosen.presses)
        tab.close()
    print(describe_machine())
    print("\n".join(write_line(figure) for figure in figures))


def read_recording(name: str) -> RunTrace:
    """Return a recorded run by name; raise SpecVizError where there is none."""
    recordings = list_recordings(ASSETS / "traces")
    if name not in recordings:
        raise SpecVizError(f"There is no recording {name!r}; choose one of {', '.join(recordings)}.")
    trace = read_trace_file(recordings[name], MAX_BYTES)
    return trace if isinstance(trace, RunTrace) else trace.batch[0]


@contextmanager
def serve(engine: ReplayEngine) -> Iterator[str]:
    """Serve the page over an engine, with the recordings that come with it."""
    page = build_page(engine)
    page.launch(prevent_thread_lock=True, quiet=True, run_history=False, server_name="127.0.0.1")
    yield str(page.local_url)
    page.close()


def describe_machine() -> str:
    """Say how many processors there are for this process and how busy the machine is."""
    n_processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{n_processors} processor(s) for server and browser together, load average {os.getloadavg()[0]:.1f}"


def write_line(figure: Figure) -> str:
    """Return a figure as one line of a table."""
    verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
    return f"{figure.name:64} {figure.value:>20}  {f'goal {figure.goal}' if figure.goal else '':14} {verdict}".rstrip()


if __name__ == "__main__":
    sys.exit(exit_status(main))
