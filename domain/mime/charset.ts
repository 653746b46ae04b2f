import { Transform } from 'node:stream';
import libmime from 'libmime';

/** Labels without information, and labels that programs write regardless of the content. */
const UTF_8_OR_UNSPECIFIED =
  /^(|us-?ascii|ascii|ansi_x3\.4-1968|utf-?8|unknown-8bit|x-unknown|8bit|binary)$/i;
/** Charsets of old email that `TextDecoder` does not know: UTF-7 (RFC 2152), code pages of DOS and IBM. */
const LEGACY_LABEL = /^(utf-?7(-imap)?|(cp|ibm|dos)-?\d{3,5})$/i;
/** RFC 1468: text with these escapes is ASCII, and therefore also valid UTF-8. */
const ISO_2022_JP_ESCAPE = '\u001b$';

/**
 * Decodes text by its declared charset, or by its bytes if the charset is missing or wrong. In that case the text is
 * usually UTF-8 or windows-1252. Never throws; invalid bytes become U+FFFD.
 */
export function decodeText(bytes: Uint8Array, charset: string): string {
  const label = charset.trim().replace(/^["']|["']$/g, '');
  if (UTF_8_OR_UNSPECIFIED.test(label)) return decodeUnlabeled(bytes);
  const decoder = createDecoder(label);
  if (decoder) return decoder.decode(bytes);
  return LEGACY_LABEL.test(label)
    ? libmime.decodeWord(label, 'B', Buffer.from(bytes).toString('base64'))
    : decodeUnlabeled(bytes);
}

function decodeUnlabeled(bytes: Uint8Array): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes(ISO_2022_JP_ESCAPE) ? new TextDecoder('iso-2022-jp').decode(bytes) : text;
  } catch {
    return decodeInvalidUtf8(bytes);
  }
}

/** UTF-8 with a few broken sequences is still UTF-8. Anything else is windows-1252, where every byte is valid. */
function decodeInvalidUtf8(bytes: Uint8Array): string {
  const text = new TextDecoder('utf-8').decode(bytes);
  const broken = text.match(/\ufffd/g)?.length ?? 0;
  const readable = text.match(/[^\p{ASCII}\ufffd]/gu)?.length ?? 0;
  return readable > broken ? text : new TextDecoder('windows-1252').decode(bytes);
}

function createDecoder(label: string): InstanceType<typeof TextDecoder> | null {
  try {
    return new TextDecoder(label);
  } catch {
    return null;
  }
}

/** An encoded word (RFC 2047 section 2), with octets as characters. */
const ENCODED_WORD = /=\?([\w*-]{1,60})\?([QqBb])\?([^?]*)\?=/g;
const EIGHT_BIT = /[\u0080-\u00ff]/;
/** Charsets in which any octet is a character, so that a UTF-8 sequence in a word is visible as such. */
const SINGLE_BYTE = /^(?:iso-?8859-?\d{1,2}|windows-?12\d\d|cp12\d\d|latin-?\d|koi8-?[ru]|macintosh)$/i;

/**
 * Encodes words again that contain 8-bit octets, which RFC 2047 forbids: without this, the octets decide how the whole
 * field is decoded, and the encoded part of the word is lost.
 *
 * @param line one character per octet.
 */
export function repairEncodedWords(line: string): string {
  return line.replace(ENCODED_WORD, (word: string, label: string, encoding: string, content: string) => {
    if (!EIGHT_BIT.test(content)) return word;
    const charset = label.replace(/\*.*$/, '');
    const text = encoding.toUpperCase() === 'Q' ? decodeQ(content, charset) : decodeB(content, charset);
    return `=?utf-8?B?${Buffer.from(text).toString('base64')}?=`;
  });
}

function decodeQ(content: string, charset: string): string {
  const toOctets = (text: string) =>
    Buffer.from(
      text
        .replaceAll('_', ' ')
        .replace(/=([0-9a-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
      'latin1',
    );
  if (UTF_8_OR_UNSPECIFIED.test(charset)) return decodeMixedUtf8(toOctets(content));
  if (!SINGLE_BYTE.test(charset)) return decodeText(toOctets(content), charset);
  // Programs that know no encoded words insert UTF-8.
  return content
    .split(/([\u0080-\u00ff]+)/)
    .map((piece) => {
      const bytes = toOctets(piece);
      const isUtf8 = EIGHT_BIT.test(piece) && !new TextDecoder().decode(bytes).includes('\ufffd');
      return isUtf8 ? bytes.toString('utf8') : decodeText(bytes, charset);
    })
    .join('');
}

/** The alphabet of base64 is ASCII; other octets are ignored (RFC 2045 section 6.8). */
function decodeB(content: string, charset: string): string {
  const bytes = Buffer.from(content.replace(/[\u0080-\u00ff]/g, ''), 'base64');
  return UTF_8_OR_UNSPECIFIED.test(charset) ? decodeMixedUtf8(bytes) : decodeText(bytes, charset);
}

const WINDOWS_1252 = new TextDecoder('windows-1252');
/** A sequence that is valid in UTF-8; group 1 is any other 8-bit octet. */
const UTF_8_SEQUENCE =
  /[\u00c2-\u00df][\u0080-\u00bf]|[\u00e0-\u00ef][\u0080-\u00bf]{2}|[\u00f0-\u00f4][\u0080-\u00bf]{3}|([\u0080-\u00ff])/g;

/** Decodes UTF-8 in which single octets are windows-1252. */
function decodeMixedUtf8(bytes: Buffer): string {
  const repaired = bytes.toString('latin1').replace(UTF_8_SEQUENCE, (sequence: string, stray?: string) => {
    if (stray === undefined) return sequence;
    const character = WINDOWS_1252.decode(Buffer.from(stray, 'latin1'));
    return Buffer.from(character).toString('latin1');
  });
  return Buffer.from(repaired, 'latin1').toString('utf8');
}

/** Real header fields are far shorter. */
const MAX_FIELD_CHARACTERS = 10_000;

/** Decodes the encoded words of a header field (RFC 2047) with the decoder that the MIME parser uses. */
export function decodeEncodedWords(value: string): string {
  return libmime.decodeWords(value.slice(0, MAX_FIELD_CHARACTERS));
}

/**
 * Creates a stream that buffers text, and emits it as UTF-8 at the end.
 *
 * @param keep called with the size of each chunk; returns how many of its bytes to retain.
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
