// A run as the browser holds it: for each row its head (the trace without steps), what is drawn of its steps, its
// metrics, and the record of its steps, which comes later (record.js).

import { t } from './words.js';

export class Run {
  constructor({ origin, name, handle, link, heads, seed }, id, tape) {
    Object.assign(this, { id, origin, name, handle, link, seed, tape, message: '', finished: false, isCutOff: false });
    this.rows = heads.map((text, index) => ({ index, text, head: JSON.parse(text), steps: [], metrics: {}, records: [] }));
  }

  get failed() { return this.rows.some((row) => row.head.finish_reason === 'error'); }

  get isWhole() { return this.finished && !this.isCutOff; }

  // Whether the record of every step is here.
  get isRecorded() { return this.rows.every(({ steps, records }) => steps.every((_, i) => records[i])); }

  apply(item) {
    if (item.kind === 'step') this.rows[item.row].steps[item.step.index] = { ...item, step: readNodes(item.step) };
    if (item.kind === 'metrics') this.rows[item.row].metrics = item.values;
    if (item.kind === 'finish') this.finish(item);
  }

  finish({ heads, message }) {
    heads.forEach((text, i) => {
      const head = JSON.parse(text); // its metrics may say more than the last step's: the speed-up comes at the end
      Object.assign(this.rows[i], { text, head, metrics: head.metrics, records: [] });
    });
    Object.assign(this, { finished: true, message });
  }

  // The end never arrived: keep what there is, as a whole trace.
  cutOff() {
    for (const row of this.rows) {
      const text = row.steps.flatMap(({ step }) => step.committed).map((token) => token.piece).join('');
      row.head = { ...row.head, finish_reason: 'stopped', text, metrics: row.metrics };
      row.text = JSON.stringify(row.head);
    }
    Object.assign(this, { finished: true, isCutOff: true, message: t('The end of this run did not arrive; this is what there is of it.') });
  }

  // The trace as JSON, of the texts that Python wrote: a number may say more than a double holds.
  toJson() {
    const runs = this.rows.map(({ text, records }) => `${text.slice(0, -1)},"steps":[${records.map(({ step }) => step).join(',')}]}`);
    return runs.length === 1 ? runs[0] : `{"schema_version":1,"batch":[${runs.join(',')}]}`;
  }
}

// Nodes travel as a table of columns.
function readNodes(step) {
  const { parent, ...others } = step.nodes;
  const nodes = parent.map((own, idx) => ({
    idx, parent: own, ...Object.fromEntries(Object.entries(others).map(([name, column]) => [name, column[idx]])),
  }));
  return { ...step, nodes };
}
