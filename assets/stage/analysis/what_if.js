// This step under other settings, without a model: computed from the recorded probabilities and the target's choices.

import { formatProb, h, spellPiece } from '../dom.js';
import { phrase, t } from '../words.js';
import { makeAnswerPane, originTag } from './answer.js';
import { chip } from './losslessness.js';

const FIELDS = {
  nodes: [phrase('nodes, root included'), { min: 1, max: 256, step: 1 }],
  depth: [phrase('deepest level'), { min: 1, max: 32, step: 1 }],
  top_k: [phrase('children of a node'), { min: 1, max: 64, step: 1 }],
  threshold: [phrase('threshold'), { min: 0, max: 1, step: 0.01 }],
};

export function makeWhatIf(stage) {
  function show({ change, miss }, ask) {
    const fields = Object.entries(FIELDS).filter(([name]) => change[name] !== null);
    if (!ask) return miss && explainMiss(miss); // another tree is made by Python
    if (!fields.length) return null;
    const result = h('div', { class: 'outcome', 'aria-live': 'polite' });
    const inputs = fields.map(([name, [label, limits]]) => makeField(name, label, limits, change[name], recompute));
    const reset = h('button', { type: 'button', class: 'small', onclick: () => { inputs.forEach((input) => input.reset()); recompute(); } }, t('As it was'));
    let latest = 0;

    async function recompute() {
      latest += 1;
      const own = latest;
      const asked = Object.fromEntries(inputs.map((input) => [input.name, input.value()]));
      try {
        const outcome = await ask('what_if', { change: asked });
        if (own === latest) result.replaceChildren(...describe(outcome));
      } catch (error) {
        if (own === latest) result.replaceChildren(h('p', { class: 'hint' }, error.message));
      }
    }

    recompute();
    return [miss && explainMiss(miss), h('div', { class: 'fields' }, ...inputs.map((input) => input.element), reset), result];
  }

  return makeAnswerPane(stage, {
    name: 'what-if',
    title: phrase('What if?'),
    hint: phrase('Change what this step ran with. After the same text the target takes the same token, so the outcome can be computed from the record.'),
    kind: 'step',
    scope: 'step',
    show,
  });
}

// Why the tree did not hold the token that the target added.
function explainMiss({ sentence, draft_rank: rank, draft_prob: prob, ...token }) {
  const odds = rank === null ? '' : ` ${t('The draft ranked it {n}, at {prob}.', { n: rank + 1, prob: formatProb(prob) })}`;
  return h('p', {}, chip(token), ` ${t('was not drafted.')} ${sentence}${odds} `, originTag('recorded'));
}

function makeField(name, label, limits, was, changed) {
  const input = h('input', { type: 'number', ...limits, value: was, onchange: changed });
  return {
    name,
    element: h('label', {}, t(label), input),
    value: () => (input.value === '' || Number.isNaN(input.valueAsNumber) ? was : input.valueAsNumber),
    reset: () => { input.value = was; },
  };
}

function describe({ unknown, n_tokens: n, was, accepted, extra, nodes, n_nodes: size }) {
  const tree = nodes.length > 0 && h('details', {}, h('summary', {}, t('The {n} nodes, root included', { n: size })), h('ul', { class: 'sent' }, ...nodes.map(describeNode)));
  if (unknown) return [h('p', {}, h('strong', {}, t('Not in the record. ')), unknown), tree].filter(Boolean);
  const difference = n === was ? t('as many as it did') : t('it committed {n}', { n: was });
  const path = [...accepted.map((token) => [chip(token), ' ']).flat(), extra ? chip(extra) : t('the answer ends')];
  return [h('p', {}, h('strong', {}, n === 1 ? t('1 token') : t('{n} tokens', { n })), ` (${difference}): `, ...path, ' ', originTag('computed')), tree].filter(Boolean);
}

function describeNode(token) {
  return h('li', { class: token.sent ? '' : 'new' }, `+${token.depth} ${spellPiece(token)}${token.sent ? '' : ` (${t('was not sent')})`}`);
}
