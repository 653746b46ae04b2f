import type { Transform } from 'node:stream';
import { MailParser } from 'mailparser';
import { createDecodingStream, decodeText } from './charset.ts';
import { joinFlowedLines } from './format-flowed.ts';

/** A header field as the parser keeps it: a character an octet. */
interface HeaderLine {
  key: string;
  line: string;
}

interface MimeNode {
  charset?: string;
  node: { flowed: boolean; delSp: boolean };
}

/** What of the parser's own methods is overridden below; it is pinned to one version. */
interface ParserInternals {
  getDecoder(): { decodeStream(charset: string): Transform };
  createNode(node: unknown): MimeNode;
  processHeaders(lines: HeaderLine[]): Map<string, unknown>;
}

/** RFC 5322 sets no limit, and a list of recipients may be long; a field is shown cut. */
const MAX_HEADER_BYTES = 4 * 1024 * 1024;

/** How a part's text is to be read. */
interface TextFormat {
  charset: string;
  flowed: boolean;
  delSp: boolean;
}

const Parser = MailParser as unknown as new (options: object) => MailParser & ParserInternals;

/** Of all text parts of a mail together. What people write is far shorter; pictures within HTML are not. */
export const MAX_TEXT_BYTES = 2 * 1024 * 1024;

/** The parser with its conversions off, and with text and header fields read in whatever charset they are in. */
export class MimeReader extends Parser {
  /** Set where text was left out, because it was longer than {@link MAX_TEXT_BYTES}. */
  isTextCut = false;
  #textBytesLeft = MAX_TEXT_BYTES;

  // Called by the constructor it overrides, when the fields above do not exist yet.
  override getDecoder() {
    const keep = (sizeBytes: number) => {
      const kept = Math.min(sizeBytes, this.#textBytesLeft);
      this.#textBytesLeft -= kept;
      this.isTextCut ||= kept < sizeBytes;
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

  override createNode(node: unknown): MimeNode {
    const created = super.createNode(node);
    const { flowed, delSp } = created.node;
    const format: TextFormat = { charset: created.charset || '', flowed, delSp };
    // The charset is all the parser tells its decoder. One it takes for UTF-8 it would not decode at all, and it joins
    // flowed lines without regard for quotes.
    created.charset = JSON.stringify(format);
    created.node.flowed = false;
    return created;
  }

  override processHeaders(lines: HeaderLine[]): Map<string, unknown> {
    return super.processHeaders(
      lines.map(({ key, line }) => ({ key, line: Buffer.from(decodeHeaderLine(line)).toString('latin1') })),
    );
  }
}

/** A field's text, of which the parser has the octets: UTF-8 (RFC 6532), or whatever its writer took for granted. */
export function decodeHeaderLine(line: string): string {
  return /[\u0080-\u00ff]/.test(line) ? decodeText(Buffer.from(line, 'latin1'), '') : line;
}

export function createMimeReader(): MimeReader {
  return new MimeReader({
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipTextLinks: true,
    skipImageLinks: true,
    // A mail within a mail is a file: its text is not this one's.
    ignoreEmbedded: true,
    maxHeadSize: MAX_HEADER_BYTES,
  });
}
