// The address of the page says what is shown: `?trace=…&step=…&node=…&view=…`, and for a live run its prompts and
// settings, so that it can be run again where the trace is not at hand.

const MS_BETWEEN_CHANGES = 400; // browsers refuse a page that changes its address too often
const OWN = ['trace', 'row', 'step', 'node', 'view'];

// What the address asks for; `settings` has the prompts and settings of a run.
export function readLink() {
  const params = new URLSearchParams(location.search);
  const number = (name) => (/^-?\d+$/.test(params.get(name) ?? '') ? Number(params.get(name)) : undefined);
  return {
    trace: params.get('trace'),
    view: params.get('view'),
    isRun: params.has('prompt') && params.has('method'),
    prompt: params.get('prompt'),
    place: { row: number('row') ?? 0, step: number('step'), node: number('node') ?? null },
  };
}

// What the address says of a run, as a run's own `link` does.
export function linkOfAddress() {
  return [...new URLSearchParams(location.search)];
}

export function makePermalink(stage) {
  let timer = null;
  let linked = []; // names that the run before put into the address

  function update({ run, phase }, changed) {
    if (stage.context.isOffline || !run || phase === 'loading' || !['run', 'row', 'step', 'node', 'view', 'phase'].some((name) => changed.has(name))) return;
    timer ??= setTimeout(write, MS_BETWEEN_CHANGES);
  }

  function write() {
    timer = null;
    history.replaceState(history.state, '', address());
  }

  // The address of what is shown now.
  function address() {
    const { run, row, step, node, view } = stage.state;
    const url = new URL(location.href);
    [...OWN, ...linked, ...run.link.map(([name]) => name)].forEach((name) => url.searchParams.delete(name));
    linked = run.link.map(([name]) => name);
    const place = { trace: run.origin === 'recorded' ? run.name : run.id, row: row || null, step, node, view };
    for (const [name, value] of [...Object.entries(place), ...run.link]) {
      if (value !== null) url.searchParams.append(name, value);
    }
    return url.href;
  }

  return { update, address };
}
