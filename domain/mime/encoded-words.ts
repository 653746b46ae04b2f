import libmime from 'libmime';
import { decodeText, isUtf8OrUnspecified } from './charset.ts';

/** An encoded word (RFC 2047 section 2), with octets as characters. */
const ENCODED_WORD = /=\?([\w*-]{1,60})\?([QqBb])\?([^?]*)\?=/g;
const EIGHT_BIT = /[\u0080-\u00ff]/;
/** Charsets in which every octet is a character, so a UTF-8 sequence in a word can be recognized. */
const SINGLE_BYTE = /^(?:iso-?8859-?\d{1,2}|windows-?12\d\d|cp12\d\d|latin-?\d|koi8-?[ru]|macintosh)$/i;

/** Adjacent words of one charset are decoded together: some programs split a character between two words. */
interface OpenWord {
  charset: string;
  octets: Buffer[];
}

/**
 * Decodes encoded words and encodes them again as UTF-8. The parser knows fewer charsets. It cannot decode words with
 * 8-bit octets, which RFC 2047 forbids, because such octets determine how the whole field is decoded.
 *
 * @param line one character per octet.
 */
export function recodeEncodedWords(line: string): string {
  const pieces: string[] = [];
  let open = null as OpenWord | null;
  let copiedTo = 0;
  for (const { 0: word, 1: label = '', 2: encoding = '', 3: content = '', index } of line.matchAll(
    ENCODED_WORD,
  )) {
    const gap = line.slice(copiedTo, index);
    const isAdjacent = copiedTo > 0 && gap.trim() === '';
    const charset = label.replace(/\*.*$/, '').toLowerCase();
    const isQ = encoding.toUpperCase() === 'Q';
    const isBroken = EIGHT_BIT.test(content);
    copiedTo = index + word.length;
    if (isAdjacent && !isBroken && open?.charset === charset) {
      open.octets.push(toOctets(content, isQ));
      continue;
    }
    // Space between words is not part of the text (RFC 2047 section 6.2); the parser removes it.
    pieces.push(closeWord(open), isAdjacent ? ' ' : gap);
    open = isBroken ? null : { charset, octets: [toOctets(content, isQ)] };
    if (isBroken) pieces.push(encodeWord(isQ ? decodeQ(content, charset) : decodeB(content, charset)));
  }
  pieces.push(closeWord(open), line.slice(copiedTo));
  return pieces.join('');
}

function closeWord(open: OpenWord | null): string {
  return open === null ? '' : encodeWord(decodeText(Buffer.concat(open.octets), open.charset));
}

function encodeWord(text: string): string {
  return `=?utf-8?B?${Buffer.from(text).toString('base64')}?=`;
}

function toOctets(content: string, isQ: boolean): Buffer {
  if (!isQ) return Buffer.concat(content.split('=').map((piece) => Buffer.from(piece, 'base64')));
  const octets = content
    .replaceAll('_', ' ')
    .replace(/=([0-9a-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(octets, 'latin1');
}

function decodeQ(content: string, charset: string): string {
  if (isUtf8OrUnspecified(charset)) return decodeMixedUtf8(toOctets(content, true));
  if (!SINGLE_BYTE.test(charset)) return decodeText(toOctets(content, true), charset);
  // Programs without support for encoded words insert UTF-8.
  return content
    .split(/([\u0080-\u00ff]+)/)
    .map((piece) => {
      const bytes = toOctets(piece, true);
      const isUtf8 = EIGHT_BIT.test(piece) && !new TextDecoder().decode(bytes).includes('\ufffd');
      return isUtf8 ? bytes.toString('utf8') : decodeText(bytes, charset);
    })
    .join('');
}

/** The alphabet of base64 is ASCII; other octets are ignored (RFC 2045 section 6.8). */
function decodeB(content: string, charset: string): string {
  const bytes = Buffer.from(content.replace(/[\u0080-\u00ff]/g, ''), 'base64');
  return isUtf8OrUnspecified(charset) ? decodeMixedUtf8(bytes) : decodeText(bytes, charset);
}

const WINDOWS_1252 = new TextDecoder('windows-1252');
/** Matches a valid UTF-8 sequence, or any other 8-bit octet in group 1. */
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

const BEYOND_OCTETS = /[\u0100-\uffff]/;
/** Real header fields are far shorter. */
const MAX_FIELD_CHARACTERS = 10_000;

/** Decodes the encoded words of a header field (RFC 2047), which may contain Unicode. */
export function decodeEncodedWords(value: string): string {
  const field = value.slice(0, MAX_FIELD_CHARACTERS);
  return libmime.decodeWords(BEYOND_OCTETS.test(field) ? field : recodeEncodedWords(field));
}
