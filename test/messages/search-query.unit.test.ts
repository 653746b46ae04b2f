import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  foldWords,
  MAX_QUERY_LENGTH,
  parseSearchQuery,
  quoteLexeme,
} from '../../domain/messages/search-query.ts';
import { AppError } from '../../platform/errors.ts';

describe('words of q', () => {
  test.each([
    ['invoice', `'invoice'`],
    ['invoice march', `'invoice' & 'march'`],
    ['"pay now" -draft', `'pay now' & !'draft'`],
    ['inv*', `'inv':*`],
    ['subject:invoice from:alice to:"bob smith"', `'invoice':A & 'alice':B & 'bob smith':C`],
    ['subject:inv*', `'inv':A*`],
    ['-from:alice@example.com', `!'alice@example.com':B`],
    ['FROM:alice', `'alice':B`],
    ['https://example.com 10:30', `'https://example.com' & '10:30'`],
    [`it's a\\b`, `'it''s' & 'a\\\\b'`],
    ['Müller', `'Muller'`],
    ['日本', `' 日  本 '`],
    ['"never closed', `'never closed'`],
    ['- -', ''],
    ['＇', `''''`],
    ['note: this', `'note:' & 'this'`],
    ['"is:unread" "Re: hello"', `'is:unread' & 'Re: hello'`],
    ['mail "OR" or', `'mail' & 'OR' & 'or'`],
    ['invoice OR "pay now" march', `('invoice' | 'pay now') & 'march'`],
    ['from:alice OR subject:alice OR -bob', `('alice':B | 'alice':A | !'bob')`],
    ['17', `'17'`],
    ['2026', `'2026'`],
    ['4829', `('4829' | '48 29' | '48-29' | '4 8 2 9' | '4-8-2-9')`],
    ['code 48 29 x', `'code' & ('48' & '29' | '4829' | '48 29' | '48-29' | '4 8 2 9' | '4-8-2-9') & 'x'`],
    ['-"48-29"', `!('48-29' | '4829' | '48 29' | '4 8 2 9' | '4-8-2-9')`],
    ['subject:4829 OR 7', `(('4829':A | '48 29':A | '48-29':A | '4 8 2 9':A | '4-8-2-9':A) | '7')`],
  ])('parses %j', (q, words) => expect(parseSearchQuery(q)).toEqual({ words, facets: [] }));
});

describe('operators of q', () => {
  test('turns labels and attachments into facets', () => {
    expect(parseSearchQuery('label:urgent -label:"to do" has:attachment -has:attachments')).toEqual({
      words: '',
      facets: [
        { lexemes: ['l:urgent'], negated: false },
        { lexemes: ['l:to do'], negated: true },
        { lexemes: ['h:attachment'], negated: false },
        { lexemes: ['h:attachment'], negated: true },
      ],
    });
  });

  test('splits file names into words', () => {
    expect(
      parseSearchQuery('filename:Rechnung_März.pdf -filename:"annual report" filename:2026-inv*'),
    ).toEqual({
      words: '',
      facets: [
        { lexemes: ['n:rechnung', 'n:marz', 'n:pdf'], negated: false },
        { lexemes: ['n:annual', 'n:report'], negated: true },
        { lexemes: ['n:2026', 'n:inv'], negated: false, prefix: true },
      ],
    });
  });

  test.each([
    'is:unread',
    'newer_than:1d',
    'hello in:inbox x',
    '-is:read',
    'foo:"a b"',
    'Re:hello',
    'x OR is:y',
  ])('rejects the unknown operator in %j, naming those that exist', (q) => {
    const known = 'subject:, from:, to:, label:, filename:, has:attachment, before:, after:';
    expect(() => parseSearchQuery(q)).toThrow(
      expect.objectContaining({
        code: 'validation_error',
        detail: expect.stringContaining(known),
        fix: expect.stringContaining('put it in quotes: "'),
      }),
    );
  });

  test('uses the stricter bound if a time is given more than once', () => {
    const query = parseSearchQuery(
      'after:2026-01-01 after:2026-02-01T12:00:00+01:00 before:2026-03-01 before:2026-04-01',
    );
    expect(query.after).toEqual(new Date('2026-02-01T11:00:00Z'));
    expect(query.before).toEqual(new Date('2026-03-01T00:00:00Z'));
  });

  test.each([
    ['from:', 'has no value after from:'],
    ['label:""', 'has no value after label:'],
    ['subject: invoice', 'has no value after subject:'],
    ['has:pdf', 'supports has:attachment'],
    ['before:soon', 'has no date after before:'],
    ['after:2026-02-30', 'has no date after after:'],
    ['after:9999-12-31T23:59:59-23:59', 'has no date after after:'],
    ['before:0001-01-01T00:00:00+23:59', 'has no date after before:'],
    ['-before:2026-01-01', 'cannot negate before:'],
    ['filename:...', 'no letter or digit after filename:'],
    ['OR a', 'has OR without a word'],
    ['a OR', 'has OR without a word'],
    ['a OR OR b', 'has OR without a word'],
    ['a OR label:b', 'has OR next to label:'],
    [Array.from({ length: 51 }, () => 'a').join(' '), 'at most 50'],
  ])('rejects %j', (q, message) => {
    expect(() => parseSearchQuery(q)).toThrow(expect.objectContaining({ code: 'validation_error' }));
    expect(() => parseSearchQuery(q)).toThrow(message);
  });
});

test('parses any text or rejects it with an error', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: MAX_QUERY_LENGTH, unit: 'grapheme' }), (q) => {
      try {
        const { words } = parseSearchQuery(q);
        // Quotes are paired: no part of the text is parsed as an operator.
        expect((words.match(/'/g) ?? []).length % 2).toBe(0);
      } catch (error) {
        expect(error).toBeInstanceOf(AppError);
      }
    }),
  );
});

test('foldWords is idempotent except for spaces', () => {
  const bare = (text: string) => text.replace(/ +/g, '');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(bare(foldWords(foldWords(text)))).toBe(bare(foldWords(text)));
    }),
  );
});

test('quoteLexeme preserves the text', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const quoted = quoteLexeme(text);
      expect(quoted.slice(1, -1).replaceAll("''", "'").replaceAll('\\\\', '\\')).toBe(text);
    }),
  );
});
