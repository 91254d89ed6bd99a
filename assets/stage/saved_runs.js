// Runs that this browser keeps over a reload: what they came from, and their records, in IndexedDB. The last ones stay.

import { readTape } from './inbox.js';
import { Run } from './run.js';
import { t } from './words.js';

const MOST_SAVED = 12;
let opening = null;

function openStore() {
  opening ??= promise(Object.assign(indexedDB.open('specviz', 1), {
    onupgradeneeded: ({ target }) => target.result.createObjectStore('runs', { keyPath: 'id' }),
  }));
  return opening;
}

// Resolves when the store has it: a full one takes a request, and refuses the transaction.
async function withRuns(mode, act) {
  const transaction = (await openStore()).transaction('runs', mode);
  const done = new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
  const [result] = await Promise.all([promise(act(transaction.objectStore('runs'))), done]);
  return result;
}

function promise(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// Keep what there is of a run.
export function saveRun(run, title) {
  const { id, tape, rows } = run;
  const records = rows.map((row) => row.records);
  return withRuns('readwrite', (store) => store.put({ id, title, saved: Date.now(), isWhole: run.isWhole, tape, records }));
}

// The oldest runs go.
export async function dropOldest() {
  for (const { id: gone } of (await listRuns()).slice(MOST_SAVED)) await withRuns('readwrite', (store) => store.delete(gone));
}

// Return a saved run by its id: {id, title, tape, records}; undefined where it is not here.
export function loadRun(id) {
  return withRuns('readonly', (store) => store.get(id));
}

// Return a saved run as the JSON of its trace.
export async function readTrace(id) {
  const { tape, records } = await loadRun(id);
  const [start, ...items] = await readTape(tape);
  const run = new Run(start, id, tape);
  items.forEach((item) => run.apply(item));
  run.rows.forEach((row, i) => { row.records = records[i]; });
  if (!run.finished) run.cutOff();
  if (!run.isRecorded) throw new Error(t('The numbers of this run never arrived, only what was drawn: it cannot be compared.'));
  return run.toJson();
}

// Return id and title of every saved run, the newest first.
export async function listRuns() {
  const all = await withRuns('readonly', (store) => store.getAll());
  return all.sort((one, other) => other.saved - one.saved).map(({ id, title, isWhole }) => ({ id, title: isWhole === false ? t('{title} (incomplete)', { title }) : title }));
}
