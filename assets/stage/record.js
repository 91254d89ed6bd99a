// The record of a run's steps, to the last digit, with a sentence for each node: asked for when somebody looks at a
// step, and for all of them when the run is over.

import { unpack } from './inbox.js';

const STEPS_A_TIME = 40;

export function makeRecorder(stage) {
  // One step as it was recorded, and why each of its nodes was taken or not: {step, why}.
  async function read(run, row, index) {
    if (!row.records[index]) await fetchSteps(run, row, index, index + 1);
    const { step, why } = row.records[index];
    return { step: JSON.parse(step), why };
  }

  // Get what is missing.
  async function complete(run) {
    for (const row of run.rows) {
      for (let first = 0; first < row.steps.length; first += STEPS_A_TIME) {
        const last = Math.min(first + STEPS_A_TIME, row.steps.length);
        const isHere = row.steps.slice(first, last).every((_, i) => row.records[first + i]);
        if (!isHere) await fetchSteps(run, row, first, last);
      }
    }
  }

  async function fetchSteps(run, row, first, last) {
    const records = await unpack(await stage.askOfRun('record', { row: row.index, first, last }, run));
    records.forEach((record, i) => { row.records[first + i] = record; });
  }

  return { read, complete };
}
