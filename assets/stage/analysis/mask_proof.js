// One row of the mask three times: as recorded, as its rule says, and as attention really flowed.

import { h } from '../dom.js';
import { makePlot } from '../plot.js';
import { makeAnswerPane, makeChart, originTag } from './answer.js';
import { phrase, t } from '../words.js';

export function makeMaskProof(stage) {
  const plot = makePlot(stage, 'mask_proof');

  function show({ rows, attention_row: attended, proof }, ask) {
    if (!ask) return proof && showAlone(proof);
    const labels = Array.isArray(rows) ? rows : Array.from({ length: rows }, (_, i) => t('row {n}', { n: i }));
    const result = h('div', { 'aria-live': 'polite' });
    const options = labels.map((label, i) => h('option', { value: i, selected: i === (attended ?? 0) }, `${i}: ${label}${i === attended ? t(' (attention recorded)') : ''}`));
    const chooser = h('select', { onchange: prove }, ...options);

    async function prove() {
      const proof = await ask('mask_proof', { mask_row: Number(chooser.value) });
      plot.draw(proof.figure);
      result.replaceChildren(...describe(proof), makeChart(t('Mask proof'), plot));
    }

    prove().catch((error) => result.replaceChildren(h('p', { class: 'hint' }, error.message)));
    return [h('label', { class: 'chooser' }, t('row '), chooser), result];
  }

  function showAlone(proof) {
    plot.draw(proof.figure);
    return [h('p', {}, t('row {n}', { n: proof.label })), ...describe(proof), makeChart(t('Mask proof'), plot)];
  }

  return makeAnswerPane(stage, {
    name: 'mask-proof',
    title: phrase('Mask proof'),
    hint: phrase('The recorded mask, its rule expanded anew, and the attention weights of the row; a masked column must be exactly zero.'),
    kind: 'step',
    scope: 'step',
    show,
  });
}

function describe({ leaks: shown, earlier_leaks: hidden, differs, n_masked: masked, is_recorded: recorded, attention_row: attended, error, earlier, first_column: first }) {
  const flows = error !== null;
  const leaks = [...shown, ...hidden.map((n) => t('column {n}', { n }))];
  const verdict = leaks.length ? t('A LEAK: {columns} can be read although masked.', { columns: leaks.join(', ') })
    : differs && earlier[0] !== null && earlier[0] !== earlier[1] ? t('Record and rule differ: of the earlier columns {recorded} are visible, by the rule {ruled}.', { recorded: earlier[0], ruled: earlier[1] })
    : differs ? t('Record and rule differ: a column that the rule shows was masked.')
      : !recorded && !flows ? t('No leak by the rule alone: {n} masked columns.', { n: masked })
        : t('No leak: {n} masked columns{recorded}{flows}.', {
          n: masked, recorded: recorded ? t(', recorded as masked') : '', flows: flows ? t(', with attention of exactly zero') : '',
        });
  const before = first ? t(' Of the {n} earlier columns the row sees {seen}.', { n: first, seen: earlier[1] }) : '';
  return [
    h('p', { class: leaks.length || differs ? 'verdict bad' : 'verdict' }, h('strong', {}, verdict), before, ' ', originTag(recorded ? 'recorded' : 'computed')),
    h('p', { class: 'hint' }, describeFlow(flows, attended, error, recorded)),
  ];
}

function describeFlow(flows, attended, error, recorded) {
  if (flows) return t('Attention is over all layers and heads. The layers’ own output differs from these weights’ by at most {error} of its size: they are what flowed.', { error: error.toPrecision(2) });
  if (attended !== null) return t('Attention was recorded for row {n} alone.', { n: attended });
  if (!recorded) return t('Of this pass the rule alone is kept, as of every prefill, of plain decoding and in a light record: the mask itself was not recorded, nor what attention flowed.');
  return t('Attention was not recorded in this run: ask for it under “More settings”, “Attention of row”.');
}
