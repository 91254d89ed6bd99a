// A row of the mask in words.

import { t } from './words.js';

const MOST_NAMED = 8;

// What one row of the expanded cells sees, by reason: "context: 41 columns; ancestor: The #0"; '' where it sees none.
export function tellSeen(cells, row, reasons) {
  const groups = new Map();
  cells.z[row].forEach((code, column) => {
    if (reasons[code].visible) groups.set(code, [...(groups.get(code) ?? []), plainLabel(cells.x[column])]);
  });
  const named = [...groups].map(([code, names]) => {
    const shown = names.length > MOST_NAMED ? t('{n} columns', { n: names.length }) : names.join(t(', '));
    return t('{reason}: {columns}', { reason: reasons[code].label || reasons[code].name, columns: shown });
  });
  return named.join(t('; '));
}

// Labels of figures are plotly's small HTML; here they are text.
export function plainLabel(label) {
  return label.replace(/&(amp|lt|gt|quot|#36);/g, (_, name) => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#36': '$' })[name]);
}
