// One plotly chart: a bare figure from Python, joined with the frame of its kind in the theme of the page.
// plotly.js is large, so it is loaded once the first step is on the page.

import { h } from './dom.js';
import { download } from './download.js';
import { currentTheme } from './palette.js';
import { enlargeFigure, typeScale } from './type_size.js';
import { t } from './words.js';

const CONFIG = { displayModeBar: false, responsive: true, displaylogo: false };
const NEARER = 0.6; // the part of a chart that is left in view where it is zoomed in once
let loading = null;

// Load plotly.js; every call gets the same promise.
export function loadPlotly({ constants, fileUrl }) {
  loading ??= new Promise((resolve, reject) => {
    const begin = () => document.head.append(h('script', { src: fileUrl(constants.assets.plotly), onload: resolve, onerror: reject }));
    if (window.Plotly) resolve(); // a page to take along has it inside
    else requestAnimationFrame(() => setTimeout(begin)); // the tokens are painted first
  });
  return loading;
}

// A chart of one kind (a name in `figures.frames`); `name` tells charts of one kind apart where they are saved.
// `draw(bare)` shows a figure and resolves when it is there, `redraw()` does it again in the theme and the type size of
// now, `clear()` takes it away.
export function makePlot(stage, kind, name = kind) {
  const { figures } = stage.context.constants;
  const element = h('div', { class: `plot ${kind}` });
  let shown = null;
  let kept = {};

  function draw(bare) {
    shown = bare;
    return loadPlotly(stage.context).then(redraw);
  }

  async function redraw() {
    if (!shown) return;
    if (!element._context) await begin();
    const scale = typeScale();
    const figure = enlargeFigure(joinFrame(shown, figures.frames[currentTheme()][kind]), scale);
    // plotly.js drops the height when the window changes its size, and takes the one of the element.
    element.style.height = figure.layout.height ? `${figure.layout.height}px` : '';
    // It looks at the window's size alone, but a neighbour that comes or goes changes a chart's width too.
    figure.layout.width = element.clientWidth || undefined;
    figure.layout.margin = keepMargin(figure.layout, scale);
    window.Plotly.react(element, figure);
    const { l, r, t: top, b } = element._fullLayout._size;
    kept.margin = { l, r, t: top, b };
  }

  // Within a run, a width and a type size a margin only grows. plotly.js draws once with the margins it is given and once more
  // where labels need wider ones: that would be every step twice, and the plot would move from step to step.
  function keepMargin({ width, margin }, scale) {
    const { run } = stage.state;
    if (kept.run !== run || kept.width !== width || kept.scale !== scale) kept = { run, width, scale, margin };
    return Object.fromEntries(Object.entries(margin).map(([side, pixels]) => [side, Math.max(pixels, kept.margin[side])]));
  }

  // On a page with a <base> plotly.js names clip paths and patterns by the page's whole address. Ours changes with every
  // step, and then they would be lost: a fragment alone stays true.
  // `react` must not bring the configuration again: it would ask for the address again too.
  async function begin() {
    await window.Plotly.newPlot(element, [], {}, CONFIG);
    element._context._baseUrl = '';
  }

  function clear() {
    if (shown) window.Plotly.purge(element);
    shown = null;
  }

  const redrawn = new MutationObserver(redraw);
  redrawn.observe(document.body, { attributes: true, attributeFilter: ['class'] }); // the theme
  redrawn.observe(document.documentElement, { attributes: true, attributeFilter: ['style'] }); // the size of the type
  // The chart as a picture, on the background of the page: a data URL.
  function picture(format) {
    const { data, layout, offsetWidth: width, offsetHeight: height } = element;
    const { background } = figures.palette.themes[currentTheme()];
    return window.Plotly.toImage({ data, layout: { ...layout, paper_bgcolor: background } }, { format, width, height, scale: format === 'png' ? 2 : 1 });
  }

  return { element, name, draw, redraw, clear, picture };
}

// Buttons that bring a chart nearer, push it away, and show all of it again.
export function zoomButtons(plot, title) {
  return [
    h('button', { type: 'button', class: 'small', 'aria-label': t('Zoom in: {title}', { title }), onclick: () => zoom(plot.element, NEARER) }, '+'),
    h('button', { type: 'button', class: 'small', 'aria-label': t('Zoom out: {title}', { title }), onclick: () => zoom(plot.element, 1 / NEARER) }, '−'),
    h('button', { type: 'button', class: 'small', onclick: () => resetZoom(plot.element) }, t('Reset zoom')),
  ];
}

// Buttons that save a chart as a picture.
export function imageButtons(plot, title) {
  return ['png', 'svg'].map((format) => {
    const label = format.toUpperCase();
    const save = async () => download(await plot.picture(format), `specviz-${plot.name}.${format}`);
    return h('button', { type: 'button', class: 'small', 'aria-label': t('Save {title} as {format}', { title, format: label }), onclick: save }, label);
  });
}

// As `join_frame` of specviz/figures/frame.py does.
export function joinFrame(bare, frame) {
  const wanted = bare.layout.meta?.legend;
  const legend = frame.legend.filter((entry) => !wanted || wanted.includes(entry.name));
  return { data: [...bare.data, ...legend], layout: { ...structuredClone(frame.layout), ...bare.layout } };
}

function resetZoom(plot) {
  const reversed = (axis) => (plot.layout[axis]?.autorange === 'reversed' ? 'reversed' : true);
  window.Plotly.relayout(plot, Object.fromEntries(axesOf(plot).map((axis) => [`${axis}.autorange`, reversed(axis)])));
}

// Show `part` times as much of every axis, about the middle of what is shown.
function zoom(plot, part) {
  const changes = axesOf(plot).map((axis) => {
    const [from, to] = plot._fullLayout[axis].range;
    const [middle, half] = [(from + to) / 2, part * (to - from) / 2];
    return [`${axis}.range`, [middle - half, middle + half]];
  });
  window.Plotly.relayout(plot, Object.fromEntries(changes));
}

const axesOf = (plot) => Object.keys(plot._fullLayout ?? {}).filter((key) => /^[xy]axis\d*$/.test(key));
