// One node: why it was taken or not, its numbers, and what draft and target would say after it.

import { EXTRA_NODE, formatProb, h, pieceNodes } from './dom.js';

export function makeInspector(stage) {
  const { palette } = stage.context.constants.figures;
  const body = h('div', { class: 'body' });
  const element = h('section', { class: 'inspector', 'aria-label': 'Chosen token', hidden: '' }, h('h3', {}, 'Chosen token'), body);

  function update(state, changed) {
    if (!['run', 'row', 'step', 'node', 'moment', 'steps'].some((name) => changed.has(name))) return;
    element.hidden = !stage.frame;
    const key = stage.frame && `${state.run.id} ${state.row} ${state.step} ${state.node} ${state.moment === 'draft'}`;
    if (!stage.frame || body.key === key) return;
    body.key = key;
    const subject = findSubject(stage.frame.step, state.node);
    if (subject && state.moment === 'draft') body.replaceChildren(h('p', { class: 'hint' }, 'The target has not judged this yet: go on to Verify.'));
    else if (subject) show(key, state.node, subject);
    else body.replaceChildren(h('p', { class: 'hint' }, 'Choose a token, above or in a chart, to see why it was taken or not.'));
  }

  async function show(key, node, { token, status, isNode }) {
    const why = h('p', { class: 'why', 'aria-live': 'polite' }, '…');
    const { glyph, label } = palette.statuses[status];
    const chip = h('span', { class: 'token', data: { status, glyph } }, ...pieceNodes(token));
    const title = h('p', { class: 'title' }, chip, isNode ? ` ${label}, node ${node}` : ` ${label}, the target’s own token`);
    body.replaceChildren(title, why);
    try {
      const record = await stage.recordOf();
      if (body.key !== key) return;
      why.textContent = record.why[node];
      const known = record.step.nodes[node];
      if (known) body.append(h('div', { class: 'columns' }, facts(known), ...tops(known)));
    } catch (error) {
      why.textContent = error.message;
    }
  }

  // A node of the draft, or the token that the target added to the step.
  function findSubject(step, node) {
    if (node === null) return null;
    if (node !== EXTRA_NODE) return { token: step.nodes[node], status: step.nodes[node].status, isNode: true };
    const token = step.committed.at(-1);
    return token && { token, status: palette.status_of_source[token.source], isNode: false };
  }

  return { element, update };
}

function facts(node) {
  const rows = [
    ['token id', String(node.token_id)],
    ['draft probability', formatProb(node.draft_prob)],
    ['target probability', formatProb(node.target_prob)],
    ['rank for the target', node.target_rank === null ? 'unknown' : String(node.target_rank + 1)],
  ];
  return h('dl', { class: 'facts' }, ...rows.flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]));
}

function bar(prob) {
  return h('span', { class: 'bar', 'aria-hidden': 'true' }, h('span', { style: `width: ${100 * prob}%` }));
}

// The recorded top fives after this node.
function tops({ next, contemplate_top5: contemplated }) {
  const lists = [
    ['draft says next', next?.draft_top5],
    ['target says next', next?.target_top5],
    ['contemplate token', contemplated],
  ].filter(([, entries]) => entries?.length);
  return lists.map(([name, entries]) => h('div', { class: 'top' }, h('h4', {}, name),
    h('ol', {}, ...entries.map((entry) => h('li', {}, h('span', { class: 'token' }, ...pieceNodes(entry)),
      bar(entry.prob), formatProb(entry.prob))))));
}
