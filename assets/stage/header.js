// Where the run comes from, how it stands, its notices and its rows.

import { h, spellPiece } from './dom.js';
import { linkOfAddress } from './permalink.js';
import { phrase, t, tellNotice } from './words.js';

const ORIGINS = {
  live: [phrase('LIVE'), phrase('decoded on this server, just now')],
  recorded: [phrase('RECORDED'), phrase('a recorded run; no model is loaded for it')],
  loaded: [phrase('LOADED'), phrase('a trace from a file')],
  saved: [phrase('SAVED'), phrase('a run that this browser has kept')],
};
const METHODS = { plain: phrase('Plain decoding'), lookahead: 'Lookahead Attention', eagle3: 'EAGLE-3', confu: 'ConFu' };
const ENDS = {
  eos: phrase('the model ended its answer'),
  length: phrase('the token budget is used up'),
  stop_text: phrase('the stop text came up'),
  stopped: phrase('stopped'),
  context_full: phrase('the context is full'),
  error: phrase('ended by an error'),
};
const PHASES = {
  waiting: phrase('Waiting for the model…'),
  running: phrase('Decoding…'),
  loading: phrase('Loading the steps…'),
  stopping: phrase('Stopping after this step…'),
};

export function makeHeader(stage) {
  const badge = h('span', { class: 'badge' });
  const source = h('span', { class: 'source' });
  const status = h('span', { class: 'status', role: 'status' });
  const alert = h('p', { class: 'alert', role: 'alert', hidden: '' });
  const notices = h('ul', { class: 'notices', 'aria-label': t('Notices') });
  const rows = h('div', { class: 'rows', role: 'group', 'aria-label': t('Prompts of the batch') });
  const stop = h('button', { type: 'button', class: 'small stop-here', hidden: '', onclick: stopRun }, t('Stop'));
  const line = h('div', { class: 'line' }, badge, source, status, stop);
  const again = h('button', { type: 'button', class: 'again', onclick: () => stage.runAgain(linkOfAddress()) }, t('Run it again'));
  const offer = h('p', { class: 'offer', hidden: '' });
  const welcome = h('p', { class: 'welcome' }, t('Type a prompt and press Run: every step of the decoding shows here.'));
  const element = h('header', { class: 'head' }, line, welcome, offer, alert, notices, rows);

  function update(state, changed) {
    if (!['run', 'phase', 'error', 'offer', 'finish', 'row'].some((name) => changed.has(name))) return;
    const { run } = state;
    welcome.hidden = Boolean(run) || state.phase !== 'idle';
    badge.hidden = !run;
    offer.hidden = !state.offer || state.phase !== 'idle';
    offer.replaceChildren(`${t('This link describes a run that is not kept in this browser: “{prompt}”.', { prompt: state.offer })} `, again);
    alert.hidden = !state.error;
    alert.textContent = state.error;
    status.textContent = state.phase in PHASES ? t(PHASES[state.phase]) : describeEnd(run, stage.row);
    stop.hidden = state.phase !== 'running' && state.phase !== 'waiting';
    status.classList.toggle('busy', state.phase !== 'idle');
    if (!run) return;
    [badge.textContent, badge.title] = ORIGINS[run.origin].map((text) => t(text));
    badge.dataset.origin = run.origin;
    source.textContent = describeSource(run, stage.row.head);
    notices.replaceChildren(...noticesOf(stage.row.head).map((text) => h('li', {}, text)));
    rows.replaceChildren(...(run.rows.length > 1 ? namePrompts(run.rows).map(rowButton) : []));
  }

  function rowButton(name, i) {
    const pressed = String(i === stage.state.row);
    return h('button', { type: 'button', class: 'small', 'aria-pressed': pressed, onclick: () => stage.choose({ row: i }) },
      `${i + 1}: ${name}`);
  }

  return { element, update };
}

// On a phone the page's own button lies above, outside the screen.
function stopRun() {
  document.querySelector('#stop-run').click();
}

// What tells the prompts of a batch apart: the chat template around them is the same.
function namePrompts(rows) {
  const prompts = rows.map((row) => row.head.prompt);
  const shortest = Math.min(...prompts.map((prompt) => prompt.length));
  const agree = (at) => prompts.every((prompt) => at(prompt).token_id === at(prompts[0]).token_id);
  let start = 0;
  while (start < shortest - 1 && agree((prompt) => prompt[start])) start += 1;
  let end = 0;
  while (end < shortest - start - 1 && agree((prompt) => prompt.at(-1 - end))) end += 1;
  return prompts.map((prompt) => {
    const text = prompt.slice(start, prompt.length - end).map((token) => token.piece).join('').trim();
    return text.length > 40 ? `${text.slice(0, 40)}…` : text;
  });
}

function describeSource(run, { method, model, drafter, settings, created, versions }) {
  const how = t('{method} on {model}', { method: t(METHODS[method] ?? method), model: `${model.name} (${model.dtype}, ${model.device})` });
  const drafted = drafter ? [t('drafts by {drafter}', { drafter: drafter.name })] : [];
  const sampled = settings.temperature > 0 ? t('temperature {temperature}', { temperature: settings.temperature }) : t('greedy');
  const named = run.name ? `${run.name}: ` : '';
  const by = run.origin === 'live' ? '' : `; ${created.slice(0, 10)}, ${describeVersions(versions)}`;
  return `${named}${[how, ...drafted, sampled, t('seed {seed}', { seed: settings.seed })].join(t(', '))}${by}`;
}

function describeVersions(versions) {
  return Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(', ');
}

function describeEnd(run, row) {
  if (!run?.finished) return '';
  return run.message || t('Done: {reason}.', { reason: t(ENDS[row.head.finish_reason] ?? row.head.finish_reason) });
}

// What a reader must know before believing the picture.
function noticesOf({ exact, notices, drafter, divergence }) {
  const all = notices.map(tellNotice);
  if (!exact && !all.length) all.push(t('The acceptance rule of this run is lossy.'));
  if (drafter?.trained === false) all.push(...drafter.notes.map(tellNotice));
  if (divergence) all.push(describeDivergence(divergence));
  return all;
}

export function describeDivergence({ index, step, piece, token_id: id, expected_piece: expected, expected_id: otherId, gap, prob }) {
  const known = (value) => value !== null && value !== undefined;
  return t('Leaves plain greedy decoding at token {n}{where}: {taken}{odds}, instead of {expected}{near}.', {
    n: index + 1,
    where: known(step) ? t(' (step {step})', { step }) : '',
    taken: spellPiece({ piece, token_id: id }),
    odds: known(prob) ? t(', to which the target gave {prob}', { prob: prob.toPrecision(2) }) : '',
    expected: spellPiece({ piece: expected, token_id: otherId }),
    near: known(gap) ? t('; the two best logits are {gap} apart there', { gap: gap.toPrecision(2) }) : '',
  });
}
