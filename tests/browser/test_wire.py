"""What a run costs on the wire, counted in the browser."""

from __future__ import annotations

import json

from stage_driver import Visitor

N_STEPS = 300


def count_messages(tab) -> None:
    """Count the values that reach the stage, and when."""
    tab.add_init_script(
        """window.messages = [];
        const parse = JSON.parse;
        JSON.parse = function (text, ...rest) {
          const isValue = typeof text === 'string' && text.includes('"packed"');
          if (isValue) window.messages.push([performance.now(), text.length]);
          return parse.call(this, text, ...rest);
        };"""
    )
    tab.reload()
    tab.wait_for_selector(".stage .head")


def test_300_steps_of_60_nodes_are_small_paced_and_whole(open_tab, url, tmp_path):
    """F42: at most 4 kB a step and 10 messages a second; no step is lost or out of order."""
    tab = open_tab(url)
    count_messages(tab)
    visitor = Visitor(tab)
    visitor.run("long experts", max_new_tokens="900", k="4", candidates="15")
    steps = visitor.save(tmp_path)["steps"]
    assert len(steps) > N_STEPS - 50 and max(len(step["nodes"]) for step in steps) > 60
    assert [step["index"] for step in steps] == list(range(len(steps)))
    groups = tab.eval_on_selector_all(".stage .answer .group", "all => all.map(group => Number(group.dataset.step))")
    assert groups == list(range(len(steps)))
    messages = json.loads(tab.evaluate("JSON.stringify(window.messages)"))
    running = [(at, size) for at, size in messages if size > 400]
    assert sum(size for _, size in running) / len(steps) < 4096
    seconds = (running[-1][0] - running[0][0]) / 1000
    assert len(running) <= 10 * seconds + 2
