// ConFu's future token: the same step with and without f, and what each contemplate token "thinks" beside what followed.

import { formatProb, h } from '../dom.js';
import { makeAnswerPane, makeTable, originTag } from './answer.js';
import { chip } from './losslessness.js';
import { phrase, t } from '../words.js';

const ADVICE = phrase('A contemplate token is not trained to speak through the target’s head; the table shows what it would say.');

export function makeFuture(stage) {
  return makeAnswerPane(stage, {
    name: 'future',
    title: phrase('The future token'),
    hint: phrase('ConFu drafts with a future token f; its shadow is the tree that the same head would have drafted without.'),
    kind: 'future',
    scope: 'run',
    show: ({ shadow, named }) => [shadow && describeShadow(shadow), named.some(([, n]) => n) && tableOfNamed(named)],
  });
}

function describeShadow({ n_steps: n, with_f: withF, without_f: without, n_better: better, n_worse: worse, n_open: open }) {
  const rest = open ? t(' In {n} steps the tree without f matched every token of the step and might have gone on.', { n: open }) : '';
  return h('p', {}, t('Over {n} steps {with_f} drafts were accepted with f; without f {without_f} would have been. f helped in {better} steps and hurt in {worse}.{rest}',
    { n, with_f: withF, without_f: without, better, worse, rest }), ' ', originTag('computed'));
}

function tableOfNamed(named) {
  const rows = named.filter(([, n]) => n).map(([hits, n], i) => [`+${i + 1}`, t('{n} of {all}', { n: hits, all: n }), `${Math.round((100 * hits) / n)} %`]);
  return makeTable(t('How often a following token is among a contemplate token’s top five'), [t('token after the node'), t('named'), t('share')], rows);
}

export function makeThoughts(stage) {
  function show({ thoughts, shadow }) {
    if (!thoughts.length && !shadow) return null;
    return [...thoughts.map(describeThought), shadow && listShadow(stage, shadow)];
  }

  return makeAnswerPane(stage, {
    name: 'thoughts',
    title: phrase('Contemplate tokens of this step'),
    hint: ADVICE,
    kind: 'step',
    scope: 'step',
    show,
  });
}

function describeThought({ node, top5, following, named }) {
  const said = top5.map((token) => h('li', {}, chip(token), ` ${formatProb(token.prob)}`));
  const followed = following.map((token, i) => h('li', { class: named[i] === null ? '' : 'named' }, chip(token),
    named[i] === null ? '' : ` ${t('named, place {n}', { n: named[i] + 1 })}`));
  return h('div', { class: 'thought' },
    h('div', {}, h('h4', {}, node === 0 ? t('behind the root it says') : t('behind node {node} it says', { node })), h('ol', {}, ...said)),
    h('div', {}, h('h4', {}, t('what followed')), h('ol', {}, ...followed)));
}

function listShadow(stage, { nodes: shadow, with_f: withF, without_f: without, n_shared: shared, n_nodes: n }) {
  const { palette } = stage.context.constants.figures;
  const depths = Math.max(...shadow.map((node) => node.depth));
  const levels = Array.from({ length: depths }, (_, i) => shadow.filter((node) => node.depth === i + 1));
  const chips = (nodes) => nodes.map((node) => {
    const { glyph, label } = palette.statuses[node.status];
    const token = chip(node);
    Object.assign(token.dataset, { status: node.status, glyph });
    token.title = label;
    return token;
  });
  return h('details', {}, h('summary', {}, t('The tree that would have been drafted without f')),
    h('p', {}, t('{shared} of the {n} drafts of this step are in both trees. With f {with_f} were accepted, without it {without_f} would have been.', { shared, n, with_f: withF, without_f: without }), ' ', originTag('computed')),
    makeTable(t('Level by level'), [t('level'), t('drafts')], levels.map((nodes, i) => [`+${i + 1}`, chips(nodes)])));
}
