import type { Transform } from 'node:stream';
import { MailParser } from 'mailparser';
import { decodeStream, decodeText } from './charset.ts';

/** A header field as the parser keeps it: a character an octet. */
interface HeaderLine {
  key: string;
  line: string;
}

interface MimeNode {
  charset?: string;
  contentType: string | false;
}

/** What of the parser's own methods is overridden below; it is pinned to one version. */
interface ParserParts {
  getDecoder(): { decodeStream(charset: string): Transform };
  createNode(node: unknown): MimeNode;
  processHeaders(lines: HeaderLine[]): Map<string, unknown>;
}

/** RFC 5322 sets no limit, and a list of recipients may be long; a field is shown cut. */
const MAX_HEADER_BYTES = 4 * 1024 * 1024;
/** A charset no mail can name: the parser leaves text it takes for UTF-8 alone, and so would break what is not. */
const FROM_ITS_BYTES = 'x-unknown';

const Parser = MailParser as unknown as new (options: object) => MailParser & ParserParts;

/** The parser with its conversions off, and with text and header fields read in whatever charset they are in. */
class MimeReader extends Parser {
  override getDecoder() {
    return { decodeStream };
  }

  override createNode(node: unknown): MimeNode {
    const created = super.createNode(node);
    if (/^(us-?ascii|ascii|utf-?8|)$/i.test(created.charset ?? '')) created.charset = FROM_ITS_BYTES;
    return created;
  }

  override processHeaders(lines: HeaderLine[]): Map<string, unknown> {
    return super.processHeaders(
      lines.map(({ key, line }) => ({ key, line: Buffer.from(readableLine(line)).toString('latin1') })),
    );
  }
}

/** A field's text, of which the parser has the octets: UTF-8 (RFC 6532), or whatever its writer took for granted. */
export function readableLine(line: string): string {
  return /[\u0080-\u00ff]/.test(line) ? decodeText(Buffer.from(line, 'latin1'), '') : line;
}

export function createMimeReader(): MailParser {
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
