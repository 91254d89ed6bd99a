// The palette of the figures as a style sheet: one source for page and charts.

export function paletteStyle({ statuses, themes }) {
  return ['light', 'dark'].map((theme) => themeRules(theme, statuses, themes[theme])).join('\n') + lineRules(statuses);
}

export function currentTheme() {
  return document.body.classList.contains('dark') ? 'dark' : 'light';
}

function themeRules(theme, statuses, colours) {
  const scope = theme === 'dark' ? '.dark .stage' : '.stage';
  const variables = Object.entries(colours).map(([name, colour]) => `--${name}: ${colour};`).join(' ');
  const rules = Object.entries(statuses).map(([name, { colour, tint }]) =>
    `${scope} [data-status="${name}"] { --tone: ${colour[theme]}; --tint: ${tint[theme]}; }`);
  return [`${scope} { ${variables} }`, ...rules].join('\n');
}

function lineRules(statuses) {
  return Object.entries(statuses)
    .map(([name, { line }]) => `\n.stage .token[data-status="${name}"] { ${line}; text-decoration-color: var(--tone); }`)
    .join('');
}
