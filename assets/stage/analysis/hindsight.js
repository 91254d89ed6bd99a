// What of the run's trees paid, and which fixed tree would have been best.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { phrase, t } from '../words.js';
import { makeAnswerPane, makeChart, originTag } from './answer.js';

export function makeHindsight(stage) {
  const plot = makePlot(stage, 'hindsight');

  function show(found) {
    plot.draw(found.figure);
    const unpaid = found.unpaid.map(({ place, n_sent: n }) => `${place} (${n}×)`).join(', ');
    return [
      h('p', {}, t('{n} of {all} nodes paid. {unpaid} of {places} places of the tree never did{often}.', {
        n: found.n_accepted, all: found.n_sent, unpaid: found.n_unpaid_places, places: found.n_places,
        often: unpaid ? t('; most often sent: {places}', { places: unpaid }) : '',
      })),
      h('p', {}, t('The best fixed tree of as many nodes would have given at least {best} tokens a pass; this run gave {own}.', {
        best: found.best_tokens_per_pass.toFixed(2), own: found.tokens_per_pass.toFixed(2),
      }), ' ', originTag('computed')),
      makeChart(t('The trees in hindsight'), plot),
      h('details', {}, h('summary', {}, t('The best tree as a list')), h('p', { class: 'places' }, found.best.join(', ') || t('the root alone'))),
    ];
  }

  return makeAnswerPane(stage, {
    name: 'hindsight',
    title: phrase('The trees in hindsight'),
    hint: phrase('A place is named by the draft’s rank at each level: 1.2 is the second child of the favourite.'),
    kind: 'hindsight',
    scope: 'run',
    show,
  });
}
