// Elements, and model text as elements.

import { t } from './words.js';

// The index that stands for the token which the target itself added to a step.
export const EXTRA_NODE = -1;

// The token that the target itself added to a step; undefined where it added none.
export function findExtra(step) {
  return step?.committed.findLast(({ source }) => !['draft', 'unverified'].includes(source));
}

// Make an element. `on*` are listeners, `data` sets data attributes; a false or null attribute is left out.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'data') Object.assign(element.dataset, value);
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const MARKS = { ' ': '·', '\n': '↵', '\t': '⇥', '\r': '␍' };
// Whitespace, controls, and characters that are invisible or turn the text around (but not emoji joiners).
const SPECIAL = /[\s\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u;
const STARTS_WITH_COMBINING_MARK = /^\p{M}/u;

// The text of a token as nodes whose textContent is exactly the piece: what makes the invisible visible
// hangs in data attributes, which the style sheet shows.
export function pieceNodes({ piece, bytes, token_id: id, removed }) {
  if (removed) return [...(piece ? pieceNodes({ piece }) : []), markNode('', t('stop text'), 'chip')];
  if (piece === '') return [markNode('', bytes ? hexOf(bytes) : `id ${id}`, 'chip')];
  const nodes = STARTS_WITH_COMBINING_MARK.test(piece) ? [markNode('', '◌', 'chip')] : [];
  let plain = '';
  for (const character of piece) {
    if (!SPECIAL.test(character)) {
      plain += character;
      continue;
    }
    if (plain) nodes.push(document.createTextNode(plain));
    plain = '';
    nodes.push(markNode(character, MARKS[character] ?? codePointOf(character), MARKS[character] ? 'space' : 'chip'));
  }
  if (plain) nodes.push(document.createTextNode(plain));
  return nodes;
}

// A short, plain spelling of a token for names and titles.
export function spellPiece({ piece, bytes, token_id: id }) {
  if (piece === '') return bytes ? t('bytes {bytes}', { bytes: hexOf(bytes) }) : t('token id {id}', { id });
  const spelled = Array.from(piece, (c) => (SPECIAL.test(c) ? (MARKS[c] ?? codePointOf(c)) : c)).slice(0, 60).join('');
  return `“${spelled}”`;
}

export function hexOf(bytes) {
  return (bytes.match(/../g) ?? []).join(' ').toUpperCase();
}

function markNode(text, mark, kind) {
  return h('span', { class: `mark ${kind}${text === '\n' || text === '\t' ? ' wide' : ''}`, data: { mark } }, text);
}

function codePointOf(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

// A token as a chip: tint, line and glyph of its status.
export function tokenChip(tag, token, status, palette, attributes = {}) {
  const { glyph, label } = palette.statuses[status];
  const title = t('{label}: {token}, token id {id}', { label, token: spellPiece(token), id: token.token_id });
  const { data = {}, ...others } = attributes;
  const chip = h(tag, { class: 'token', title, ...others, data: { status, glyph, ...data } }, ...pieceNodes(token));
  chip.dir = 'auto';
  return chip;
}

export function formatProb(prob) {
  if (prob === null || prob === undefined) return t('unknown');
  if (prob > 0 && prob < 0.0001) return t('below 0.0001');
  return prob.toPrecision(prob < 0.1 ? 2 : 3).replace(/\.?0+$/, '') || '0';
}
