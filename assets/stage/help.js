// What the page is and how to move on it, behind the question mark of the toolbar.

import { h } from './dom.js';
import { phrase, t } from './words.js';

const LINES = [
  phrase('A drafter proposes tokens, the target judges all of them in one pass and keeps those that it would have said itself; then it adds one of its own.'),
  phrase('Choose a run above, or type a prompt and press Run. Each group of the answer is one step; its colours and marks say what became of each token.'),
  phrase('Choose a token, a node, a mask row or an expert: the same thing is marked everywhere, and “Chosen token” says why it was taken or not.'),
  phrase('Left and right arrow walk through the steps, Home and End go to the first and the last; Draft, Verify and Commit show the moments of one step.'),
  phrase('“Run” looks at all steps, with the race against plain decoding; “Compare” sets a second run beside this one; “Lessons” explains it all from the beginning.'),
  phrase('The link in the address bar leads back to this place. This browser keeps the last runs; a trace, a table or a page can be saved.'),
];

export function makeHelp() {
  const element = h('section', { class: 'help', id: 'stage-help', 'aria-label': t('Help'), hidden: '' }, h('ul', {}, ...LINES.map((line) => h('li', {}, t(line)))));
  const button = h('button', { type: 'button', class: 'small', 'aria-label': t('Help'), title: t('Help'), 'aria-expanded': 'false', 'aria-controls': element.id, onclick: toggle }, '?');

  function toggle() {
    element.hidden = !element.hidden;
    button.setAttribute('aria-expanded', String(!element.hidden));
  }

  return { element, button };
}
