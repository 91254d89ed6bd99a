// Whether the run says what plain decoding says; if not, where it left, and how closely the target decided there.

import { formatProb, h, pieceNodes } from '../dom.js';
import { makeAnswerPane, makeTable, originTag } from './answer.js';
import { parts, phrase, t } from '../words.js';

const VERDICTS = {
  equal: [phrase('Equal to plain decoding'), phrase('every token is the one that the target alone would have said.')],
  'near tie': [phrase('Parts at a near tie'), phrase('the two best logits lie so close that another kernel’s rounding chose the other token; no rule was broken.')],
  different: [phrase('Differs from plain decoding'), phrase('this is more than rounding: it would be a fault of an exact rule.')],
  'left the target': [phrase('Left the target'), phrase('tokens were taken unseen, and the target would have chosen others.')],
  'kept to the target': [phrase('Kept to the target'), phrase('tokens were taken unseen, and the next pass would have chosen each of them too.')],
  'not measured': [phrase('Not measured'), phrase('plain decoding was not run beside this one: ask for it under “More settings”.')],
};
const MOST_LISTED = 12;

export function makeLosslessness(stage) {
  return makeAnswerPane(stage, {
    name: 'losslessness',
    title: phrase('Losslessness'),
    hint: phrase('The acceptance rule is exact for verified drafts; this is the check of this very run.'),
    kind: 'losslessness',
    scope: 'run',
    show: (found) => show(stage, found),
  });
}

function show(stage, found) {
  const [title, meaning] = VERDICTS[found.verdict].map((text) => t(text));
  const counts = found.n_equal === null ? '' : t(' {n} of {all} tokens equal plain decoding’s.', { n: found.n_equal, all: found.n_tokens });
  return [
    h('p', { class: 'verdict' }, h('strong', {}, title), t(': '), meaning, counts, ' ', originTag('measured')),
    found.divergence && describeDivergence(stage, found.divergence),
    found.n_unverified > 0 && describeDepartures(stage, found),
  ];
}

function describeDivergence(stage, { index, step, piece, token_id: id, expected_piece: expected, expected_id: expectedId, gap, prob }) {
  const known = (value, digits = 3) => (value === null ? t('not recorded') : value.toPrecision(digits));
  return h('div', {},
    h('p', {}, ...parts('The first difference is token {n}: {taken} instead of {expected}.', {
      n: index + 1, taken: chip({ piece, token_id: id }), expected: chip({ piece: expected, token_id: expectedId }),
    })),
    h('dl', { class: 'facts' },
      h('dt', {}, t('gap of the two best logits there')), h('dd', {}, known(gap)),
      h('dt', {}, t('target probability of the token taken')), h('dd', {}, formatProb(prob)),
      h('dt', {}, t('step')), h('dd', {}, step === null ? t('none') : goButton(stage, step))));
}

function describeDepartures(stage, { departures, n_unverified: n }) {
  const share = t('{n} of {all} tokens taken unseen are not what the target would have said, as the next pass told.', { n: departures.length, all: n });
  if (!departures.length) return h('p', {}, share);
  const rows = departures.slice(0, MOST_LISTED).map((each) => [
    goButton(stage, each.step, each.node), [chip({ piece: each.piece })], [chip({ piece: each.expected_piece })],
    formatProb(each.prob), each.gap.toFixed(2),
  ]);
  return [h('p', {}, share), makeTable(t('Where it left the target'), [t('step'), t('taken'), t('the target’s own'), t('target probability'), t('logit gap')], rows)]
    .reduce((box, part) => (box.append(part), box), h('div', {}));
}

export const chip = (token) => h('span', { class: 'token plain-chip' }, ...pieceNodes(token));

function openStep(stage, step, node) {
  stage.choose({ step, node });
  stage.set({ view: 'step' });
}

export function goButton(stage, step, node = null) {
  return h('button', { type: 'button', class: 'small', onclick: () => openStep(stage, step, node) }, String(step));
}
