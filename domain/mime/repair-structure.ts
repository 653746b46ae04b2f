import { Transform } from 'node:stream';
import { hasContentField, isFieldLine, isKnownField, readPartHeader } from './part-header.ts';

/** Longer lines are passed on in pieces, because they cannot be delimiters or fields about the structure. */
const MAX_LINE_BYTES = 64 * 1024;
/** A longer header is passed on unchanged. */
const MAX_HEADER_BYTES = 256 * 1024;
/** How much of a multipart is searched for its first part. */
const MAX_SEARCHED_BYTES = 2 * 1024 * 1024;
/** Below the limit of parts. Deeper parts are passed on unchanged. */
const MAX_DEPTH = 1_000;

/** How many multiparts are searched for another boundary: each search reads their lines again. */
const MAX_GUESSES = 10;

/** A multipart that has not ended. */
interface OpenMultipart {
  boundary: string;
  /** Its boundaries. `before` is the position in `#open` of the outer multipart with the same boundary. */
  names: { name: string; before: number | undefined }[];
}

/**
 * Repairs mistakes in the structure of a message (RFC 2046) with which the strict parser would lose text: a header
 * without the empty line at its end, a missing or wrong boundary, a nested multipart without an end, white space after
 * a delimiter, an unreadable type, and `From :` in the first line. A message without such mistakes is unchanged.
 *
 * @param onProblem called at most once, if a multipart has text but no part. The text becomes a part.
 */
export function repairStructure(onProblem: (problem: string) => void): Transform {
  const repair = new StructureRepair(onProblem);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      done(null, repair.read(chunk));
    },
    flush(done) {
      done(null, repair.end());
    },
  });
}

const NO_PARTS =
  'The message says that it has parts, but none could be found; its body is read as plain text, and the raw message contains it.';
const LINE_END = '\r\n';
const EMPTY_LINE = /^\r?\n?$/;
const withoutEnd = (line: string) => line.replace(/\r?\n$/, '');

/** Reads a message by lines, with one character per octet. */
class StructureRepair {
  readonly #onProblem: (problem: string) => void;
  #hasProblem = false;
  #out: string[] = [];
  /** The start of a line whose end has not arrived. */
  #pending: string[] = [];
  #pendingBytes = 0;
  #isInLongLine = false;
  #state: 'header' | 'search' | 'body' = 'header';
  #isMessageStart = true;
  #isInPart = false;
  #header: string[] = [];
  #headerBytes = 0;
  /** A line within a header that is not a field. */
  #odd: string | null = null;
  #open: OpenMultipart[] = [];
  /** The position in `#open` of each boundary, including boundaries that were found instead of declared ones. */
  #depths = new Map<string, number>();
  /** The lines of a multipart whose first part has not been found. */
  #searched: string[] = [];
  #searchedBytes = 0;
  #headers = 0;
  #guesses = 0;

  constructor(onProblem: (problem: string) => void) {
    this.#onProblem = onProblem;
  }

  read(chunk: Buffer): Buffer {
    this.#out = [];
    let at = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, at)) {
      this.#readPiece(chunk.toString('latin1', at, end + 1), true);
      at = end + 1;
    }
    if (at < chunk.length) this.#readPiece(chunk.toString('latin1', at), false);
    return Buffer.from(this.#out.join(''), 'latin1');
  }

  end(): Buffer {
    this.#out = [];
    const last = this.#takePending();
    if (last !== '') this.#readLine(last);
    this.#settle();
    return Buffer.from(this.#out.join(''), 'latin1');
  }

  /** Ends an open header and all open searches. */
  #settle(): void {
    while (this.#state !== 'body') {
      if (this.#state === 'search') this.#endSearch();
      else if (this.#isTextWithoutHeader()) this.#endHeaderWithout('');
      else this.#endHeader('');
    }
  }

  #readPiece(piece: string, isEnd: boolean): void {
    if (this.#isInLongLine) {
      this.#out.push(piece);
      this.#isInLongLine = !isEnd;
      return;
    }
    this.#pending.push(piece);
    this.#pendingBytes += piece.length;
    if (this.#pendingBytes > MAX_LINE_BYTES) this.#readLongLine(isEnd);
    else if (isEnd) this.#readLine(this.#takePending());
  }

  #takePending(): string {
    const line = this.#pending.join('');
    this.#pending = [];
    this.#pendingBytes = 0;
    return line;
  }

  #readLongLine(isEnd: boolean): void {
    const start = this.#takePending();
    if (this.#state === 'search') this.#endSearch();
    if (this.#state === 'header') this.#passHeader();
    else this.#settle();
    this.#out.push(start);
    this.#isInLongLine = !isEnd;
  }

  #readLine(line: string): void {
    if (this.#state === 'header') this.#readHeaderLine(line);
    else this.#readBodyLine(line);
  }

  #readHeaderLine(line: string): void {
    const text = withoutEnd(line);
    const isMessageStart = this.#isMessageStart;
    this.#isMessageStart = false;
    // The parser would read `From :` as the first line of an mbox.
    if (isMessageStart && /^>?From[ \t]/i.test(line))
      this.#addHeaderLine(line.replace(/^From[ \t]+:/i, 'From:'));
    else if (EMPTY_LINE.test(line)) this.#endHeader(line);
    // A single odd line within a header belongs to the header.
    else if (this.#odd !== null && !isKnownField(text)) this.#endHeaderWithout(line);
    else if (this.#findDelimiter(text) !== null) this.#endHeaderWithout(line);
    else if (isFieldLine(text) && !(this.#isInPart && this.#header.length === 0 && /^[ \t]/.test(text))) {
      if (this.#odd !== null) this.#addHeaderLine(this.#odd);
      this.#odd = null;
      this.#addHeaderLine(line);
    } else if (this.#header.length === 0 || text.startsWith('--')) this.#endHeaderWithout(line);
    else this.#odd = line;
  }

  #addHeaderLine(line: string): void {
    this.#header.push(line);
    this.#headerBytes += line.length;
    if (this.#headerBytes > MAX_HEADER_BYTES) this.#passHeader();
  }

  /** Passes on the first part of a long header. The rest is read as further lines of a header. */
  #passHeader(): void {
    this.#out.push(this.#header.join(''), this.#odd ?? '');
    this.#odd = null;
    this.#header = [];
    this.#headerBytes = 0;
  }

  /** Ends a header without an empty line; `line` is the first line of the body. */
  #endHeaderWithout(line: string): void {
    const isText = this.#isTextWithoutHeader();
    const text = isText ? this.#header : [];
    if (isText) this.#header = [];
    const odd = this.#odd;
    this.#odd = null;
    this.#endHeader(LINE_END);
    for (const read of [...text, ...(odd === null ? [] : [odd]), line]) this.#readBodyLine(read);
  }

  /** Without an empty line, the start of a part is a header only if it has fields about the content. */
  #isTextWithoutHeader(): boolean {
    return this.#isInPart && this.#header.length > 0 && !hasContentField(this.#header);
  }

  /** @param emptyLine as written in the message; empty at the end of the message. */
  #endHeader(emptyLine: string): void {
    const odd = this.#odd;
    this.#odd = null;
    const { multipart, repairedType } = readPartHeader(this.#header.map(withoutEnd));
    const opened = this.#open.length < MAX_DEPTH ? multipart : null;
    const boundary = opened?.boundary || this.#nameBoundary();
    const isUnnamed = opened !== null && opened.boundary === '';
    this.#writeHeader(isUnnamed ? `${opened.type}; boundary="${boundary}"` : repairedType);
    this.#out.push(odd === null ? emptyLine : LINE_END);
    this.#state = opened === null ? 'body' : 'search';
    if (opened !== null) this.#openMultipart(toOctets(boundary));
    if (odd === null) return;
    this.#readBodyLine(odd);
    this.#readBodyLine(emptyLine);
  }

  #nameBoundary(): string {
    this.#headers += 1;
    return `unnamed-boundary-${this.#headers}`;
  }

  /** Writes the header with the type before all other fields, because the parser reads the first type. */
  #writeHeader(type: string | null): void {
    const [first = '', ...others] = this.#header;
    const isMbox = !this.#isInPart && /^>?From /i.test(first);
    const field = type === null ? '' : `Content-Type: ${Buffer.from(type).toString('latin1')}${LINE_END}`;
    this.#out.push(isMbox ? first : '', field, isMbox ? '' : first, others.join(''));
    this.#header = [];
    this.#headerBytes = 0;
  }

  #openMultipart(boundary: string): void {
    this.#open.push({ boundary, names: [] });
    this.#nameInnermost(boundary);
    this.#searched = [];
    this.#searchedBytes = 0;
  }

  #nameInnermost(name: string): void {
    this.#open.at(-1)?.names.push({ name, before: this.#depths.get(name) });
    this.#depths.set(name, this.#open.length - 1);
  }

  /** Finds the open multipart that the line delimits (RFC 2046 section 5.1.1). Returns null if the line is text. */
  #findDelimiter(text: string): { depth: number; isClose: boolean } | null {
    if (!text.startsWith('--')) return null;
    const name = text.slice(2).trimEnd();
    const depth = this.#depths.get(name);
    if (depth !== undefined) return { depth, isClose: false };
    const closed = name.endsWith('--') ? this.#depths.get(name.slice(0, -2)) : undefined;
    return closed === undefined ? null : { depth: closed, isClose: true };
  }

  #readBodyLine(line: string): void {
    const found = this.#findDelimiter(withoutEnd(line));
    if (found && !(found.isClose && this.#state === 'search' && found.depth === this.#open.length - 1)) {
      this.#readDelimiter(line, found);
      return;
    }
    if (this.#state !== 'search') {
      this.#out.push(line);
      return;
    }
    this.#searched.push(line);
    this.#searchedBytes += line.length;
    if (this.#searchedBytes > MAX_SEARCHED_BYTES) this.#endSearch();
  }

  #readDelimiter(line: string, { depth, isClose }: { depth: number; isClose: boolean }): void {
    if (this.#state === 'search') {
      if (depth === this.#open.length - 1) this.#out.push(this.#searched.join(''));
      else this.#settle();
    }
    this.#searched = [];
    // The parser knows the delimiters of the innermost multipart and of the one around it.
    while (this.#open.length - 1 > depth) this.#closeMultipart(LINE_END);
    const { boundary = '' } = this.#open[depth] ?? {};
    if (isClose) {
      this.#closeMultipart(endOf(line));
      this.#state = 'body';
      return;
    }
    this.#out.push(`--${boundary}${endOf(line) || LINE_END}`);
    this.#state = 'header';
    this.#isInPart = true;
  }

  #closeMultipart(lineEnd: string): void {
    const { boundary = '', names = [] } = this.#open.pop() ?? {};
    this.#out.push(`--${boundary}--${lineEnd}`);
    for (const { name, before } of names.toReversed()) {
      if (before === undefined) this.#depths.delete(name);
      else this.#depths.set(name, before);
    }
  }

  /** Ends the search for the first part without finding the declared boundary. */
  #endSearch(): void {
    const lines = this.#searched;
    this.#searched = [];
    this.#state = 'body';
    const depth = this.#open.length - 1;
    const guessed = this.#guesses < MAX_GUESSES ? guessBoundary(lines.map(withoutEnd)) : null;
    if (guessed !== null) {
      this.#guesses += 1;
      this.#nameInnermost(guessed);
      for (const line of lines) this.#readLine(line);
      return;
    }
    if (lines.every((line) => line.trim() === '')) {
      this.#out.push(lines.join(''));
      return;
    }
    if (!this.#hasProblem) this.#onProblem(NO_PARTS);
    this.#hasProblem = true;
    this.#out.push(`--${this.#open[depth]?.boundary}${LINE_END}${LINE_END}`, lines.join(''));
  }
}

function endOf(line: string): string {
  return /\r?\n$/.exec(line)?.[0] ?? '';
}

function toOctets(text: string): string {
  return Buffer.from(text).toString('latin1');
}

const DELIMITER = /^--([^\s-].{0,199}|-.{10,199})$/;

/** Finds the boundary that a multipart uses instead of the declared one: a delimiter line before the fields of a part. */
function guessBoundary(lines: readonly string[]): string | null {
  const names = new Map<string, number>();
  for (const line of lines) {
    const name = DELIMITER.exec(line.trimEnd())?.[1]?.trimEnd();
    if (name !== undefined) names.set(name, (names.get(name) ?? 0) + 1);
  }
  const first = lines.findIndex((line) => line.trim() !== '');
  for (const [at, line] of lines.entries()) {
    const name = DELIMITER.exec(line.trimEnd())?.[1]?.trimEnd();
    if (name === undefined) continue;
    const next = lines[at + 1] ?? '';
    if (/^content-[a-z-]{1,40}[ \t]*:/i.test(next)) return name;
    // Without fields, the line could be text.
    const isRepeated = (names.get(name) ?? 0) > 1 || names.has(`${name}--`);
    if (next === '' && (isRepeated || at === first)) return name;
  }
  return null;
}
