// What is chosen, and the moment of the step, drawn into the figures of a step: choosing costs no round trip.

import { expandMask } from './mask_cells.js';
import { treeAt } from './moments.js';
import { currentTheme } from './palette.js';
import { isExpertOf, isSameExpert, markedNodes } from './selection.js';

const NODE_TRACE = 3; // of the tree's figure, as in specviz/figures/tree.py
const SELECTION_TRACE = 4;
const LAYER_SITE = 'target.'; // a target's own routers, as in specviz/figures/experts.py

export function makeMarker(stage) {
  const { figures } = stage.context.constants;
  const line = () => ({ color: figures.palette.themes[currentTheme()].text, width: 2 });
  const htmlOf = (code) => figures.mask_reasons[code]?.html ?? '';
  const mark = { tree: markTree, mask: markMask, routing: markRouting };

  function markTree(figure) {
    const shown = treeAt(figure, stage.state.moment);
    const nodes = shown.data[NODE_TRACE];
    const places = markedNodes(stage.frame, stage.state).map((node) => nodes.customdata.indexOf(node)).filter((place) => place >= 0);
    const at = (values) => places.map((place) => values[place]);
    return { ...shown, data: shown.data.map((trace, i) => (i === SELECTION_TRACE ? { ...trace, x: at(nodes.x), y: at(nodes.y) } : trace)) };
  }

  function markMask(short) {
    const { data, layout } = expandMask(short);
    const marked = markedNodes(stage.frame, stage.state);
    const cells = data.find((trace) => trace.name === 'cells');
    const boxes = (cells.customdata ?? []).flatMap((owner, row) => (marked.includes(owner)
      ? [{ type: 'rect', xref: 'paper', x0: 0, x1: 1, y0: row - 0.5, y1: row + 0.5, line: line() }] : []));
    const spoken = data.map((trace) => (trace === cells ? { ...trace, text: cells.z.map((row) => row.map(htmlOf)) } : trace));
    return { data: spoken, layout: { ...layout, shapes: [...(layout.shapes ?? []), ...boxes] } };
  }

  function markRouting({ data, layout }) {
    const boxes = data.flatMap((trace) => expertsOf(trace).filter(({ expert }) => isMarked(expert)).map(({ box }) => box));
    return { data, layout: { ...layout, shapes: [...(layout.shapes ?? []), ...boxes.map((box) => ({ type: 'rect', line: line(), ...box }))] } };
  }

  function isMarked(expert) {
    return isSameExpert(stage.state.expert, expert) || isExpertOf(stage.frame, stage.state, expert);
  }

  return (name, figure) => mark[name](figure);
}

// The expert of a clicked point; undefined where the point is none.
export function expertAt({ data, pointNumber }) {
  if (data.type === 'bar') return { site: data.name, index: data.customdata[pointNumber] };
  if (data.name === 'target') return { site: `${LAYER_SITE}${data.y[pointNumber[0]]}`, index: pointNumber[1] };
  return undefined;
}

// Every expert that a trace draws, and where.
function expertsOf(trace) {
  if (trace.type === 'bar') {
    const { xaxis, yaxis, customdata, name } = trace;
    return customdata.map((index) => ({
      expert: { site: name, index }, box: { xref: xaxis, yref: `${yaxis} domain`, x0: index - 0.5, x1: index + 0.5, y0: 0, y1: 1 },
    }));
  }
  if (trace.name !== 'target') return [];
  return trace.y.flatMap((layer, row) => trace.z[row].map((_, index) => ({
    expert: { site: `${LAYER_SITE}${layer}`, index }, box: { x0: index - 0.5, x1: index + 0.5, y0: layer - 0.5, y1: layer + 0.5 },
  })));
}
