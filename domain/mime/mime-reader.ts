import type { Transform } from 'node:stream';
import { MailParser } from 'mailparser';
import { createDecodingStream, decodeText, ISO_2022_JP_ESCAPE } from './charset.ts';
import { recodeEncodedWords } from './encoded-words.ts';
import { joinFlowedLines } from './format-flowed.ts';
import { HEADER_LIMITS } from './header-limit.ts';
import { createTransferDecoder, toTransferEncoding } from './transfer-encoding.ts';

/** A header field as the parser stores it: one character per octet. */
interface HeaderLine {
  key: string;
  line: string;
}

interface MimeNode {
  charset?: string;
  node: SplitNode;
}

/** A part whose header the parser's splitter has read. */
interface SplitNode {
  flowed: boolean;
  delSp: boolean;
  /** The value of Content-Transfer-Encoding. */
  encoding: string | false;
  getDecoder(): Transform;
}

/** Undocumented methods of the parser that are overridden below. Its version is pinned. */
interface ParserInternals {
  getDecoder(): { decodeStream(charset: string): Transform };
  createNode(node: SplitNode): MimeNode;
  processHeaders(lines: HeaderLine[]): Map<string, unknown>;
}

/**
 * Limits the length of values, because the parser takes quadratic time for some of them. Far more than is stored of a
 * field: 500 addresses, 200 ids or 2,000 characters.
 */
export const MAX_PARSED_CHARACTERS = 64 * 1024;

/** How to decode the text of a part. */
interface TextFormat {
  charset: string;
  flowed: boolean;
  delSp: boolean;
}

const Parser = MailParser as unknown as new (options: object) => MailParser & ParserInternals;

/** Limit for the total of all text parts of a message. Only HTML with embedded images comes close to it. */
export const MAX_TEXT_BYTES = 2 * 1024 * 1024;

/**
 * mailparser without its conversions, and with the charset detection of `charset.ts` for text and header fields. Needed
 * until mailparser has options for the decoders of a part's content, text and header fields. Its option `Iconv` decodes
 * only text, and does not know the format of the part.
 */
export class MimeReader extends Parser {
  /** Set if text was dropped because it exceeds {@link MAX_TEXT_BYTES}. */
  isTextTruncated = false;
  /** Set if the header has more fields than are read. */
  isHeaderCut = false;
  #textBytesLeft = MAX_TEXT_BYTES;

  // Called by the parent's constructor, before the fields above are initialized.
  override getDecoder() {
    const keep = (sizeBytes: number) => {
      const kept = Math.min(sizeBytes, this.#textBytesLeft);
      this.#textBytesLeft -= kept;
      this.isTextTruncated ||= kept < sizeBytes;
      return kept;
    };
    return {
      decodeStream: (label: string) => {
        const { charset, flowed, delSp } = JSON.parse(label) as TextFormat;
        const decode = (bytes: Uint8Array) => decodeText(bytes, charset);
        return createDecodingStream(flowed ? (bytes) => joinFlowedLines(decode(bytes), delSp) : decode, keep);
      },
    };
  }

  override createNode(node: SplitNode): MimeNode {
    // The parser's own decoders change the 8-bit octets of a content.
    node.getDecoder = () => createTransferDecoder(toTransferEncoding(node.encoding || ''));
    const created = super.createNode(node);
    const { flowed, delSp } = created.node;
    const format: TextFormat = { charset: created.charset || '', flowed, delSp };
    // The parser passes only the charset to its decoder, so the charset contains the whole format. Without this
    // override, the parser would not decode text labeled as UTF-8, and would join flowed lines across quote depths.
    created.charset = JSON.stringify(format);
    created.node.flowed = false;
    return created;
  }

  override processHeaders(lines: HeaderLine[]): Map<string, unknown> {
    const kept = lines.filter(
      ({ key }, at) => !isUniqueField(key) || lines.findIndex((line) => line.key === key) === at,
    );
    return super.processHeaders(
      kept.map(({ key, line }) => {
        const decoded = decodeHeaderLine(line.slice(0, MAX_PARSED_CHARACTERS));
        const shown =
          key === 'subject' ? decoded.replace(FOLD_OR_CONTROL, (_, fold) => fold ?? '\ufffd') : decoded;
        return { key, line: Buffer.from(shown).toString('latin1') };
      }),
    );
  }
}

const FOLD_OR_CONTROL = /(\r?\n)(?=[ \t])|[^\P{Cc}\t]/gu;

/** Fields of which a message must have only one (RFC 5322 section 3.6). Mail clients show the first; the parser, the last. */
export function isUniqueField(name: string): boolean {
  return name === 'from' || name === 'subject';
}

/** Decodes the raw octets of a field: UTF-8 (RFC 6532), or an undeclared charset. Recodes its encoded words as UTF-8. */
export function decodeHeaderLine(line: string): string {
  const recoded = line.includes('=?') ? recodeEncodedWords(line) : line;
  return /[\u0080-\u00ff]/.test(recoded) || recoded.includes(ISO_2022_JP_ESCAPE)
    ? decodeText(Buffer.from(recoded, 'latin1'), '')
    : recoded;
}

export function createMimeReader(): MimeReader {
  return new MimeReader({
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipTextLinks: true,
    skipImageLinks: true,
    // Treats an embedded message as a file: its text does not belong to this message.
    ignoreEmbedded: true,
    maxHeadSize: HEADER_LIMITS.maxBytes,
  });
}
