// Where the time of this step went; the visualizer's own cost is a bar of its own.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { makeAnswerPane, makeChart, originTag } from './answer.js';
import { phrase, t } from '../words.js';

export function makeWaterfall(stage) {
  const plot = makePlot(stage, 'waterfall');

  function show({ waterfall, ms, record_ms: record }) {
    plot.draw(waterfall);
    return [h('p', {}, t('The step took {ms} ms; recording it for this page took another {record} ms.', { ms: ms.toFixed(1), record: record.toFixed(1) }), ' ', originTag('measured')),
      makeChart(t('Time of this step'), plot)];
  }

  return makeAnswerPane(stage, {
    name: 'waterfall',
    title: phrase('Time of this step'),
    hint: phrase('Draft, verify and commit follow each other; recording is ours, and in no metric.'),
    kind: 'step',
    scope: 'step',
    show,
  });
}
