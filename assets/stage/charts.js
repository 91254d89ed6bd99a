// The charts of the step: figures come ready from Python, and are joined here with the frame of the theme.
// plotly.js is large, so it is loaded once the first step is on the page.

import { h } from './dom.js';
import { currentTheme } from './palette.js';

const CONFIG = { displayModeBar: false, responsive: true, displaylogo: false };
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
  const { constants, fileUrl } = stage.context;
  const { figures } = constants;
  const [tree, mask, routing] = PANES.map(([name, title, hint]) => makePane(name, title, hint));
  const panes = [tree, mask, makePrinted(stage), routing];
  const notice = h('p', { class: 'hint', role: 'status' });
  const element = h('section', { class: 'charts', 'aria-label': 'Charts', hidden: '' }, notice, ...panes.map((pane) => pane.element));
  let plotly = null;
  let busy = false;
  let redrawAll = false;

  new MutationObserver(() => request(true)).observe(document.body, { attributes: true, attributeFilter: ['class'] });

  function update(state, changed) {
    element.hidden = !stage.frame;
    if (!stage.frame) return;
    if (!['run', 'row', 'step', 'node', 'steps'].some((name) => changed.has(name))) return;
    load();
    request();
  }

  function load() {
    if (plotly) return;
    notice.textContent = 'Loading the charts…';
    plotly = new Promise((resolve, reject) => {
      const begin = () => document.head.append(h('script', { src: fileUrl(constants.assets.plotly), onload: resolve, onerror: reject }));
      requestAnimationFrame(() => setTimeout(begin)); // the tokens are painted first
    });
    plotly.then(() => { notice.hidden = true; request(true); })
      .catch(() => { notice.textContent = 'The charts could not be loaded; the step is in the text above.'; });
  }

  // Every pane is drawn in a frame of its own, and draws what is then the newest step. Charts rest as long as
  // they worked, so that a fast run on a slow machine still leaves half of the time to everything else.
  async function request(all = false) {
    redrawAll ||= all;
    if (busy || !window.Plotly) return;
    busy = true;
    while (redrawAll || panes.some((pane) => pane.isBehind())) {
      const again = redrawAll;
      redrawAll = false;
      for (const pane of panes) await rest(await drawInFrame(pane, again));
    }
    busy = false;
  }

  async function drawInFrame(pane, again) {
    await new Promise(requestAnimationFrame);
    const begin = performance.now();
    if (stage.frame && (again || pane.isBehind())) pane.draw();
    return performance.now() - begin;
  }

  function makePane(name, title, hint) {
    const plot = h('div', { class: `plot ${name}` });
    const reset = h('button', { type: 'button', class: 'small', onclick: () => resetZoom(plot) }, 'Reset zoom');
    const box = h('figure', { class: `pane ${name}`, hidden: '' },
      h('figcaption', {}, h('h3', {}, title), h('span', { class: 'hint' }, hint), reset), h('div', { class: 'scroll' }, plot));
    const drawn = { frame: null, node: null, run: null, height: 0 };
    const isBehind = () => Boolean(stage.frame) && (drawn.frame !== stage.frame || drawn.node !== stage.state.node);

    function draw() {
      const { frame, state: { run, node } } = stage;
      Object.assign(drawn, { frame, node });
      const figure = frame.figures[name];
      box.hidden = !figure;
      if (!figure) return;
      const { data, layout } = joinFrame(figure, figures.frames[currentTheme()][name]);
      drawn.height = Math.max(chooseHeight(name, frame.figures), drawn.run === run ? drawn.height : 0);
      drawn.run = run;
      if (name === 'tree') plot.style.minWidth = treeWidth(figure);
      if (drawn.height) layout.height = drawn.height; // grows within a run, so that the page does not jump at every step
      window.Plotly.react(plot, { ...withSelection(name, data, layout, node), config: CONFIG });
      if (!plot.listens) plot.listens = plot.on('plotly_click', (event) => choose(name, event.points[0]));
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
  function withSelection(name, data, layout, node) {
    if (name === 'mask') return markMask(data, layout, node);
    return name === 'tree' ? { data: ringNode(data, node), layout } : { data, layout };
  }

  function markMask(data, layout, node) {
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
  const { figures } = stage.context.constants;
  const plot = h('div', { class: 'plot printed' });
  const reason = h('p', { class: 'hint' });
  const choices = Object.entries(PRINTED).map(([kind, label]) =>
    h('button', { type: 'button', class: 'small', data: { kind }, onclick: () => show(kind) }, label));
  const element = h('figure', { class: 'pane printed', hidden: '' }, h('figcaption', {}, h('h3', {}, 'The mask as printed'),
    h('span', { class: 'choices', role: 'group', 'aria-label': 'Which mask' }, ...choices)), plot, reason);
  const drawn = { seed: null, kind: 'drawing' };

  const isBehind = () => drawn.seed !== (stage.state.run?.seed ?? null);

  function draw() {
    const { seed } = stage.state.run;
    drawn.seed = seed;
    element.hidden = !seed;
    if (seed) show(drawn.kind);
  }

  function show(kind) {
    drawn.kind = kind;
    const figure = joinFrame(drawn.seed[kind], figures.frames[currentTheme()].seed);
    reason.textContent = drawn.seed.drawing.layout.meta.reason;
    choices.forEach((choice) => choice.setAttribute('aria-pressed', String(choice.dataset.kind === kind)));
    window.Plotly.react(plot, { ...figure, config: CONFIG });
  }

  return { element, draw, isBehind };
}

const rest = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// As `join_frame` of specviz/figures/frame.py does.
function joinFrame(bare, frame) {
  const wanted = bare.layout.meta?.legend;
  const legend = frame.legend.filter((entry) => !wanted || wanted.includes(entry.name));
  return { data: [...bare.data, ...legend], layout: { ...frame.layout, ...bare.layout } };
}

function ringNode(data, node) {
  const nodes = data[NODE_TRACE];
  const place = node === null ? -1 : nodes.customdata.indexOf(node);
  const at = (values) => (place < 0 ? [] : [values[place]]);
  return data.map((trace, i) => (i === SELECTION_TRACE ? { ...trace, x: at(nodes.x), y: at(nodes.y) } : trace));
}

function resetZoom(plot) {
  const layout = plot._fullLayout;
  const axes = Object.keys(layout ?? {}).filter((key) => /^[xy]axis\d*$/.test(key));
  const reversed = (axis) => (plot.layout[axis]?.autorange === 'reversed' ? 'reversed' : true);
  window.Plotly.relayout(plot, Object.fromEntries(axes.map((axis) => [`${axis}.autorange`, reversed(axis)])));
}
