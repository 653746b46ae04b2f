import libmime from 'libmime';

/** The structure of a part according to its header. */
export interface PartHeader {
  /** Null for a part without parts. */
  multipart: { type: string; boundary: string } | null;
  /** The corrected type; null if the header can be read without correction. */
  repairedType: string | null;
}

/** RFC 5322 section 2.2, and white space before the colon (section 4.5). The addresses of web pages are text. */
const FIELD = /^(?!https?:\/\/)[!-9;-~]{1,200}[ \t]*:/i;
/** Fields that may follow a line that is not a field. Other names followed by a colon may be text. */
const KNOWN_FIELD =
  /^(?:received|return-path|from|sender|to|cc|bcc|reply-to|subject|date|message-id|in-reply-to|references|mime-version|content-[a-z-]{1,40}|x-[a-z0-9-]{1,60}|list-[a-z-]{1,40}|dkim-signature|arc-[a-z-]{1,40}|authentication-results|auto-submitted|precedence|importance|user-agent)[ \t]*:/i;

/** @param line with one character per octet, without its end. */
export function isFieldLine(line: string): boolean {
  return FIELD.test(line) || line.startsWith(' ') || line.startsWith('\t');
}

export function isKnownField(line: string): boolean {
  return KNOWN_FIELD.test(line);
}

/** Whether the header of a part has a field about its content (RFC 2045 section 9). */
export function hasContentField(lines: readonly string[]): boolean {
  return lines.some((line) => /^content-/i.test(line));
}

const TYPE = /^"?([\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127})"?[ \t]*(?=$|[;,\s])/;

/** @param lines of the header, with one character per octet, without their ends. */
export function readPartHeader(lines: readonly string[]): PartHeader {
  const field = findField(lines, 'content-type');
  if (field === null) return { multipart: null, repairedType: null };
  const value = Buffer.from(field, 'latin1').toString('utf8').trim();
  const declared = parseValue(value);
  const repairedType = isType(declared.type) ? null : repairType(lines, value, declared.boundary);
  const { type, boundary } = repairedType === null ? declared : parseValue(repairedType);
  const multipart = /^multipart\//i.test(type) && isType(type) ? { type, boundary } : null;
  return { multipart, repairedType };
}

const isType = (type: string): boolean => TYPE.exec(type)?.[0] === type;

function parseValue(value: string): { type: string; boundary: string } {
  const { value: type, params } = libmime.parseHeaderValue(value) as {
    value: string | false;
    params: Record<string, string | undefined>;
  };
  return { type: type || '', boundary: (params.boundary ?? '').trimEnd() };
}

/** A type that cannot be read is `text/plain` (RFC 2045 section 5.2). A part that is declared as a file remains a file. */
function repairType(lines: readonly string[], value: string, boundary: string): string | null {
  const found = TYPE.exec(value);
  const rest = found ? value.slice(found[0].length) : value.slice(value.indexOf(';') >>> 0);
  const params = rest.replace(/^[;,\s]+/, '');
  const suffix = params === '' ? '' : `; ${params}`;
  if (found) return `${found[1]}${suffix}`;
  if (findField(lines, 'content-disposition') !== null || /[;\s]name\*?\d?\*?=/i.test(value)) return null;
  return `${boundary !== '' && /^multipart\b/i.test(value) ? 'multipart/mixed' : 'text/plain'}${suffix}`;
}

/** The value of the first field with a name, unfolded; null if there is none. */
function findField(lines: readonly string[], name: string): string | null {
  const start = lines.findIndex(
    (line) => line.slice(0, name.length).toLowerCase() === name && /^[ \t]*:/.test(line.slice(name.length)),
  );
  if (start === -1) return null;
  const next = lines.findIndex((line, at) => at > start && !/^[ \t]/.test(line));
  const folded = lines.slice(start, next === -1 ? undefined : next).join('');
  return folded.slice(folded.indexOf(':') + 1);
}
