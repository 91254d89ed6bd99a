// The answer as tokens, grouped by step, in the colours of what happened to each.

import { EXTRA_NODE, h, pieceNodes, tokenChip } from './dom.js';
import { markedNodes, usesExpert } from './selection.js';
import { t } from './words.js';

const LEGEND = ['accepted', 'correction', 'bonus', 'unverified', 'plain', 'rejected', 'unreached', 'cut'];

export function makeRibbon(stage) {
  const { palette } = stage.context.constants.figures;
  const prompt = h('div', { class: 'tokens' });
  const promptTitle = h('summary', {});
  const answer = h('div', { class: 'tokens answer', tabindex: '0', role: 'group', 'aria-label': t('Answer, token by token'),
    onclick: (event) => chooseAt(event.target) });
  const legend = h('ul', { class: 'legend', 'aria-label': t('Legend') }, ...LEGEND.map(legendEntry));
  const element = h('section', { class: 'ribbon', 'aria-label': t('Tokens'), hidden: '' },
    h('details', { class: 'prompt' }, promptTitle, prompt), answer, legend);
  const groups = [];
  let paragraph = null;
  let marked = [];
  let follows = false;
  // The newest token is followed once the browser has laid the page out: asking for a height earlier lays it out twice.
  const grown = new ResizeObserver(() => { if (follows) answer.scrollTop = answer.scrollHeight; });

  function update(state, changed) {
    element.hidden = !stage.row;
    if (!stage.row) return;
    if (changed.has('run') || changed.has('row')) restart();
    follows = state.follow && state.phase === 'running';
    append(stage.row.steps);
    if (['run', 'row', 'step', 'node', 'expert', 'steps'].some((name) => changed.has(name))) mark(state);
  }

  function restart() {
    groups.length = 0;
    paragraph = null;
    grown.disconnect();
    answer.replaceChildren();
    const tokens = stage.row.head.prompt;
    promptTitle.textContent = t('Prompt as the model reads it, {n} tokens', { n: tokens.length });
    prompt.replaceChildren(...tokens.map((token) => tokenChip('span', token, 'prompt', palette)));
  }

  // Only new steps are added. Each paragraph of the answer is a box of its own, so that the browser lays out the last
  // one alone and a long answer costs nothing per step.
  function append(steps) {
    if (groups.length === steps.length) return;
    const added = Array.from(steps).slice(groups.length).map((frame, i) => makeGroup(frame, groups.length + i));
    groups.push(...added);
    added.forEach(write);
  }

  function write(group) {
    if (!paragraph) {
      answer.append(paragraph = h('div'));
      grown.observe(paragraph);
    }
    paragraph.append(group);
    if (group.textContent.endsWith('\n')) paragraph = null;
  }

  function makeGroup(frame, index) {
    const shown = frame ? withoutStopText(frame.step.committed, frame.hidden) : [];
    const chips = shown.map((token) => tokenChip('span', token, palette.status_of_source[token.source], palette, { data: { step: index, node: nodeOf(token) } }));
    return h('span', { class: 'group', data: { step: index } }, ...chips);
  }

  function mark(state) {
    const { steps } = stage.row;
    marked.forEach((chip) => chip.classList.remove('current', 'chosen', 'linked'));
    const group = groups[state.step];
    const nodes = stage.frame ? markedNodes(stage.frame, state) : [];
    const chips = nodes.map((node) => group?.querySelector(`[data-node="${node}"]`)).filter(Boolean);
    const linked = state.expert ? groups.filter((_, i) => steps[i] && usesExpert(steps[i], state.expert)) : [];
    group?.classList.add('current');
    chips.forEach((chip) => chip.classList.add('chosen'));
    linked.forEach((own) => own.classList.add('linked'));
    marked = [group, ...chips, ...linked].filter(Boolean);
    if (group && !(state.follow && state.phase === 'running')) keepInView(answer, group);
  }

  function chooseAt(target) {
    const chip = target.closest('[data-step]');
    if (!chip) return;
    const { step, node } = chip.dataset;
    stage.choose({ step: Number(step), node: node === undefined ? null : Number(node) });
  }

  function legendEntry(status) {
    const { label } = palette.statuses[status];
    const sample = h('span', { class: 'token', data: { status, glyph: palette.statuses[status].glyph } },
      ...pieceNodes({ piece: label }));
    return h('li', {}, sample);
  }

  return { element, update };
}

// The last `n` characters complete a stop text: they are committed, but no part of the answer.
function withoutStopText(tokens, n) {
  const shown = [];
  for (const token of tokens.toReversed()) {
    const characters = Array.from(token.piece);
    const removed = Math.min(n, characters.length);
    n -= removed;
    shown.unshift(removed ? { ...token, piece: characters.slice(0, characters.length - removed).join(''), removed } : token);
  }
  return shown;
}

// What the target added hangs behind a node, but is none of the drafted ones.
function nodeOf({ source, node }) {
  return ['draft', 'unverified'].includes(source) && node !== null ? node : EXTRA_NODE;
}

// Scroll the box, never the page.
function keepInView(box, element) {
  const top = element.offsetTop - box.offsetTop;
  if (top < box.scrollTop) box.scrollTop = top - 8;
  const bottom = top + element.offsetHeight;
  if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight + 8;
}
