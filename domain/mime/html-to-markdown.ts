import { compile, type DomNode, type FormatCallback } from 'html-to-text';
import { runWithTimeout } from '../../platform/run-with-timeout.ts';
import { htmlToText, MAX_HTML_CHARACTERS } from './html-to-text.ts';
import { limitNesting } from './limit-nesting.ts';

/** Ordinary HTML of the maximum length takes 100 ms. */
const CONVERT_TIMEOUT_MS = 500;
const MAX_CELLS = 100;

const formatHeading: FormatCallback = (elem, walk, builder) => {
  builder.openBlock({ leadingLineBreaks: 2 });
  let isFirst = true;
  const marks = '#'.repeat(Number(elem.name?.slice(1)) || 1);
  builder.pushWordTransform((word) => {
    const marked = isFirst ? `${marks} ${word}` : word;
    isFirst = false;
    return marked;
  });
  walk(elem.children, builder);
  builder.popWordTransform();
  builder.closeBlock({ trailingLineBreaks: 2 });
};

const formatLink: FormatCallback = (elem, walk, builder) => {
  const href = (elem.attribs?.href ?? '').trim();
  const isShown = /^(?:https?|mailto|tel):/i.test(href);
  let hasWords = false;
  builder.pushWordTransform((word) => {
    const escaped = word.replace(/[[\]]/g, '\\$&');
    const marked = isShown && !hasWords ? `[${escaped}` : escaped;
    hasWords = true;
    return marked;
  });
  walk(elem.children, builder);
  builder.popWordTransform();
  if (isShown && hasWords) builder.addLiteral(`](${toDestination(href)})`);
  else if (isShown) builder.addInline(`<${href.replace(/[\s<>]/g, encodeURIComponent)}>`);
};

/** CommonMark: a destination with parentheses stands in angle brackets. */
function toDestination(href: string): string {
  const url = href.replace(/[\s<>]/g, encodeURIComponent);
  return /[()]/.test(url) ? `<${url}>` : url;
}

/** Most tables of mail only lay it out: a table with headings, and without tables in it, has data. */
const formatTable: FormatCallback = (elem, walk, builder, options) => {
  const rows = readRows(elem);
  if (rows === null) {
    builder.openBlock({ leadingLineBreaks: options.leadingLineBreaks ?? 1 });
    walk(elem.children, builder);
    builder.closeBlock({ trailingLineBreaks: options.trailingLineBreaks ?? 1 });
    return;
  }
  builder.openTable();
  for (const cells of rows) {
    builder.openTableRow();
    for (const cell of cells.slice(0, MAX_CELLS)) {
      builder.openTableCell();
      walk(cell.children, builder);
      builder.closeTableCell();
    }
    builder.closeTableRow();
  }
  builder.closeTable({ tableToString: (table) => writeTable(table as unknown as { text: string }[][]) });
};

/** The cells of a table with data by row; null for another table. */
function readRows(table: DomNode): DomNode[][] | null {
  const rows: DomNode[][] = [];
  let hasHeading = false;
  const parts = (table.children ?? []).flatMap((node) =>
    /^(?:thead|tbody|tfoot)$/.test(node.name ?? '') ? (node.children ?? []) : [node],
  );
  for (const row of parts) {
    if (row.name !== 'tr') continue;
    const cells = (row.children ?? []).filter(({ name }) => name === 'td' || name === 'th');
    hasHeading ||= cells.some(({ name }) => name === 'th');
    if (cells.length > 0) rows.push(cells);
  }
  if (!hasHeading || rows.length < 2) return null;
  return rows.some((cells) => cells.some(containsTable)) ? null : rows;
}

function containsTable(node: DomNode): boolean {
  return (node.children ?? []).some((child) => child.name === 'table' || containsTable(child));
}

function writeTable(rows: { text: string }[][]): string {
  const written = rows.map((cells) =>
    cells.map(({ text }) => text.trim().replace(/\s+/g, ' ').replace(/\|/g, '\\|')),
  );
  const [heading = [], ...body] = written;
  const toLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [toLine(heading), toLine(heading.map(() => '---')), ...body.map(toLine)].join('\n');
}

const convert = compile({
  wordwrap: false,
  limits: { maxInputLength: MAX_HTML_CHARACTERS, maxDepth: 200, ellipsis: '' },
  formatters: { markdownHeading: formatHeading, markdownLink: formatLink, markdownTable: formatTable },
  selectors: [
    { selector: 'a', format: 'markdownLink' },
    { selector: 'img', format: 'skip' },
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, format: 'markdownHeading' })),
    { selector: 'ul', options: { itemPrefix: '- ' } },
    { selector: 'table', format: 'markdownTable' },
    { selector: 'blockquote', options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
  ],
});

/**
 * Converts HTML to Markdown (CommonMark, with tables): headings, lists, tables with headings, and links. All else becomes
 * text, as `htmlToText` writes it.
 *
 * @param timeoutMs after this time, the result is that of `htmlToText`.
 */
export function htmlToMarkdown(html: string, timeoutMs: number = CONVERT_TIMEOUT_MS): string {
  const source = html.slice(0, MAX_HTML_CHARACTERS);
  const text = runWithTimeout(timeoutMs, () => convert(limitNesting(source)));
  if (text === null) return htmlToText(html, timeoutMs);
  return text
    .replaceAll('\u00a0', ' ')
    .replace(/\s{1,20}\]\(/g, '](')
    .trim();
}
