/** How lines of Python are laid out. */
const WIDTH = 120;

/** What stands above each generated module. */
export const header = (purpose: string): string => `"""${purpose}

Generated from the OpenAPI document by \`npm run generate:clients\`: do not edit.
"""

from __future__ import annotations
`;

const KEYWORDS = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if import
  in is lambda nonlocal not or pass raise return try while with yield`.split(/\s+/),
);

/** The name of a field or an argument: a keyword gets an underscore at its end. */
export const attribute = (name: string): string => (KEYWORDS.has(name) ? `${name}_` : name);

export const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export const quote = (text: string): string => JSON.stringify(text);

/** Lines of a text that fit beside `indent`. Its own line breaks stay. */
export function wrap(text: string, indent: string): string[] {
  return text.split('\n').flatMap((paragraph) => {
    const lines = [''];
    for (const word of paragraph.split(' ')) {
      const line = lines.at(-1) ?? '';
      if (line === '') lines[lines.length - 1] = word;
      else if (`${indent}${line} ${word}`.length <= WIDTH) lines[lines.length - 1] = `${line} ${word}`;
      else lines.push(word);
    }
    return lines;
  });
}

/** A docstring of paragraphs, and of arguments with what they mean. */
export function docstring(paragraphs: (string | null)[], indent: string, args: string[] = []): string {
  const given = paragraphs.filter((text) => text !== null && text !== '') as string[];
  const lines = given.flatMap((text, index) => [...(index > 0 ? [''] : []), ...wrap(text, indent)]);
  if (args.length > 0) lines.push('', 'Args:');
  for (const [first = '', ...rest] of args.map((text) => wrap(text, `${indent}        `)))
    lines.push(`    ${first}`, ...rest.map((line) => `        ${line}`));
  const escaped = lines.map((line) => line.replaceAll('\\', '\\\\').replaceAll('"""', '\\"\\"\\"'));
  const [only = ''] = escaped;
  const isShort = escaped.length === 1 && `${indent}"""${only}"""`.length <= WIDTH && !only.endsWith('"');
  const body = isShort ? only : `${escaped.join(`\n${indent}`)}\n${indent}`;
  return `${indent}"""${body}"""`.replace(/[ \t]+$/gm, '');
}

/** `name(item, item)end`, on one line if it fits, else with an item a line. */
export function call(start: string, items: string[], end: string, indent: string): string {
  const line = `${indent}${start}(${items.join(', ')})${end}`;
  if (line.length <= WIDTH && !line.includes('\n')) return line;
  const inner = items.map((item) => `${indent}    ${item.replaceAll('\n', '\n    ')},\n`).join('');
  return `${indent}${start}(\n${inner}${indent})${end}`;
}
