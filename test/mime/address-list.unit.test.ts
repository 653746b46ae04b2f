import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readAddressList } from '../../domain/mime/address-list.ts';
import { splitAddresses } from '../../domain/mime/mail-address.ts';
import { parseMail } from '../../domain/mime/parse-mail.ts';

const parse = (lines: string[]) =>
  parseMail(Readable.from([Buffer.from([...lines, '', 'Testing.', ''].join('\r\n'), 'latin1')]), {
    consumeFile: async () => {},
  });

/** Appendix A of RFC 5322. */
const EXAMPLES: { section: string; lines: string[]; expected: object }[] = [
  {
    section: 'A.1.1',
    lines: [
      'From: John Doe <jdoe@machine.example>',
      'Sender: Michael Jones <mjones@machine.example>',
      'To: Mary Smith <mary@example.net>',
      'Subject: Saying Hello',
    ],
    expected: {
      from: { email: 'jdoe@machine.example', name: 'John Doe' },
      to: [{ email: 'mary@example.net', name: 'Mary Smith' }],
    },
  },
  {
    section: 'A.1.2',
    lines: [
      'From: "Joe Q. Public" <john.q.public@example.com>',
      'To: Mary Smith <mary@x.test>, jdoe@example.org, Who? <one@y.test>',
      'Cc: <boss@nil.test>, "Giant; \\"Big\\" Box" <sysservices@example.net>',
    ],
    expected: {
      from: { email: 'john.q.public@example.com', name: 'Joe Q. Public' },
      to: [
        { email: 'mary@x.test', name: 'Mary Smith' },
        { email: 'jdoe@example.org' },
        { email: 'one@y.test', name: 'Who?' },
      ],
      cc: [{ email: 'boss@nil.test' }, { email: 'sysservices@example.net', name: 'Giant; "Big" Box' }],
    },
  },
  {
    section: 'A.1.3',
    lines: [
      'From: Pete <pete@silly.example>',
      'To: A Group:Ed Jones <c@a.test>,joe@where.test,John <jdoe@one.test>;',
      'Cc: Undisclosed recipients:;',
    ],
    expected: {
      from: { email: 'pete@silly.example', name: 'Pete' },
      to: [
        { email: 'c@a.test', name: 'Ed Jones' },
        { email: 'joe@where.test' },
        { email: 'jdoe@one.test', name: 'John' },
      ],
      cc: [],
    },
  },
  {
    section: 'A.5',
    lines: [
      'From: Pete(A nice \\) chap) <pete(his account)@silly.test(his host)>',
      'To:A Group(Some people)',
      "     :Chris Jones <c@(Chris's host.)public.example>,",
      '         joe@example.org,',
      '  John <jdoe@one.test> (my dear friend); (the end of the group)',
      'Cc:(Empty list)(start)Hidden recipients  :(nobody(that I know))  ;',
      'Subject: Testing',
    ],
    expected: {
      from: { email: 'pete@silly.test', name: 'Pete' },
      to: [
        { email: 'c@public.example', name: 'Chris Jones' },
        { email: 'joe@example.org' },
        { email: 'jdoe@one.test', name: 'John' },
      ],
      cc: [],
      subject: 'Testing',
    },
  },
  {
    section: 'A.6.1',
    lines: [
      'From: Joe Q. Public <john.q.public@example.com>',
      'To: Mary Smith <@node.test:mary@example.net>, , jdoe@test  . example',
    ],
    expected: {
      from: { email: 'john.q.public@example.com', name: 'Joe Q. Public' },
      to: [{ email: 'mary@example.net', name: 'Mary Smith' }, { email: 'jdoe@test.example' }],
    },
  },
  {
    section: 'A.6.3',
    lines: [
      'From  : John Doe <jdoe@machine(comment).  example>',
      'To    : Mary Smith',
      '   ',
      '          <mary@example.net>',
      'Subject     : Saying Hello',
    ],
    expected: {
      from: { email: 'jdoe@machine.example', name: 'John Doe' },
      to: [{ email: 'mary@example.net', name: 'Mary Smith' }],
      subject: 'Saying Hello',
    },
  },
];

test.each(EXAMPLES)('reads the addresses of RFC 5322 $section', async ({ lines, expected }) => {
  expect(await parse(lines)).toMatchObject({ ...expected, isAuthorAmbiguous: false, parseError: null });
});

describe('control characters', () => {
  test('are U+FFFD in addresses, names and the subject, raw or in encoded words', async () => {
    const mail = await parse([
      'From: =?utf-8?q?B=00oss?= \x0b<bo\x7fss@bank.example>',
      'To: a@b\x0b.example, "C\0" <c@d.example>',
      'Reply-To: e\x01@f.example',
      'Subject: \x0bOne=?utf-8?b?AAo=?= =?utf-8?b?AAo=?=\rtwo',
    ]);
    expect(mail).toMatchObject({
      from: { email: 'bo\ufffdss@bank.example', name: expect.stringContaining('B\ufffdoss') },
      to: [{ email: 'a@b\ufffd.example' }, { email: 'c@d.example', name: 'C\ufffd' }],
      replyTo: [{ email: 'e\ufffd@f.example' }],
      subject: expect.stringMatching(/^\ufffdOne.*\ufffd\ufffd\ufffdtwo$/),
      isAuthorAmbiguous: true,
    });
  });

  test('never reach an address, a name or the subject, wherever they are', async () => {
    const piece = fc.constantFrom(
      'a',
      '@',
      'b.example',
      '<',
      '>',
      '"',
      ',',
      ' ',
      '\0',
      '\x0b',
      '\x7f',
      '\x1b',
      '\r',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 20 }), async (pieces) => {
        const value = pieces.join('');
        const { from, to, subject } = await parse([`From: ${value}`, `To: ${value}`, `Subject: ${value}`]);
        expect(JSON.stringify([from, to])).not.toMatch(/\\u00[01]|\\[bfnr]|\x7f/);
        expect(subject).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

test('shows the first of two From and Subject fields, as mail clients do', async () => {
  const mail = await parse(['From: a@b.example', 'Subject: One', 'From: c@d.example', 'Subject: Two']);
  expect(mail).toMatchObject({
    from: { email: 'a@b.example' },
    subject: 'One',
    isAuthorAmbiguous: true,
    headers: { from: 'a@b.example', subject: 'One' },
  });
});

test('reads From before a colon with a space, in the first line and elsewhere', async () => {
  for (const before of [[], ['Subject: One']]) {
    const mail = await parse([...before, 'From : x@a.example', 'From: y@b.example']);
    expect(mail).toMatchObject({ from: { email: 'x@a.example' }, isAuthorAmbiguous: true });
  }
});

test('finds the mailboxes that a list was written from', () => {
  const atom = fc.stringMatching(/^[a-z0-9!#$%&'*+/=?^_`{|}~-]{1,10}$/);
  const domain = fc.array(fc.stringMatching(/^[a-z0-9-]{1,8}$/), { minLength: 1, maxLength: 3 });
  const space = fc.constantFrom('', ' ', '\t', ' (a \\) (b) c) ', '(x@evil.example)');
  const mailbox = fc
    .tuple(
      fc.array(atom, { minLength: 1, maxLength: 3 }),
      domain,
      space,
      fc.constantFrom('bare', 'named', 'route'),
    )
    .map(([local, labels, gap, form]) => {
      const address = `${local.join('.')}@${labels.join('.')}`;
      const spaced = `${local.join('.')}${gap}@${gap}${labels.join(`${gap}.${gap}`)}`;
      const written = {
        bare: spaced,
        named: `Ann "B, C" ${gap}<${spaced}>`,
        route: `<@r.example:${spaced}>`,
      };
      return { address, written: `${gap}${written[form as 'bare']}` };
    });
  fc.assert(
    fc.property(fc.array(mailbox, { maxLength: 5 }), fc.constantFrom(',', ', ,', ',\t'), (given, comma) => {
      const { mailboxes, isClear } = readAddressList(given.map(({ written }) => written).join(comma));
      expect(mailboxes.map(({ email }) => email)).toEqual(given.map(({ address }) => address));
      expect(isClear).toBe(true);
    }),
  );
});

describe('a list of addresses as people type it', () => {
  test.each([
    ['ada@people.example, bob@people.example', ['ada@people.example', 'bob@people.example']],
    [
      'ada@people.example;bob@people.example\r\n\neve@people.example,',
      ['ada@people.example', 'bob@people.example', 'eve@people.example'],
    ],
    [
      '"Lovelace, Ada" <ada@people.example>, bob@people.example',
      ['"Lovelace, Ada" <ada@people.example>', 'bob@people.example'],
    ],
    ['"a \\", b" <a@people.example>', ['"a \\", b" <a@people.example>']],
    ['<a,b@people.example>', ['<a,b@people.example>']],
    // What is not closed ends with its line.
    ['"Ada, <ada@people.example>\nbob@people.example', ['"Ada, <ada@people.example>', 'bob@people.example']],
    ['<ada@people.example, b\nbob@people.example', ['<ada@people.example, b', 'bob@people.example']],
    [' , ;\n', []],
    ['', []],
  ])('%j has its parts', (text, parts) => {
    expect(splitAddresses(text)).toEqual(parts);
  });
});
