// One lesson above the tabs: a scene at a time, at its place in the run. An answer waits until it is asked for.

import { h } from '../dom.js';
import { download } from '../download.js';
import { makeLargeType } from '../type_size.js';
import { t } from '../words.js';
import { inline, paragraphs } from './markdown.js';

// `places` says where each scene is in the run that is shown, null where it has no such place.
export function openCard(stage, lesson, places) {
  closeCard(stage);
  let current = 0;
  const body = h('div', { class: 'scene', tabindex: '-1' });
  const where = h('output', { class: 'hint' });
  const back = h('button', { type: 'button', onclick: () => show(current - 1) }, t('Back'));
  const next = h('button', { type: 'button', onclick: () => show(current + 1) }, t('Next'));
  const save = h('button', { type: 'button', class: 'small', hidden: stage.context.isOffline, onclick: savePage }, t('Save as a page'));
  const close = h('button', { type: 'button', class: 'small', onclick: () => closeCard(stage) }, t('Close the lesson'));
  const element = h('section', { class: 'lesson-card', 'aria-label': t('Lesson') },
    h('div', { class: 'line' }, h('h3', {}, lesson.title), where, makeLargeType(stage), save, close), body, h('div', { class: 'line' }, back, next));

  function show(place) {
    current = place;
    const scene = lesson.scenes[current];
    where.textContent = t('{n} of {all}', { n: current + 1, all: lesson.scenes.length });
    back.disabled = current === 0;
    next.disabled = current === lesson.scenes.length - 1;
    body.replaceChildren(...drawScene(stage, scene, current === 0 ? lesson.intro : '', places[current]));
    go();
    body.focus({ preventScroll: true });
  }

  function go() {
    const place = places[current];
    const { view, hides_outcome: hides } = lesson.scenes[current];
    if (place) stage.choose(place);
    stage.set({ view, playing: false, moment: hides ? 'draft' : 'commit' }); // a class must not see the verdict before it has guessed
  }

  // The lesson with its run as one file, for a class without a network.
  async function savePage() {
    const rules = lesson.scenes.map((scene) => scene.at);
    try {
      download(await stage.askOfRun('lesson_page', { lesson, rules, name: stage.state.run.name }), 'specviz-lesson.html', 'text/html');
    } catch (error) {
      where.textContent = error.message;
    }
  }

  stage.root.querySelector('.views').before(element);
  show(0);
  element.scrollIntoView({ block: 'nearest' });
}

export function closeCard(stage) {
  stage.root.querySelector('.lesson-card')?.remove();
  stage.set({ moment: 'commit' });
}

function drawScene(stage, scene, intro, place) {
  return [
    ...paragraphs(intro).map((block) => (block.classList.add('hint'), block)),
    h('h4', {}, scene.title),
    place ? null : h('p', { class: 'hint' }, t('This run has no such place; the text stands for itself.')),
    ...paragraphs(scene.text),
    scene.question ? drawQuestion(stage, scene) : null,
    scene.task ? h('p', { class: 'task' }, h('strong', {}, t('Try it: ')), ...inline(scene.task)) : null,
  ].filter(Boolean);
}

function drawQuestion(stage, { question, answer }) {
  const guess = h('input', { type: 'text', 'aria-label': t('Your guess'), placeholder: t('Your guess') });
  const told = h('div', { class: 'told', 'aria-live': 'polite' });
  const reveal = h('button', { type: 'button', onclick: show }, t('Show the answer'));

  function show() {
    const own = guess.value.trim();
    stage.set({ moment: 'commit' });
    reveal.remove();
    guess.remove();
    told.replaceChildren(...[own && h('p', { class: 'hint' }, t('Your guess: {guess}', { guess: own })), ...paragraphs(answer)].filter(Boolean));
  }

  return h('div', { class: 'question' }, h('p', {}, h('strong', {}, ...inline(question))), h('div', { class: 'line' }, guess, reveal), told);
}
