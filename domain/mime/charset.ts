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
