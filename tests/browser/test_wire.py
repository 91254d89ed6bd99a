"""What a run costs on the wire, counted in the browser."""

from __future__ import annotations

from stage_driver import Visitor

N_STEPS = 300


class Wire:
    """Counts the bytes of the event stream of a tab, and when stage values come in."""

    def __init__(self, tab) -> None:
        self.tab, self.n_bytes, self._streams = tab, 0, set()
        session = tab.context.new_cdp_session(tab)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", self._note_request)
        session.on("Network.dataReceived", self._count)
        tab.add_init_script(
            """window.arrivals = new Map();
            const parse = JSON.parse;
            JSON.parse = function (text, ...rest) {
              if (typeof text === 'string' && text.includes('"packed"') && !arrivals.has(text)) {
                window.arrivals.set(text, performance.now());
              }
              return parse.call(this, text, ...rest);
            };"""
        )
        tab.reload()
        tab.wait_for_selector(".stage .head")

    def arrivals(self) -> list[float]:
        """Return the seconds at which stage values came in."""
        return [at / 1000 for at in self.tab.evaluate("[...window.arrivals.values()]")]

    def _note_request(self, event) -> None:
        if "/queue/data" in event["request"]["url"]:
            self._streams.add(event["requestId"])

    def _count(self, event) -> None:
        self.n_bytes += event["dataLength"] if event["requestId"] in self._streams else 0


def test_300_steps_of_60_nodes_are_small_paced_and_whole(open_tab, url, tmp_path):
    """F42: at most 4 kB a step and 10 messages a second; no step is lost or out of order."""
    wire = Wire(open_tab(url))
    visitor = Visitor(wire.tab)
    visitor.run("long experts", max_new_tokens="600", k="2", candidates="30")
    arrivals, n_bytes = wire.arrivals(), wire.n_bytes
    steps = visitor.save(tmp_path)["steps"]
    assert len(steps) >= N_STEPS and max(len(step["nodes"]) for step in steps) > 60
    assert [step["index"] for step in steps] == list(range(len(steps)))
    groups = wire.tab.eval_on_selector_all(
        ".stage .answer .group", "all => all.map(group => Number(group.dataset.step))"
    )
    assert groups == list(range(len(steps)))
    # The saved steps come from the server's record, and the page counts its groups itself: what came over the wire is
    # their text, each group's own.
    shown = wire.tab.eval_on_selector_all(".stage .answer .group", "all => all.map(group => group.textContent)")
    assert shown == ["".join(token["piece"] for token in step["committed"]) for step in steps]
    assert 0 < n_bytes / len(steps) < 4096
    assert 1 < len(arrivals) <= 10 * (arrivals[-1] - arrivals[0]) + 2
