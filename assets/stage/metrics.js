// The numbers of a run, each with its definition and where it comes from.

import { h } from './dom.js';
import { describeDivergence } from './header.js';
import { t } from './words.js';

const fixed = (digits, unit = '') => (value) => `${value.toFixed(digits)}${unit}`;
const percent = (value) => `${Math.round(100 * value)} %`;
const byDepth = (rates) => Object.values(rates).slice(0, 8).map((rate) => Math.round(100 * rate)).join(' · ') + ' %';

// In this order; a metric that a run does not have is left out.
const SHOWN = {
  tau: fixed(2),
  tau_draft: fixed(2),
  speedup: fixed(2, '×'),
  tokens_per_second: fixed(1),
  acceptance_rate: percent,
  acceptance_by_depth: byDepth,
  n_tokens: String,
  n_passes: String,
  rows_per_pass: fixed(1),
  draft_ms: fixed(1, ' ms'),
  verify_ms: fixed(1, ' ms'),
  slot_kv_percent: fixed(1, ' %'),
};

export function makeMetrics(stage) {
  const { definitions } = stage.context.constants;
  const cards = h('dl', { class: 'cards' });
  const equality = h('p', { class: 'equality' });
  const meanings = h('details', { class: 'meanings' }, h('summary', {}, t('What these numbers mean')),
    h('dl', {}, ...Object.values(definitions).flatMap(defineMetric)));
  const element = h('section', { class: 'metrics', 'aria-label': t('Metrics'), hidden: '' }, cards, equality, meanings);

  function update(state, changed) {
    if (!['run', 'row', 'metrics', 'finish'].some((name) => changed.has(name))) return;
    const { row } = stage;
    element.hidden = !row;
    if (!row) return;
    const named = Object.entries(SHOWN).filter(([name]) => isKnown(row.metrics[name]));
    cards.replaceChildren(...named.map(([name, format]) => card(definitions[name], format(row.metrics[name]), name)));
    equality.textContent = describeEquality(row.head.baseline);
  }

  return { element, update };
}

function isKnown(value) {
  return value !== null && value !== undefined && (typeof value !== 'object' || Object.keys(value).length > 0);
}

function card({ label, definition, origin }, text, name) {
  return h('div', { class: name === 'acceptance_by_depth' ? 'card wide' : 'card', title: `${definition} (${t(origin)})` },
    h('dt', {}, label), h('dd', {}, text, h('small', {}, t(origin))));
}

function defineMetric({ label, definition, origin }) {
  return [h('dt', {}, label), h('dd', {}, `${definition} (${t(origin)}).`)];
}

function describeEquality(baseline) {
  if (!baseline) return '';
  if (baseline.equal) return t('Output equals plain decoding: yes, {n} of {n} tokens.', { n: baseline.n_equal });
  const where = baseline.divergence ? ` ${describeDivergence(baseline.divergence)}` : '';
  return `${t('Output equals plain decoding: no, the first {n} tokens do.', { n: baseline.n_equal })}${where}`;
}
