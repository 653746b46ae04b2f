import { stripInvisible } from '../../mime/visible/invisible-characters.ts';
import { detectFormat, type FileFormat, type FileName } from './detect-format.ts';
import { readCalendar } from './read-calendar.ts';
import { readDocx } from './read-docx.ts';
import { readMail } from './read-mail.ts';
import { readPdf } from './read-pdf.ts';
import { decodeFile, readHtml, readPlain } from './read-plain.ts';
import { readPptx } from './read-pptx.ts';
import { readRtf } from './read-rtf.ts';
import { readXlsx } from './read-xlsx.ts';
import { TextCollector } from './text-collector.ts';
import { UnreadableFileError } from './unreadable-file.ts';

/** What a file says, or why it cannot be read. */
export type FileText =
  | { format: FileFormat; text: string; leftOut: string[] }
  | { failure: { reason: string; fix: string } };

/**
 * Reads the text of a file. A malicious file may take unlimited time and memory, so this function runs in a child process
 * (`file-reader.ts`). Never throws because of the content.
 */
export async function readFileText(bytes: Buffer, name: FileName): Promise<FileText> {
  try {
    const format = detectFormat(bytes, name);
    const collector = new TextCollector();
    await READERS[format](bytes, collector, name);
    return { format, ...clean(collector) };
  } catch (error) {
    // Libraries throw errors of many kinds, which may quote the file.
    const { message, fix } =
      error instanceof UnreadableFileError ? error : new UnreadableFileError('The file is damaged.');
    return { failure: { reason: message, fix } };
  }
}

const READERS: Record<
  FileFormat,
  (bytes: Buffer, text: TextCollector, name: FileName) => void | Promise<void>
> = {
  pdf: readPdf,
  docx: readDocx,
  xlsx: readXlsx,
  pptx: readPptx,
  rtf: readRtf,
  eml: readMail,
  ics: (bytes, text, { contentType }) => readCalendar(decodeFile(bytes, contentType), text),
  html: (bytes, text, { contentType }) => readHtml(bytes, contentType, text),
  csv: (bytes, text, { contentType }) => readPlain(bytes, contentType, text),
  plain: (bytes, text, { contentType }) => readPlain(bytes, contentType, text),
};

/** Control characters other than tabs and line ends, which no reader needs. */
const CONTROLS = /[^\P{Cc}\t\n]/gu;

/** Removes what people cannot see, as from the text of a message. */
function clean(collector: TextCollector): { text: string; leftOut: string[] } {
  const { text, hidden } = stripInvisible(collector.toString().replace(CONTROLS, ''));
  if (hidden !== '') collector.leaveOut('Invisible characters that spell text.');
  return { text: text.trim().toWellFormed(), leftOut: collector.leftOut };
}
