// A teacher's own lesson from the run that is shown: mark a step, write the question and the answer, take it along.

import { download } from '../download.js';
import { h, spellPiece } from '../dom.js';
import { t } from '../words.js';

export function makeAuthor(stage, openLesson) {
  const title = h('input', { type: 'text' });
  const intro = h('textarea', { rows: 2 });
  const scenes = h('ol', { class: 'scenes' });
  const told = h('p', { class: 'hint', role: 'status' });
  const add = h('button', { type: 'button', onclick: addScene }, t('Mark the step that is shown'));
  const preview = h('button', { type: 'button', onclick: () => withLesson(openLesson) }, t('Try the lesson'));
  const save = h('button', { type: 'button', onclick: () => withLesson(saveLesson) }, t('Save the lesson'));
  const element = h('details', { class: 'author' }, h('summary', {}, t('Write a lesson of your own')),
    h('p', { class: 'hint' }, t('Go to a step, choose a node if it is about one, and mark it. The lesson is saved as Markdown; save the trace beside it.')),
    h('label', {}, t('Title'), title), h('label', {}, t('What it is about'), intro), scenes,
    h('div', { class: 'fields' }, add, preview, save), told);
  const entries = [];

  function update(state) {
    add.disabled = !stage.frame;
  }

  function addScene() {
    const entry = makeScene(stage, () => remove(entry));
    entries.push(entry);
    scenes.append(entry.element);
    entry.focus();
  }

  function remove(entry) {
    entries.splice(entries.indexOf(entry), 1);
    entry.element.remove();
  }

  async function withLesson(act) {
    try {
      if (!entries.length) throw new Error(t('Mark at least one step.'));
      told.textContent = '';
      await act({ title: title.value.trim() || t('My lesson'), recording: recordingOf(stage), intro: intro.value, scenes: entries.map((entry) => entry.read()) });
    } catch (error) {
      told.textContent = error.message;
    }
  }

  async function saveLesson(lesson) {
    download(await stage.ask('write_lesson', { lesson }), `${fileName(lesson.title)}.md`, 'text/markdown');
  }

  return { element, update };
}

// A recorded run has a name that others have too; another trace travels beside the lesson.
function recordingOf({ state: { run } }) {
  return run.origin === 'recorded' ? run.name : '';
}

function fileName(title) {
  return title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '') || 'lesson';
}

function makeScene(stage, remove) {
  const { step, node } = stage.state;
  const at = node === null || node < 0 ? `step ${step}` : `step ${step} node ${node}`;
  const about = node === null || node < 0 ? '' : `, ${spellPiece(stage.frame.step.nodes[node])}`;
  const title = h('input', { type: 'text', value: t('Step {n}', { n: step }) });
  const [text, question, answer, task] = [2, 1, 2, 1].map((rows) => h('textarea', { rows }));
  const hide = h('input', { type: 'checkbox' });
  const element = h('li', {}, h('div', { class: 'line' }, h('strong', {}, at, about), h('button', { type: 'button', class: 'small', onclick: remove }, t('Remove'))),
    ...[[t('Title'), title], [t('What is to be seen'), text], [t('Question'), question], [t('Answer'), answer], [t('Something to try'), task]]
      .map(([label, field]) => h('label', {}, label, field)),
    h('label', { class: 'check' }, hide, t('Hide what the target said until the answer is shown')));
  const read = () => ({
    title: title.value.trim() || at,
    at,
    view: 'step',
    text: text.value,
    question: question.value.trim(),
    answer: answer.value,
    task: task.value.trim(),
    hides_outcome: hide.checked,
  });
  return { element, read, focus: () => text.focus() };
}
