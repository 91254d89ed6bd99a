// Moving through the steps: buttons, slider, keyboard, play, follow; and through the moments of a step.

import { h } from './dom.js';
import { MOMENTS } from './moments.js';
import { phrase, t } from './words.js';

const PACES = {
  moments: { label: phrase('by moment'), ms: 900 },
  steps: { label: phrase('by step'), ms: 600 },
  fast: { label: phrase('fast'), ms: 100 },
};
const SHAPES = {
  first: 'M2 2h2v12H2zM14 2v12L5 8z',
  previous: 'M2 8l7-6v4h5v4H9v4z',
  play: 'M4 2v12l9-6z',
  pause: 'M3 2h4v12H3zM9 2h4v12H9z',
  next: 'M14 8L7 2v4H2v4h5v4z',
  last: 'M2 2v12l9-6zM12 2h2v12h-2z',
};

function drawIcon(shape) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('aria-hidden', 'true');
  path.setAttribute('d', shape);
  svg.append(path);
  return svg;
}

// The step that a key leads to; undefined where the key is not ours. Fields keep their own keys, and
// so does everything outside the stage.
export function stepOfKey(event, step, root) {
  const { target } = event;
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return undefined;
  if (!(target === document.body || root.contains(target)) || target.matches('input, textarea, select')) return undefined;
  return { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: Infinity }[event.key];
}

export function makeTransport(stage) {
  const button = (label, shape, onclick) =>
    h('button', { type: 'button', class: 'icon', 'aria-label': label, title: label, onclick }, drawIcon(SHAPES[shape]));
  const go = (step) => {
    stage.set({ playing: false });
    stage.choose({ step });
  };
  const first = button(t('First step'), 'first', () => go(0));
  const previous = button(t('Previous step'), 'previous', () => go(stage.state.step - 1));
  const play = button(t('Play'), 'play', togglePlay);
  const next = button(t('Next step'), 'next', () => go(stage.state.step + 1));
  const last = button(t('Last step'), 'last', () => go(Infinity));
  const slider = h('input', { type: 'range', min: 0, value: 0, 'aria-label': t('Step'), oninput: () => go(slider.valueAsNumber) });
  const where = h('output', { class: 'where' });
  const moments = Object.entries(MOMENTS).map(([moment, label]) =>
    h('button', { type: 'button', class: 'small', data: { moment }, onclick: () => stage.set({ moment, playing: false }) }, t(label)));
  const pace = h('select', { 'aria-label': t('Pace of playing'), onchange: restart }, ...Object.entries(PACES).map(([value, { label }]) =>
    h('option', { value }, t(label))));
  pace.value = 'steps';
  const follow = h('button', { type: 'button', class: 'small follow', onclick: toggleFollow }, t('Follow live'));
  const element = h('nav', { class: 'transport', 'aria-label': t('Steps'), hidden: '' },
    h('div', { class: 'buttons' }, first, previous, play, next, last), slider, where,
    h('div', { class: 'moments', role: 'group', 'aria-label': t('Moment of the step') }, ...moments), pace, follow);
  let timer = null;

  function update(state) {
    const n = stage.row?.steps.length ?? 0;
    element.hidden = n === 0;
    if (n === 0) return;
    slider.max = n - 1;
    slider.value = state.step;
    const text = t(state.step === 0 ? 'step 0 (prefill) of {n}' : 'step {step} of {n}', { step: state.step, n: n - 1 });
    where.textContent = text;
    slider.setAttribute('aria-valuetext', text);
    first.disabled = previous.disabled = state.step === 0;
    next.disabled = last.disabled = state.step === n - 1;
    moments.forEach((own) => own.setAttribute('aria-pressed', String(own.dataset.moment === state.moment)));
    showPlay(state.playing);
    follow.hidden = state.phase !== 'running';
    follow.setAttribute('aria-pressed', String(state.follow));
    runTimer(state.playing);
  }

  function showPlay(playing) {
    const label = t(playing ? 'Pause' : 'Play');
    if (play.title === label) return;
    play.title = label;
    play.setAttribute('aria-label', label);
    play.replaceChildren(drawIcon(SHAPES[playing ? 'pause' : 'play']));
  }

  function togglePlay() {
    const { playing, step } = stage.state;
    const atEnd = step === stage.row.steps.length - 1;
    stage.set({ playing: !playing, follow: false, ...(!playing && atEnd ? { step: 0, node: null } : {}) });
  }

  function toggleFollow() {
    const follows = !stage.state.follow;
    stage.set({ follow: follows, playing: false });
    if (follows) stage.showNewest(stage.state.run);
  }

  function runTimer(playing) {
    if (playing === (timer !== null)) return;
    clearInterval(timer);
    timer = playing ? setInterval(advance, PACES[pace.value].ms) : null;
  }

  // Another pace holds from the next tick on.
  function restart() {
    runTimer(false);
    runTimer(stage.state.playing);
  }

  function advance() {
    const { step, moment, phase } = stage.state;
    const names = Object.keys(MOMENTS);
    const next = names[names.indexOf(moment) + 1];
    const byMoment = pace.value === 'moments';
    if (byMoment && next) stage.set({ moment: next });
    else if (step < stage.row.steps.length - 1) stage.set({ step: step + 1, node: null, moment: byMoment ? 'draft' : 'commit' });
    else if (phase !== 'running') stage.set({ playing: false });
  }

  return { element, update };
}
