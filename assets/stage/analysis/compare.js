// Two runs of one prompt side by side: two methods, two checkpoints or two settings.

import { h, pieceNodes } from '../dom.js';
import { makePlot } from '../plot.js';
import { listRuns as listSaved, readTrace } from '../saved_runs.js';
import { parts, phrase, t } from '../words.js';
import { makeFigure, makeTable, originTag } from './answer.js';
import { chip, goButton } from './losslessness.js';

const MOST_REMEMBERED = 8;
const ORIGINS = { live: phrase('live run'), recorded: phrase('recorded run'), loaded: phrase('loaded run'), saved: phrase('saved run') };
const METRICS = [
  ['tau', phrase('tokens per target pass'), 2],
  ['tau_draft', phrase('drafted tokens per pass'), 2],
  ['tokens_per_second', phrase('tokens per second'), 1],
  ['rows_per_pass', phrase('rows per pass'), 1],
  ['draft_ms', phrase('draft, ms'), 1],
  ['verify_ms', phrase('verify, ms'), 1],
  ['speedup', phrase('speed-up over plain'), 2],
];

export function makeCompare(stage) {
  const plot = makePlot(stage, 'divergence', 'compared-divergence');
  const seen = new Map(); // what was on this page
  const sent = new Map(); // the handles of kept runs, which the server gets when it is asked about them
  let choices = new Map(); // by the value of an option: its title, and a function that gives a handle to ask by
  const chooser = h('select', { onchange: () => compare() }, h('option', { value: '' }, t('choose a run…')));
  const file = h('input', { type: 'file', accept: '.json,.gz', onchange: () => readFile(file.files[0]) });
  const rows = h('select', { onchange: () => compare(Number(rows.value)) });
  const rowChooser = h('label', { class: 'row-chooser', hidden: '' }, t('its row '), rows);
  const result = h('div', { 'aria-live': 'polite' });
  const element = h('section', { class: 'analysis compare', 'aria-label': t('Two runs side by side'), hidden: '' },
    h('h3', {}, t('Two runs side by side')),
    h('p', { class: 'hint' }, t('Choose a second run of the same prompt: a recorded one, one of this browser, or a trace file.')),
    h('div', { class: 'fields' }, h('label', {}, t('this run against '), chooser), rowChooser, h('label', {}, t('or a trace file '), file)), result);

  function update(state, changed) {
    element.hidden = !(stage.row && state.run.finished);
    const isOther = ['run', 'row', 'finish'].some((name) => changed.has(name));
    if (element.hidden || !(isOther || changed.has('saved'))) return;
    remember(state.run);
    listRuns().then(() => isOther && compare());
  }

  function remember(run) {
    if (!run.handle || run.origin === 'recorded') return;
    const { method, model, settings } = run.rows[0].head;
    const name = run.name || t('{method} on {model}, seed {seed}', { method, model: model.name, seed: settings.seed ?? 0 });
    seen.delete(run.id);
    seen.set(run.id, { title: `${t(ORIGINS[run.origin])}: ${name}`, handle: () => run.handle });
    while (seen.size > MOST_REMEMBERED) seen.delete(seen.keys().next().value);
  }

  // What can be chosen: runs that were on this page, those that this browser has kept, and the recorded ones.
  async function listRuns() {
    const saved = await listSaved().catch(() => []); // a private window may keep nothing
    const recorded = stage.context.constants.recordings.map(({ name, title }) => [`recorded/${name}`, { title: `${t(ORIGINS.recorded)}: ${t(title)}`, handle: () => `recorded/${name}` }]);
    const kept = saved.map(({ id, title }) => [id, { title: `${t(ORIGINS.saved)}: ${title}`, handle: () => send(id) }]);
    const others = [...seen].filter(([id]) => !saved.some((own) => own.id === id));
    choices = new Map([...kept, ...others, ...recorded]);
    const { run } = stage.state;
    if (run.rows.length === 1) [run.id, run.handle].forEach((own) => choices.delete(own)); // rows of a batch can be compared with each other
    const { value } = chooser;
    const options = [...choices].map(([key, { title }]) => h('option', { value: key, selected: key === value }, title));
    chooser.replaceChildren(h('option', { value: '' }, t('choose a run…')), ...options);
  }

  function send(id) {
    if (!sent.has(id)) sent.set(id, readTrace(id).then((trace) => stage.ask('keep', { trace })));
    return sent.get(id);
  }

  async function readFile(chosen) {
    if (!chosen) return;
    try {
      const handle = await stage.ask('keep', { trace: await textOf(chosen) });
      seen.set(handle, { title: chosen.name, handle: () => handle });
      await listRuns();
      chooser.value = handle;
      await compare();
    } catch (error) {
      result.replaceChildren(h('p', { class: 'hint' }, error.message));
    }
  }

  // Without a row it is the one that answers the same prompt.
  async function compare(row = null) {
    result.replaceChildren();
    rowChooser.hidden = true;
    if (!chooser.value) return;
    try {
      const found = await stage.askOfRun('compare', { other: await choices.get(chooser.value).handle(), other_row: row });
      rowChooser.hidden = !found.rows.length;
      rows.replaceChildren(...found.rows.map((prompt, i) => h('option', { value: i, selected: i === found.row }, `${i + 1}: ${prompt}`)));
      result.replaceChildren(...show(found));
    } catch (error) {
      sent.delete(chooser.value);
      result.replaceChildren(h('p', { class: 'hint' }, error.message));
    }
  }

  function show(found) {
    if (!found.same_prompt) return [h('p', {}, t('The two runs answer different prompts: nothing can be compared token by token.')), metricsTable(found)];
    if (found.divergence) plot.draw(found.divergence);
    return [
      h('p', {}, describeText(found)),
      found.parting && h('p', {}, ...parts('There {left} says {said}, {right} says {other}.', {
        left: h('strong', {}, found.names[0]), said: chip({ piece: found.parting.left_piece }),
        right: h('strong', {}, found.names[1]), other: chip({ piece: found.parting.right_piece }),
      })),
      found.parts_at && describePair(found),
      lanes(stage, found),
      metricsTable(found),
      found.divergence && makeFigure(t('Divergence by depth, over the {n} steps behind the same text', { n: found.n_pairs }), plot),
    ].filter(Boolean);
  }

  function describePair({ parts_at: pair, names }) {
    const [left, right] = pair.pieces.map((tokens) => tokens.flatMap((token) => [chip(token), ' ']));
    return h('div', {}, h('h4', {}, t('The first steps that fall out of line')),
      h('p', {}, ...parts('Behind the same {n} tokens {left} commits {tokens}in its step {step}, {right} commits {others}in its step {other}.', {
        n: pair.n_text, left: names[0], tokens: left, step: goButton(stage, pair.steps[0]), right: names[1], others: right, other: pair.steps[1],
      })));
  }

  return { element, update };
}

function describeText({ n_equal: n, lengths, parting }) {
  if (!parting) return t('Both answers are the same {n} tokens.', { n });
  return t('The answers agree for {n} tokens (of {left} and {right}) and part at token {next}.', { n, left: lengths[0], right: lengths[1], next: n + 1 });
}

function metricsTable({ names, metrics, acceptance }) {
  const number = (value, digits) => (typeof value === 'number' ? value.toFixed(digits) : t('not measured'));
  const rows = METRICS.map(([name, label, digits]) => [t(label), ...metrics.map((values) => number(values[name], digits))]);
  const byDepth = (rates) => Object.entries(rates).map(([depth, rate]) => `${depth}: ${Math.round(100 * rate)} %`).join(' · ') || t('none');
  const shared = [t('accepted by depth, same text'), ...acceptance.map(byDepth)];
  return h('div', {}, makeTable(t('Metrics of the whole runs'), [t('metric'), ...names], [...rows, shared]), originTag(phrase('computed; times measured')));
}

// Both answers, step by step, in the colours of what happened.
function lanes(stage, { names, lanes: both }) {
  const { palette } = stage.context.constants.figures;
  const token = (each) => {
    const status = palette.status_of_source[each.source];
    return h('span', { class: 'token', data: { status, glyph: palette.statuses[status].glyph } }, ...pieceNodes(each));
  };
  const group = (tokens, i) => h('span', { class: 'group', data: { step: i } }, ...tokens.map(token));
  return h('div', { class: 'lanes' }, ...both.map((steps, i) => h('div', { class: 'lane' }, h('strong', {}, names[i]),
    h('div', { class: 'tokens', tabindex: '0', role: 'group', 'aria-label': names[i] }, ...steps.map(group)))));
}

async function textOf(file) {
  if (!file.name.endsWith('.gz')) return file.text();
  return new Response(file.stream().pipeThrough(new DecompressionStream('gzip'))).text();
}
