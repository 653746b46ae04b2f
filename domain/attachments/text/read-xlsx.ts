import { attributeOf, readRelations, walkXml } from './office-xml.ts';
import { readDateFormats, toDate } from './sheet-dates.ts';
import type { TextCollector } from './text-collector.ts';
import { readZipParts } from './zip-parts.ts';

const PARTS =
  /^xl\/(?:workbook\.xml|sharedStrings\.xml|styles\.xml|worksheets\/[^/]+\.xml|_rels\/workbook\.xml\.rels)$/;
const WORKBOOK = 'xl/workbook.xml';
/** Longer gaps between the cells of a row are written as one gap of this length. */
const MAX_GAP = 50;

/**
 * Reads a workbook (ECMA-376 part 1, section 18): a line for each row with cells separated by tabs. Of a formula, the
 * stored result.
 */
export function readXlsx(archive: Uint8Array, text: TextCollector): void {
  const parts = readZipParts(archive, (name) => PARTS.test(name));
  const { sheets, uses1904 } = readWorkbook(parts);
  const book: Book = {
    strings: readSharedStrings(parts.get('xl/sharedStrings.xml')),
    isDate: readDateFormats(parts.get('xl/styles.xml')),
    uses1904,
  };
  let hidden = 0;
  for (const { name, part, isHidden } of sheets) {
    if (text.isFull) break;
    if (isHidden) hidden += 1;
    else {
      text.endLine();
      text.add(`Sheet ${name}:\n`);
      readSheet(part, book, text);
      text.add('\n');
    }
  }
  if (hidden > 0) text.leaveOut(`Hidden sheets: ${hidden}.`);
}

interface Book {
  strings: string[];
  /** Whether cells of a style hold a date. */
  isDate: (style: number) => boolean;
  /** Dates count from 1904 instead of 1900. */
  uses1904: boolean;
}

interface Sheet {
  name: string;
  part: Buffer | undefined;
  isHidden: boolean;
}

function readWorkbook(parts: ReadonlyMap<string, Buffer>): { sheets: Sheet[]; uses1904: boolean } {
  const relations = readRelations(parts, WORKBOOK);
  const sheets: Sheet[] = [];
  let uses1904 = false;
  walkXml(parts.get(WORKBOOK), {
    onOpen(name, attributes) {
      if (name === 'workbookPr') uses1904 = /^(?:1|true)$/.test(attributes.date1904 ?? '');
      if (name !== 'sheet') return;
      const relation = relations.get(attributeOf(attributes, 'id') ?? '');
      sheets.push({
        name: (attributes.name ?? '').slice(0, 100),
        part: parts.get(relation?.target ?? ''),
        isHidden: /hidden/i.test(attributes.state ?? ''),
      });
    },
  });
  return { sheets, uses1904 };
}

function readSharedStrings(part: Buffer | undefined): string[] {
  const strings: string[] = [];
  let current = '';
  let isText = false;
  // The reading of East Asian words, which repeats them.
  let isPhonetic = false;
  walkXml(part, {
    onOpen(name) {
      if (name === 'si') current = '';
      else if (name === 't') isText = true;
      else if (name === 'rPh') isPhonetic = true;
    },
    onText(piece) {
      if (isText && !isPhonetic) current += piece;
    },
    onClose(name) {
      if (name === 'si') strings.push(current);
      else if (name === 't') isText = false;
      else if (name === 'rPh') isPhonetic = false;
    },
  });
  return strings;
}

interface Cell {
  column: number;
  type: string;
  style: number;
  value: string;
  isFormula: boolean;
}

function readSheet(part: Buffer | undefined, book: Book, text: TextCollector): void {
  let lastColumn = 0;
  let nextColumn = 0;
  let isRowEmpty = true;
  let cell: Cell | undefined;
  let isValue = false;
  // A row is never joined: its cells may repeat a long text many times.
  const addCell = ({ column }: Cell, value: string) => {
    const gap = Math.max(isRowEmpty ? 0 : 1, column - lastColumn);
    text.add('\t'.repeat(Math.min(MAX_GAP, gap)));
    text.add(value);
    lastColumn = column;
    isRowEmpty = false;
  };
  walkXml(
    part,
    {
      onOpen(name, { r: reference = '', t: type = 'n', s: style = '' }) {
        if (name === 'row') {
          lastColumn = 0;
          nextColumn = 0;
          isRowEmpty = true;
        } else if (name === 'c') {
          const column = columnOf(reference) ?? nextColumn;
          nextColumn = column + 1;
          cell = { column, type, style: Number(style), value: '', isFormula: false };
        } else if (name === 'v' || name === 't') isValue = true;
        else if (name === 'f' && cell) cell.isFormula = true;
      },
      onText(piece) {
        if (isValue && cell) cell.value += piece;
      },
      onClose(name) {
        if (name === 'v' || name === 't') isValue = false;
        else if (name === 'c' && cell) {
          const value = showCell(cell, book);
          if (value !== '') addCell(cell, value);
          else if (cell.isFormula) text.leaveOut('Results of formulas that the file does not hold.');
          cell = undefined;
        } else if (name === 'row' && !isRowEmpty) text.add('\n');
      },
    },
    () => text.isFull,
  );
}

function showCell({ type, style, value }: Cell, { strings, isDate, uses1904 }: Book): string {
  const shown = type === 's' ? (strings[Number(value)] ?? '') : value;
  if (type === 'b') return value === '1' ? 'TRUE' : 'FALSE';
  if (type === 'n' && value !== '' && isDate(style)) return toDate(Number(value), uses1904) ?? value;
  // A row is one line.
  return shown.replace(/[\t\r\n]+/g, ' ');
}

/** The index of the column of `AB12`; undefined without a reference. */
function columnOf(reference: string): number | undefined {
  const [letters] = /^[A-Z]{1,3}/.exec(reference) ?? [];
  if (letters === undefined) return undefined;
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}
