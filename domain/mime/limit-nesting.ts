import { Parser } from 'htmlparser2';

/** Elements may be nested this deep. Long conversations quote a few dozen levels. */
export const MAX_NESTING = 100;

const MAX_PASSES = 4;

/**
 * Finds the tags of elements that are nested too deep. Declares these elements void, which keeps them off the parser's
 * stack. Needed until the parser has an option that limits its depth, because the order of its calls is not documented.
 */
class NestingParser extends Parser {
  readonly #source: string;
  /** Start and end of each tag to remove. */
  readonly removed: [number, number][] = [];
  /** Names of removed start tags whose end tag has not been found. */
  readonly #unclosed = new Map<string, number>();
  /** Number of open elements. */
  #depth = 0;
  /** True between the name and the end of a start tag. */
  #isInTag = false;
  #isTooDeep = false;

  constructor(source: string) {
    super({
      onopentagname: () => {
        this.#isInTag = true;
        this.#depth += 1;
      },
      onopentag: (name) => {
        if (!this.#isTooDeep) return;
        this.removed.push([this.startIndex, this.endIndex + 1]);
        this.#unclosed.set(name, (this.#unclosed.get(name) ?? 0) + 1);
      },
      onclosetag: () => {
        this.#isInTag = false;
        this.#depth -= 1;
      },
    });
    this.#source = source;
  }

  /** The parser calls this at each start tag, at its end, and at each end tag. It ignores the end tag of a void element. */
  protected override isVoidElement(name: string): boolean {
    const isVoid = super.isVoidElement(name);
    if (this.#isInTag) {
      this.#isInTag = false;
      return isVoid || this.#isTooDeep;
    }
    const isEndTag = this.#source[this.startIndex + 1] === '/';
    this.#isTooDeep = !isEndTag && !isVoid && this.#depth >= MAX_NESTING;
    return isVoid || this.#isTooDeep || (isEndTag && this.#removeEndTag(name));
  }

  #removeEndTag(name: string): boolean {
    const unclosed = this.#unclosed.get(name) ?? 0;
    if (unclosed === 0) return false;
    this.#unclosed.set(name, unclosed - 1);
    const close = this.#source.indexOf('>', this.endIndex);
    this.removed.push([this.startIndex, close === -1 ? this.#source.length : close + 1]);
    return true;
  }
}

/**
 * Removes the tags of elements that are nested deeper than {@link MAX_NESTING}, and keeps their content. HTML parsers
 * take quadratic time for deep nesting. Other HTML is returned unchanged. HTML that reveals more levels with each pass
 * loses all tags.
 */
export function limitNesting(html: string): string {
  let limited = html;
  // Removing a tag may change how the rest is parsed: the text of a former `title`, for example, may contain tags. So
  // the result is parsed again until no element is too deep.
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const parser = new NestingParser(limited);
    parser.end(limited);
    if (parser.removed.length === 0) return limited;
    limited = cutOut(limited, parser.removed);
  }
  return limited.replace(/<[^>]*>?/g, ' ');
}

function cutOut(text: string, ranges: readonly [number, number][]): string {
  const pieces: string[] = [];
  let copiedTo = 0;
  for (const [start, end] of ranges) {
    if (start > copiedTo) pieces.push(text.slice(copiedTo, start));
    copiedTo = Math.max(copiedTo, end);
  }
  return pieces.join('') + text.slice(copiedTo);
}
