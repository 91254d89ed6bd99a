// The little Markdown of lessons as elements: paragraphs with bold, italics and code.

import { h } from '../dom.js';

const MARKS = /(\*\*[^*]+\*\*|\*[^*\s][^*]*\*|`[^`]+`)/;

export function paragraphs(text) {
  return text.split(/\n{2,}/).filter(Boolean).map((block) => h('p', {}, ...inline(block)));
}

export function inline(text) {
  return text.split(MARKS).filter(Boolean).map((part) => {
    if (/^\*\*.+\*\*$/s.test(part)) return h('strong', {}, part.slice(2, -2));
    if (/^\*.+\*$/s.test(part)) return h('em', {}, part.slice(1, -1));
    return /^`.+`$/s.test(part) ? h('code', {}, part.slice(1, -1)) : part;
  });
}
