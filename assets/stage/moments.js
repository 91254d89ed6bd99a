// The three moments of a step: drafted, verified, committed. Each shows what was known by then.

import { EXTRA_NODE } from './dom.js';
import { count, phrase, t } from './words.js';

export const MOMENTS = { draft: phrase('Draft'), verify: phrase('Verify'), commit: phrase('Commit') };

const PATH = 2; // traces of the tree's figure, as in specviz/figures/tree.py
const NODES = 3;
const NEUTRAL = { symbol: 'circle-open', color: '#808080' };

// What is said of a step at a moment; the last moment tells the whole step.
export function narrate({ step, sentence }, moment) {
  const drafted = step.nodes.slice(1);
  if (moment === 'commit' || step.index === 0) return sentence;
  const ms = (name) => `${step.times_ms[name].toFixed(1)} ms`;
  if (moment === 'draft') {
    const depth = Math.max(0, ...drafted.map((node) => node.depth));
    return t('Step {step}, draft: {tokens} proposed, {levels} deep, in {ms}. Which will the target take?', {
      step: step.index, tokens: count(drafted.length, '{n} token', '{n} tokens'), levels: count(depth, '{n} level', '{n} levels'), ms: ms('draft'),
    });
  }
  const judged = drafted.filter(({ status }) => ['accepted', 'rejected'].includes(status)).length;
  const accepted = drafted.filter(({ status }) => status === 'accepted').length;
  return t('Step {step}, verify: one pass of the target over {rows} in {ms}; it judges {nodes} and accepts {accepted}.', {
    step: step.index, rows: count(step.n_rows, '{n} row', '{n} rows'), ms: ms('verify'), nodes: count(judged, '{n} node', '{n} nodes'), accepted,
  });
}

// How a node looks at a moment: before the verdict all drafts are alike.
export function lookAt({ status }, moment, { statuses }) {
  const isOpen = moment === 'draft' && status !== 'root';
  return isOpen ? { status: 'plain', label: t('drafted') } : { status, label: statuses[status].label };
}

// The tree as it was known: without the target's own token, and before the verdict without any.
export function treeAt(figure, moment) {
  if (moment === 'commit') return figure;
  const extra = figure.data[NODES].customdata.indexOf(EXTRA_NODE);
  const { x, y } = figure.data[NODES];
  const place = extra < 0 ? null : [x[extra], y[extra]];
  const data = figure.data.map((trace, i) => {
    if (i === NODES) return { ...trace, ...withoutExtra(trace, extra), ...(moment === 'draft' ? undecided(trace) : {}) };
    if (i === PATH && moment === 'draft') return { ...trace, x: [], y: [] };
    return i <= PATH ? withoutEdgesTo(trace, place) : trace;
  });
  return { ...figure, data };
}

function withoutExtra({ x, y, text }, extra) {
  const hide = (values) => values.map((value, i) => (i === extra ? null : value));
  return { x: hide(x), y: hide(y), text: hide(text) };
}

function undecided({ marker, text }) {
  return { marker: { ...marker, symbol: marker.symbol.map((own) => (own === 'square' ? own : NEUTRAL.symbol)), color: NEUTRAL.color }, hovertext: text };
}

// Edges are triples: from, to, a gap.
function withoutEdgesTo(trace, place) {
  if (!place) return trace;
  const kept = trace.x.map((_, i) => i - (i % 3)).map((i) => trace.x[i + 1] !== place[0] || trace.y[i + 1] !== place[1]);
  return { ...trace, x: trace.x.filter((_, i) => kept[i]), y: trace.y.filter((_, i) => kept[i]) };
}
