// Where runs come from apart from the Run button: the recordings of the server, what this browser has kept, a link.

import { dropOldest, loadRun, saveRun } from './saved_runs.js';
import { phrase, t } from './words.js';

const MS_BETWEEN_SAVES = 2000; // of a run that goes on
const NO_ROOM = phrase('This browser’s store is full, so this run is not kept over a reload: save its trace. The runs that were kept are still there.');
const NOT_KEPT = phrase('This browser does not keep this run over a reload: save its trace.');

export function makeLibrary(stage) {
  const { context } = stage;
  const { recordings } = context.constants;
  let place = null; // where the run that is being loaded shall open
  let lastSave = 0;

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
    if (!saved) return false;
    play({ run: saved.id, origin: 'saved', tape: saved.tape, records: saved.records }, where);
    stage.close(saved); // one whose end never arrived
    return true;
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

  // What is not on the server's disk stays in this browser, with its record as far as the server still has it.
  async function keep(run) {
    await stage.recorder.complete(run).catch((error) => console.warn(error));
    if (['live', 'loaded'].includes(run.origin) || run.isCutOff) await save(run).then(dropOldest).catch(tell);
    stage.touch('saved');
  }

  // A run that goes on: its tab may be closed, or the server may go.
  function keepSoFar(run) {
    if (Date.now() - lastSave < MS_BETWEEN_SAVES || run.origin !== 'live' || run.finished) return;
    lastSave = Date.now();
    save(run).catch(tell);
  }

  const save = (run) => saveRun(run, titleRun(run));

  function tell(error) {
    console.warn(error);
    const isFull = error?.name === 'QuotaExceededError';
    stage.set({ error: t(isFull ? NO_ROOM : NOT_KEPT) });
  }

  return { openFirst, open, takePlace, keep, keepSoFar };
}

function titleRun({ name, link, rows }) {
  const prompt = link.find(([key]) => key === 'prompt')?.[1] ?? name;
  const short = prompt.length > 40 ? `${prompt.slice(0, 40)}…` : prompt;
  return `${rows[0].head.method}: ${short}`;
}
