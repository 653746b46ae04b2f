import { isCalendar } from '../../mime/invites/find-invites.ts';
import { UnreadableFileError } from './unreadable-file.ts';

export const FILE_FORMATS = [
  'pdf',
  'docx',
  'xlsx',
  'pptx',
  'rtf',
  'ics',
  'eml',
  'html',
  'csv',
  'plain',
] as const;
export type FileFormat = (typeof FILE_FORMATS)[number];

export interface FileName {
  contentType: string;
  filename: string;
}

/** A part that only packages of the format have. */
const PACKAGES = { docx: 'word/document', xlsx: 'xl/workbook', pptx: 'ppt/presentation' } as const;
const BINARY: [name: string, signature: RegExp][] = [
  [
    'an image',
    /^(?:\x89PNG|\xff\xd8\xff|GIF8|BM....\0\0|II\*\0|MM\0\*|RIFF....WEBP|....ftyp(?:heic|avif|mif1))/s,
  ],
  ['audio or video', /^(?:ID3|OggS|RIFF|fLaC|.E\xdf\xa3|....ftyp)/s],
  ['an archive', /^(?:.\x8b|7z\xbc\xaf|Rar!|BZh|\xfd7zXZ)/s],
  ['a program', /^(?:MZ|\x7fELF|\xca\xfe\xba\xbe)/],
];
const OLE = '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1';
const SNIFFED_BYTES = 4_096;

/**
 * Finds the format by the bytes, because senders mislabel files; by type and name only among kinds of text.
 *
 * @throws UnreadableFileError if the file has no text that this service reads.
 */
export function detectFormat(bytes: Buffer, name: FileName): FileFormat {
  const start = bytes.toString('latin1', 0, SNIFFED_BYTES);
  const isReadable = isText(bytes.subarray(0, SNIFFED_BYTES));
  // Readers accept bytes before the header. Text that quotes a header is no PDF.
  if (/^\s{0,100}%PDF-/.test(start)) return 'pdf';
  if (!isReadable && start.slice(0, 1_024).includes('%PDF-')) return 'pdf';
  if (start.startsWith('PK\x03\x04') || start.startsWith('PK\x05\x06')) return detectPackage(bytes);
  if (/^\s{0,10}\{\\rtf/.test(start)) return 'rtf';
  if (start.startsWith(OLE))
    throw new UnreadableFileError(
      'It is an Office document in the format before 2007, or an encrypted one.',
      'Ask the sender for the document as PDF, DOCX, XLSX or PPTX without a password.',
    );
  if (!isReadable) {
    const [kind] = BINARY.find(([, signature]) => signature.test(start)) ?? [];
    throw new UnreadableFileError(
      kind === undefined
        ? 'It is a binary file in a format that this service does not read.'
        : `It is ${kind}, which has no text to read.`,
    );
  }
  return detectText(start, name);
}

function detectPackage(bytes: Buffer): FileFormat {
  // The directory of the package is at its end, so that the names of embedded packages come earlier.
  const [[format, at] = ['docx', -1] as const] = (Object.keys(PACKAGES) as (keyof typeof PACKAGES)[])
    .map((each) => [each, bytes.lastIndexOf(PACKAGES[each])] as const)
    .sort(([, a], [, b]) => b - a);
  if (at === -1) throw new UnreadableFileError('It is an archive, which has no text to read.');
  return format;
}

/** Text has no NUL, except in UTF-16 with its byte order mark, and few other control characters. */
function isText(start: Buffer): boolean {
  const mark = start.subarray(0, 2).toString('hex');
  if (mark === 'fffe' || mark === 'feff') return true;
  let controls = 0;
  for (const octet of start) {
    if (octet === 0) return false;
    if (octet < 0x20 && !(octet >= 0x07 && octet <= 0x0d) && octet !== 0x1b) controls += 1;
  }
  return controls <= start.length / 50;
}

function detectText(start: string, { contentType, filename }: FileName): FileFormat {
  const type = contentType.replace(/;.*/s, '').trim().toLowerCase();
  const isNamed = (ending: RegExp) => ending.test(filename);
  if (
    /^(?:\xef\xbb\xbf)?\s{0,100}BEGIN:VCALENDAR/i.test(start) ||
    isCalendar({ contentType: type, filename })
  )
    return 'ics';
  if (type === 'message/rfc822' || isNamed(/\.eml$/i)) return 'eml';
  if (/^(?:\xef\xbb\xbf)?\s{0,100}<(?:!doctype html|html[\s>])/i.test(start)) return 'html';
  if (/^(?:text\/html|application\/xhtml\+xml)$/.test(type) || isNamed(/\.x?html?$/i)) return 'html';
  if (/^(?:text|application)\/(?:csv|tab-separated-values)$/.test(type) || isNamed(/\.[ct]sv$/i))
    return 'csv';
  return 'plain';
}
