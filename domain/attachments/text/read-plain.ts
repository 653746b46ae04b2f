import { decodeText } from '../../mime/charset.ts';
import { toVisibleText } from '../../mime/file-text.ts';
import { MAX_HTML_CHARACTERS } from '../../mime/html-to-text.ts';
import { MAX_TEXT_CHARACTERS, type TextCollector } from './text-collector.ts';

/** UTF-32 has four bytes for each character. */
const MAX_BYTES = 4 * MAX_TEXT_CHARACTERS + 4;
/** The declaration is within the first 1,024 bytes (HTML, section 4.2.5.4). */
const META_CHARSET = /<meta[^>]{0,200}?charset\s{0,10}=\s{0,10}["']?([\w:.-]{1,40})/i;

/** Decodes text by its byte order mark, the charset of its media type, or its bytes. */
export function decodeFile(bytes: Buffer, contentType: string): string {
  const start = bytes.subarray(0, MAX_BYTES);
  const mark = start.subarray(0, 2).toString('hex');
  const isUtf16 = mark === 'fffe' || mark === 'feff';
  const [, charset = ''] = /;\s*charset\s*=\s*"?([^";\s]{1,40})/i.exec(contentType) ?? [];
  return decodeText(start, isUtf16 ? 'utf-16' : charset);
}

/** Reads text as it is. */
export function readPlain(bytes: Buffer, contentType: string, text: TextCollector): void {
  text.add(decodeFile(bytes, contentType).replace(/\r\n?/g, '\n'));
  if (bytes.length > MAX_BYTES) text.leaveOut('The end of the file, which is very long.');
}

/** Reads the visible text of an HTML file, as of an HTML body. */
export function readHtml(bytes: Buffer, contentType: string, text: TextCollector): void {
  const [, charset] = META_CHARSET.exec(bytes.toString('latin1', 0, 1_024)) ?? [];
  const isDeclared = charset === undefined || /;\s*charset\s*=/i.test(contentType);
  const html = decodeFile(bytes, isDeclared ? contentType : `text/html; charset=${charset}`);
  if (html.length > MAX_HTML_CHARACTERS)
    text.leaveOut(`The HTML after ${MAX_HTML_CHARACTERS.toLocaleString('en')} characters.`);
  text.add(toVisibleText(html));
}
