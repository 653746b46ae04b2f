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
  ])('parses %j', (q, words) => expect(parseSearchQuery(q)).toEqual({ words, facets: [] }));
});

describe('operators of q', () => {
  test('turns labels and attachments into facets', () => {
    expect(parseSearchQuery('label:urgent -label:"to do" has:attachment -has:attachments')).toEqual({
      words: '',
      facets: [
        { lexeme: 'l:urgent', negated: false },
        { lexeme: 'l:to do', negated: true },
        { lexeme: 'h:attachment', negated: false },
        { lexeme: 'h:attachment', negated: true },
      ],
    });
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
    ['-before:2026-01-01', 'cannot negate before:'],
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
