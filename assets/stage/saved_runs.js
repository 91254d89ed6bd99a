// Runs that this browser keeps over a reload: what they came from, and their records, in IndexedDB. The last ones stay.

import { readTape } from './inbox.js';
import { Run } from './run.js';

const MOST_SAVED = 12;
let opening = null;

function openStore() {
  opening ??= promise(Object.assign(indexedDB.open('specviz', 1), {
    onupgradeneeded: ({ target }) => target.result.createObjectStore('runs', { keyPath: 'id' }),
  }));
  return opening;
}

async function withRuns(mode, act) {
  const store = (await openStore()).transaction('runs', mode).objectStore('runs');
  return promise(act(store));
}

function promise(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// Keep a finished run; the oldest ones go.
export async function saveRun(run, title) {
  const { id, tape, rows } = run;
  await withRuns('readwrite', (store) => store.put({ id, title, saved: Date.now(), tape, records: rows.map((row) => row.records) }));
  const old = (await listRuns()).slice(MOST_SAVED);
  for (const { id: gone } of old) await withRuns('readwrite', (store) => store.delete(gone));
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
  return run.toJson();
}

// Return id and title of every saved run, the newest first.
export async function listRuns() {
  const all = await withRuns('readonly', (store) => store.getAll());
  return all.sort((one, other) => other.saved - one.saved).map(({ id, title }) => ({ id, title }));
}
