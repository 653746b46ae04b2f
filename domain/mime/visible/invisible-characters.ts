/**
 * Characters without a width that occur alone in ordinary text (emoji, Persian, Indic scripts, hyphenation). Several
 * adjacent ones are filler or carry data.
 */
const ZERO_WIDTH = '\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b-\\u200d\\u2060-\\u2064\\ufeff';
const ZERO_WIDTH_RUN = new RegExp(`[${ZERO_WIDTH}](?:[ \\u00a0]*[${ZERO_WIDTH}])+`, 'gu');
const ZERO_WIDTH_ENDS = new RegExp(`^[${ZERO_WIDTH}]|[${ZERO_WIDTH}](?=[ \\t]?$)`, 'gmu');
/** A run this long, without spaces, can encode a message in its sequence. */
const MIN_DATA_CHARACTERS = 8;
/** Tag characters spell ASCII that nothing displays. After a black flag, they are a regional flag (Unicode UTS #51). */
const TAGS = /\u{1f3f4}[\u{e0020}-\u{e007e}]{1,16}\u{e007f}|([\u{e0000}-\u{e007f}]+)/gu;
/** A single selector varies the character before it, but a sequence of them encodes bytes. */
const SELECTORS = /[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]{2,}/gu;

export interface SeparatedText {
  text: string;
  /** What the removed characters spell; empty if they are only filler. */
  hidden: string;
}

/** Removes characters that cannot be seen and that carry text or are only filler. Keeps those that shape visible text. */
export function stripInvisible(source: string): SeparatedText {
  const hidden: string[] = [];
  const text = source
    .replace(TAGS, (match: string, tags?: string) => {
      if (tags === undefined) return match;
      hidden.push(decodeTags(tags));
      return '';
    })
    .replace(SELECTORS, (selectors) => {
      hidden.push(decodeSelectors(selectors));
      return selectors.slice(0, selectors.codePointAt(0) === 0xfe0f ? 1 : 0);
    })
    .replace(ZERO_WIDTH_RUN, (run) => {
      if (!/[ \u00a0]/.test(run) && run.length >= MIN_DATA_CHARACTERS && new Set(run).size > 1)
        hidden.push(`[${run.length} zero-width characters]`);
      return '';
    })
    .replace(ZERO_WIDTH_ENDS, '');
  return { text, hidden: hidden.filter((words) => /[\p{L}\p{N}]/u.test(words)).join('\n') };
}

function decodeTags(tags: string): string {
  return [...tags]
    .map((tag) => (tag.codePointAt(0) ?? 0) - 0xe_0000)
    .filter((code) => code >= 0x20 && code < 0x7f)
    .map((code) => String.fromCharCode(code))
    .join('');
}

function decodeSelectors(selectors: string): string {
  const bytes = [...selectors].map((selector) => {
    const code = selector.codePointAt(0) ?? 0;
    return code < 0x1_0000 ? code - 0xfe00 : code - 0xe_0100 + 16;
  });
  const text = Buffer.from(bytes).toString('utf8');
  return /^[\p{L}\p{N}\p{P}\p{S}\p{Z}\s]+$/u.test(text) ? text : `[${bytes.length} variation selectors]`;
}

/** Characters without a width that shape no text: hyphenation, word breaks, byte order marks. */
const SHAPELESS_CHARACTERS = '\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b\\u2060-\\u2064\\ufeff';
const SHAPELESS = new RegExp(`[${SHAPELESS_CHARACTERS}]`, 'gu');
/** Joiners shape the letters of some scripts, and emoji. Between others they only split words. */
const IDLE_JOINER =
  /(?<=[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}\p{P}\s])[\u200c\u200d]|[\u200c\u200d](?=[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{P}\s])/gu;

/** Removes the characters without a width that shape no visible text, so that words and codes can be compared. */
export function removeZeroWidth(text: string): string {
  return text.replace(SHAPELESS, '').replace(IDLE_JOINER, '');
}
