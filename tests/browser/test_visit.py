"""The stage in a real browser: what a visitor sees, presses and saves."""

from __future__ import annotations

import json
import re

import pytest
from fake_engine import HOSTILE
from stage_driver import Visitor

from specviz.figures import mask_figure
from specviz.trace import RunTrace, from_json


@pytest.fixture
def visitor(shared_tab) -> Visitor:
    """A visitor of a page that other tests have used: every run must replace the one before."""
    return Visitor(shared_tab)


@pytest.fixture
def newcomer(open_tab, url) -> Visitor:
    """A visitor with a fresh tab."""
    return Visitor(open_tab(url))


def test_tokens_stream_in_their_colours(visitor):
    before = visitor.tab.get_attribute(".stage", "data-run") or ""
    visitor.ask("slow please", max_new_tokens="24", k="2")
    visitor.tab.wait_for_selector(".stage[data-phase=running] .answer .token")
    assert visitor.text(".badge") == "LIVE"
    first = len(visitor.statuses())
    visitor.wait_for_end(after=before)
    statuses = visitor.statuses()
    assert len(statuses) == 24 and first < 24
    assert statuses[0] == "plain" and set(statuses[1:]) <= {"accepted", "correction", "bonus"}


def test_a_status_has_colour_glyph_and_line(visitor):
    visitor.run("hello", max_new_tokens="60")
    look = visitor.tab.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('.stage .legend .token')].map((chip) => {
            const style = getComputedStyle(chip);
            return [chip.dataset.status, [style.backgroundColor, style.textDecorationLine, style.textDecorationStyle,
                    style.textDecorationThickness, getComputedStyle(chip, '::before').content]];
        }))"""
    )
    assert len({tuple(cues[:1]) for cues in look.values()}) >= 6
    assert len({tuple(cues[1:]) for cues in look.values()}) == len(look)


def test_the_joined_ribbon_is_the_text(visitor, tmp_path):
    visitor.run("hello", max_new_tokens="80")
    assert visitor.answer() == visitor.save(tmp_path)["text"]
    marks = visitor.tab.eval_on_selector_all(".stage .answer .mark", "all => all.map(mark => mark.dataset.mark)")
    assert {"·", "↵", "⇥"} <= set(marks)


def test_parts_of_a_character_are_shown_as_bytes(visitor):
    visitor.run("bytes", max_new_tokens="6")
    marks = visitor.tab.eval_on_selector_all(".stage .answer .chip", "all => all.map(mark => mark.dataset.mark)")
    assert marks == ["F0 9F", "98", "id 5"]
    assert visitor.answer() == "😀 ok⟨id 509⟩"


def test_stop_text_is_no_part_of_the_answer(newcomer, tmp_path):
    newcomer.tab.click("text=More settings")
    newcomer.run("hello", max_new_tokens="9", k="2", stop="lazy d")
    assert newcomer.answer() == newcomer.save(tmp_path)["text"] == "The quick brown fox jumps over the "


def test_hostile_text_is_literal(visitor, tmp_path):
    visitor.run("hostile", max_new_tokens="60").wait_for_charts()
    for piece in HOSTILE:
        assert piece in visitor.answer()
    visitor.tab.locator(".stage .levels button").first.click()
    visitor.tab.wait_for_timeout(300)
    assert visitor.tab.evaluate("window.hacked") is None
    assert visitor.tab.locator(".stage img, .stage script").count() == 0
    assert visitor.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    drawn = set()
    for _ in range(int(re.search(r"of (\d+)", visitor.where()).group(1)) + 1):
        drawn |= set(visitor.tab.locator(".stage svg text").all_text_contents())
        visitor.tab.keyboard.press("ArrowLeft")
        visitor.tab.wait_for_timeout(400)
    assert drawn >= {"${alert(1…", "{{value}}", '"quoted"', "&lt;b&gt;", "</div>"}


def test_300_steps_arrive_whole_and_in_order(visitor, tmp_path):
    """F42: no step is lost, and the last is there a second after the end."""
    visitor.run("long", max_new_tokens="2000", k="8")
    trace = visitor.save(tmp_path)
    assert [step["index"] for step in trace["steps"]] == list(range(len(trace["steps"])))
    assert len(trace["steps"]) > 250
    groups = visitor.tab.eval_on_selector_all(
        ".stage .answer .group", "all => all.map(group => Number(group.dataset.step))"
    )
    assert groups == list(range(len(trace["steps"])))
    assert from_json(json.dumps(trace)).answer


def test_slider_buttons_and_keys_move_through_the_steps(visitor):
    visitor.run("hello", max_new_tokens="40", k="3")
    last = int(re.search(r"of (\d+)", visitor.where()).group(1))
    assert visitor.where() == f"step {last} of {last}"
    visitor.tab.locator(".stage .answer").focus()
    for key, step in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last)):
        visitor.tab.keyboard.press(key)
        visitor.tab.wait_for_function(f"document.querySelector('.stage .where').textContent.startsWith('step {step} ')")
    visitor.tab.locator(".stage input[type=range]").fill("2")
    visitor.tab.wait_for_function("document.querySelector('.stage .where').textContent.startsWith('step 2 ')")
    visitor.tab.get_by_role("button", name="First step").click()
    visitor.tab.wait_for_function("document.querySelector('.stage .where').textContent.includes('prefill')")
    visitor.tab.get_by_role("button", name="Play", exact=True).click()
    visitor.tab.wait_for_function("document.querySelector('.stage .where').textContent.startsWith('step 2 ')")


def test_keys_stay_in_the_fields(visitor):
    visitor.run("hello", max_new_tokens="20")
    before = visitor.where()
    visitor.tab.focus("#prompt-0 textarea")
    visitor.tab.keyboard.press("Home")
    visitor.tab.keyboard.press("ArrowLeft")
    visitor.tab.wait_for_timeout(100)
    assert visitor.where() == before


def test_the_mask_drawn_is_the_mask_of_the_trace(visitor, tmp_path):
    visitor.run("hello", max_new_tokens="30", k="3").wait_for_charts()
    trace: RunTrace = from_json(json.dumps(visitor.save(tmp_path)))
    pieces = [token.piece for token in trace.prompt]
    visitor.tab.locator(".stage .answer").focus()
    visitor.tab.keyboard.press("Home")
    for step in trace.steps[:4]:
        expected = mask_figure(step, pieces)["data"][1]["z"]
        visitor.expect("document.querySelector('.plot.mask').data[1].z.map(row => [...row])", expected)
        pieces += [token.piece for token in step.committed]
        visitor.tab.keyboard.press("ArrowRight")


def test_a_chosen_node_is_explained_and_marked_everywhere(visitor):
    visitor.run("hello", max_new_tokens="60", k="3").wait_for_charts()
    visitor.tab.locator(".stage .answer .token[data-status=accepted]").first.click()
    visitor.tab.wait_for_function("document.querySelector('.stage .why')?.textContent.startsWith('Accepted')")
    assert visitor.tab.locator(".stage .answer .chosen").count() == 1
    assert visitor.tab.locator(".stage .levels [aria-pressed=true]").count() == 1
    assert visitor.tab.locator(".stage .top li").count() == 20  # of both, here and next
    visitor.tab.wait_for_function(
        "document.querySelector('.plot.tree').data[4].x.length === 1"
        " && document.querySelector('.plot.mask').layout.shapes.some((shape) => shape.type === 'rect')"
    )


def test_a_click_in_the_tree_chooses_the_node(visitor):
    visitor.run("hello", max_new_tokens="40", k="3").wait_for_charts()
    visitor.tab.locator(".plot.tree .scatterlayer .points path").nth(1).click(force=True)
    visitor.tab.wait_for_selector(".stage .levels [aria-pressed=true]")


def test_charts_keep_their_height_when_the_window_changes(visitor):
    """Guards charts that were cut off after a phone was turned: plotly.js drops a height that it was given."""
    visitor.run("hello experts", max_new_tokens="40", k="3").wait_for_charts()
    heights = """() => ['tree', 'mask'].map((name) => {
        const plot = document.querySelector(`.plot.${name}`);
        const { height } = plot.querySelector('.main-svg').getBoundingClientRect();
        return [plot.offsetHeight, height, plot.layout.height];
    })"""
    before = visitor.tab.evaluate(heights)
    assert all(asked >= 240 and abs(box - asked) < 1 and abs(drawn - asked) < 1 for box, drawn, asked in before), before
    visitor.tab.set_viewport_size({"width": 1240, "height": 600})
    visitor.tab.wait_for_timeout(1500)
    assert [seen[:2] for seen in visitor.tab.evaluate(heights)] == [seen[:2] for seen in before]
    visitor.tab.set_viewport_size({"width": 1280, "height": 900})


def test_metrics_have_definitions(visitor, tmp_path):
    visitor.run("hello", max_new_tokens="40", k="3")
    tau = visitor.save(tmp_path)["metrics"]["tau"]
    visitor.expect_text(f"{tau:.2f}", ".cards")
    visitor.tab.click("text=What these numbers mean")
    visitor.expect_text("correction or bonus included", ".meanings")


def test_stop_ends_the_run_within_one_step_and_keeps_what_there_is(visitor, engine, tmp_path):
    visitor.ask("very slow", max_new_tokens="500")
    visitor.tab.wait_for_selector(".stage[data-phase=running] .answer .group:nth-child(2)")
    closed = engine.closed
    visitor.tab.evaluate(
        "addEventListener('click', () => { window.pressed = Date.now() / 1000; }, { capture: true, once: true })"
    )
    visitor.tab.click("#stop-run")
    visitor.tab.wait_for_selector('.stage .status:has-text("Stopped")')
    pressed = visitor.tab.evaluate("window.pressed")
    assert sum(at > pressed for at in engine.begun) <= 1 and engine.closed == closed + 1
    trace = visitor.save(tmp_path)
    assert trace["finish_reason"] == "stopped" and trace["text"] == visitor.answer() and len(trace["steps"]) >= 2
    visitor.run("hello", max_new_tokens="10")
    assert visitor.answer().startswith("The quick")


def test_stop_also_takes_a_waiting_run_off_the_queue(visitor, newcomer):
    other = newcomer
    before = visitor.tab.get_attribute(".stage", "data-run") or ""
    visitor.ask("slow", max_new_tokens="30")
    visitor.tab.wait_for_selector(".stage[data-phase=running]")
    other.ask("hello", max_new_tokens="10")
    other.tab.wait_for_selector(".stage[data-phase=waiting]")
    other.tab.click("#stop-run")
    other.tab.wait_for_selector(".stage[data-phase=idle]")
    visitor.wait_for_end(after=before)
    assert len(visitor.statuses()) == 30 and other.statuses() == []
    assert other.run("bytes", max_new_tokens="4").answer().startswith("😀")


def test_two_tabs_never_mix(visitor, newcomer):
    first, second = visitor, newcomer
    before = first.tab.get_attribute(".stage", "data-run")
    first.ask("hello one", max_new_tokens="60")
    second.ask("bytes two", max_new_tokens="12")
    first.wait_for_end(after=before)
    second.wait_for_end()
    assert first.answer().startswith("The quick") and "😀" not in first.answer()
    assert second.answer().startswith("😀") and "quick" not in second.answer()


def test_save_and_load_give_the_same_page(visitor, newcomer, tmp_path):
    visitor.run("hello experts", max_new_tokens="30", k="2")
    trace = visitor.save(tmp_path)
    other = newcomer
    file = tmp_path / f"specviz-{trace['run_id']}.json"
    other.tab.set_input_files("input[type=file]", str(file))
    other.tab.wait_for_selector('.stage .badge:has-text("LOADED")')
    other.wait_for_end()
    assert other.answer() == visitor.answer() and other.statuses() == visitor.statuses()
    again = other.save(tmp_path)
    assert again == trace


@pytest.mark.parametrize(
    "content", ["hello", '{"schema_version": 9}', '{"schema_version": 1, "prompt": "<img src=x>"}']
)
def test_a_file_that_is_no_trace_is_refused(visitor, tmp_path, content):
    visitor.run("hello", max_new_tokens="10")
    (tmp_path / "bad.json").write_text(content, encoding="utf-8")
    visitor.tab.set_input_files("input[type=file]", str(tmp_path / "bad.json"))
    visitor.tab.wait_for_selector(".toast-body:has-text('trace')")
    assert visitor.answer().startswith("The quick")
    visitor.run("bytes", max_new_tokens="4")
    assert "😀" in visitor.answer()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"prompt": ""}, "The prompt is empty"),
        ({"prompt": "a", "k": "99"}, "K should be less than or equal to 32"),
        ({"prompt": "a", "max_new_tokens": "0"}, "greater than or equal to 1"),
        ({"prompt": "a", "temperature": "<img src=x onerror=alert(1)>"}, "<img src=x onerror=alert(1)>"),
    ],
)
def test_mistakes_are_told_and_the_next_run_works(visitor, fields, sentence):
    visitor.ask(**fields)
    told = "document.querySelector('.toast-body')?.textContent ?? ''"
    visitor.expect(f"({told}).includes({json.dumps(sentence)})", True)
    visitor.run("hello", max_new_tokens="10", k="", temperature="0")
    assert visitor.answer().startswith("The quick")


def test_a_refusal_of_the_engine_is_shown_literally(visitor):
    visitor.ask("refuse")
    visitor.tab.wait_for_selector(".stage .alert:has-text('9000 tokens')")
    visitor.expect_text("<b>scripted</b> reads at most 2048.", ".alert")


def test_a_failing_run_keeps_its_steps(visitor):
    visitor.run("fail", max_new_tokens="200")
    visitor.expect_text("Something went wrong", ".alert")
    assert "a detail" not in visitor.tab.inner_text("body")
    assert len(visitor.statuses()) > 3


def test_rows_of_a_batch_can_be_switched(newcomer, tmp_path):
    newcomer.tab.get_by_label("Several prompts, decoded together").check()
    newcomer.tab.fill("#prompt-1 textarea", "another prompt")
    newcomer.run("hello", max_new_tokens="30", k="2")
    rows = newcomer.tab.locator(".stage .rows button")
    assert rows.count() == 2
    first = newcomer.statuses()
    rows.nth(1).click()
    newcomer.tab.wait_for_function("document.querySelectorAll('.stage .rows button')[1].ariaPressed === 'true'")
    assert newcomer.statuses() != first
    assert len(newcomer.save(tmp_path)["batch"]) == 2


def test_controls_follow_the_method(newcomer):
    newcomer.tab.wait_for_selector("#k")
    assert not newcomer.tab.is_visible("#threshold")
    newcomer.tab.click("#selection input")
    newcomer.tab.get_by_role("option", name="self-consistent (lossy)").click()
    newcomer.tab.wait_for_selector("#threshold")
    newcomer.run("hello", max_new_tokens="20", k="2", threshold="0.3")
    newcomer.expect_text("lossy", ".notices")
    assert "unverified" in newcomer.statuses()
    newcomer.tab.click("#method input")
    newcomer.tab.get_by_role("option", name="Plain decoding").click()
    newcomer.tab.wait_for_selector("#k", state="hidden")
    newcomer.run("hello", max_new_tokens="10")
    assert set(newcomer.statuses()) == {"plain"}


def test_speed_up_is_shown_where_it_was_measured(newcomer):
    newcomer.tab.click("text=More settings")
    newcomer.tab.get_by_label("Decode plainly too, to measure the speed-up").check()
    newcomer.run("hello", max_new_tokens="30")
    newcomer.expect_text("speed-up over plain", ".cards")
    newcomer.expect_text("30 of 30", ".equality")


def test_a_recording_is_there_at_first_paint(open_tab, recorded_url):
    visitor = Visitor(open_tab(recorded_url))
    visitor.tab.wait_for_selector(".stage .answer .token")
    visitor.expect_text("RECORDED", ".badge")
    visitor.expect_text("a-first", ".source")
    visitor.wait_for_charts()
    visitor.tab.wait_for_selector(".pane.routing .main-svg")
    visitor.tab.get_by_label("Run shown").select_option("b-second")
    visitor.tab.wait_for_selector('.stage .source:has-text("b-second")')
    visitor.wait_for_end()


@pytest.mark.parametrize("width", [320, 430])
def test_on_a_phone_the_run_comes_first(open_tab, recorded_url, width):
    visitor = Visitor(open_tab(recorded_url, width, 740))
    visitor.tab.wait_for_selector(".stage .answer .token")
    opener = visitor.tab.locator("#open-controls")
    assert not visitor.tab.is_visible("#run") and opener.get_attribute("aria-expanded") == "false"
    assert visitor.tab.evaluate("document.querySelector('.stage .source').getBoundingClientRect().top < innerHeight")
    opener.focus()
    visitor.tab.keyboard.press("Enter")
    visitor.tab.wait_for_selector("#run")
    assert opener.get_attribute("aria-expanded") == "true"
    visitor.tab.keyboard.press("Tab")
    assert visitor.tab.evaluate("document.activeElement.matches('#prompt-0 textarea')")
    visitor.tab.keyboard.press("Shift+Tab")
    visitor.tab.keyboard.press("Enter")
    visitor.tab.wait_for_selector("#run", state="hidden")


def test_on_a_phone_a_run_can_be_stopped_where_it_is_read(open_tab, url):
    visitor = Visitor(open_tab(url, 430, 740))
    stop = visitor.tab.locator(".stage .stop-here")
    assert not stop.is_visible()
    visitor.ask("slow", max_new_tokens="300")
    visitor.tab.wait_for_selector(".stage[data-phase=running] .answer .token")
    assert stop.is_visible()
    stop.click()
    visitor.wait_for_end()
    visitor.expect_text("stopped", ".status")
    assert len(visitor.statuses()) < 300 and not stop.is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_screens_scroll_in_one_direction(open_tab, url, theme):
    visitor = Visitor(open_tab(f"{url}?__theme={theme}", 320, 740))
    visitor.run("hostile experts", max_new_tokens="40").wait_for_charts()
    for width in (320, 360, 768):
        visitor.tab.set_viewport_size({"width": width, "height": 740})
        visitor.tab.wait_for_timeout(300)
        assert visitor.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        wide = visitor.tab.evaluate(
            """() => [...document.querySelectorAll('.stage > *')]
                .filter((box) => box.getBoundingClientRect().right > innerWidth + 1).map((box) => box.className)"""
        )
        assert wide == []


def test_a_chart_is_as_wide_as_its_place_when_a_neighbour_comes_or_goes(visitor):
    """Guards a mask that was drawn before the experts came beside it, and was cut off."""
    wide = "() => { const own = document.querySelector('.plot.mask'); return own._fullLayout.width - own.clientWidth; }"
    for prompt, n_beside in (("hello", 0), ("hello experts", 1), ("hello again", 0)):
        visitor.run(prompt, max_new_tokens="12").wait_for_charts()
        visitor.expect("() => document.querySelectorAll('.pane.routing:not([hidden])').length", n_beside)
        visitor.expect(wide, 0)


def test_the_legend_of_a_tree_that_scrolls_is_seen_without_scrolling(open_tab, url):
    visitor = Visitor(open_tab(url, 320, 740))
    visitor.run("hello", max_new_tokens="12").wait_for_charts()
    assert visitor.tab.evaluate(
        """() => {
            const box = document.querySelector('.pane.tree .scroll');
            const legend = box.querySelector('.legend').getBoundingClientRect();
            return box.scrollWidth > box.clientWidth && legend.right <= box.getBoundingClientRect().right;
        }"""
    )


def test_a_deep_tree_beside_its_mask_is_not_scrolled(open_tab, url):
    """Guards: a level took 90 pixels where the tree says that 64 are enough for its labels."""
    visitor = Visitor(open_tab(url, width=1600)).run("hello", max_new_tokens="40", k="6").wait_for_charts()
    box = "document.querySelector('.pane.tree .scroll')"
    visitor.expect("document.querySelector('.plot.tree').layout.meta.min_width >= 96 + 64 * 6", True)
    assert visitor.tab.evaluate(f"{box}.getBoundingClientRect().width < 620")  # beside the mask
    visitor.expect(f"{box}.scrollWidth - {box}.clientWidth", 0)
    visitor.tab.set_viewport_size({"width": 390, "height": 900})
    visitor.expect(f"{box}.scrollWidth > {box}.clientWidth", True)


def test_a_race_starts_beside_run_and_shows_its_lanes(open_tab, url, tmp_path):
    visitor = Visitor(open_tab(url))
    visitor.tab.fill("#prompt-0 textarea", "hello race")
    visitor.tab.fill("#max_new_tokens input, #max_new_tokens textarea", "12")
    visitor.tab.click("#race")
    visitor.tab.wait_for_selector(".race .lane")
    assert visitor.save(tmp_path)["settings"]["compare_plain"] is True
    visitor.expect("document.querySelector('#race').disabled", False)


def test_plain_decoding_does_not_race_itself(open_tab, url):
    visitor = Visitor(open_tab(url))
    visitor.tab.click("#method input")
    visitor.tab.click("[role=option]:has-text('Plain decoding')")
    visitor.tab.click("#race")
    visitor.tab.wait_for_selector("text=Plain decoding cannot race itself")
    visitor.expect("document.querySelector('#run').disabled", False)


def test_help_and_drafted_tokens_are_shown(open_tab, recorded_url):
    visitor = Visitor(open_tab(recorded_url))
    visitor.wait_for_end()
    assert "drafted tokens per target pass" in visitor.text(".cards")
    assert not visitor.tab.is_visible(".stage .help")
    visitor.tab.click(".stage [aria-label=Help] >> nth=0")
    visitor.expect_text("arrow walk through the steps", ".help")
