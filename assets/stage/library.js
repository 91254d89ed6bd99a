// Where runs come from apart from the Run button: the recordings of the server, what this browser has kept, a link.

import { loadRun, saveRun } from './saved_runs.js';
import { t } from './words.js';

export function makeLibrary(stage) {
  const { context } = stage;
  const { recordings } = context.constants;
  let place = null; // where the run that is being loaded shall open

  // Show what the address asks for, else what came with the page.
  async function openFirst(link) {
    const isFirst = !link.trace || link.trace === recordings[0]?.name;
    const found = !isFirst && await open(link.trace, link.place).catch(() => false);
    if (isFirst) place = link.trace && link.place;
    else if (!found) stage.set(link.isRun ? { offer: link.prompt } : { error: t('The run of this link is not kept in this browser.') });
    if (!found) context.deliver(context.props.value);
    context.early.forEach(context.deliver);
  }

  // Show a recording or a saved run by name; false where there is none.
  async function open(name, where = null) {
    if (recordings.some((recording) => recording.name === name)) {
      play({ run: `${name} ${Date.now()}`, packed: await stage.ask('recording', { name }) }, where);
      return true;
    }
    const saved = await loadRun(name);
    if (saved) play({ run: saved.id, origin: 'saved', tape: saved.tape, records: saved.records }, where);
    return Boolean(saved);
  }

  function play(message, where) {
    place = where;
    context.deliver({ ...message, n: 0 });
  }

  // The place that was asked for, once.
  function takePlace() {
    const taken = place;
    place = null;
    return taken;
  }

  // What is not on the server's disk stays in this browser.
  async function keep(run) {
    try {
      await stage.recorder.complete(run);
      if (['live', 'loaded'].includes(run.origin)) await saveRun(run, titleRun(run));
      stage.touch('saved');
    } catch (error) {
      console.warn(error); // a private window may keep nothing
    }
  }

  return { openFirst, open, takePlace, keep };
}

function titleRun({ name, link, rows }) {
  const prompt = link.find(([key]) => key === 'prompt')?.[1] ?? name;
  const short = prompt.length > 40 ? `${prompt.slice(0, 40)}…` : prompt;
  return `${rows[0].head.method}: ${short}`;
}
