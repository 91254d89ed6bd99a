// The charts of the step: figures come ready from Python, what is chosen is marked here.

import { h } from './dom.js';
import { expandMask } from './mask_cells.js';
import { currentTheme } from './palette.js';
import { loadPlotly, makePlot } from './plot.js';

const ROUTING_HEIGHT = 400; // two routers above each other, with room for their axis titles
const NODE_TRACE = 3; // of the tree's figure, as in specviz/figures/tree.py
const SELECTION_TRACE = 4;
const PRINTED = { drawing: 'as drawn', formula: 'as in its formula', runs: 'what runs' };
const PANES = [
  ['tree', 'Draft tree', 'Root left; one column for each drafted level.'],
  ['mask', 'Attention mask of this step', 'Rows ask, columns answer; a filled cell is visible.'],
  ['routing', 'Experts', 'The probabilities of each router, and which experts were used.'],
];

export function makeCharts(stage) {
  const { figures } = stage.context.constants;
  const [tree, mask, routing] = PANES.map(([name, title, hint]) => makePane(name, title, hint));
  const panes = [tree, mask, makePrinted(stage), routing];
  const notice = h('p', { class: 'hint', role: 'status' });
  const element = h('section', { class: 'charts', 'aria-label': 'Charts', hidden: '' }, notice, ...panes.map((pane) => pane.element));
  let begun = false;
  let busy = false;

  function update(state, changed) {
    element.hidden = !stage.frame;
    if (!stage.frame || !['run', 'row', 'step', 'node', 'steps'].some((name) => changed.has(name))) return;
    load();
    request();
  }

  function load() {
    if (begun) return;
    begun = true;
    notice.textContent = 'Loading the charts…';
    loadPlotly(stage.context).then(() => { notice.hidden = true; request(); })
      .catch(() => { notice.textContent = 'The charts could not be loaded; the step is in the text above.'; });
  }

  // Every pane is drawn in a frame of its own, and draws what is then the newest step. Charts rest as long as
  // they worked, so that a fast run on a slow machine still leaves half of the time to everything else.
  async function request() {
    if (busy || !window.Plotly) return;
    busy = true;
    while (panes.some((pane) => pane.isBehind())) {
      for (const pane of panes) await rest(await drawInFrame(pane));
    }
    busy = false;
  }

  async function drawInFrame(pane) {
    await new Promise(requestAnimationFrame);
    const begin = performance.now();
    if (pane.isBehind()) await pane.draw();
    return performance.now() - begin;
  }

  function makePane(name, title, hint) {
    const plot = makePlot(stage, name);
    const reset = h('button', { type: 'button', class: 'small', onclick: plot.reset }, 'Reset zoom');
    const box = h('figure', { class: `pane ${name}`, hidden: '' },
      h('figcaption', {}, h('h3', {}, title), h('span', { class: 'hint' }, hint), reset), h('div', { class: 'scroll' }, plot.element));
    const drawn = { frame: null, node: null, run: null, height: 0 };
    const isBehind = () => Boolean(stage.frame) && (drawn.frame !== stage.frame || drawn.node !== stage.state.node);

    async function draw() {
      const { frame, state: { run, node } } = stage;
      Object.assign(drawn, { frame, node });
      const figure = frame.figures[name];
      box.hidden = !figure;
      if (!figure) return;
      drawn.height = Math.max(chooseHeight(name, frame.figures), drawn.run === run ? drawn.height : 0);
      drawn.run = run;
      if (name === 'tree') plot.element.style.minWidth = treeWidth(figure);
      // It grows within a run, so that the page does not jump at every step.
      const sized = { ...figure, layout: { ...figure.layout, height: drawn.height || undefined } };
      await plot.draw(withSelection(name, sized, node));
      plot.listens ??= plot.element.on('plotly_click', (event) => choose(name, event.points[0]));
    }

    return { element: box, draw, isBehind };
  }

  // Side by side, tree and mask are equally tall.
  function chooseHeight(name, { tree, mask }) {
    if (name === 'mask') return maskHeight(mask);
    if (name === 'routing') return ROUTING_HEIGHT;
    const isBeside = panes[0].element.offsetWidth < 0.75 * element.offsetWidth;
    return isBeside ? Math.max(tree.layout.height, maskHeight(mask)) : tree.layout.height;
  }

  function choose(name, point) {
    if (name === 'tree') stage.choose({ node: point.customdata });
    const owner = name === 'mask' ? point.data.customdata?.[point.pointNumber[0]] : undefined;
    if (owner >= 0) stage.choose({ node: owner }); // a prefix row belongs to no node
  }

  // What is chosen is marked here, so that choosing costs no round trip.
  function withSelection(name, figure, node) {
    if (name === 'mask') return markMask(expandMask(figure), node);
    return name === 'tree' ? { ...figure, data: ringNode(figure.data, node) } : figure;
  }

  function markMask({ data, layout }, node) {
    const line = { color: figures.palette.themes[currentTheme()].text, width: 2 };
    const cells = data.find((trace) => trace.name === 'cells');
    const owners = cells?.customdata ?? [];
    const marks = owners.flatMap((owner, row) => (node !== null && owner === node
      ? [{ type: 'rect', xref: 'paper', x0: 0, x1: 1, y0: row - 0.5, y1: row + 0.5, line }] : []));
    const spoken = data.map((trace) => (trace === cells ? { ...trace, text: cells.z.map((row) => row.map(sentenceOf)) } : trace));
    return { data: spoken, layout: { ...layout, shapes: [...(layout.shapes ?? []), ...marks] } };
  }

  const sentenceOf = (code) => figures.mask_reasons[code]?.html ?? '';

  return { element, update };
}

// On a narrow screen a deep tree is scrolled, not squeezed.
function treeWidth(figure) {
  return `${90 + 90 * Math.max(...figure.data[NODE_TRACE].x)}px`;
}

// A mask is as tall as its rows need, within reason.
function maskHeight(figure) {
  const rows = figure.data.find((trace) => trace.name === 'cells').z.length;
  return Math.max(300, Math.min(600, 190 + 13 * rows));
}

// The seed's mask as printed, beside what runs: the same for every step of a run.
function makePrinted(stage) {
  const plot = makePlot(stage, 'seed', { class: 'printed' });
  const reason = h('p', { class: 'hint' });
  const choices = Object.entries(PRINTED).map(([kind, label]) =>
    h('button', { type: 'button', class: 'small', data: { kind }, onclick: () => show(kind) }, label));
  const element = h('figure', { class: 'pane printed', hidden: '' }, h('figcaption', {}, h('h3', {}, 'The mask as printed'),
    h('span', { class: 'choices', role: 'group', 'aria-label': 'Which mask' }, ...choices)), plot.element, reason);
  const drawn = { seed: null, kind: 'drawing' };

  const isBehind = () => Boolean(stage.frame) && drawn.seed !== (stage.state.run.seed ?? null);

  async function draw() {
    const { seed } = stage.state.run;
    drawn.seed = seed;
    element.hidden = !seed;
    if (seed) await show(drawn.kind);
  }

  function show(kind) {
    drawn.kind = kind;
    reason.textContent = drawn.seed.drawing.layout.meta.reason;
    choices.forEach((choice) => choice.setAttribute('aria-pressed', String(choice.dataset.kind === kind)));
    return plot.draw(drawn.seed[kind]);
  }

  return { element, draw, isBehind };
}

const rest = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function ringNode(data, node) {
  const nodes = data[NODE_TRACE];
  const place = node === null ? -1 : nodes.customdata.indexOf(node);
  const at = (values) => (place < 0 ? [] : [values[place]]);
  return data.map((trace, i) => (i === SELECTION_TRACE ? { ...trace, x: at(nodes.x), y: at(nodes.y) } : trace));
}
