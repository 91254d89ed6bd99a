// One node: why it was taken or not, its numbers, and what draft and target would say after it.

import { EXTRA_NODE, findExtra, formatProb, h, pieceNodes } from './dom.js';
import { expandMask } from './mask_cells.js';
import { tellSeen } from './mask_words.js';
import { t } from './words.js';

export function makeInspector(stage) {
  const { palette, mask_reasons: reasons } = stage.context.constants.figures;
  const body = h('div', { class: 'body' });
  const element = h('section', { class: 'inspector', 'aria-label': t('Chosen token'), hidden: '' }, h('h3', {}, t('Chosen token')), body);

  function update(state, changed) {
    if (!['run', 'row', 'step', 'node', 'moment', 'steps'].some((name) => changed.has(name))) return;
    element.hidden = !stage.frame;
    const key = stage.frame && `${state.run.id} ${state.row} ${state.step} ${state.node} ${state.moment === 'draft'}`;
    if (!stage.frame || body.key === key) return;
    body.key = key;
    const subject = findSubject(stage.frame.step, state.node);
    if (subject && state.moment === 'draft') body.replaceChildren(h('p', { class: 'hint' }, t('The target has not judged this yet: go on to Verify.')));
    else if (subject) show(key, state.node, subject);
    else body.replaceChildren(h('p', { class: 'hint' }, t('Choose a token, above or in a chart, to see why it was taken or not.')));
  }

  async function show(key, node, { token, status, isNode }) {
    const why = h('p', { class: 'why', 'aria-live': 'polite' }, '…');
    const { glyph, label } = palette.statuses[status];
    const chip = h('span', { class: 'token', data: { status, glyph } }, ...pieceNodes(token));
    const title = h('p', { class: 'title' }, chip, ' ', t(isNode ? '{label}, node {node}' : '{label}, the target’s own token', { label, node }));
    const { frame } = stage;
    body.replaceChildren(title, why);
    try {
      const record = await stage.recordOf();
      if (body.key !== key) return;
      why.textContent = record.why[node];
      body.append(h('div', { class: 'columns' }, ...describe(record.step, node, frame)));
    } catch (error) {
      why.textContent = error.message;
    }
  }

  function describe({ nodes, routing, accepted }, node, frame) {
    const known = nodes[node];
    const here = nodes[known ? known.parent : accepted.at(-1) ?? 0]; // where draft and target were asked for this token
    const lists = [...tops(t('draft says here'), t('target says here'), here?.next), ...tops(t('draft says next'), t('target says next'), known?.next), ...topList(t('contemplate token says'), known?.contemplate_top5)];
    return known ? [listFacts([...numbersOf(known), ...seenBy(frame, node), ...expertsOf(routing, node)]), ...lists] : lists;
  }

  function seenBy({ figures }, node) {
    const cells = expandMask(figures.mask).data.find((trace) => trace.name === 'cells');
    const row = cells.customdata.indexOf(node);
    return row < 0 ? [] : [[t('sees'), tellSeen(cells, row, reasons) || t('none of the columns drawn')]];
  }

  // A node of the draft, or the token that the target added to the step.
  function findSubject(step, node) {
    if (node === null) return null;
    if (node !== EXTRA_NODE) return { token: step.nodes[node], status: step.nodes[node].status, isNode: true };
    const token = findExtra(step);
    return token && { token, status: palette.status_of_source[token.source], isNode: false };
  }

  return { element, update };
}

function numbersOf(node) {
  return [
    [t('token id'), String(node.token_id)],
    [t('draft probability'), formatProb(node.draft_prob)],
    [t('target probability'), formatProb(node.target_prob)],
    [t('rank for the target'), node.target_rank === null ? t('unknown') : String(node.target_rank + 1)],
  ];
}

// The routers' choice for this node, each with its weight.
function expertsOf(routing, node) {
  return routing.filter((own) => own.node === node).map(({ site, selected, weights }) =>
    [t('experts of {site}', { site }), selected.map((expert, i) => `${expert} (${formatProb(weights[i])})`).join(', ')]);
}

function listFacts(rows) {
  return h('dl', { class: 'facts' }, ...rows.flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]));
}

function bar(prob) {
  return h('span', { class: 'bar', 'aria-hidden': 'true' }, h('span', { style: `width: ${100 * prob}%` }));
}

// The recorded top fives of both at one place.
function tops(draftSays, targetSays, next) {
  return [...topList(draftSays, next?.draft_top5), ...topList(targetSays, next?.target_top5)];
}

function topList(name, entries) {
  if (!entries?.length) return [];
  const items = entries.map((entry) => h('li', {}, h('span', { class: 'token' }, ...pieceNodes(entry)), bar(entry.prob), formatProb(entry.prob)));
  return [h('div', { class: 'top' }, h('h4', {}, name), h('ol', {}, ...items))];
}
