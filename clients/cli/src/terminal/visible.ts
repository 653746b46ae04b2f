/**
 * Shows strangers' text without letting it act: characters that control a terminal, hide or reorder text are written as
 * `\u{1b}`. Mail, names of files and answers of a server are such text.
 */
export function visible(text: string): string {
  return escapeAll(text, HARMFUL);
}

/** As {@link visible}, but keeps line breaks and tabs, for bodies. */
export function visibleLines(text: string): string {
  return escapeAll(text.replace(/\r\n?/g, '\n'), HARMFUL_IN_LINES);
}

/**
 * JSON whose strings are safe on a terminal, too. `\u009b` and the like mean the same to a program.
 *
 * @param indent spaces of each level; 0: one line.
 */
export function visibleJson(value: unknown, indent = 0): string {
  return (JSON.stringify(value, null, indent) ?? 'null').replace(HARMFUL_IN_LINES, (found) =>
    [...Array(found.length).keys()]
      .map((index) => `\\u${found.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/**
 * Controls (Cc), format characters such as those of bidirectional text and Unicode tags (Cf), line and paragraph separators,
 * lone surrogates, private and unassigned characters, and letters that are blank. Variation selectors can carry hidden bytes.
 */
const INVISIBLE =
  '\\p{Cf}\\p{Zl}\\p{Zp}\\p{Cs}\\p{Co}\\p{Cn}\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\uffa0\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}';
const HARMFUL = new RegExp(`[\\p{Cc}${INVISIBLE}]`, 'gu');
const HARMFUL_IN_LINES = new RegExp(`(?![\\n\\t])[\\p{Cc}${INVISIBLE}]`, 'gu');

/** Emoji consist of these: ❤️ has U+FE0F, and 👩‍💻 has U+200D between two pictures. Some pictures are unassigned. */
const PICTURE = '(?!\\p{Cn})\\p{Extended_Pictographic}\\p{Emoji_Modifier}?\\ufe0f?';
const EMOJI = new RegExp(`${PICTURE}(?:\\u200d${PICTURE})*`, 'gu');

function escapeAll(text: string, harmful: RegExp): string {
  let result = '';
  let end = 0;
  for (const { index, 0: emoji } of text.matchAll(EMOJI)) {
    result += escapeCharacters(text.slice(end, index), harmful) + emoji;
    end = index + emoji.length;
  }
  return result + escapeCharacters(text.slice(end), harmful);
}

const escapeCharacters = (text: string, harmful: RegExp): string =>
  text.replace(harmful, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
