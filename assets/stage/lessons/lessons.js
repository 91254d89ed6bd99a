// The lessons of the page: choose one, read one from a file, or write one (author.js).

import { h } from '../dom.js';
import { makeLargeType } from '../type_size.js';
import { language, t } from '../words.js';
import { makeAuthor } from './author.js';
import { closeCard, openCard } from './card.js';

const LANGUAGES = { en: 'English', zh: '中文' };

export function makeLessons(stage) {
  const list = h('ol', { class: 'lesson-list' });
  const told = h('p', { class: 'hint', role: 'status' });
  const choice = h('select', { onchange: draw }, ...Object.entries(LANGUAGES).map(([code, name]) => h('option', { value: code, lang: code }, name)));
  const file = h('input', { type: 'file', accept: '.md,.txt', onchange: () => readFile(file.files[0]) });
  const author = makeAuthor(stage, openHere);
  const element = h('section', { class: 'analysis lessons', 'aria-label': t('Lessons') }, h('h3', {}, t('Lessons')),
    h('p', { class: 'hint' }, t('Each lesson walks through a recorded run: a few scenes, a question before its answer, something to change.')),
    h('div', { class: 'fields' }, h('label', {}, t('Language'), choice), makeLargeType(stage)), list, told,
    h('label', {}, t('A lesson from a file, on its recorded run, else on the one that is shown'), file), author.element);
  let lessons = null;

  choice.value = language();

  function update(state, changed) {
    author.update(state, changed);
    if (lessons) return;
    lessons = [];
    stage.ask('lessons').then((found) => { lessons = found; draw(); }, tell);
  }

  function draw() {
    list.replaceChildren(...lessons.map(drawEntry));
  }

  function drawEntry({ recording, languages }) {
    const lesson = languages[choice.value] ?? languages.en;
    const missing = recording ? '' : t('The recorded run of this lesson does not come with this page.');
    const button = h('button', { type: 'button', disabled: !recording, onclick: () => openOn(recording, lesson) }, lesson.title);
    return h('li', { lang: choice.value }, button, h('p', { class: 'hint' }, missing || lesson.intro));
  }

  async function openOn(recording, lesson) {
    try {
      if (stage.traceName !== recording) await stage.library.open(recording);
      await until(() => stage.traceName === recording && stage.state.run.finished);
      await openHere(lesson);
    } catch (error) {
      tell(error);
    }
  }

  async function openHere(lesson) {
    const places = await stage.askOfRun('places', { rules: lesson.scenes.map((scene) => scene.at) });
    openCard(stage, lesson, places);
    told.textContent = '';
  }

  async function readFile(chosen) {
    if (!chosen) return;
    try {
      const lesson = await stage.ask('read_lesson', { text: await chosen.text() });
      await (lesson.found ? openOn(lesson.found, lesson) : openHere(lesson));
    } catch (error) {
      tell(error);
    }
  }

  function tell(error) {
    closeCard(stage);
    told.textContent = error.message;
  }

  return { element, update };
}

// Open the lesson of a page to take along, once its run is there.
export function openGiven(stage) {
  const given = stage.context.lesson;
  if (given) until(() => stage.state.run?.finished).then(() => openCard(stage, given.lesson, given.places));
}

// Resolves when something holds, after a frame or more.
function until(holds) {
  return new Promise((resolve) => {
    const look = () => (holds() ? resolve() : requestAnimationFrame(look));
    look();
  });
}
