import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  extractMessageIds,
  extractProviderMessageId,
  getCandidateMessageIds,
  toSubjectMatch,
} from '../../domain/messages/message-ids.ts';

describe('getCandidateMessageIds', () => {
  test.each([
    ['no references', null, [], []],
    ['a parent', '<p@x>', [], ['p@x']],
    ['a chain', null, ['<root@x>', '<mid@x>', '<last@x>'], ['last@x', 'mid@x', 'root@x']],
    ['a parent in the chain', '<mid@x>', ['<root@x>', '<mid@x>', '<last@x>'], ['mid@x', 'last@x', 'root@x']],
    ['two threads, the parent’s first', '<b@x>', ['<a1@x>', '<a2@x>'], ['b@x', 'a2@x', 'a1@x']],
    ['ids without brackets', 'p@x', ['root@x'], ['p@x', 'root@x']],
    ['a complete References field as one value', null, ['<root@x>\r\n <last@x>'], ['last@x', 'root@x']],
    ['words around the id', 'Your message of Monday <p@x> "hi" me@y', [], ['p@x']],
    ['ids folded in two', '<p\r\n @x>', [], ['p@x']],
    ['ids that differ by case', '<P@x>', ['<p@x>'], ['P@x', 'p@x']],
    ['empty brackets', '<>', ['<>', ' ', '<a@x>'], ['a@x']],
  ])('handles %s', (_what, inReplyTo, references, expected) => {
    expect(getCandidateMessageIds({ inReplyTo, references })).toEqual(expected);
  });

  test('returns a bounded number of distinct, normalized ids for any input', () => {
    fc.assert(
      fc.property(fc.option(fc.string()), fc.array(fc.string()), (inReplyTo, references) => {
        const ids = getCandidateMessageIds({ inReplyTo, references });
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids.every((id) => /^[^<>\s]{1,998}$/.test(id))).toBe(true);
      }),
    );
    const chain = Array.from({ length: 5_000 }, (_, index) => `<${index}@x>`);
    const ids = getCandidateMessageIds({ inReplyTo: null, references: chain });
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([100, '4999@x', '0@x']);
    expect(ids.at(-2)).toBe('4901@x');
    expect(extractMessageIds(`<${'x'.repeat(1_000)}@y>`)).toEqual([]);
  });
});

describe('a message without references', () => {
  const at = new Date('2026-03-29T12:00:00Z');
  const since = new Date('2026-03-01T12:00:00Z');
  const mail = { inReplyTo: null, references: [], subject: 'AW: Re: Lunch', at };

  test('joins the thread of its base subject for 28 days', () => {
    expect(toSubjectMatch(mail)).toEqual({ baseSubject: 'Lunch', since });
  });

  test.each([
    ['has no reply prefix', { subject: 'Lunch' }],
    ['is a forward', { subject: 'Fwd: Lunch' }],
    ['has a subject of prefixes only', { subject: 'Re: ' }],
    ['has an In-Reply-To', { inReplyTo: '<unknown@x>' }],
    ['has References', { references: ['<unknown@x>'] }],
  ])('starts a new thread if it %s', (_what, change) => {
    expect(toSubjectMatch({ ...mail, ...change })).toBeNull();
  });
});

test.each([
  ['0102-a1-000000@eu-west-1.amazonses.com', '0102-a1-000000'],
  ['0100-A1@email.amazonses.com', '0100-A1'],
  ['0100-a1@us-gov-west-1.amazonses.com', '0100-a1'],
  ['0100-a1@amazonses.com.evil.example', null],
  ['0100-a1@evil.amazonses.com', null],
  ['a@b@email.amazonses.com', null],
  ['@email.amazonses.com', null],
  ['1@shop.example', null],
])('%s has the SES message id %s', (id, expected) => {
  expect(extractProviderMessageId(id)).toBe(expected);
});
