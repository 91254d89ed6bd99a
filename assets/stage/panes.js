// The tabs of the stage, and the panes on each.
//
// A pane is what `makeSomething(stage)` returns: `{ element, update(state, changed) }`. `update` is called once a
// frame while its tab is shown, with the names of what changed since its last call (the fields of `state`, and
// `steps`, `metrics`, `finish` when more of the run arrived). A tab that `asks` is left out of a page to take
// along, which has nobody to ask.
//
// What a pane may use:
//   stage.state                {run, row, step, node, expert, view, phase, follow, playing, ...}; read only
//   stage.row                  the row shown: {head, steps, metrics}; stage.row.steps[i] is {step, figures, sentence}
//   stage.frame                the step shown, of the same shape; its `step` has what is drawn (step_item.py)
//   await stage.recordOf(i)    step i of the row to the last digit, and a sentence for each node: {step, why}
//   stage.choose({step, node, row, expert})   choose something; all views mark it
//   stage.ask(kind, values)                   ask Python (specviz/ui/questions.py); throws Error(sentence)
//   stage.askOfRun(kind, values, run)         the same about a whole run, `question.run()` in Python
//   makePlot(stage, kind, name) of plot.js    a chart that a bare figure from Python is drawn in

import { makeCompare } from './analysis/compare.js';
import { makeDrafting } from './analysis/drafting.js';
import { makeExpertHistory } from './analysis/experts.js';
import { makeFuture, makeThoughts } from './analysis/future.js';
import { makeHindsight } from './analysis/hindsight.js';
import { makeLosslessness } from './analysis/losslessness.js';
import { makeMaskProof } from './analysis/mask_proof.js';
import { makeOverview } from './analysis/overview.js';
import { makeRace } from './analysis/race.js';
import { makeSeed } from './analysis/seed.js';
import { makeWaterfall } from './analysis/waterfall.js';
import { makeWhatIf } from './analysis/what_if.js';
import { makeCharts } from './charts.js';
import { makeDrafted } from './drafted.js';
import { makeInspector } from './inspector.js';
import { makeTwins } from './twins.js';
import { makeLessons } from './lessons/lessons.js';
import { phrase } from './words.js';

export const TABS = [
  { name: 'step', label: phrase('Step'), panes: [makeDrafted, makeInspector, makeCharts, makeTwins, makeWhatIf, makeThoughts, makeMaskProof, makeSeed, makeWaterfall] },
  { name: 'run', label: phrase('Run'), panes: [makeRace, makeLosslessness, makeDrafting, makeHindsight, makeFuture, makeExpertHistory, makeOverview] },
  { name: 'compare', label: phrase('Compare'), panes: [makeCompare], asks: true },
  { name: 'lessons', label: phrase('Lessons'), panes: [makeLessons], asks: true },
];
