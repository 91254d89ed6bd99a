// The mask of Lookahead Attention as its report draws it, as its formula gives it, and as it runs: the same for every
// step of a run, side by side, with the reason for the difference.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { currentTheme } from '../palette.js';
import { phrase, t } from '../words.js';
import { makeFigure } from './answer.js';

const PRINTED = { drawing: phrase('as drawn'), formula: phrase('as in its formula'), runs: phrase('what runs') };

export function makeSeed(stage) {
  const plots = Object.fromEntries(Object.keys(PRINTED).map((kind) => [kind, makePlot(stage, 'seed', `seed-${kind}`)]));
  const reason = h('p', {});
  const twin = h('div', { tabindex: '0', role: 'group', 'aria-label': t('The printed masks in words') });
  const element = h('section', { class: 'analysis seed', 'aria-label': t('The mask as printed'), hidden: '' },
    h('h3', {}, t('The mask as printed')), reason,
    h('div', { class: 'figures' }, ...Object.entries(PRINTED).map(([kind, label]) => makeFigure(t(label), plots[kind]))),
    h('div', { class: 'twins' }, h('details', {}, h('summary', {}, t('The printed masks in words')), twin)));

  function update(state, changed) {
    const seed = state.run?.seed;
    element.hidden = !seed;
    if (!seed || !changed.has('run')) return;
    reason.textContent = seed.drawing.layout.meta.reason;
    for (const [kind, plot] of Object.entries(plots)) plot.draw(seed[kind]);
    const kinds = stage.context.constants.figures.frames[currentTheme()].seed.legend.map(({ name }) => name);
    twin.replaceChildren(...Object.entries(PRINTED).flatMap(([kind, label]) => [h('h4', {}, t(label)), listRows(seed[kind], kinds)]));
  }

  return { element, update };
}

// Each row in words: "x1: visible: x1; printed, does not run: slot 1, slot 2".
function listRows({ data: [{ x, y, z }] }, kinds) {
  const tell = (line) => kinds.map((reason, code) => [reason, x.filter((_, column) => line[column] === code)])
    .filter(([, columns]) => columns.length)
    .map(([reason, columns]) => t('{reason}: {columns}', { reason, columns: columns.join(t(', ')) }));
  return h('ul', {}, ...y.map((row, i) => h('li', {}, t('{row}: {cells}', { row, cells: tell(z[i]).join(t('; ')) }))));
}
