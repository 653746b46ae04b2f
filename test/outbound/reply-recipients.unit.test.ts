import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  addRequestedRecipients,
  findReplyRecipients,
  type RepliedMessage,
} from '../../domain/outbound/reply-recipients.ts';

const OWN = 'agent@mail.test';
const at = (...emails: string[]) => emails.map((email) => ({ email }));
const inbound = (changes: Partial<RepliedMessage> = {}): RepliedMessage => ({
  direction: 'inbound',
  fromEmail: 'ada@people.example',
  fromName: 'Ada',
  replyTo: [],
  to: at(OWN),
  cc: [],
  ...changes,
});
const outbound = (changes: Partial<RepliedMessage>): RepliedMessage =>
  inbound({ direction: 'outbound', fromEmail: OWN, fromName: null, to: [], ...changes });
const ADA = { email: 'ada@people.example', name: 'Ada' };

describe('a reply is addressed', () => {
  test.each<[string, RepliedMessage, boolean, { to: unknown; cc: unknown }]>([
    ['to From', inbound(), false, { to: [ADA], cc: [] }],
    [
      'to Reply-To rather than From',
      inbound({ replyTo: at('l@x.test') }),
      false,
      { to: at('l@x.test'), cc: [] },
    ],
    ['to From if Reply-To is the inbox itself', inbound({ replyTo: at(OWN) }), false, { to: [ADA], cc: [] }],
    [
      'to From if Reply-To is undeliverable',
      inbound({ replyTo: at('"a b"@x.test') }),
      false,
      { to: [ADA], cc: [] },
    ],
    ['only to the sender without reply_all', inbound({ cc: at('c@x.test') }), false, { to: [ADA], cc: [] }],
    [
      'to all, each once, without the inbox itself under any tag',
      inbound({
        to: at('AGENT+tag@mail.test', 'b@x.test', 'ADA@people.example'),
        cc: at('B@x.test', 'c@x.test', OWN),
      }),
      true,
      { to: [ADA], cc: at('b@x.test', 'c@x.test') },
    ],
    [
      'to the other recipients of a message from the inbox to itself',
      inbound({ fromEmail: OWN, to: at(OWN, 'b@x.test') }),
      true,
      { to: at('b@x.test'), cc: [] },
    ],
    [
      'to the recipients of an outbound message',
      outbound({ to: at('b@x.test'), cc: at('c@x.test') }),
      false,
      { to: at('b@x.test'), cc: [] },
    ],
    [
      'to To and Cc of an outbound message with reply_all',
      outbound({ to: at('b@x.test'), cc: at('c@x.test') }),
      true,
      { to: at('b@x.test'), cc: at('c@x.test') },
    ],
    [
      'to Cc of an outbound message without To',
      outbound({ cc: at('c@x.test') }),
      false,
      { to: at('c@x.test'), cc: [] },
    ],
  ])('%s', (_name, original, replyAll, expected) => {
    expect(findReplyRecipients(original, { replyAll, ownAddresses: [OWN] })).toEqual(expected);
  });

  test.each<[string, RepliedMessage]>([
    ['to a message without a sender', inbound({ fromEmail: '', fromName: null })],
    ['to a message from the inbox itself', inbound({ fromEmail: OWN })],
    ['to an outbound message with only Bcc', outbound({})],
  ])('is refused %s', (_name, original) => {
    expect(() => findReplyRecipients(original, { replyAll: true, ownAddresses: [OWN] })).toThrow(
      expect.objectContaining({ code: 'no_recipients' }),
    );
  });

  test('never to the inbox itself and never twice to an address', () => {
    const address = fc.record({
      email: fc.oneof(
        fc.constantFrom(OWN, 'Agent@MAIL.test', 'agent+x@mail.test', '', '@', '"q"@x.test', 'a@[1.2.3.4]'),
        fc.constantFrom('a@x.test', 'A@x.test', 'b@x.test', 'c@y.test'),
        fc.emailAddress(),
        fc.string(),
      ),
    });
    const addresses = fc.array(address, { maxLength: 8 });
    fc.assert(
      fc.property(
        fc.record({
          direction: fc.constantFrom('inbound' as const, 'outbound' as const),
          fromEmail: address.map(({ email }) => email),
          fromName: fc.constant(null),
          replyTo: addresses,
          to: addresses,
          cc: addresses,
        }),
        fc.boolean(),
        addresses,
        (original, replyAll, further) => {
          let found: ReturnType<typeof findReplyRecipients>;
          try {
            found = findReplyRecipients(original, { replyAll, ownAddresses: [OWN] });
          } catch (error) {
            expect(error).toMatchObject({ code: 'no_recipients' });
            return;
          }
          const derived = [...found.to, ...found.cc].map(({ email }) => email.toLowerCase());
          expect(found.to.length).toBeGreaterThan(0);
          for (const email of derived) expect(email).not.toMatch(/^agent(\+.*)?@mail\.test$/);
          const { to, cc, bcc } = addRequestedRecipients(found, { cc: further, bcc: further });
          const all = [...to, ...cc, ...bcc].map(({ email }) => email.toLowerCase());
          expect(new Set(all).size).toBe(all.length);
        },
      ),
    );
  });
});
