"""Analyses and lessons in a real browser, on scripted recordings."""

from __future__ import annotations

import re

import pytest
from stage_driver import Visitor

from specviz.lessons import parse_lesson

STALE = '() => document.querySelectorAll(\'.stage svg [clip-path*="http"], .stage svg [style*="http"]\').length'


@pytest.fixture
def visitor(open_tab, analysed_url) -> Visitor:
    visitor = Visitor(open_tab(analysed_url))
    visitor.tab.wait_for_selector(".stage[data-phase=idle] .answer .token")
    return visitor


def test_a_step_is_computed_anew_without_a_model(visitor):
    visitor.tab.click("[aria-label='Next step']")
    visitor.wait_for_analyses().tab.wait_for_selector(".what-if .outcome p")
    visitor.tab.fill(".what-if input >> nth=0", "1")
    visitor.tab.keyboard.press("Tab")
    visitor.expect("() => document.querySelector('.what-if .outcome strong').textContent", "1 token")
    visitor.expect_text("computed", ".what-if .outcome .origin")
    visitor.tab.fill(".what-if input >> nth=1", "9")
    visitor.tab.keyboard.press("Tab")
    visitor.expect("() => document.querySelector('.what-if .outcome strong').textContent", "Not in the record. ")


def test_the_mask_of_a_row_is_proved(visitor):
    visitor.tab.wait_for_selector(".mask-proof .verdict")
    visitor.tab.select_option(".mask-proof select", "1")
    visitor.tab.wait_for_selector(".mask-proof .plot .main-svg")
    visitor.expect_text("No leak", ".mask-proof .verdict")
    visitor.expect_text("was not recorded", ".mask-proof")
    visitor.expect_text("No leak by the rule alone", ".mask-proof .verdict")
    visitor.expect_text("the rule alone is kept", ".mask-proof")


def test_the_printed_masks_are_told_in_words(visitor):
    visitor.tab.click("text=The printed masks in words")
    rows = "[...document.querySelectorAll('.analysis.seed .twins li')].map((own) => own.textContent)"
    visitor.expect(f"{rows}.length", 3 * 7)
    told = visitor.tab.evaluate(rows)
    assert told[1] == "x1: visible: x1; printed, does not run: slot 1, slot 2, slot 3; runs, not printed: x0"
    assert told[-1] == "slot 3: visible: x0, x1, x2, x3, slot 3"


def test_lanes_race_on_one_clock_and_the_speed_up_is_the_metric(visitor):
    visitor.tab.click("#tab-run")
    visitor.tab.wait_for_selector(".race .lane")
    shown = float(re.search(r"([\d.]+) times plain", visitor.text(".race"))[1])
    visitor.expect_text(f"{shown:.2f}×", ".cards")
    visitor.tab.select_option(".race [aria-label=Speed]", "5")
    visitor.tab.eval_on_selector(
        ".race [type=range]", "bar => { bar.value = 0; bar.dispatchEvent(new Event('input')); }"
    )
    counts = "() => [...document.querySelectorAll('.race .count')].map((count) => count.textContent)"
    assert visitor.tab.evaluate(counts) == ["0 of 40 tokens"] * 2
    visitor.tab.click("text=Start the race")
    visitor.expect(counts, ["40 of 40 tokens"] * 2)
    visitor.expect_text("Equal to plain decoding", ".losslessness")


def test_charts_survive_a_change_of_the_address(visitor):
    """Guards patterns and clip paths that named the page's whole address, and were lost with the next step."""
    visitor.tab.click("#tab-run")
    visitor.tab.wait_for_selector(".overview .plot .main-svg")
    visitor.tab.click("[aria-label='Next step']")
    visitor.tab.wait_for_timeout(700)
    assert visitor.tab.evaluate(STALE) == 0


def test_a_run_stands_beside_another(visitor):
    visitor.tab.click("#tab-compare")
    visitor.tab.select_option(".compare select", "recorded/03-shorter")
    visitor.tab.wait_for_selector(".compare table")
    visitor.expect_text("Both answers are the same 40 tokens", ".compare")
    assert visitor.tab.locator(".compare .lane").count() == 2


def test_a_lesson_waits_with_its_answer(visitor):
    visitor.tab.click("#tab-lessons")
    visitor.tab.click("text=Why speculation helps")
    visitor.tab.wait_for_selector(".lesson-card")
    for _ in range(2):
        visitor.tab.click(".lesson-card button:text-is('Next')")
    visitor.expect("() => document.querySelector('.stage').dataset.moment", "draft")
    assert visitor.tab.locator(".lesson-card .told p").count() == 0
    visitor.tab.fill(".lesson-card input", "three")
    visitor.tab.click("text=Show the answer")
    visitor.expect("() => document.querySelector('.stage').dataset.moment", "commit")
    visitor.expect_text("Your guess: three", ".lesson-card .told")
    visitor.tab.click("text=Close the lesson")
    assert visitor.tab.locator(".lesson-card").count() == 0


def test_a_lesson_goes_to_its_own_recording(visitor):
    visitor.tab.click("#tab-lessons")
    visitor.tab.select_option(".lessons select", "zh")
    visitor.tab.click("text=验证还是自洽")
    visitor.tab.wait_for_selector(".lesson-card")
    visitor.expect_text("02-self-consistent", ".source")
    visitor.expect_text("不经检查就采用", ".lesson-card")


def test_a_teacher_writes_a_lesson(visitor, tmp_path):
    visitor.tab.click("[aria-label='Next step']")
    visitor.tab.click("#tab-lessons")
    visitor.tab.click("text=Write a lesson of your own")
    visitor.tab.fill(".author input >> nth=0", "Mine")
    visitor.tab.click("text=Mark the step that is shown")
    fields = visitor.tab.locator(".scenes textarea")
    for place, text in enumerate(["Look here.", "How many?", "Two."]):
        fields.nth(place).fill(text)
    with visitor.tab.expect_download() as download:
        visitor.tab.click("text=Save the lesson")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    lesson = parse_lesson(path.read_text(encoding="utf-8"))
    (scene,) = lesson.scenes
    assert (path.name, lesson.title, lesson.recording) == ("mine.md", "Mine", "01-lookahead-tree")
    assert (scene.at, scene.text, scene.question, scene.answer) == ("step 2", "Look here.", "How many?", "Two.")


def test_a_lesson_is_read_without_a_server(visitor, open_tab, tmp_path, problems):
    visitor.tab.click("#tab-lessons")
    visitor.tab.click("text=Why speculation helps")
    with visitor.tab.expect_download() as download:
        visitor.tab.click("text=Save as a page")
    path = tmp_path / "lesson.html"
    download.value.save_as(path)
    page = visitor.tab.context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector(".lesson-card .question")
    expect_large_type(Visitor(page))
    page.click("#tab-run")
    page.wait_for_selector(".race .lane")
    page.close()


def test_large_type_enlarges_the_charts(visitor):
    visitor.tab.click("#tab-lessons")
    visitor.tab.click("text=Why speculation helps")
    visitor.tab.wait_for_selector(".lesson-card")
    expect_large_type(visitor)


def expect_large_type(visitor: Visitor) -> None:
    """Switch large type on and off: the fonts of every chart that is seen, and what its labels need, go along."""
    sizes = """() => {
        const { font, xaxis, height } = document.querySelector('.stage .plot.mask').layout;
        return [font.size, xaxis.tickfont.size, height].map((size) => Math.round(10 * size));
    }"""
    visitor.wait_for_charts()
    font, ticks, height = visitor.tab.evaluate(sizes)
    assert (font, ticks) == (120, 100)
    visitor.tab.click(".lesson-card .large-type")
    visitor.expect(sizes, [162, 135, round(1.35 * height / 10) * 10])
    visitor.expect("() => document.querySelector('.lesson-card .large-type').ariaPressed", "true")
    visitor.tab.click(".lesson-card .large-type")
    visitor.expect(sizes, [font, ticks, height])


def test_labels_follow_the_browsers_language(open_apart, analysed_url):
    tab = open_apart(analysed_url, locale="zh-CN")
    tab.wait_for_selector(".stage[data-phase=idle] .answer .token")
    assert tab.inner_text("#run").strip() == "运行" and "提示词" in tab.inner_text("#prompt-0")
    tab.click("#tab-lessons")
    assert "课程" in tab.inner_text(".lessons")


def test_the_history_of_the_experts_leads_to_a_step(visitor):
    visitor.tab.get_by_role("tab", name="Run").click()
    visitor.tab.wait_for_selector(".analysis.experts .plot .main-svg")
    visitor.expect_text("Router [con]", ".analysis.experts")
    visitor.tab.evaluate(
        """() => document.querySelector('.analysis.experts .plot')
            .emit('plotly_click', { points: [{ x: 2, y: 1 }] })"""
    )
    visitor.expect("() => document.querySelector('.stage .transport input[type=range]').value", "2")


def test_every_chart_of_the_run_is_saved_as_a_picture(visitor):
    visitor.tab.get_by_role("tab", name="Run").click()
    visitor.tab.wait_for_selector(".analysis.experts .plot .main-svg")
    visitor.tab.wait_for_selector(".analysis.race .plot .main-svg")
    unsaved = """() => [...document.querySelectorAll('.stage .view:not([hidden]) .analysis:not([hidden]) .plot')]
        .filter((plot) => !plot.closest('.analysis-figure, .analysis').querySelector('.tools button')).length"""
    visitor.expect(unsaved, 0)
    with visitor.tab.expect_download() as download:
        visitor.tab.get_by_label("Save Router [con] as SVG").click()
    assert "<svg" in download.value.path().read_text(encoding="utf-8")


def test_a_chart_keeps_its_zoom_to_itself(visitor):
    """Guards a frame that charts of one kind shared: plotly.js wrote the zoom of one into it, and others took it on."""
    visitor.tab.get_by_role("tab", name="Run").click()
    visitor.tab.wait_for_selector(".analysis.experts .plot .main-svg >> nth=1")
    ranges = """() => [...document.querySelectorAll('.analysis.experts .plot')].map(
        ({ _fullLayout: { xaxis } }) => (xaxis.autorange ? 'whole' : xaxis.range.map(Math.round).join()))"""
    visitor.expect(ranges, ["whole", "whole"])
    visitor.drag_over(".analysis.experts .plot >> nth=0")
    visitor.expect(f"({ranges})()[0] !== 'whole'", True)
    zoomed = visitor.tab.evaluate(ranges)
    for _ in range(2):  # there and back: every chart is drawn anew
        visitor.tab.evaluate("document.body.classList.toggle('dark')")
        visitor.tab.wait_for_timeout(500)
    assert visitor.tab.evaluate(ranges) == zoomed and zoomed[1] == "whole"


def test_pictures_of_charts_have_names_of_their_own_and_plain_buttons(visitor):
    """Guards both routers, and three masks, that were saved under one name; and buttons as bold as their caption."""
    charts = {
        "Run": ["Router [con]", "Router [f]"],
        "Step": ["as drawn", "as in its formula", "what runs"],
    }
    names = []
    for tab, titles in charts.items():
        visitor.tab.get_by_role("tab", name=tab).click()
        for title in titles:
            button = visitor.tab.get_by_label(f"Save {title} as PNG")
            button.locator("xpath=ancestor::figure").locator(".main-svg").first.wait_for()
            assert button.evaluate("own => getComputedStyle(own).fontWeight") == "400"
            with visitor.tab.expect_download() as download:
                button.click()
            names.append(download.value.suggested_filename)
    assert len(set(names)) == 5
