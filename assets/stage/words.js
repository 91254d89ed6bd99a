// The words of the stage in the visitor's language. A key is the English text itself, so that nothing is missing where
// there is no table; `{name}` in it stands for a value. Python says its sentences in the same language (stage.ask).

const LANGUAGES = ['en', 'zh'];
let table = {};
let notices = [];
let own = null;

// Take the words over: `words` by language, `language` where it is not the browser's to say (a page to take along).
export function openWords({ words = {}, language: fixed = null }) {
  own = fixed;
  table = words[language()]?.stage ?? {};
  notices = Object.entries(words[language()]?.notices ?? {}).map(([text, other]) => [matcherOf(text), other]);
}

export function language() {
  if (own) return own;
  const wanted = (navigator.languages ?? [navigator.language]).map((name) => name.slice(0, 2).toLowerCase());
  return wanted.find((name) => LANGUAGES.includes(name)) ?? 'en';
}

// The words for an English text.
export function t(text, values = {}) {
  return (table[text] ?? text).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

// The same as parts of an element: a value may be a node, or a list of nodes and texts.
export function parts(text, values) {
  return (table[text] ?? text).split(/\{(\w+)\}/).flatMap((part, i) => (i % 2 ? values[part] : [part]));
}

// The words for a number of things.
export function count(n, one, many) {
  return t(n === 1 ? one : many, { n });
}

// A text that is translated where it is shown.
export const phrase = (text) => text;

// What a trace says of itself is kept in English; a text that is not known stays as it is.
export function tellNotice(text) {
  for (const [matcher, other] of notices) {
    const found = text.match(matcher);
    if (found) return other.replace(/\{(\w+)\}/g, (whole, name) => found.groups?.[name] ?? whole);
  }
  return text;
}

function matcherOf(text) {
  const pattern = text.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? `(?<${part}>.+)` : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))).join('');
  return new RegExp(`^${pattern}$`, 's');
}
