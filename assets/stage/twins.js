// The charts of a step in words, for whoever cannot see them or has no mouse: the tree as a nested list, each row of
// the mask as a sentence, the experts that were used. Everything listed can be chosen here too.

import { EXTRA_NODE, h, spellPiece } from './dom.js';
import { expandMask } from './mask_cells.js';
import { plainLabel, tellSeen } from './mask_words.js';
import { lookAt } from './moments.js';
import { isExpertOf, isSameExpert, markedNodes } from './selection.js';
import { parts as fill, t } from './words.js';

export function makeTwins(stage) {
  const { palette, mask_reasons: reasons } = stage.context.constants.figures;
  const parts = [
    makeTwin(t('The tree as a list'), listTree),
    makeTwin(t('The mask in words'), listRows),
    makeTwin(t('The experts that were used'), listExperts, () => stage.row.steps.some(({ step }) => step.routing.length)),
  ];
  const element = h('section', { class: 'twins', 'aria-label': t('The charts in words'), hidden: '' }, h('h3', {}, t('In words')), ...parts.map((part) => part.element));

  function update(state) {
    element.hidden = !stage.frame;
    if (!stage.frame) return;
    for (const part of parts) part.update();
    mark(state);
  }

  // A list is made when it is looked at; `has` says whether the run has anything to list at all.
  function makeTwin(title, list, has = () => true) {
    const body = h('div', { tabindex: '0', role: 'group', 'aria-label': title });
    const box = h('details', { ontoggle: () => { refresh(); mark(stage.state); } }, h('summary', {}, title), body);
    const shown = { frame: null, moment: '' };

    function update() {
      box.hidden = !has();
      refresh();
    }

    function refresh() {
      const { frame, state: { moment } } = stage;
      if (!box.open || (shown.frame === frame && shown.moment === moment)) return;
      Object.assign(shown, { frame, moment });
      body.replaceChildren(list(stage.frame));
    }

    return { element: box, update };
  }

  function mark(state) {
    const marked = markedNodes(stage.frame, state);
    for (const button of element.querySelectorAll('button')) {
      const { node, site, expert } = button.dataset;
      const own = site && { site, index: Number(expert) };
      const isMarked = own ? isSameExpert(state.expert, own) || isExpertOf(stage.frame, state, own) : marked.includes(Number(node));
      button.setAttribute('aria-pressed', String(isMarked));
    }
  }

  function listTree({ step }) {
    const { moment } = stage.state;
    const childrenOf = (idx) => step.nodes.filter((node) => node.parent === idx);
    const item = (node) => {
      const children = childrenOf(node.idx);
      const name = nameToken(lookAt(node, moment, palette).label, node);
      return h('li', {}, choice(name, { node: node.idx }), ...(children.length ? [h('ul', {}, ...children.map(item))] : []));
    };
    const own = (moment === 'commit' ? step.committed : []).filter(({ source }) => !['draft', 'unverified'].includes(source)).map((token) =>
      h('li', {}, choice(nameToken(palette.statuses[palette.status_of_source[token.source]].label, token), { node: EXTRA_NODE })));
    return h('ul', { class: 'tree-list' }, ...step.nodes.filter((node) => node.parent < 0).map(item), ...own);
  }

  function listRows({ figures }) {
    const [earlier, cells] = expandMask(figures.mask).data;
    const rows = cells.z.map((_, row) => {
      const node = cells.customdata[row];
      const label = plainLabel(cells.y[row]);
      const seen = tellSeen(cells, row, reasons);
      const before = earlier.text[row] ? `${t('; ')}${earlier.text[row][0]}` : '';
      const name = node >= 0 ? choice(label, { node }) : h('span', {}, label);
      return h('li', {}, ...fill(seen ? '{row} sees {columns}' : '{row} sees none of the columns drawn', { row: name, columns: seen }), before);
    });
    return h('ol', { class: 'rows-list' }, ...rows);
  }

  function listExperts({ step }) {
    const items = step.routing.map(({ site, node, selected }) => h('li', {}, `[${site}]${node === null ? '' : t(' at node {node}', { node })}: `,
      ...selected.map((expert) => choice(t('expert {expert}', { expert }), { site, expert }))));
    return items.length ? h('ul', {}, ...items) : h('p', { class: 'hint' }, t('No router ran in this step.'));
  }

  function nameToken(label, token) {
    return t('{label}: {token}', { label, token: spellPiece(token) });
  }

  function choice(name, data) {
    const onclick = () => stage.choose(data.site ? { expert: { site: data.site, index: data.expert } } : { node: data.node });
    return h('button', { type: 'button', class: 'small plain-choice', data, onclick }, name);
  }

  return { element, update };
}
