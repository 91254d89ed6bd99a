// The charts of the step: figures come ready from Python, what is chosen is marked in them here.

import { expertAt, makeMarker } from './chart_marks.js';
import { h } from './dom.js';
import { currentTheme } from './palette.js';
import { imageButtons, loadPlotly, makePlot, zoomButtons } from './plot.js';
import { typeScale } from './type_size.js';
import { phrase, t } from './words.js';

const LEGEND_LINE = 19;
const ROUTING_HEIGHT = 400; // two routers above each other, with room for their axis titles
const PANES = [
  ['tree', phrase('Draft tree'), phrase('Root left; one column for each drafted level.')],
  ['mask', phrase('Attention mask of this step'), phrase('Rows ask, columns answer; a filled cell is visible.')],
  ['routing', phrase('Experts'), phrase('The probabilities of each router, and which experts were used.')],
];

export function makeCharts(stage) {
  const mark = makeMarker(stage);
  const [tree, mask, routing] = PANES.map(([name, title, hint]) => makePane(name, t(title), t(hint)));
  const panes = [tree, mask, routing];
  const notice = h('p', { class: 'hint', role: 'status' });
  const element = h('section', { class: 'charts', 'aria-label': t('Charts'), hidden: '' }, notice, ...panes.map((pane) => pane.element));
  let begun = false;
  let busy = false;

  function update(state, changed) {
    element.hidden = !stage.frame;
    if (!stage.frame || !['run', 'row', 'step', 'node', 'expert', 'moment', 'steps', 'type'].some((name) => changed.has(name))) return;
    load();
    request();
  }

  function load() {
    if (begun) return;
    begun = true;
    notice.textContent = t('Loading the charts…');
    loadPlotly(stage.context).then(() => { notice.hidden = true; request(); })
      .catch(() => { notice.textContent = t('The charts could not be loaded; the step is in the text above.'); });
  }

  // Every pane is drawn behind a frame of its own, in a task of its own, and draws what is then the newest step.
  // Charts rest as long as they worked, so that a fast run on a slow machine still leaves half of the time to
  // everything else.
  async function request() {
    if (busy || !window.Plotly) return;
    busy = true;
    while (panes.some((pane) => pane.isBehind())) {
      panes.forEach((pane) => pane.show()); // all at once: one that comes later would narrow those beside it
      for (const pane of panes) await rest(await drawAfterFrame(pane));
    }
    busy = false;
  }

  async function drawAfterFrame(pane) {
    await new Promise(requestAnimationFrame);
    await rest(0); // tokens and words of the frame are laid out and painted first
    const begin = performance.now();
    if (pane.isBehind()) await pane.draw();
    return performance.now() - begin;
  }

  function makePane(name, title, hint) {
    const plot = makePlot(stage, name);
    const box = h('figure', { class: `pane ${name}`, hidden: '' },
      h('figcaption', {}, h('h3', {}, title), h('span', { class: 'hint' }, hint), h('span', { class: 'tools' }, ...zoomButtons(plot, title), ...imageButtons(plot, title))),
      h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': t('{title}; in words further down', { title }) }, plot.element));
    const drawn = { frame: null, chosen: [], run: null, height: 0 };
    const chosen = ({ node, expert, moment }) => [node, expert, moment, typeScale()];
    const isBehind = () => Boolean(stage.frame)
      && (drawn.frame !== stage.frame || chosen(stage.state).some((value, i) => value !== drawn.chosen[i]));

    function show() {
      box.hidden = !stage.frame?.figures[name];
    }

    async function draw() {
      const { frame, state } = stage;
      Object.assign(drawn, { frame, chosen: chosen(state) });
      show();
      if (box.hidden) return;
      const figure = name === 'routing' ? await routingOf(frame, state.node) : frame.figures[name];
      if (frame !== stage.frame) return; // the next round draws the newer one
      drawn.height = Math.max(chooseHeight(name, frame.figures), drawn.run === state.run ? drawn.height : 0);
      drawn.run = state.run;
      // It grows within a run, so that the page does not jump at every step.
      const sized = { ...figure, layout: { ...figure.layout, height: drawn.height || undefined } };
      await plot.draw(mark(name, name === 'tree' ? fitTree(plot.element, sized) : sized));
      plot.listens ??= plot.element.on('plotly_click', (event) => choose(name, event.points[0]));
    }

    return { element: box, draw, isBehind, show };
  }

  // A node with a routing of its own shows that one.
  async function routingOf(frame, node) {
    const { routing, index } = frame.step;
    if (!routing.some((own) => own.node === node) || routing[0].node === node) return frame.figures.routing;
    return stage.askOfRun('routing', { step: index, node }).catch(() => frame.figures.routing);
  }

  // Where the labels of its levels would meet a deep tree is scrolled, not squeezed. Its legend then stands in a column at the left, where it
  // is seen: a line of it would run out of sight with the tree.
  function fitTree(plotElement, figure) {
    const width = figure.layout.meta.min_width * typeScale();
    plotElement.style.minWidth = `${width}px`;
    if (width <= plotElement.parentElement.clientWidth) return figure;
    const { legend } = stage.context.constants.figures.frames[currentTheme()].tree.layout;
    const height = figure.layout.height + LEGEND_LINE * figure.layout.meta.legend.length;
    return { ...figure, layout: { ...figure.layout, height, legend: { ...legend, orientation: 'v' } } };
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
    if (name === 'routing' && expertAt(point)) stage.choose({ expert: expertAt(point) });
    const owner = name === 'mask' ? point.data.customdata?.[point.pointNumber[0]] : undefined;
    if (owner >= 0) stage.choose({ node: owner }); // a prefix row belongs to no node
  }

  return { element, update };
}

// A mask is as tall as its rows need, within reason.
function maskHeight(figure) {
  const rows = figure.data.find((trace) => trace.name === 'cells').z.length;
  return Math.max(300, Math.min(600, 190 + 13 * rows));
}

const rest = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
