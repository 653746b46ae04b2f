import { deflateSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { type FileText, readFileText } from '../../domain/attachments/text/read-file.ts';
import { MAX_TEXT_CHARACTERS } from '../../domain/attachments/text/text-collector.ts';
import { docx, encryptedPdf, paragraph, pdf, pdfText, pptx, xlsx, zip } from '../support/built-files.ts';

const UNKNOWN = { contentType: 'application/octet-stream', filename: 'file' };
const read = (bytes: Buffer | string, name: Partial<typeof UNKNOWN> = {}) =>
  readFileText(Buffer.from(bytes), { ...UNKNOWN, ...name });

async function textOf(bytes: Buffer | string, name?: Partial<typeof UNKNOWN>) {
  const result = await read(bytes, name);
  if ('failure' in result) throw new Error(result.failure.reason);
  return result;
}
async function reasonOf(bytes: Buffer | string, name?: Partial<typeof UNKNOWN>): Promise<string> {
  const result: FileText = await read(bytes, name);
  if (!('failure' in result)) throw new Error(`It was read as ${result.format}`);
  expect(result.failure.fix).toMatch(/\.$/);
  return result.failure.reason;
}

describe('PDF', () => {
  test('has the text of its pages in order', async () => {
    const file = pdf([pdfText('Invoice 4711', 'Total 12.50 EUR'), pdfText('Page two')]);
    expect(await textOf(file)).toEqual({
      format: 'pdf',
      text: 'Invoice 4711\nTotal 12.50 EUR\n\nPage two',
      leftOut: [],
    });
  });

  test('says how many pages have no text', async () => {
    const { text, leftOut } = await textOf(pdf([pdfText('Words'), '0 0 100 100 re f']));
    expect(text).toBe('Words');
    expect(leftOut).toEqual(['Pages without text, such as scans: 1 of 2.']);
  });

  test('is refused with the reason if it is a scan, encrypted or damaged', async () => {
    expect(await reasonOf(pdf(['0 0 100 100 re f']))).toMatch(/no text: its pages are images/);
    expect(await reasonOf(encryptedPdf())).toMatch(/encrypted with a password/);
    expect(await reasonOf('%PDF-1.7 and then nothing')).toMatch(/damaged/);
  });
});

describe('DOCX', () => {
  test('has paragraphs, tabs, breaks and tables', async () => {
    const row = (...cells: string[]) =>
      `<w:tr>${cells.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')}</w:tr>`;
    const body = `${paragraph('Caf&#233; &amp; &lt;Bar&gt;')}<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p><w:tbl>${row('1', '2')}${row('3', '4')}</w:tbl>`;
    const { format, text } = await textOf(docx(body));
    expect({ format, text }).toEqual({ format: 'docx', text: 'Café & <Bar>\na\tb\nc\n1\t2\n3\t4' });
  });

  test('leaves deleted, hidden and repeated text out', async () => {
    const body = `${paragraph('seen')}<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>obey me</w:t></w:r></w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><mc:AlternateContent><mc:Choice>${paragraph('box')}</mc:Choice><mc:Fallback>${paragraph('box')}</mc:Fallback></mc:AlternateContent>`;
    const { text, leftOut } = await textOf(docx(body));
    expect(text).toBe('seen\n\nbox');
    expect(leftOut).toEqual(['Hidden text.']);
  });

  test('has footnotes, comments and headers after the text', async () => {
    const part = (text: string) => `<w:x>${paragraph(text)}</w:x>`;
    const file = docx(paragraph('main'), {
      'word/header1.xml': part('top'),
      'word/footnotes.xml': part('note'),
      'word/comments.xml': part('remark'),
    });
    const { text } = await textOf(file);
    expect(text).toBe('main\n\nFootnotes:\nnote\n\nComments:\nremark\n\nHeader:\ntop');
  });
});

describe('XLSX', () => {
  test('has a line for each row, with strings, numbers, dates and results of formulas', async () => {
    const rows = `<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>in line</t></is></c></row><row><c r="B2" s="1"><v>46000</v></c><c r="C2" s="2"><v>46000.5</v></c></row><row><c r="A3"><f>1+1</f><v>2</v></c><c t="b"><v>1</v></c></row>`;
    const styles =
      '<numFmts><numFmt numFmtId="170" formatCode="yyyy\\-mm\\-dd hh:mm"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/></cellXfs>';
    const { format, text } = await textOf(xlsx([{ name: 'Orders', rows }], ['Shared'], styles));
    expect(format).toBe('xlsx');
    expect(text).toBe('Sheet Orders:\nShared\t\tin line\n\t2025-12-09\t2025-12-09T12:00:00\n2\tTRUE');
  });

  test('says that results of formulas are missing if no program has computed them', async () => {
    const rows = '<row><c><v>1</v></c><c><f>A1+1</f><v></v></c></row>';
    const { text, leftOut } = await textOf(xlsx([{ name: 'A', rows }]));
    expect(text).toBe('Sheet A:\n1');
    expect(leftOut).toEqual(['Results of formulas that the file does not hold.']);
  });

  test('leaves hidden sheets out and says so', async () => {
    const rows = '<row><c><v>1</v></c></row>';
    const { text, leftOut } = await textOf(
      xlsx([
        { name: 'A', rows },
        { name: 'B', rows, state: 'veryHidden' },
      ]),
    );
    expect(text).toBe('Sheet A:\n1');
    expect(leftOut).toEqual(['Hidden sheets: 1.']);
  });

  test('with a long text in many cells is cut', async () => {
    const cell = '<c t="s"><v>0</v></c>';
    const file = xlsx([{ name: 'A', rows: `<row>${cell.repeat(20_000)}</row>` }], ['x'.repeat(30_000)]);
    const { text, leftOut } = await textOf(file);
    expect(text).toHaveLength(MAX_TEXT_CHARACTERS);
    expect(leftOut).toEqual(['The text after 1,000,000 characters.']);
  });
});

test('PPTX has the slides in their order with their notes, without hidden ones', async () => {
  const file = pptx([
    { text: 'First', notes: 'Say hello' },
    { text: 'Hidden', isHidden: true },
    { text: 'Third' },
  ]);
  expect(await textOf(file)).toEqual({
    format: 'pptx',
    text: 'Slide 1:\nFirst\nNotes: Say hello\n\nSlide 3:\nThird',
    leftOut: ['Slide 2, which is hidden.'],
  });
});

describe('RTF', () => {
  test('has its text with the characters of its code page and of Unicode', async () => {
    const file = String.raw`{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}}{\*\generator X;}\uc1 Say \'cf\'f0\par \u8364? 5\tab{\v hidden}\{ok\}}`;
    expect(await textOf(file)).toEqual({
      format: 'rtf',
      text: 'Say Пр\n€ 5\t{ok}',
      leftOut: ['Hidden text.'],
    });
  });

  test('skips pictures and their bytes', async () => {
    const { text, leftOut } = await textOf(String.raw`{\rtf1 a{\pict\wmetafile8 0102ff}\bin4 }{}}xb}`);
    expect(text).toBe('axb');
    expect(leftOut).toEqual(['Images and embedded objects.']);
  });
});

test('ICS has the events with their descriptions', async () => {
  const file = [
    'BEGIN:VCALENDAR',
    'METHOD:REQUEST',
    'BEGIN:VEVENT',
    'UID:1@x.example',
    'SUMMARY:Review',
    'DTSTART:20261124T140000Z',
    'DTEND:20261124T150000Z',
    'RRULE:FREQ=WEEKLY;COUNT=4',
    'ORGANIZER:mailto:a@x.example',
    'ATTENDEE:mailto:b@x.example',
    'DESCRIPTION:Bring\\nnumbers',
    'END:VEVENT',
    'END:VCALENDAR',
    '',
  ].join('\r\n');
  const { format, text } = await textOf(file);
  expect(format).toBe('ics');
  expect(text).toBe(
    'Event: Review\nMethod: REQUEST\nStart: 2026-11-24T14:00:00.000Z\nEnd: 2026-11-24T15:00:00.000Z\nRepeats: FREQ=WEEKLY;COUNT=4\nOrganizer: a@x.example\nAttendees: b@x.example\nUID: 1@x.example\nDescription: Bring\nnumbers',
  );
  expect(await reasonOf('BEGIN:VCALENDAR\r\nBEGIN:VEVENT')).toMatch(/calendar/);
});

test('EML has the main fields and the text; its files are named', async () => {
  const file = [
    'From: Ann <ann@x.example>',
    'To: bob@x.example',
    'Subject: =?utf-8?q?Caf=C3=A9?=',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/html',
    '',
    '<p>Hello <b>you</b></p><p style="display:none">obey</p>',
    '--b',
    'Content-Type: application/pdf; name=bill.pdf',
    '',
    'x',
    '--b--',
    '',
  ].join('\r\n');
  expect(await textOf(file, { contentType: 'message/rfc822' })).toEqual({
    format: 'eml',
    text: 'From: Ann <ann@x.example>\nTo: bob@x.example\nSubject: Café\n\nHello you',
    leftOut: ['Files of the attached message: bill.pdf.'],
  });
});

describe('text', () => {
  test.each([
    ['UTF-8', Buffer.from('Grüße'), 'text/plain'],
    ['UTF-16 with a byte order mark', Buffer.from('\ufeffGrüße', 'utf16le'), 'text/plain'],
    ['the charset of its type', Buffer.from('Grüße', 'latin1'), 'text/plain; charset="iso-8859-1"'],
    ['no declared charset', Buffer.from('Grüße', 'latin1'), 'application/octet-stream'],
  ])('in %s is decoded', async (_, bytes, contentType) => {
    expect(await textOf(bytes, { contentType })).toEqual({ format: 'plain', text: 'Grüße', leftOut: [] });
  });

  test('of CSV stays as it is', async () => {
    const file = 'a;b\r\n1;"x\ty"\r\n';
    expect(await textOf(file, { filename: 'list.CSV' })).toEqual({
      format: 'csv',
      text: 'a;b\n1;"x\ty"',
      leftOut: [],
    });
  });

  test('of HTML is what people see, in the charset that it declares', async () => {
    const file = Buffer.from(
      '<html><meta charset="iso-8859-1"><p>Grüße</p><script>x</script><p hidden>obey</p></html>',
      'latin1',
    );
    expect(await textOf(file)).toMatchObject({ format: 'html', text: 'Grüße' });
  });

  test('loses control characters and invisible characters that spell text', async () => {
    const spelled = [...'obey'].map((c) => String.fromCodePoint(0xe_0000 + c.charCodeAt(0))).join('');
    expect(await textOf(`a\u001bb\r\n${spelled}c`)).toEqual({
      format: 'plain',
      text: 'ab\nc',
      leftOut: ['Invisible characters that spell text.'],
    });
  });

  test('with a line of 5 MB is cut', async () => {
    const { text, leftOut } = await textOf('x'.repeat(5_000_000));
    expect(text).toHaveLength(MAX_TEXT_CHARACTERS);
    expect(leftOut).toContain('The text after 1,000,000 characters.');
  });
});

describe('hostile and mislabeled files', () => {
  test('are read by what they are, not by what they say', async () => {
    expect(
      await textOf(pdf([pdfText('Words')]), { contentType: 'image/png', filename: 'x.png' }),
    ).toMatchObject({ format: 'pdf', text: 'Words' });
    expect(await textOf('plain words', { contentType: 'application/pdf', filename: 'x.pdf' })).toMatchObject({
      format: 'plain',
      text: 'plain words',
    });
    expect(
      await reasonOf(Buffer.from('\x89PNG\r\n\x1a\n\0\0', 'latin1'), { contentType: 'text/plain' }),
    ).toMatch(/an image/);
  });

  test('are a PDF with bytes before its header, and not if they only quote one', async () => {
    const preceded = Buffer.concat([Buffer.from([0, 1, 2, 3, 10]), pdf([pdfText('Words')])]);
    expect(await textOf(preceded)).toMatchObject({ format: 'pdf' });
    expect(await textOf('A file starts with %PDF-1.7.')).toMatchObject({ format: 'plain' });
  });

  test('that other programs read are refused with the reason', async () => {
    expect(await reasonOf(zip({ 'a.txt': 'x' }))).toMatch(/an archive/);
    expect(await reasonOf(Buffer.from('d0cf11e0a1b11ae1', 'hex'))).toMatch(
      /before 2007, or an encrypted one/,
    );
    expect(await reasonOf(Buffer.from([1, 0, 2, 0]))).toMatch(/binary/);
  });

  test('with a zip bomb are refused by the ratio of a part', async () => {
    const file = docx('', { 'word/footnotes.xml': ' '.repeat(20_000_000) });
    expect(file.length).toBeLessThan(50_000);
    expect(await reasonOf(file)).toMatch(/zip bomb/);
  });

  test('with many parts below the ratio are refused by their total', async () => {
    const noise = Array.from({ length: 2_000 }, (_, n) => `${n * 7919}`).join(' ');
    const part = noise.repeat(700);
    const parts = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`word/header${n}.xml`, part]));
    expect(await reasonOf(docx('', parts))).toMatch(/zip bomb/);
  });

  test('that are cut off are refused or read in part, and never throw', async () => {
    for (const whole of [docx(paragraph('x')), pdf([pdfText('x')]), pptx([{ text: 'x' }])])
      for (let length = 0; length < whole.length; length += 97)
        expect(await read(whole.subarray(0, length))).toBeDefined();
  });

  test('with deep nesting are refused', async () => {
    expect(await reasonOf(docx('<w:p>'.repeat(200_000)))).toMatch(/nested too deeply|zip bomb/);
  });

  test('with a compressed stream that expands to nothing but spaces are refused as images', async () => {
    const bomb = deflateSync(Buffer.alloc(30_000_000, ' '));
    expect(await reasonOf(pdf([bomb], { filter: '/Filter /FlateDecode' }))).toMatch(/no text/);
  });
});
