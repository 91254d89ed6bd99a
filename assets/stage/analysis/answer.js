// A pane whose content is Python's answer about the run or the step that is shown.

import { h } from '../dom.js';
import { imageButtons } from '../plot.js';
import { phrase, t } from '../words.js';

const CALM = 180; // milliseconds that the choice must rest before Python is asked

// `show(answer, ask)` returns the content, or null where the pane has nothing to say; `scope` is 'run' or 'step'.
// A live run is asked about when it is over. `ask(kind, values)` asks about the same run and step; null where
// there is nobody to ask.
export function makeAnswerPane(stage, { name, title, hint, kind, scope, show }) {
  const body = h('div', { class: 'answer-body' });
  const element = h('section', { class: `analysis ${name}`, 'aria-label': t(title), hidden: '' },
    h('h3', {}, t(title)), h('p', { class: 'hint' }, t(hint)), body);
  const changes = scope === 'run' ? ['run', 'row', 'finish'] : ['run', 'row', 'finish', 'step'];
  let asked = '';
  let answered = '';
  let timer = null;

  function update(state, changed) {
    const isReady = Boolean(stage.row && state.run.finished && (scope === 'run' || stage.frame));
    if (!isReady) element.hidden = true;
    if (!isReady || !changes.some((change) => changed.has(change))) return;
    clearTimeout(timer);
    setBusy(true);
    timer = setTimeout(() => refresh(state), scope === 'run' ? 0 : CALM);
  }

  async function refresh({ run, row, step }) {
    const key = `${run.id} ${row} ${scope === 'step' ? step : ''}`;
    if (asked === key) return setBusy(answered !== key);
    asked = key;
    const { isOffline, answers } = stage.context;
    const ask = isOffline ? null : (about, values = {}) => stage.askOfRun(about, { step, ...values }, run);
    try {
      const inside = (own) => (scope === 'step' ? own.steps[step] : own[kind]) ?? null; // a page to take along has them
      const answer = isOffline ? inside(answers[row]) : await ask(kind);
      if (asked !== key) return;
      answered = key;
      put(answer, ask);
    } catch (error) {
      if (asked !== key) return;
      fail(error);
    }
    setBusy(false);
  }

  // What still stands of the step before cannot be used: a change typed into it would be lost.
  function setBusy(isBusy) {
    body.inert = isBusy;
    body.ariaBusy = String(isBusy);
  }

  function put(answer, ask) {
    const content = answer === null ? null : show(answer, ask);
    element.hidden = !content;
    if (content) body.replaceChildren(...[content].flat().filter(Boolean));
  }

  function fail(error) {
    asked = '';
    element.hidden = false;
    body.replaceChildren(h('p', { class: 'hint' }, error.message));
  }

  return { element, update };
}

// Where a number comes from.
export const ORIGINS = [phrase('measured'), phrase('computed'), phrase('recorded'), phrase('quoted')];
export const originTag = (origin) => h('small', { class: 'origin' }, t(origin));

export function makeTable(caption, heads, rows) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': caption }, h('table', {}, h('caption', {}, caption),
    h('thead', {}, h('tr', {}, ...heads.map((head) => h('th', { scope: 'col' }, head)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map(makeCell))))));
}

function makeCell(value, place) {
  const content = Array.isArray(value) ? value : [value];
  return place === 0 ? h('th', { scope: 'row' }, ...content) : h('td', {}, ...content);
}

// A chart with what it is called, and buttons that save it.
export function makeFigure(title, plot) {
  return h('figure', { class: 'analysis-figure' }, h('figcaption', {}, title, ' ', makeTools(title, plot)), plot.element);
}

// The same without a caption, in a pane that says already what the chart is.
export function makeChart(title, plot) {
  return h('div', { class: 'analysis-figure' }, makeTools(title, plot), plot.element);
}

const makeTools = (title, plot) => h('span', { class: 'tools' }, ...imageButtons(plot, title));
