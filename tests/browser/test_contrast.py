"""Text on the stage can be read: WCAG AA in both themes, with a run on it."""

from __future__ import annotations

import pytest
from stage_driver import Visitor

# For each element with text of its own: its colour over the backgrounds that lie behind it, opacity included.
FAINT_TEXT = """() => {
  const rgba = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const over = ([r, g, b, a], base) => [r, g, b].map((value, i) => value * a + base[i] * (1 - a));
  const light = (rgb) => rgb.map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
  const backdrop = (element) => {
    const layers = [];
    for (let box = element; box; box = box.parentElement) layers.unshift(rgba(getComputedStyle(box).backgroundColor));
    return layers.reduce((base, layer) => over(layer, base), [255, 255, 255]);
  };
  const opacity = (element) => {
    let value = 1;
    for (let box = element; box; box = box.parentElement) value *= Number(getComputedStyle(box).opacity);
    return value;
  };
  const faint = [];
  for (const element of document.querySelectorAll('.stage *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest('svg, style, :disabled, [hidden]') || !element.offsetParent) continue;
    const behind = backdrop(element);
    const [r, g, b, a] = rgba(getComputedStyle(element).color);
    const [high, low] = [light(over([r, g, b, a * opacity(element)], behind)), light(behind)].sort((x, y) => y - x);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) faint.push(`${element.className || element.tagName} ${ratio.toFixed(2)} ${element.textContent}`);
  }
  return [...new Set(faint)];
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_contrast(open_tab, url, theme):
    visitor = Visitor(open_tab(f"{url}?__theme={theme}"))
    visitor.run("hello experts", max_new_tokens="40", k="3")
    visitor.tab.locator(".stage .levels button").nth(1).click()
    visitor.tab.click("text=What these numbers mean")
    visitor.tab.wait_for_timeout(400)
    assert visitor.tab.evaluate(FAINT_TEXT) == []
