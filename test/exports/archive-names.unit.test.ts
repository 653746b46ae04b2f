import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { attachmentPath } from '../../domain/exports/archive-names.ts';

const ID = 'att_01m7yvhvsyecxv46haw8x2abcd';
const nameOf = (given: string) => attachmentPath(ID, given).slice(`attachments/${ID}/`.length);

describe('the path of an attachment in an archive', () => {
  test.each([
    ['report.pdf', 'report.pdf'],
    ['Übersicht 令和 📎.pdf', 'Übersicht 令和 📎.pdf'],
    ['گزارش.docx', 'گزارش.docx'],
    ['../../etc/passwd', 'passwd'],
    ['..\\..\\windows\\system.ini', 'system.ini'],
    ['C:\\temp\\a.txt', 'a.txt'],
    ['C:a.txt', 'C_a.txt'],
    ['/', 'attachment'],
    ['..', 'attachment'],
    ['', 'attachment'],
    [' \u0000\u001f ', 'attachment'],
    ['CON', '_CON'],
    ['nul.txt', '_nul.txt'],
    ['COM¹.log', '_COM¹.log'],
    ['console.log', 'console.log'],
    ['a?b*c|"d".txt', 'a_b_c__d_.txt'],
    ['trailing. . ', 'trailing'],
    ['.htaccess', '_.htaccess'],
    ['-rf', '_-rf'],
    ['exe.\u202egpj', 'exe.gpj'],
    ['invisible\u200b.txt', 'invisible.txt'],
    ['e\u0301.txt', 'é.txt'],
    ['half \ud800.txt', 'half \ufffd.txt'],
  ])('%j becomes %j', (given, expected) => {
    expect(nameOf(given)).toBe(expected);
  });

  test('is truncated for file systems and keeps its extension', () => {
    expect(nameOf(`${'令'.repeat(300)}.pdf`)).toMatch(/^令{65}\.pdf$/);
    expect(Buffer.byteLength(nameOf('📎'.repeat(300)))).toBeLessThanOrEqual(201);
  });

  test('stays in its folder and is a valid name everywhere', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })), (given) => {
        const name = nameOf(given);
        expect(name).not.toMatch(/[/\\<>:"|?*\p{Cc}\p{Cf}\p{Cs}]/u);
        expect(name).not.toMatch(/^[.-]|[. ]$|^$/);
        expect(name).not.toMatch(/^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(201);
        expect(name.isWellFormed()).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});
