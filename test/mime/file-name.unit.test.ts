import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { sanitizeFileName } from '../../domain/mime/file-name.ts';

describe('sanitizeFileName', () => {
  test.each([
    ['../../etc/pass\x01wd', 'passwd'],
    ['..\\..\\windows\\win.ini', 'win.ini'],
    ['C:\\fakepath/a\\b.txt', 'b.txt'],
    ['a\r\nSet-Cookie: x\0\x7f\x85', 'aSet-Cookie: x'],
    ['annex\u202egpj.exe', 'annexgpj.exe'],
    ['a\u2066b\u2069\u2028.txt', 'ab.txt'],
    ['  report.pdf ', 'report.pdf'],
    ['.\u202e.', undefined],
    ['a/..', undefined],
    ['.', undefined],
    ['folder/', undefined],
    ['\x01 ', undefined],
    ['', undefined],
    ['\ud800.txt', '\ufffd.txt'],
  ])('turns %j into %j', (given, expected) => {
    expect(sanitizeFileName(given)).toBe(expected);
  });

  test.each([
    'report.pdf',
    '.profile',
    '..report',
    '見積書（最終）.xlsx',
    'Überblick "Q3" & mehr.pdf',
    'گزارش\u200cها.docx',
    'दस्तावेज़ क्\u200dष.pdf',
    '\u200fחשבונית\u200e.pdf',
    '👩\u200d👩\u200d👧.png',
    'e\u0301te\u0301.txt',
  ])('keeps %j', (name) => {
    expect(sanitizeFileName(name)).toBe(name);
  });

  test('truncates to 255 characters, keeps the extension and does not split surrogate pairs', () => {
    expect(sanitizeFileName(`${'a'.repeat(400)}.tar.gz`)).toBe(`${'a'.repeat(252)}.gz`);
    expect(sanitizeFileName(`a${'👧'.repeat(200)}.pdf`)).toBe(`a${'👧'.repeat(125)}.pdf`);
    expect(sanitizeFileName(`${'a'.repeat(10)}.${'b'.repeat(400)}`)).toHaveLength(255);
  });

  test('returns a safe name for any input', () => {
    const pieces = fc.constantFrom('/', '\\', '.', '..', '\0', '\u202e', ' ', 'a', '\ud83d', '👧', 'é');
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 400 }), (given) => {
        const name = sanitizeFileName(given.join('')) ?? 'none';
        expect(name).not.toMatch(/[/\\\p{Cc}\u202a-\u202e]|^\.{0,2}$/u);
        expect(name.isWellFormed()).toBe(true);
        expect(name.length).toBeLessThanOrEqual(255);
      }),
    );
  });
});
