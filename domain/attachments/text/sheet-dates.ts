import { walkXml } from './office-xml.ts';

/** ECMA-376 part 1, section 18.8.30: built-in formats of dates and times. */
const isBuiltInDate = (id: number): boolean => (id >= 14 && id <= 22) || (id >= 45 && id <= 47);
const DAY_MS = 86_400_000;

/** Reads which cell styles of a workbook are dates. */
export function readDateFormats(styles: Buffer | undefined): (style: number) => boolean {
  const customDates = new Set<number>();
  const dateStyles = new Set<number>();
  let isCellFormats = false;
  let style = 0;
  walkXml(styles, {
    onOpen(name, { numFmtId = '', formatCode = '' }) {
      if (name === 'numFmt' && isDateCode(formatCode)) customDates.add(Number(numFmtId));
      else if (name === 'cellXfs') isCellFormats = true;
      else if (name === 'xf' && isCellFormats) {
        const format = Number(numFmtId);
        if (isBuiltInDate(format) || customDates.has(format)) dateStyles.add(style);
        style += 1;
      }
    },
    onClose(name) {
      if (name === 'cellXfs') isCellFormats = false;
    },
  });
  return (index) => dateStyles.has(index);
}

/** Whether a format code shows a part of a date, outside quoted text and colors. */
function isDateCode(code: string): boolean {
  const bare = code.slice(0, 300).replace(/"[^"]{0,300}"|\[[^\]hms]{0,100}\]|\\./gi, '');
  return /[ymdhs]/i.test(bare) && !/general/i.test(bare);
}

/** A serial number as an ISO date, with the time if it has one; null if it is out of range. */
export function toDate(serial: number, uses1904: boolean): string | null {
  if (!(serial >= 0 && serial < 2_958_466)) return null;
  const epoch = uses1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, 30);
  const iso = new Date(epoch + Math.round(serial * 86_400) * 1_000).toISOString();
  if (serial < 1) return iso.slice(11, 19);
  return (serial * DAY_MS) % DAY_MS === 0 ? iso.slice(0, 10) : iso.slice(0, 19);
}
