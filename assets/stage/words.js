// The words of the stage in the visitor's language. The table is Gradio's own (gr.I18n, specviz/ui/words.py), which the
// page's controls use too; its keys are the English words, so that nothing is missing where there is no table.

const LANGUAGES = ['en', 'zh'];

export function language() {
  const wanted = (navigator.languages ?? [navigator.language]).map((name) => name.slice(0, 2).toLowerCase());
  return wanted.find((name) => LANGUAGES.includes(name)) ?? 'en';
}

// The words for an English text; `{name}` stands for a value.
export function t(text, values = {}) {
  const found = window.gradio_config?.i18n_translations?.[language()]?.[text] ?? text;
  return found.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}
