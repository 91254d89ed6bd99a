// Which experts each router used over the run, step by step; a click leads to the step.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { phrase, t } from '../words.js';
import { makeAnswerPane, makeFigure } from './answer.js';

export function makeExpertHistory(stage) {
  const plots = new Map();

  function show({ sites }) {
    return [h('div', { class: 'figures' }, ...sites.map(({ site, title, figure }) => {
      if (!plots.has(site)) plots.set(site, makePlot(stage, 'routing_history', `routing_history-${site}`));
      const plot = plots.get(site);
      plot.draw(figure).then(() => { plot.listens ??= plot.element.on('plotly_click', ({ points }) => choose(site, points[0])); });
      return makeFigure(t('Router {site}', { site: title }), plot);
    }))];
  }

  function choose(site, { x: step, y: index }) {
    stage.choose({ step, expert: { site, index } });
  }

  return makeAnswerPane(stage, {
    name: 'experts',
    title: phrase('Experts over the run'),
    hint: phrase('One column for each step: how probable each expert was, a dot where it was used. Choose one to go to its step.'),
    kind: 'experts',
    scope: 'run',
    show,
  });
}
