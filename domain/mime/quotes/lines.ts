/** A line of a message, prepared for the quote rules. */
export interface Line {
  /** The original line without its line ending. */
  raw: string;
  /** Normalized for comparison: without invisible characters, white space collapsed, truncated to 1,000 characters. */
  text: string;
  kind: LineKind;
  /** Within a plain `blockquote`: a quote, or a passage that its author indents or quotes by hand. Only from HTML. */
  isPassage?: boolean;
  /** An attribution that stood on the line of the reply above it. */
  sharedLine?: boolean;
}

/** `attribution`, `cut` and `signature` come only from HTML, where a class or id identifies them. */
export type LineKind = 'text' | 'blank' | 'quoted' | 'attribution' | 'signature' | 'cut';

/** Zero-width characters, fillers and direction marks, which mail programs put around names and dates. */
const INVISIBLE =
  /\u034f|\u200d|[\u00ad\u061c\u115f\u1160\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u2800\u3164\ufeff\uffa0]/g;
const MAX_COMPARED_CHARACTERS = 1_000;

export function normalizeText(raw: string): string {
  return raw.slice(0, MAX_COMPARED_CHARACTERS).replace(INVISIBLE, '').replace(/\s+/g, ' ').trim();
}

export function toLine(raw: string, kind?: LineKind): Line {
  const words = normalizeText(raw);
  return { raw, text: words, kind: kind ?? classifyLine(raw, words) };
}

function classifyLine(raw: string, words: string): LineKind {
  if (words === '') return raw.length > MAX_COMPARED_CHARACTERS && raw.trim() !== '' ? 'text' : 'blank';
  return words.startsWith('>') ? 'quoted' : 'text';
}

export function toLines(text: string): Line[] {
  const lines = text.split(/\r\n|\n|\r/).map((raw) => toLine(raw));
  restoreFencedCode(lines);
  restorePrompts(lines);
  restoreEscapedFrom(lines);
  return lines;
}

/** `>` within a fenced block is code. An unclosed fence is ignored. */
function restoreFencedCode(lines: Line[]): void {
  let open = -1;
  for (const [at, line] of lines.entries()) {
    if (line.kind !== 'text' || !/^(?:```|~~~)/.test(line.text)) continue;
    if (open === -1) {
      open = at;
      continue;
    }
    for (let inside = open; inside <= at; inside += 1) {
      const fenced = lines[inside];
      if (fenced?.kind === 'quoted') fenced.kind = 'text';
    }
    open = -1;
  }
}

/** `>>> print(1)`: a third quote level without a first level is a Python session. */
function restorePrompts(lines: Line[]): void {
  const quoted = lines.filter((line) => line.kind === 'quoted');
  if (quoted.every((line) => /^>>>(?: [^>]|$)/.test(line.text))) {
    for (const line of quoted) line.kind = 'text';
  }
}

/** The mbox format escapes `From ` at the start of a line as `>From `. Such a line has no quoted neighbors. */
function restoreEscapedFrom(lines: Line[]): void {
  for (const [at, line] of lines.entries()) {
    if (line.kind !== 'quoted' || !line.text.startsWith('>From ')) continue;
    if (lines[at - 1]?.kind !== 'quoted' && lines[at + 1]?.kind !== 'quoted') line.kind = 'text';
  }
}
