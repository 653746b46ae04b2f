import { Parser } from 'htmlparser2';

/** Elements may be nested this deep. Long conversations quote a few dozen levels. */
export const MAX_NESTING = 100;

/** The parser with the internal members that are used below. Its version is pinned. */
interface OpenParser extends Pick<Parser, 'startIndex' | 'endIndex' | 'end'> {
  stack: string[];
  tagname: string;
  onopentagname(start: number, end: number): void;
  onclosetag(start: number, end: number): void;
  isVoidElement(name: string): boolean;
}

const Base = Parser as unknown as new (...args: ConstructorParameters<typeof Parser>) => OpenParser;

/** Finds the tags of elements that are nested too deep. Keeps these elements off its stack. */
class NestingParser extends Base {
  readonly #source: string;
  /** Start and end of each tag to remove. */
  readonly removed: [number, number][] = [];
  /** Names of removed start tags whose end tag has not been found. */
  readonly #unclosed = new Map<string, number>();
  #isOpening = false;
  #isTooDeep = false;

  constructor(source: string) {
    super({
      onopentag: (name) => {
        if (!this.#isTooDeep) return;
        this.removed.push([this.startIndex, this.endIndex + 1]);
        this.#unclosed.set(name, (this.#unclosed.get(name) ?? 0) + 1);
      },
    });
    this.#source = source;
  }

  override onopentagname(start: number, end: number): void {
    this.#isTooDeep = false;
    this.#isOpening = true;
    super.onopentagname(start, end);
    this.#isOpening = false;
  }

  override isVoidElement(name: string): boolean {
    if (super.isVoidElement(name)) return true;
    if (this.#isOpening && this.stack.length >= MAX_NESTING) this.#isTooDeep = true;
    return this.#isTooDeep && name === this.tagname;
  }

  override onclosetag(start: number, end: number): void {
    const name = this.#source.slice(start, end).toLowerCase();
    const unclosed = this.#unclosed.get(name) ?? 0;
    if (unclosed === 0) {
      super.onclosetag(start, end);
      return;
    }
    this.#unclosed.set(name, unclosed - 1);
    const close = this.#source.indexOf('>', end);
    this.removed.push([this.startIndex, close === -1 ? this.#source.length : close + 1]);
    this.startIndex = end + 1;
  }
}

/**
 * Removes the tags of elements that are nested deeper than {@link MAX_NESTING}, and keeps their content. HTML parsers take
 * quadratic time for deep nesting. Other HTML is returned unchanged.
 */
export function limitNesting(html: string): string {
  const parser = new NestingParser(html);
  parser.end(html);
  if (parser.removed.length === 0) return html;
  const pieces: string[] = [];
  let copiedTo = 0;
  for (const [start, end] of parser.removed) {
    if (start > copiedTo) pieces.push(html.slice(copiedTo, start));
    copiedTo = Math.max(copiedTo, end);
  }
  return pieces.join('') + html.slice(copiedTo);
}
