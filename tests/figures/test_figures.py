"""What holds for every figure, and the figures of experts, runs and the seed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs_version

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "analysis"))

from figure_steps import make_node, make_random_tree, make_routing, make_small_tree, make_step, make_token
from traces import make_run

from specviz import figures
from specviz.figures.palette import STATUSES, THEMES
from specviz.figures.plotly_script import PLOTLY_SCRIPT
from specviz.figures.seed import print_seed_mask, run_mask
from specviz.metrics import acceptance_by_depth
from specviz.trace import MaskTrace, RunTrace, StepTrace


def make_routed_step(index: int = 1) -> StepTrace:
    routing = [
        make_routing("con", None, [0.0, 1.0, 2.0, 3.0]),
        make_routing("f", 0, [3.0, 2.0, 1.0, 0.0]),
        make_routing("f", 1, [0.0, 0.0, 5.0, 0.0]),
    ]
    return make_small_tree(routing=routing, index=index)


def make_moe_step(index: int = 1) -> StepTrace:
    routing = [make_routing(f"target.{layer}", 0, [float(layer == e) for e in range(8)]) for layer in (10, 2)]
    return make_small_tree(routing=routing, index=index)


def make_example_run() -> RunTrace:
    prefill = make_step([], [], [make_token("Hi", "target")], index=0)
    return make_run([prefill, *(make_routed_step(i) for i in range(1, 6))])


def make_every_figure(theme: str | None) -> dict[str, figures.PlotlyDict]:
    run, step = make_example_run(), make_routed_step()
    empty = make_run([])
    bare = make_step([], [], [], MaskTrace())
    return {
        "mask": figures.mask_figure(make_random_tree(20, 0), [" a"] * 300, theme=theme),
        "mask of nothing": figures.mask_figure(bare, [], theme=theme),
        "tree": figures.tree_figure(make_random_tree(20, 0), theme=theme, selected=2),
        "tree of nothing": figures.tree_figure(bare, theme=theme),
        "routing": figures.routing_figure(step, theme=theme),
        "routing of nothing": figures.routing_figure(bare, theme=theme),
        "routing of a target": figures.routing_figure(make_moe_step(), theme=theme),
        "history": figures.routing_history_figure(run, "con", theme=theme),
        "history of nothing": figures.routing_history_figure(run, "nowhere", theme=theme),
        "acceptance": figures.acceptance_figure(run, theme=theme),
        "tokens": figures.tokens_per_pass_figure(run, theme=theme),
        "times": figures.times_figure(run, theme=theme),
        "tokens of nothing": figures.tokens_per_pass_figure(empty, theme=theme),
        "times of nothing": figures.times_figure(empty, theme=theme),
        "drawing": figures.seed_drawing_figure(4, 3, theme=theme),
        "formula": figures.seed_drawing_figure(4, 3, printed="formula", theme=theme),
        "what runs": figures.what_runs_figure(4, 3, "causal", theme=theme),
    }


NAMES = list(make_every_figure("light"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("theme", THEMES)
def test_every_figure_is_valid_plain_and_without_nan(name: str, theme: str) -> None:
    figure = make_every_figure(theme)[name]
    assert figures.as_figure(figure) is not None
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    layout = figure["layout"]
    assert "template" not in layout
    assert layout["uirevision"] == "specviz"
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert "width" not in layout
    assert layout["xaxis"]["title"]["text"]


@pytest.mark.parametrize("name", NAMES)
def test_bare_figures_do_not_know_the_theme(name: str) -> None:
    bare = json.dumps(make_every_figure(None)[name])
    for theme in THEMES.values():
        assert not any(colour in bare for colour in (theme.text, theme.muted, theme.background, theme.surface))


def test_bare_figures_join_the_frames_of_the_page() -> None:
    frames = figures.figure_constants()["frames"]
    step = make_routed_step()
    bare = figures.mask_figure(step, [], theme=None)
    assert figures.join_frame(bare, frames["dark"]["mask"]) == figures.mask_figure(step, [], theme="dark")
    assert json.loads(json.dumps(figures.figure_constants(), allow_nan=False))


def test_palette_gives_every_status_a_second_cue() -> None:
    statuses = figures.palette()["statuses"]
    cues = [(s["glyph"], s["line"], s["symbol"]) for name, s in statuses.items() if name not in ("prompt", "plain")]
    assert len(set(cues)) == len(cues)
    assert {"accepted", "rejected", "correction", "bonus", "unreached", "cut", "unverified", "plain"} <= set(STATUSES)


def test_routing_shows_all_experts_and_the_weights_in_use() -> None:
    con, future = figures.routing_figure(make_routed_step())["data"][:2]
    assert len(con["x"]) == 4
    assert con["text"] == ["", "", "0.27", "0.73"]
    assert future["text"][0] != ""
    chosen = figures.routing_figure(make_routed_step(), node=1)["data"][1]
    assert chosen["text"][2] != ""


def test_routing_of_a_target_is_layers_by_experts() -> None:
    layers = figures.routing_figure(make_moe_step())["data"][0]
    assert layers["y"] == [2, 10]
    assert len(layers["z"][0]) == 8
    history = figures.routing_history_figure(make_run([make_moe_step(1), make_moe_step(2)]), "target.10")
    assert history["data"][0]["x"] == [1, 2]


def test_routing_history_is_experts_by_steps() -> None:
    run = make_example_run()
    heat, used = figures.routing_history_figure(run, "con")["data"][:2]
    assert heat["x"] == [1, 2, 3, 4, 5]
    assert len(heat["z"]) == 4
    assert heat["z"][3][0] == pytest.approx(run.steps[1].routing[0].probabilities[3], abs=1e-4)
    assert set(used["y"]) == {2, 3}
    assert figures.list_sites(run) == ["con", "f"]


def test_run_figures_show_the_numbers_of_metrics() -> None:
    run = make_example_run()
    bars = figures.acceptance_figure(run)["data"][0]
    expected = acceptance_by_depth(run.steps[1:])
    assert dict(zip(map(str, bars["x"]), bars["y"], strict=True)) == pytest.approx(expected)
    tokens = {trace["name"]: trace["y"] for trace in figures.tokens_per_pass_figure(run)["data"]}
    assert tokens == {"accepted drafts": [1] * 5, "correction": [1] * 5, "mean so far": [2.0] * 5}
    times = {trace["name"]: trace["y"][0] for trace in figures.times_figure(run)["data"]}
    assert times == {"draft": 3.0, "verify": 20.0, "commit": 1.0, "record": 0.5}


def test_the_seeds_drawing_is_as_printed() -> None:
    printed = [
        [1, 0, 0, 0, 1, 1, 1],
        [0, 1, 0, 0, 1, 1, 1],
        [0, 0, 1, 0, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 0, 1],
    ]
    assert print_seed_mask(4, 3, "drawing") == printed
    assert print_seed_mask(4, 3, "formula")[3] == [1, 1, 1, 1, 1, 1, 1]


def test_what_runs_is_the_formula_transposed() -> None:
    formula, runs = print_seed_mask(4, 3, "formula"), run_mask(4, 3, "diagonal")
    for row in range(7):
        for column in range(7):
            in_text = row < 4 and column < 4
            assert runs[row][column] == (column <= row if in_text else formula[column][row])
    assert run_mask(2, 2, "causal") == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_what_a_printed_cell_is_can_be_told_without_colours() -> None:
    figure = figures.seed_drawing_figure(2, 2)
    cells, *legend = figure["data"]
    assert cells["text"] == [
        ["●", "", "✕", "✕"],
        ["✚", "●", "✕", "✕"],
        ["✚", "✚", "●", ""],
        ["✚", "✚", "", "●"],
    ]
    assert cells["texttemplate"] == "%{text}" and [entry["marker"]["symbol"] for entry in legend] == [
        "circle",
        "x",
        "cross",
    ]


def test_the_seeds_figures_say_why_they_differ() -> None:
    figure = figures.seed_drawing_figure(4, 3)
    assert figure["layout"]["meta"]["reason"] == figures.SEED_REASON
    leak = figure["data"][0]["hovertext"][0][4].replace("<br>", " ")
    assert (
        leak
        == "Printed as visible, but it does not run: text never reads a slot, so its output stays the target's own."
    )


def test_sampled_steps_do_not_need_every_number() -> None:
    nodes = [make_node(0, -1, 0, "a", "root"), make_node(1, 0, 1, "b", "rejected", draft_prob=None, score=None)]
    figures.as_figure(figures.tree_figure(make_step(nodes, [], [])))


def test_figures_and_trace_import_without_torch_gradio_or_a_model() -> None:
    """Guards: a saved trace that needs a model's libraries to be looked at."""
    program = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'gradio', 'accelerate'): sys.modules[name] = None\n"
        "import specviz.trace, specviz.figures\n"
        "assert not any(name.startswith('plotly') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_script_that_pages_carry_fits_the_python_package():
    banner = PLOTLY_SCRIPT.read_text(encoding="utf-8")[:200]
    own = re.search(r"plotly\.js \(cartesian - minified\) v(\d+)\.", banner)
    assert own and own[1] == get_plotlyjs_version().split(".")[0]
