// Plain decoding and the method on one clock, at any speed. Both lanes were measured; without a plain lane there is
// no race and no speed-up.

import { h, pieceNodes } from '../dom.js';
import { makePlot } from '../plot.js';
import { phrase, t } from '../words.js';
import { makeAnswerPane, makeChart, originTag } from './answer.js';

const SPEEDS = [0.25, 0.5, 1, 2, 5];
const NAMES = { plain: phrase('plain decoding'), lookahead: 'Lookahead Attention', eagle3: 'EAGLE-3', confu: 'ConFu' };

export function makeRace(stage) {
  const plot = makePlot(stage, 'race');
  let stop = () => {};

  function show(race) {
    stop();
    if (!race.plain) return offerRace(stage);
    const lanes = [race.plain, race.own].map((lane) => makeLane(stage, lane));
    const clock = makeClock(lanes, Math.max(race.plain.arrivals.at(-1).ms, race.own.arrivals.at(-1).ms));
    stop = clock.pause;
    plot.draw(race.figure);
    return [describe(race), clock.element, ...lanes.map((lane) => lane.element), makeChart(t('Race on one clock'), plot)];
  }

  return makeAnswerPane(stage, {
    name: 'race',
    title: phrase('Race on one clock'),
    hint: phrase('Both decoded this prompt with the same seed, one after the other and warmed up; the clock is theirs, recording left out.'),
    kind: 'race',
    scope: 'run',
    show,
  });
}

// Without a plain lane nothing is shown and nothing is guessed. A run whose link says what was asked is raced as it was,
// whatever the controls hold by now.
function offerRace(stage) {
  const { link } = stage.state.run;
  const missing = h('p', {}, t('Plain decoding was not run beside this run, so there is no race and no speed-up.'));
  if (!link.length) return missing;
  const raced = [...link.filter(([name]) => name !== 'compare_plain'), ['compare_plain', 'true']];
  const again = h('button', { type: 'button', onclick: () => stage.runAgain(raced) }, t('Run again against plain decoding'));
  return [missing, again, h('p', { class: 'hint' }, t('It is run with its own prompt, settings and seed, not with what the controls hold.'))];
}

function describe({ plain, own, speedup }) {
  const seconds = (lane) => (lane.arrivals.at(-1).ms / 1000).toFixed(2);
  const ratio = speedup === null ? '' : t('; tokens per second {speedup} times plain', { speedup: speedup.toFixed(2) });
  return h('p', {}, t('{method} took {own} s, plain decoding {plain} s{ratio}.', { method: t(NAMES[own.name]), own: seconds(own), plain: seconds(plain), ratio }), ' ',
    speedup === null ? null : originTag('measured'));
}

// One lane: its tokens appear as the clock passes their moment.
function makeLane(stage, { name, arrivals }) {
  const { palette } = stage.context.constants.figures;
  const chips = arrivals.map(({ text, source, token_id: id }) => {
    const status = palette.status_of_source[source];
    const { glyph } = palette.statuses[status];
    return h('span', { class: 'token', data: { status, glyph } }, ...pieceNodes({ piece: text, token_id: id }));
  });
  const title = t(NAMES[name]);
  const count = h('output', { class: 'count' });
  const bar = h('progress', { max: arrivals.length, value: 0, 'aria-label': t('{method}: tokens so far', { method: title }) });
  const element = h('div', { class: 'lane' }, h('div', { class: 'line' }, h('strong', {}, title), bar, count),
    h('div', { class: 'tokens', tabindex: '0', role: 'group', 'aria-label': title }, ...chips));

  function showAt(ms) {
    const shown = arrivals.filter((arrival) => arrival.ms <= ms).length;
    chips.forEach((chip, i) => { chip.hidden = i >= shown; });
    bar.value = shown;
    count.textContent = t('{n} of {all} tokens', { n: shown, all: arrivals.length });
  }

  showAt(Infinity);
  return { element, showAt };
}

function makeClock(lanes, duration) {
  const slider = h('input', { type: 'range', min: 0, max: duration, step: 'any', value: duration, 'aria-label': t('Time'), oninput: () => seek(slider.valueAsNumber) });
  const now = h('output', { class: 'where' });
  const play = h('button', { type: 'button', onclick: () => (timer ? pause() : start()) }, t('Start the race'));
  const speed = h('select', { 'aria-label': t('Speed') }, ...SPEEDS.map((value) => h('option', { value, selected: value === 1 }, `${value}×`)));
  const element = h('div', { class: 'line clock' }, play, slider, now, speed);
  let timer = null;
  let last = 0;

  function seek(ms) {
    slider.value = ms;
    now.textContent = `${(ms / 1000).toFixed(2)} s`;
    for (const lane of lanes) lane.showAt(ms);
  }

  function start() {
    if (slider.valueAsNumber >= duration) seek(0);
    play.textContent = t('Pause');
    last = performance.now();
    timer = requestAnimationFrame(advance);
  }

  function advance(time) {
    const ms = slider.valueAsNumber + Math.max(0, time - last) * Number(speed.value);
    last = time;
    seek(Math.min(ms, duration));
    if (ms >= duration || !element.isConnected) return pause();
    timer = requestAnimationFrame(advance);
    return undefined;
  }

  function pause() {
    cancelAnimationFrame(timer);
    timer = null;
    play.textContent = t('Start the race');
  }

  seek(duration);
  return { element, pause };
}
