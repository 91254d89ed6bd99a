// What of the run's trees paid, and which fixed tree would have been best.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { t } from '../words.js';
import { makeAnswerPane, originTag } from './answer.js';

export function makeHindsight(stage) {
  const plot = makePlot(stage, 'hindsight');

  function show(found) {
    plot.draw(found.figure);
    const unpaid = found.unpaid.map(({ place, n_sent: n }) => `${place} (${n}×)`).join(', ');
    return [
      h('p', {}, `${found.n_accepted} of ${found.n_sent} nodes paid. ${found.n_unpaid_places} of ${found.n_places} places of the tree never did`,
        unpaid ? `; most often sent: ${unpaid}.` : '.'),
      h('p', {}, `The best fixed tree of as many nodes would have given at least ${found.best_tokens_per_pass.toFixed(2)} tokens a pass; `,
        `this run gave ${found.tokens_per_pass.toFixed(2)}. `, originTag('computed')),
      plot.element,
      h('details', {}, h('summary', {}, t('The best tree as a list')), h('p', { class: 'places' }, found.best.join(', ') || 'the root alone')),
    ];
  }

  return makeAnswerPane(stage, {
    name: 'hindsight',
    title: 'The trees in hindsight',
    hint: 'A place is named by the draft’s rank at each level: 1.2 is the second child of the favourite.',
    kind: 'hindsight',
    scope: 'run',
    show,
  });
}
