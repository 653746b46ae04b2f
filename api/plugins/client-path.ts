import type { FieldError } from '../../platform/errors.ts';

/**
 * Converts the JSON Pointer of a value in a request to the notation of clients: `/body/to/0/email` → `to[0].email`,
 * `/query/limit` → `limit`, `/headers/if-match` → `If-Match`. The part itself stays as it is: `/body` → `body`.
 */
export function toClientPath(pointer: string): string {
  const [part = '', ...names] = pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (!['body', 'query', 'params', 'headers'].includes(part)) return pointer;
  if (names.length === 0) return part;
  if (part === 'headers') return names.join('/').replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
  return names.map(toStep).join('').replace(/^\./, '');
}

/** A sentence about a field of the request. */
export function describeField({ path, message }: FieldError): string {
  return `${toClientPath(path)} ${message}${/[.?!]$/.test(message) ? '' : '.'}`;
}

function toStep(name: string): string {
  if (/^\d+$/.test(name)) return `[${name}]`;
  return /^[\p{L}_][\p{L}\d_]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
