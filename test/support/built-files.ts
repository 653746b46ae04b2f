import { strToU8, zipSync } from 'fflate';

/** Files that tests build themselves, with the least that programs need to open them. */

export const zip = (parts: Record<string, string | Uint8Array>): Buffer =>
  Buffer.from(
    zipSync(
      Object.fromEntries(
        Object.entries(parts).map(([name, part]) => [name, typeof part === 'string' ? strToU8(part) : part]),
      ),
    ),
  );

export const docx = (body: string, parts: Record<string, string> = {}): Buffer =>
  zip({
    '[Content_Types].xml': '<Types/>',
    'word/document.xml': `<?xml version="1.0"?><w:document xmlns:w="w"><w:body>${body}</w:body></w:document>`,
    ...parts,
  });
export const paragraph = (text: string): string => `<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`;

const relations = (list: [id: string, kind: string, target: string][]) =>
  `<Relationships>${list.map(([id, kind, target]) => `<Relationship Id="${id}" Type="http://x/${kind}" Target="${target}"/>`).join('')}</Relationships>`;

export interface BuiltSheet {
  name: string;
  /** The rows, as XML. */
  rows: string;
  state?: string;
}

export const xlsx = (sheets: BuiltSheet[], strings: string[] = [], styles = ''): Buffer =>
  zip({
    '[Content_Types].xml': '<Types/>',
    'xl/workbook.xml': `<workbook><sheets>${sheets.map(({ name, state = 'visible' }, at) => `<sheet name="${name}" state="${state}" r:id="rId${at}"/>`).join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations(
      sheets.map((_, at) => [`rId${at}`, 'worksheet', `worksheets/sheet${at + 1}.xml`]),
    ),
    'xl/sharedStrings.xml': `<sst>${strings.map((text) => `<si><t>${text}</t></si>`).join('')}</sst>`,
    'xl/styles.xml': `<styleSheet>${styles}</styleSheet>`,
    ...Object.fromEntries(
      sheets.map(({ rows }, at) => [
        `xl/worksheets/sheet${at + 1}.xml`,
        `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
      ]),
    ),
  });

export interface BuiltSlide {
  text: string;
  notes?: string;
  isHidden?: boolean;
}

export function pptx(slides: BuiltSlide[]): Buffer {
  const shapes = (text: string) => `<p:sp><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:sp>`;
  // Parts are numbered backwards: their numbers say nothing about the order.
  const number = (at: number) => slides.length - at;
  const parts = slides.flatMap(({ text, notes, isHidden }, at) => [
    [
      `ppt/slides/slide${number(at)}.xml`,
      `<p:sld${isHidden ? ' show="0"' : ''}>${shapes(text)}</p:sld>`,
    ] as const,
    [
      `ppt/slides/_rels/slide${number(at)}.xml.rels`,
      relations([['rId1', 'notesSlide', `../notesSlides/notesSlide${number(at)}.xml`]]),
    ] as const,
    ...(notes === undefined
      ? []
      : [[`ppt/notesSlides/notesSlide${number(at)}.xml`, `<p:notes>${shapes(notes)}</p:notes>`] as const]),
  ]);
  return zip({
    'ppt/presentation.xml': `<p:presentation><p:sldIdLst>${slides.map((_, at) => `<p:sldId id="${at}" r:id="rId${at}"/>`).join('')}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations(
      slides.map((_, at) => [`rId${at}`, 'slide', `slides/slide${number(at)}.xml`]),
    ),
    ...Object.fromEntries(parts),
  });
}

/** A PDF with a content stream for each page. */
export function pdf(
  pages: (string | Uint8Array)[],
  { filter = '', trailer = '', objects = [] as string[] } = {},
): Buffer {
  const chunks: Buffer[] = [Buffer.from('%PDF-1.7\n')];
  const offsets: number[] = [];
  const size = () => chunks.reduce((sum, { length }) => sum + length, 0);
  const object = (number: number, ...content: (string | Uint8Array)[]) => {
    offsets[number] = size();
    chunks.push(
      Buffer.from(`${number} 0 obj\n`),
      ...content.map((each) => Buffer.from(each)),
      Buffer.from('\nendobj\n'),
    );
  };
  const kids = pages.map((_, at) => `${4 + 2 * at} 0 R`).join(' ');
  object(1, '<< /Type /Catalog /Pages 2 0 R >>');
  object(2, `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`);
  object(3, '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>');
  for (const [at, page] of pages.entries()) {
    const content = Buffer.from(page);
    object(
      4 + 2 * at,
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + 2 * at} 0 R >>`,
    );
    object(5 + 2 * at, `<< /Length ${content.length} ${filter} >>\nstream\n`, content, '\nendstream');
  }
  for (const [at, content] of objects.entries()) object(4 + 2 * pages.length + at, content);
  const start = size();
  const table = offsets.slice(1).map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`);
  chunks.push(
    Buffer.from(
      `xref\n0 ${offsets.length}\n0000000000 65535 f \n${table.join('')}trailer\n<< /Size ${offsets.length} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`,
    ),
  );
  return Buffer.concat(chunks);
}

/** A content stream that shows lines of text. */
export const pdfText = (...lines: string[]): string =>
  `BT /F1 12 Tf 14 TL 50 700 Td ${lines.map((line) => `(${line}) Tj T*`).join(' ')} ET`;

/** Encrypted by a password that is not empty: the keys do not fit any other. */
export const encryptedPdf = (): Buffer =>
  pdf([pdfText('secret')], {
    trailer: '/Encrypt 6 0 R /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]',
    objects: [
      `<< /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <${'ab'.repeat(32)}> /U <${'cd'.repeat(32)}> >>`,
    ],
  });
