import { expect, test } from '@jest/globals';
import { escapeHtml } from '../../platform/escape-html.ts';

test('text cannot become markup, nor leave its attribute', () => {
  expect(escapeHtml(`<a href="x" onclick='y'>&`)).toBe(
    '&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;',
  );
  expect(escapeHtml(null)).toBe('null');
  expect(escapeHtml(7)).toBe('7');
});

test('characters that reorder the text around them are shown by name, others are kept', () => {
  expect(escapeHtml('Key \u202E)evitca( \u2067x\u2069')).toBe('Key [U+202E])evitca( [U+2067]x[U+2069]');
  // Marks and joiners are part of words in Arabic, Hebrew and Persian.
  for (const text of ['שלום\u200F', 'می\u200Cخواهم', '🏳️\u200D🌈']) expect(escapeHtml(text)).toBe(text);
});
