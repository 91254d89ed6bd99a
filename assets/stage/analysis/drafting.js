// For those who debug drafters: which tokens drafts hit, why they missed the others, how far draft and target lie apart.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { phrase, t } from '../words.js';
import { makeAnswerPane, makeFigure, makeTable } from './answer.js';

export function makeDrafting(stage) {
  const plots = Object.fromEntries(['kinds', 'misses', 'divergence'].map((kind) => [kind, makePlot(stage, kind)]));
  const titles = {
    kinds: phrase('Accepted by kind of token'),
    misses: phrase('Why the target’s token was not drafted'),
    divergence: phrase('Divergence of draft and target by depth'),
  };

  function show(answer) {
    const kinds = Object.keys(plots).filter((kind) => answer[kind]);
    if (!kinds.length) return null;
    for (const kind of kinds) plots[kind].draw(answer[kind]);
    return [h('div', { class: 'figures' }, ...kinds.map((kind) => makeFigure(t(titles[kind]), plots[kind]))),
      answer.misses && explainMisses(answer)];
  }

  return makeAnswerPane(stage, {
    name: 'drafting',
    title: phrase('Where drafts hit and miss'),
    hint: phrase('Counted over the reached nodes of this run; a node that was never judged counts nowhere.'),
    kind: 'drafting',
    scope: 'run',
    show,
  });
}

function explainMisses({ sentences, n_missed: n, n_unrecorded: unrecorded }) {
  const note = unrecorded ? t('; for {n} no reason is recorded', { n: unrecorded }) : '';
  return h('details', {}, h('summary', {}, t('What the reasons mean')),
    makeTable(t('{n} passes ended with the target’s own token{note}', { n, note }), [t('passes'), t('reason')], sentences.map(([n_passes, text]) => [String(n_passes), text])));
}
