// Which run is shown, its link, and what can be taken along.

import { h } from './dom.js';
import { download } from './download.js';
import { makeHelp } from './help.js';
import { listRuns } from './saved_runs.js';
import { phrase, t } from './words.js';

const MS_OF_THANKS = 2000;

export function makeToolbar(stage) {
  const { constants: { recordings }, isOffline } = stage.context;
  const chooser = h('select', { 'aria-label': t('Run shown'), onchange: () => stage.library.open(chooser.value) });
  const link = h('button', { type: 'button', class: 'small', onclick: copyLink }, t('Copy link'));
  const address = h('input', { class: 'address', readonly: '', hidden: '', 'aria-label': t('Link to what is shown') });
  const savers = [
    [phrase('Save trace'), 'json', 'application/json', saveTrace],
    [phrase('Save steps'), 'csv', 'text/csv', () => stage.askOfRun('csv')],
    [phrase('Save page'), 'html', 'text/html', () => stage.askOfRun('page')],
  ].map(([label, ...kind]) => h('button', { type: 'button', class: 'small', onclick: () => save(...kind) }, t(label)));
  const [trace, ...others] = savers;
  const help = makeHelp();
  const offered = isOffline ? [trace] : [link, trace, ...others, help.button, address, help.element];
  const element = h('div', { class: 'toolbar', role: 'group', 'aria-label': t('Run') },
    h('label', { class: 'run-chooser' }, t('Run '), chooser), ...offered);

  function update(state, changed) {
    const { run, phase } = state;
    if (changed.has('run') || changed.has('saved')) fillChooser(run);
    if (!['run', 'phase', 'finish'].some((name) => changed.has(name))) return;
    savers.forEach((button) => { button.hidden = !run; button.disabled = !run?.finished; });
    link.hidden = !run;
    address.hidden = true;
    chooser.disabled = !['idle', 'loading'].includes(phase);
  }

  async function fillChooser(run) {
    const saved = isOffline ? [] : await listRuns().catch(() => []);
    const own = run && run.origin !== 'recorded' && !saved.some(({ id }) => id === run.id) ? [{ id: run.id, title: t('this run') }] : [];
    const groups = [
      [t('Recorded'), recordings.map(({ name, title }) => [name, t(title)])],
      [t('Of this browser'), [...own, ...saved].map(({ id, title }) => [id, title])],
    ].filter(([, entries]) => entries.length);
    chooser.replaceChildren(...groups.map(([label, entries]) =>
      h('optgroup', { label }, ...entries.map(([value, title]) => h('option', { value }, title)))));
    chooser.value = stage.traceName ?? '';
    chooser.parentElement.hidden = !groups.length;
  }

  async function copyLink() {
    const text = stage.permalink.address();
    try {
      await navigator.clipboard.writeText(text);
      link.textContent = t('Copied');
      setTimeout(() => { link.textContent = t('Copy link'); }, MS_OF_THANKS);
    } catch {
      address.hidden = false; // a page without TLS may not write to the clipboard
      address.value = text;
      address.select();
    }
  }

  async function saveTrace() {
    const { run } = stage.state;
    await stage.recorder.complete(run);
    return run.toJson();
  }

  async function save(suffix, type, make) {
    const name = stage.row.head.run_id;
    try {
      download(await make(), `specviz-${name}.${suffix}`, type);
    } catch (error) {
      stage.set({ error: error.message });
    }
  }

  return { element, update };
}
