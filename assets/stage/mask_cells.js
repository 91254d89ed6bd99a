// The cells of a mask, which travel as runs: a letter, `a` for code 0, and a count (specviz/ui/step_item.py).

const FIRST_LETTER = 'a'.charCodeAt(0);

// Return the figure of a mask as plotly wants it, with the rows and columns that share their names.
export function expandMask({ data: [earlier, cells], layout }) {
  return { data: [expandEarlier(earlier, cells), expandCells(cells)], layout };
}

function expandEarlier(earlier, { y }) {
  const z = readRuns(earlier.z).map((code) => [code]);
  const text = earlier.text.flatMap(([count, sentence]) => Array.from({ length: count }, () => [sentence]));
  return { ...earlier, z, text, y: z.length ? y : [] };
}

function expandCells(cells) {
  const z = cells.z.map(readRuns);
  const isShort = z.length > 0 && cells.x.length < z[0].length;
  return { ...cells, z, x: isShort ? [...cells.x, ...cells.y] : cells.x };
}

function readRuns(line) {
  const codes = [];
  for (const [, letter, count] of line.matchAll(/([a-z])(\d+)/g)) {
    for (let i = 0; i < Number(count); i += 1) codes.push(letter.charCodeAt(0) - FIRST_LETTER);
  }
  return codes;
}
