// The lower part of the stage: one tab for each way of looking, as a tab list with arrow keys.

import { h } from './dom.js';
import { TABS } from './panes.js';
import { readLink } from './permalink.js';
import { t } from './words.js';

const MOVES = { ArrowLeft: -1, ArrowRight: 1 };

export function makeTabs(stage) {
  const { isOffline } = stage.context;
  const tabs = TABS.filter(({ panes, asks }) => panes.length && !(isOffline && asks)).map((tab) => makeTab(stage, tab));
  const list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': t('Views'), onkeydown: move }, ...tabs.map((tab) => tab.button));
  const element = h('div', { class: 'views' }, list, ...tabs.map((tab) => tab.panel));

  const asked = readLink().view;
  if (tabs.some(({ name }) => name === asked)) stage.set({ view: asked });

  function update(state, changed) {
    list.hidden = !state.run || tabs.length === 1;
    for (const tab of tabs) tab.update(state, changed);
  }

  function move(event) {
    const place = tabs.findIndex((tab) => tab.button === document.activeElement) + (MOVES[event.key] ?? NaN);
    const next = tabs.at(place % tabs.length);
    if (Number.isNaN(place)) return;
    event.stopPropagation(); // the arrows of the page move through steps
    next.button.focus();
    stage.set({ view: next.name });
  }

  return { element, update };
}

function makeTab(stage, { name, label, panes }) {
  const views = panes.map((make) => make(stage));
  const button = h('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `view-${name}`, onclick: () => stage.set({ view: name }) }, t(label));
  const panel = h('div', { class: 'view', role: 'tabpanel', id: `view-${name}`, 'aria-labelledby': `tab-${name}` }, ...views.map((view) => view.element));
  let missed = new Set(Object.keys(stage.state));

  function update(state, changed) {
    const shown = state.view === name;
    button.setAttribute('aria-selected', String(shown));
    button.tabIndex = shown ? 0 : -1;
    panel.hidden = !shown;
    changed.forEach((change) => missed.add(change));
    if (!shown) return;
    const all = missed;
    missed = new Set();
    for (const view of views) view.update(state, all);
  }

  return { name, button, panel, update };
}
