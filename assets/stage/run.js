// A run as the browser holds it: for each row its head (the trace without steps), its steps and metrics.

export class Run {
  constructor({ origin, name, heads, seed }, id) {
    Object.assign(this, { id, origin, name, seed, message: '', finished: false, handle: null });
    this.rows = heads.map((text) => ({ text, head: JSON.parse(text), steps: [], metrics: {} }));
  }

  get failed() { return this.rows.some((row) => row.head.finish_reason === 'error'); }

  apply(item) {
    this.handle = null; // Python knows less of it now
    if (item.kind === 'step') this.addStep(item);
    if (item.kind === 'metrics') this.rows[item.row].metrics = item.values;
    if (item.kind === 'finish') this.finish(item);
  }

  // What the target says of a token one pass later completes the step before (self-consistent selection).
  addStep(item) {
    const { steps } = this.rows[item.row];
    steps[item.step.index] = item;
    for (const { step, node, target_prob, target_rank, target_argmax } of item.step.late) {
      Object.assign(steps[step].step.nodes[node], { target_prob, target_rank, target_argmax });
    }
  }

  finish({ heads, message }) {
    heads.forEach((text, i) => {
      const head = JSON.parse(text); // its metrics may say more than the last step's: the speed-up comes at the end
      Object.assign(this.rows[i], { text, head, metrics: head.metrics });
    });
    Object.assign(this, { finished: true, message });
  }

  // The trace as JSON. Heads are kept as the text that Python wrote: a seed may be larger than a double holds.
  toJson() {
    const runs = this.rows.map((row) => withSteps(row));
    return runs.length === 1 ? runs[0] : `{"schema_version":1,"batch":[${runs.join(',')}]}`;
  }
}

// A run whose end never arrived: keep what there is, as a whole trace.
export function failRun(run) {
  for (const row of run.rows) {
    const text = row.steps.flatMap(({ step }) => step.committed).map((token) => token.piece).join('');
    row.head = { ...row.head, finish_reason: 'stopped', text, metrics: row.metrics };
    row.text = JSON.stringify(row.head);
  }
  Object.assign(run, { finished: true, message: 'The end of this run did not arrive; this is what there is of it.' });
}

function withSteps({ text, steps }) {
  return `${text.slice(0, -1)},"steps":[${steps.map(({ step }) => JSON.stringify(step)).join(',')}]}`;
}
