/** A header field. */
export interface HeaderField {
  name: string;
  /** Everything after the colon, including folds, as Latin-1. */
  value: string;
}

/** The header violates the syntax of RFC 5322 section 2.2. */
export class MalformedHeaderError extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'MalformedHeaderError';
  }
}

const MAX_FIELDS = 1_000;
/** RFC 5322 section 3.6.8: printable ASCII without the colon. No space may precede the colon. */
const FIELD_NAME = /^[!-9;-~]+$/;

/**
 * Parses the header of a message strictly. Servers and clients disagree about malformed headers: a bare CR, a space before
 * the colon or a folded name hides a field from one and shows it to the other.
 *
 * @param bytes the message up to the empty line.
 * @throws MalformedHeaderError
 */
export function parseHeaderFields(bytes: Buffer): HeaderField[] {
  const lines = bytes.toString('latin1').split('\r\n');
  if (lines.at(-1) === '') lines.pop();
  const fields: { name: string; lines: string[] }[] = [];
  for (const line of lines) {
    if (/[\r\n\0]/.test(line))
      throw new MalformedHeaderError('The header contains a NUL, or a CR or LF that is not part of a CRLF.');
    const current = fields.at(-1);
    if (line.startsWith(' ') || line.startsWith('\t')) {
      if (!current) throw new MalformedHeaderError('The header starts with a folded line.');
      current.lines.push(line);
      continue;
    }
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon));
    if (!FIELD_NAME.test(name))
      throw new MalformedHeaderError('The header contains a line that is not "Name: value".');
    if (fields.length === MAX_FIELDS)
      throw new MalformedHeaderError(`The header has more than ${MAX_FIELDS} fields.`);
    fields.push({ name, lines: [line.slice(colon + 1)] });
  }
  return fields.map(({ name, lines: folded }) => ({ name, value: folded.join('\r\n') }));
}

/** Writes fields with CRLF line ends, without the empty line that ends a header. */
export function formatHeaderFields(fields: readonly HeaderField[]): Buffer {
  return Buffer.from(fields.map(({ name, value }) => `${name}:${value}\r\n`).join(''), 'latin1');
}

/** Finds the fields with a name, ignoring case. */
export function fieldsNamed(fields: readonly HeaderField[], name: string): HeaderField[] {
  return fields.filter((field) => field.name.toLowerCase() === name.toLowerCase());
}
