// The mask of Lookahead Attention as its report draws it, as its formula gives it, and as it runs: the same for every
// step of a run, side by side, with the reason for the difference.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { phrase, t } from '../words.js';
import { makeFigure } from './answer.js';

const PRINTED = { drawing: phrase('as drawn'), formula: phrase('as in its formula'), runs: phrase('what runs') };

export function makeSeed(stage) {
  const plots = Object.fromEntries(Object.keys(PRINTED).map((kind) => [kind, makePlot(stage, 'seed', `seed-${kind}`)]));
  const reason = h('p', {});
  const element = h('section', { class: 'analysis seed', 'aria-label': t('The mask as printed'), hidden: '' },
    h('h3', {}, t('The mask as printed')), reason,
    h('div', { class: 'figures' }, ...Object.entries(PRINTED).map(([kind, label]) => makeFigure(t(label), plots[kind]))));

  function update(state, changed) {
    const seed = state.run?.seed;
    element.hidden = !seed;
    if (!seed || !changed.has('run')) return;
    reason.textContent = seed.drawing.layout.meta.reason;
    for (const [kind, plot] of Object.entries(plots)) plot.draw(seed[kind]);
  }

  return { element, update };
}
