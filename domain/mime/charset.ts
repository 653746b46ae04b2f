import { Transform } from 'node:stream';
import libmime from 'libmime';
import { decodeMultiByte, detectMultiByte, isMultiByte } from './multi-byte-charset.ts';

/** Labels without information, and labels that some programs write regardless of the content. */
const UNSPECIFIED = /^(|us-?ascii|ascii|ansi_x3\.4-1968|unknown-8bit|x-unknown|8bit|binary)$/i;
const UTF_8 = /^utf-?8$/i;
const UTF_16 = /^utf-?16(?:le|be)?$/i;
/** Charsets of old email that `TextDecoder` does not know: UTF-7 (RFC 2152), UTF-32, code pages of DOS and IBM. */
const LEGACY_LABEL = /^(utf-?7(-imap)?|utf-?32(le|be)?|(cp|ibm|dos)-?\d{3,5})$/i;
/** RFC 1468: text with these escapes is ASCII, and therefore also valid UTF-8. */
export const ISO_2022_JP_ESCAPE = '\u001b$';

/**
 * Decodes text by its declared charset, or by its bytes if the charset is missing or wrong. Such text is usually UTF-8,
 * windows-1252 or in an East Asian charset. Never throws. Invalid bytes become U+FFFD, and ASCII characters stay.
 */
export function decodeText(bytes: Uint8Array, charset: string): string {
  const label = charset.trim().replace(/^["']|["']$/g, '');
  if (UNSPECIFIED.test(label)) return decodeUnlabeled(bytes, false);
  if (UTF_8.test(label)) return decodeUnlabeled(bytes, true);
  if (UTF_16.test(label)) return decodeUtf16(bytes, label);
  const decoder = createDecoder(label) ?? (LEGACY_LABEL.test(label) ? null : createDecoder(aliasOf(label)));
  if (decoder) return decodeLabeled(bytes, decoder.encoding);
  return LEGACY_LABEL.test(label)
    ? libmime.decodeWord(label, 'B', Buffer.from(bytes).toString('base64'))
    : decodeUnlabeled(bytes, false);
}

function decodeLabeled(bytes: Uint8Array, encoding: string): string {
  return isMultiByte(encoding) ? decodeMultiByte(bytes, encoding) : new TextDecoder(encoding).decode(bytes);
}

function decodeUnlabeled(bytes: Uint8Array, isDeclaredUtf8: boolean): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes(ISO_2022_JP_ESCAPE) ? new TextDecoder('iso-2022-jp').decode(bytes) : text;
  } catch {
    return decodeInvalidUtf8(bytes, isDeclaredUtf8);
  }
}

/** In text of another charset, at most one valid UTF-8 sequence occurs by chance for this many invalid ones. */
const CHANCE = 20;

/**
 * Text with a few broken sequences is still UTF-8, because longer UTF-8 sequences rarely occur by chance in other
 * charsets. Any other text is in an East Asian charset or in windows-1252, in which every byte is valid.
 */
function decodeInvalidUtf8(bytes: Uint8Array, isDeclaredUtf8: boolean): string {
  const text = new TextDecoder('utf-8').decode(bytes);
  const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
  const broken = count(/\ufffd/g);
  const readable = count(/[^\p{ASCII}\ufffd]/gu);
  const encoding = readable > broken ? null : detectMultiByte(bytes);
  if (encoding !== null) return new TextDecoder(encoding).decode(bytes);
  const telling = isDeclaredUtf8 ? readable : count(/[\u0800-\ufffc\u{10000}-\u{10ffff}]/gu);
  return readable > broken || telling * CHANCE > broken
    ? text
    : new TextDecoder('windows-1252').decode(bytes);
}

/**
 * Follows RFC 2781 section 3.3. Also handles text that is declared as UTF-16 but is ASCII, because some programs only
 * write the label.
 */
function decodeUtf16(bytes: Uint8Array, label: string): string {
  if (bytes.every((octet) => octet < 0x80 && octet !== 0)) return decodeUnlabeled(bytes, false);
  return new TextDecoder(isBigEndian(bytes, label) ? 'utf-16be' : 'utf-16le').decode(bytes);
}

function isBigEndian(bytes: Uint8Array, label: string): boolean {
  if (/[bl]e$/i.test(label)) return /be$/i.test(label);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return true;
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return false;
  let zeros = 0;
  for (const [at, octet] of bytes.entries()) if (octet === 0) zeros += at % 2 === 0 ? 1 : -1;
  return zeros >= 0;
}

/** Whether the label means UTF-8 or specifies no charset. */
export function isUtf8OrUnspecified(label: string): boolean {
  return UTF_8.test(label) || UNSPECIFIED.test(label);
}

/** The standard name of a charset that some programs write differently, such as `win-1251`. */
function aliasOf(label: string): string {
  return label
    .replace(/^win(?:dows)?[-_ ]?(?=\d)/i, 'windows-')
    .replace(/^iso[-_ ]?8859[-_ ]?(?=\d)/i, 'iso-8859-')
    .replace(/^latin[-_ ](?=\d)/i, 'latin');
}

function createDecoder(label: string): InstanceType<typeof TextDecoder> | null {
  try {
    return new TextDecoder(label);
  } catch {
    return null;
  }
}

/**
 * Creates a stream that buffers text, and emits it as UTF-8 at the end.
 *
 * @param keep called with the size of each chunk; returns how many bytes of the chunk to retain.
 */
export function createDecodingStream(
  decode: (bytes: Uint8Array) => string,
  keep: (sizeBytes: number) => number,
): Transform {
  const chunks: Buffer[] = [];
  return new Transform({
    transform(chunk: Buffer | string, encoding, done) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
      const kept = keep(bytes.length);
      if (kept > 0) chunks.push(bytes.subarray(0, kept));
      done();
    },
    flush(done) {
      done(null, Buffer.from(decode(Buffer.concat(chunks))));
    },
  });
}
