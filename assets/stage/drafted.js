// The step in text: what was drafted, level by level, and what was committed. Every node is a button,
// so this is also the way to the tree for a keyboard and a screen reader.

import { EXTRA_NODE, h, spellPiece, tokenChip } from './dom.js';
import { lookAt, narrate } from './moments.js';
import { markedNodes } from './selection.js';
import { t } from './words.js';

export function makeDrafted(stage) {
  const { palette } = stage.context.constants.figures;
  const sentence = h('p', { class: 'narration' });
  const levels = h('div', { class: 'levels', tabindex: '0', role: 'group', 'aria-label': t('Drafted tokens by level'), onclick: (event) => chooseAt(event.target) });
  const element = h('section', { class: 'drafted', 'aria-label': t('This step'), hidden: '' }, sentence, levels);

  const shown = { frame: null, moment: '' };

  function update(state) {
    const { frame } = stage;
    element.hidden = !frame;
    if (!frame) return;
    // While a run streams past, reading every step aloud would help nobody.
    sentence.setAttribute('aria-live', state.follow && state.phase === 'running' ? 'off' : 'polite');
    if (shown.frame !== frame || shown.moment !== state.moment) show(frame, state.moment);
    sentence.textContent = narrate(frame, state.moment);
    const marked = markedNodes(frame, state);
    levels.querySelectorAll('button').forEach((chip) =>
      chip.setAttribute('aria-pressed', String(marked.includes(Number(chip.dataset.node)))));
  }

  function show(frame, moment) {
    Object.assign(shown, { frame, moment });
    const { nodes, committed } = frame.step;
    const depth = Math.max(...nodes.map((node) => node.depth));
    const rows = Array.from({ length: depth + 1 }, (_, i) => levelRow(nodes.filter((node) => node.depth === i), i, moment));
    levels.replaceChildren(...rows, ...(moment === 'commit' ? committedRow(committed) : []));
  }

  function levelRow(nodes, depth, moment) {
    const chips = nodes.map((node) => nodeButton(node, lookAt(node, moment, palette), node.idx));
    return level(depth === 0 ? t('root') : `+${depth}`, chips);
  }

  function committedRow(committed) {
    const own = committed.filter((token) => !['draft', 'unverified'].includes(token.source));
    const chips = own.map((token) => nodeButton(token, lookAt({ status: palette.status_of_source[token.source] }, 'commit', palette), EXTRA_NODE));
    return chips.length ? [level(t('target adds'), chips)] : [];
  }

  function level(name, chips) {
    return h('div', { class: 'level', role: 'group', 'aria-label': name }, h('span', { class: 'name' }, name), h('div', { class: 'chips' }, ...chips));
  }

  function nodeButton(token, { status, label }, node) {
    const name = t('{label}: {token}', { label, token: spellPiece(token) });
    return tokenChip('button', token, status, palette, { type: 'button', 'aria-label': name, title: t('{label}: {token}, token id {id}', { label, token: spellPiece(token), id: token.token_id }), data: { node } });
  }

  function chooseAt(target) {
    const chip = target.closest('button');
    if (chip) stage.choose({ node: Number(chip.dataset.node) });
  }

  return { element, update };
}
