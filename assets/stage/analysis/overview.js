// The run as a whole: tokens, acceptance and time of its steps.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { phrase, t } from '../words.js';
import { makeAnswerPane, makeFigure, makeTable, originTag } from './answer.js';

const FIGURES = [
  ['tokens_per_pass', phrase('Tokens of each pass')],
  ['acceptance', phrase('Accepted by depth')],
  ['times', phrase('Time of each step')],
];

const PHASES = { draft: phrase('draft'), verify: phrase('verify'), commit: phrase('commit') };

export function makeOverview(stage) {
  const plots = Object.fromEntries(FIGURES.map(([kind]) => [kind, makePlot(stage, kind)]));

  function show(answer) {
    for (const [kind, plot] of Object.entries(plots)) plot.draw(answer[kind]);
    const drawn = FIGURES.filter(([kind]) => answer[kind].data.some((trace) => trace.x?.length));
    return [h('div', { class: 'figures' }, ...drawn.map(([kind, title]) => makeFigure(t(title), plots[kind]))), showShares(answer.shares)];
  }

  return makeAnswerPane(stage, {
    name: 'overview',
    title: phrase('All steps'),
    hint: phrase('What each pass gave and where its time went.'),
    kind: 'overview',
    scope: 'run',
    show,
  });
}

function showShares({ by_phase: phases, record_ms: record, ms }) {
  const share = (value) => [`${(value / 1000).toFixed(2)} s`, `${Math.round((100 * value) / (ms || 1))} %`];
  const rows = [...Object.entries(phases).map(([name, value]) => [t(PHASES[name]), value]), [t('recording, the visualizer’s own cost (apart)'), record]];
  return h('details', {}, h('summary', {}, t('Time by phase')),
    makeTable(t('Sums over all steps, prefill included'), [t('phase'), t('time'), t('of the decoding')], rows.map(([name, value]) => [name, ...share(value)])),
    originTag('measured'));
}
