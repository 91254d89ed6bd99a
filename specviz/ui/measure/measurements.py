"""The measurements themselves, each a question about a page and the figure that answers it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specviz.ui.measure.chromium import Tab, Task
from specviz.ui.measure.processor import used_seconds
from specviz.ui.measure.replay import ReplayEngine

LONG_TASK_MS = 100

# Every frame one step further, as a hand that drags the slider; what was drawn is counted where it is drawn.
SCRUB = """async () => {
  const slider = document.querySelector('.stage .transport input[type=range]');
  const where = document.querySelector('.stage .where');
  const drawn = { words: 0, tree: 0, mask: 0 };
  const plots = ['tree', 'mask'].map((name) => [name, document.querySelector(`.plot.${name}`)]);
  const count = Object.fromEntries(plots.map(([name]) => [name, () => { drawn[name] += 1; }]));
  plots.forEach(([name, plot]) => plot.on('plotly_afterplot', count[name]));
  const observer = new MutationObserver(() => { drawn.words += 1; });
  observer.observe(where, { childList: true, characterData: true, subtree: true });
  const begin = performance.now();
  for (let step = 1; step <= Number(slider.max); step += 1) {
    slider.value = step;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    await new Promise(requestAnimationFrame);
  }
  const seconds = (performance.now() - begin) / 1000;
  observer.disconnect();
  plots.forEach(([name, plot]) => plot.removeListener('plotly_afterplot', count[name]));
  return { seconds, ...drawn };
}"""


@dataclass(frozen=True)
class Figure:
    """One measured figure: what it is, its value as text, the goal, and whether it is met (None: no goal)."""

    name: str
    value: str
    goal: str = ""
    met: bool | None = None


def measure_opening(browser: Any, address: str, n_visits: int) -> list[Figure]:
    """Open the page in fresh profiles; seconds from the navigation until ribbon and charts are there, medians."""
    visits = [_visit(browser, address) for _ in range(n_visits)]
    ribbon, charts, used = (statistics.median(values) for values in zip(*visits, strict=True))
    return [
        Figure("ribbon readable, cold", f"{ribbon:.2f} s", "1.5 s", ribbon <= 1.5),
        Figure("charts drawn, cold", f"{charts:.2f} s", "3 s", charts <= 3),
        Figure("processor time of server and browser until then", f"{used:.2f} s"),
    ]


def _visit(browser: Any, address: str) -> tuple[float, float, float]:
    """Return the seconds until the ribbon and until the charts, and the processor's seconds until the charts."""
    used = used_seconds()
    tab = Tab(browser, address)
    seen = tab.wait_until_seen()
    used = used_seconds() - used
    tab.close()
    return seen["ribbon"] / 1000, max(seen["tree"], seen["mask"]) / 1000, used


def measure_stream(tab: Tab) -> list[Figure]:
    """Stream a run; long tasks, bytes a step and messages a second."""
    tab.wait_for_rest()
    since, n_bytes = tab.read("performance.now()"), tab.n_bytes
    with tab.watch_tasks() as tasks:
        tab.press_run()
        tab.wait_for_rest()
    n_steps = tab.read("document.querySelectorAll('.stage .answer .group').length")
    values = [at for at in tab.read("notes.values") if at >= since]
    rate = (len(values) - 1) / max(0.001, (values[-1] - values[0]) / 1000)
    size = (tab.n_bytes - n_bytes) / n_steps
    return [
        *_task_figures(f"{n_steps} steps streaming", tasks),
        Figure("bytes a step on the wire", f"{size:.0f}", "4096", size <= 4096),
        Figure("messages a second", f"{rate:.1f}", "10", rate <= 10.5),
    ]


def measure_scrubbing(tab: Tab) -> list[Figure]:
    """Drag the slider over all steps of the run on the stage; steps a second that were drawn."""
    tab.page.get_by_label("First step").click()
    tab.wait_for_rest()
    with tab.watch_tasks() as tasks:
        drawn = tab.read(SCRUB)
    words, tree, mask = (drawn[name] / drawn["seconds"] for name in ("words", "tree", "mask"))
    return [
        Figure("scrubbing: steps a second in tokens and words", f"{words:.0f}", "30", words >= 30),
        Figure("scrubbing: trees and masks a second", f"{tree:.0f}, {mask:.0f}"),
        Figure(
            "scrubbing: processor time a step", f"{sum(task.processor_ms for task in tasks) / drawn['words']:.0f} ms"
        ),
        *_task_figures("scrubbing", tasks),
    ]


def measure_stop(tab: Tab, engine: ReplayEngine, n_presses: int) -> list[Figure]:
    """Press Stop in the middle of runs; target passes that began after the press, the most of all presses."""
    further = []
    for _ in range(n_presses):
        tab.wait_for_rest()
        tab.press_run()
        tab.page.click("#stop-run")
        tab.wait_for_rest()
        pressed = tab.read("notes.stops.at(-1)") / 1000
        further.append(sum(at > pressed for at in engine.begun))
    name = f"target passes begun after Stop ({engine.seconds * 1000:.0f} ms each, most of {n_presses})"
    return [Figure(name, str(max(further)), "1", max(further) <= 1)]


def _task_figures(name: str, tasks: Sequence[Task]) -> list[Figure]:
    """Count long tasks by the clock, and by processor time: on a busy machine a task waits for others."""
    clock = sorted((task.clock_ms for task in tasks), reverse=True)
    processor = sorted((task.processor_ms for task in tasks), reverse=True)
    return [
        _count_long(f"{name}: tasks over {LONG_TASK_MS} ms by the clock", clock),
        _count_long(f"{name}: tasks over {LONG_TASK_MS} ms of processor time", processor),
    ]


def _count_long(name: str, ms: Sequence[float]) -> Figure:
    n_long = sum(own > LONG_TASK_MS for own in ms)
    return Figure(name, f"{n_long} (longest {max(ms, default=0):.0f} ms)", "none", n_long == 0)
