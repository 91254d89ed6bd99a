// The run as a whole: tokens, acceptance and time of its steps.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { t } from '../words.js';
import { makeAnswerPane, makeFigure, makeTable, originTag } from './answer.js';

const FIGURES = [
  ['tokens_per_pass', 'Tokens of each pass'],
  ['acceptance', 'Accepted by depth'],
  ['times', 'Time of each step'],
];

export function makeOverview(stage) {
  const plots = Object.fromEntries(FIGURES.map(([kind]) => [kind, makePlot(stage, kind)]));

  function show(answer) {
    for (const [kind, plot] of Object.entries(plots)) plot.draw(answer[kind]);
    const drawn = FIGURES.filter(([kind]) => answer[kind].data.some((trace) => trace.x?.length));
    return [h('div', { class: 'figures' }, ...drawn.map(([kind, title]) => makeFigure(title, plots[kind]))), showShares(answer.shares)];
  }

  return makeAnswerPane(stage, {
    name: 'overview',
    title: 'All steps',
    hint: 'What each pass gave and where its time went.',
    kind: 'overview',
    scope: 'run',
    show,
  });
}

function showShares({ by_phase: phases, record_ms: record, ms }) {
  const share = (value) => [`${(value / 1000).toFixed(2)} s`, `${Math.round((100 * value) / (ms || 1))} %`];
  const rows = [...Object.entries(phases), ['recording, the visualizer’s own cost (apart)', record]];
  return h('details', {}, h('summary', {}, t('Time by phase')),
    makeTable('Sums over all steps, prefill included', ['phase', 'time', 'of the decoding'], rows.map(([name, value]) => [name, ...share(value)])),
    originTag('measured'));
}
