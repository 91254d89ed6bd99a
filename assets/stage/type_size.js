// The size of the page's type, which a class sees from afar: charts are drawn for the usual one, and grow with it.

import { h } from './dom.js';
import { t } from './words.js';

const USUAL = 16; // pixels
const LARGE = '135%';

// How much larger than usual the page's type is, by its own switch or by the browser's settings.
export function typeScale() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / USUAL;
}

// A figure with every font, its height and the width that its labels need as much larger.
export function enlargeFigure({ data, layout }, scale) {
  if (scale === 1) return { data, layout };
  const { height, meta } = layout;
  const larger = {
    ...enlargeFonts(layout, scale),
    height: height && Math.round(height * scale),
    meta: meta?.min_width ? { ...meta, min_width: Math.round(meta.min_width * scale) } : meta,
  };
  return { data: data.map((trace) => enlargeFonts(trace, scale)), layout: larger };
}

function enlargeFonts(value, scale) {
  if (Array.isArray(value)) return typeof value[0] === 'object' && !Array.isArray(value[0]) ? value.map((own) => enlargeFonts(own, scale)) : value;
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, own]) => [key, enlargeEntry(key, own, scale)]));
}

function enlargeEntry(key, own, scale) {
  return key.endsWith('font') && own?.size ? { ...own, size: own.size * scale } : enlargeFonts(own, scale);
}

// A button that switches large type on and off; every one on the page says how it stands.
export function makeLargeType(stage) {
  const { style } = document.documentElement;
  const isOn = () => style.fontSize === LARGE;
  return h('button', { type: 'button', class: 'large-type', 'aria-pressed': String(isOn()), onclick: toggle }, t('Large type'));

  function toggle() {
    style.fontSize = isOn() ? '' : LARGE;
    stage.root.querySelectorAll('.large-type').forEach((button) => button.setAttribute('aria-pressed', String(isOn())));
    stage.touch('type');
  }
}
