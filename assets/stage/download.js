// Hands a text or a data URL to the visitor as a file.

import { h } from './dom.js';

export function download(content, name, type) {
  const isUrl = content.startsWith('data:');
  const url = isUrl ? content : URL.createObjectURL(new Blob([content], { type }));
  h('a', { href: url, download: name }).click();
  if (!isUrl) setTimeout(() => URL.revokeObjectURL(url), 10000);
}
