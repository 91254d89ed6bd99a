// Where the time of this step went; the visualizer's own cost is a bar of its own.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { makeAnswerPane, originTag } from './answer.js';

export function makeWaterfall(stage) {
  const plot = makePlot(stage, 'waterfall');

  function show({ waterfall, ms, record_ms: record }) {
    plot.draw(waterfall);
    return [h('p', {}, `The step took ${ms.toFixed(1)} ms; recording it for this page took another ${record.toFixed(1)} ms. `, originTag('measured')),
      plot.element];
  }

  return makeAnswerPane(stage, {
    name: 'waterfall',
    title: 'Time of this step',
    hint: 'Draft, verify and commit follow each other; recording is ours, and in no metric.',
    kind: 'step',
    scope: 'step',
    show,
  });
}
