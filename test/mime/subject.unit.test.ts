import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  getBaseSubject,
  isReplySubject,
  toForwardSubject,
  toReplySubject,
} from '../../domain/mime/subject.ts';
import { cpuTimeMs } from '../support/cpu-time.ts';

describe('base subject', () => {
  test.each([
    ['Lunch on Friday', 'Lunch on Friday'],
    ['Re: Lunch', 'Lunch'],
    ['RE : Lunch', 'Lunch'],
    ['re:Lunch', 'Lunch'],
    ['Re[2]: Lunch', 'Lunch'],
    ['Re (3): Lunch', 'Lunch'],
    ['Re^4: Lunch', 'Lunch'],
    ['Re: Re: RE: Lunch', 'Lunch'],
    ['AW: WG: Lunch', 'Lunch'],
    ['Antw: Lunch', 'Lunch'],
    ['SV: VB: Lunch', 'Lunch'],
    ['RES: ENC: Lunch', 'Lunch'],
    ['RIF: I: R: Lunch', 'Lunch'],
    ['Odp: PD: Lunch', 'Lunch'],
    ['TR: RE: Lunch', 'Lunch'],
    ['Réf: Rép: Lunch', 'Lunch'],
    ['Re\u0301f: Lunch', 'Lunch'],
    ['RV: Lunch', 'Lunch'],
    ['Lunch (fwd) (FWD)', 'Lunch'],
    ['YNT: İLT: Lunch', 'Lunch'],
    ['回复：转发: Lunch', 'Lunch'],
    ['답장: 전달: Lunch', 'Lunch'],
    ['Fwd:   Fw:\r\n Lunch', 'Lunch'],
    ['Lunch (fwd)', 'Lunch'],
    ['[team] Re: Lunch', '[team] Lunch'],
    ['Re: [team] Lunch', '[team] Lunch'],
    ['Re: [team] Re: [team] Lunch', '[team] Lunch'],
    ['[team] [ext] Lunch', '[team] [ext] Lunch'],
    ['Regarding: Lunch', 'Regarding: Lunch'],
    ['Reply: Lunch', 'Reply: Lunch'],
    ['Rental re: Lunch', 'Rental re: Lunch'],
    ['Re:', ''],
    ['', ''],
  ])('of %j is %j', (subject, expected) => {
    expect(getBaseSubject(subject)).toBe(expected);
  });

  test('is idempotent', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (subject) => {
        const base = getBaseSubject(subject);
        expect(getBaseSubject(toReplySubject(base))).toBe(getBaseSubject(base));
        expect(getBaseSubject(toForwardSubject(base))).toBe(getBaseSubject(base));
      }),
    );
  });

  test('of a subject with many prefixes is computed quickly', () => {
    const cost = cpuTimeMs(() => {
      expect(getBaseSubject(`${'Re: [list] '.repeat(20_000)}Lunch`)).toBe('[list] Lunch');
      expect(getBaseSubject(`Re${' '.repeat(200_000)}x`)).toBe('Re x');
    });
    // Superlinear work would take minutes; garbage collection in a busy process may take seconds.
    expect(cost).toBeLessThan(20_000);
  });
});

test.each([
  ['Re: x', true],
  ['[team] AW: x', true],
  ['Re: Fwd: x', true],
  ['Fwd: Re: x', false],
  ['WG: x', false],
  ['x', false],
  ['Are: x', false],
])('isReplySubject(%j) is %j', (subject, expected) => {
  expect(isReplySubject(subject)).toBe(expected);
});

test('never repeats a prefix', () => {
  const piece = fc.constantFrom(
    ...[
      'Re:',
      'RE[2]: ',
      'Aw : ',
      'Antw:',
      'Réf:',
      'Odp:',
      '回复：',
      'Fwd: ',
      'WG:',
      'TR:',
      'RV:',
      '[list] ',
      '[',
      ']',
      ':',
    ],
    ...['(fwd)', ' ', 'Lunch', 'I', 'a\u0301'],
  );
  const subject = fc
    .array(fc.oneof(piece, fc.string({ maxLength: 3 })), { maxLength: 12 })
    .map((all) => all.join(''));
  fc.assert(
    fc.property(subject, (text) => {
      for (const write of [toReplySubject, toForwardSubject]) {
        expect(write(write(text))).toBe(write(text));
        expect(write(toReplySubject(text))).toBe(write(text));
        expect(write(toForwardSubject(text))).toBe(write(text));
      }
    }),
    { numRuns: 2_000 },
  );
});

test('adds exactly one prefix', () => {
  expect(toReplySubject('AW: Re: Lunch')).toBe('Re: Lunch');
  expect(toReplySubject('')).toBe('Re:');
  expect(toForwardSubject('Re: Lunch')).toBe('Fwd: Lunch');
  expect(toForwardSubject('转发：Lunch')).toBe('Fwd: Lunch');
});
