import { getDocumentProxy } from 'unpdf';
import type { TextCollector } from './text-collector.ts';
import { UnreadableFileError } from './unreadable-file.ts';

const MAX_PAGES = 2_000;
/** PDF.js: errors only. It would otherwise print warnings that quote the file. */
const VERBOSITY = 0;

/**
 * Reads the text of a PDF, page by page. Pages that are images stay without text: nothing recognizes characters.
 *
 * @throws UnreadableFileError if it is encrypted, damaged, or has no text at all.
 */
export async function readPdf(bytes: Uint8Array, text: TextCollector): Promise<void> {
  const pdf = await openPdf(bytes);
  const pages = Math.min(MAX_PAGES, pdf.numPages);
  let empty = 0;
  for (let number = 1; number <= pages && !text.isFull; number += 1) {
    const words = await readPage(pdf, number);
    if (words.trim() === '') empty += 1;
    else {
      text.endLine();
      if (number > 1) text.add('\n');
      text.add(words);
    }
  }
  if (empty === pages)
    throw new UnreadableFileError(
      'The PDF has no text: its pages are images, such as a scan.',
      'Ask the sender for a PDF with text, or recognize the characters of the downloaded file (OCR).',
    );
  if (empty > 0) text.leaveOut(`Pages without text, such as scans: ${empty} of ${pages}.`);
  if (pdf.numPages > pages) text.leaveOut(`The pages after page ${MAX_PAGES}.`);
}

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;

async function openPdf(bytes: Uint8Array): Promise<Pdf> {
  try {
    return await getDocumentProxy(Uint8Array.from(bytes), {
      isEvalSupported: false,
      useSystemFonts: false,
      useWorkerFetch: false,
      verbosity: VERBOSITY,
    });
  } catch (error) {
    if ((error as Error | null)?.name === 'PasswordException')
      throw new UnreadableFileError(
        'The PDF is encrypted with a password.',
        'Ask the sender for a PDF without a password.',
      );
    throw new UnreadableFileError('The PDF is damaged.');
  }
}

async function readPage(pdf: Pdf, number: number): Promise<string> {
  try {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    page.cleanup();
    return items.map((item) => ('str' in item ? `${item.str}${item.hasEOL ? '\n' : ''}` : '')).join('');
  } catch {
    // A damaged page must not prevent reading the others.
    return '';
  }
}
