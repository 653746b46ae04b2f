import type { Method, Model } from '../../../clients/generate/model.ts';

/** What a sample sends. */
export interface SampleInput {
  /** Parameters of the query that the operation requires, and its body. */
  fields: Record<string, unknown>;
}

/** The operations that the clients have, by their id. */
export const methodsById = ({ groups }: Model): Map<string, { group: string; method: Method }> =>
  new Map(
    groups.flatMap(({ name, methods }) =>
      methods.map((method) => [method.operationId, { group: name, method }] as const),
    ),
  );

const camel = (name: string): string =>
  name.replace(/_(\w)/g, (_whole, letter: string) => letter.toUpperCase());
const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A call with the TypeScript client, once `client` and the ids are set. */
export function typescriptOf(group: string, method: Method, { fields }: SampleInput): string {
  const args = [
    ...method.pathParameters.map(({ name }) => camel(name)),
    ...(method.body.kind === 'file' ? ["new File([await readFile('invoice.pdf')], 'invoice.pdf')"] : []),
    ...(Object.keys(fields).length > 0 ? [javascript(fields, '')] : []),
  ];
  const call = `client.${group}.${method.name}(${args.join(', ')})`;
  if (method.body.kind === 'file')
    return `import { readFile } from 'node:fs/promises';\n\nconst ${resultName(method)} = await ${call};\n`;
  switch (method.answer.kind) {
    case 'events':
      return `for await (const event of ${call}) console.log(event.type);\n`;
    case 'page':
      return `for await (const ${resultName(method)} of ${call}) console.log(${resultName(method)});\n`;
    case 'none':
      return `await ${call};\n`;
    default:
      return `const ${resultName(method)} = await ${call};\n`;
  }
}

/** The same with the Python client. */
export function pythonOf(group: string, method: Method, { fields }: SampleInput): string {
  const named = Object.entries(fields).map(([name, value]) => `${attribute(name)}=${python(value, '    ')}`);
  const ids = method.pathParameters.map(({ name }) => name);
  const args = [...ids, ...(method.body.kind === 'file' ? ['"invoice.pdf"'] : []), ...named];
  const inline = args.join(', ');
  const isLong = named.length > 0 && (inline.length > 50 || inline.includes('\n'));
  const call = `client.${snake(group)}.${attribute(snake(method.name))}(${isLong ? `\n    ${args.join(',\n    ')},\n` : inline})`;
  const result = snake(resultName(method));
  switch (method.answer.kind) {
    case 'events':
      return `for event in ${call}:\n    print(event.type)\n`;
    case 'page':
      return `for ${result} in ${call}:\n    print(${result})\n`;
    case 'none':
      return `${call}\n`;
    default:
      return `${result} = ${call}\n`;
  }
}

/** Names that JavaScript or Python has taken. */
const TAKEN = new Set(['export', 'import', 'client', 'event', 'file']);

/** Of the kind of resource: `message`. */
function resultName({ answer, pathParameters, body }: Method): string {
  const type = answer.kind === 'page' ? answer.item : answer.kind === 'json' ? answer.full : undefined;
  const name = type?.kind === 'reference' ? type.name.replace(/^[A-Z]+/, (start) => start.toLowerCase()) : '';
  const isTaken = TAKEN.has(name) || pathParameters.some((parameter) => camel(parameter.name) === name);
  if (name !== '' && name.length <= 20 && !isTaken) return name;
  return answer.kind === 'page' ? 'item' : body.kind === 'file' ? 'upload' : 'answer';
}

const MAX_INLINE = 56;

function javascript(value: unknown, indent: string): string {
  if (typeof value === 'string') return singleQuoted(value);
  if (typeof value !== 'object' || value === null) return String(value);
  const isArray = Array.isArray(value);
  const parts = isArray
    ? value.map((item) => javascript(item, `${indent}  `))
    : Object.entries(value).map(
        ([name, member]) =>
          `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : singleQuoted(name)}: ${javascript(member, `${indent}  `)}`,
      );
  return lay(parts, isArray ? ['[', ']'] : ['{ ', ' }'], { indent, step: '  ' });
}

const singleQuoted = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

function python(value: unknown, indent: string): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value !== 'object') return JSON.stringify(value);
  const isArray = Array.isArray(value);
  const parts = isArray
    ? value.map((item) => python(item, `${indent}    `))
    : Object.entries(value).map(
        ([name, member]) => `${JSON.stringify(name)}: ${python(member, `${indent}    `)}`,
      );
  return lay(parts, isArray ? ['[', ']'] : ['{', '}'], { indent, step: '    ' });
}

/** On one line if it is short, else a line for each part. */
function lay(
  parts: readonly string[],
  [open, close]: readonly [string, string],
  { indent, step }: { indent: string; step: string },
): string {
  const inline = parts.join(', ');
  if (parts.length === 0) return `${open.trim()}${close.trim()}`;
  if (inline.length <= MAX_INLINE && !inline.includes('\n')) return `${open}${inline}${close}`;
  const lines = parts.map((part) => `${indent}${step}${part},\n`).join('');
  return `${open.trim()}\n${lines}${indent}${close.trim()}`;
}

const PYTHON_KEYWORDS = new Set(
  'and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
);

const attribute = (name: string): string => (PYTHON_KEYWORDS.has(name) ? `${name}_` : name);
