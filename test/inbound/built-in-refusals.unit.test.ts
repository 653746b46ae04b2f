import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { type BuiltInRefusal, watchBuiltInRefusals } from '../../workers/built-in-refusals.ts';
import { cleanUpAfterEach, cleanUps, greeted } from './test-listener.ts';

cleanUpAfterEach();

/** The real server, whose replies a new version may word in another way. */
async function serve(options: SMTPServerOptions) {
  const reported: (BuiltInRefusal & { session: string })[] = [];
  const builtIn = watchBuiltInRefusals((refusal, { id }) => reported.push({ ...refusal, session: id }));
  const server = new SMTPServer({
    disableReverseLookup: true,
    authOptional: true,
    size: 1_000,
    maxRecipients: 1,
    logger: false,
    ...options,
    onConnect(session, done) {
      builtIn.begin(session);
      done();
    },
    onClose: (session) => builtIn.end(session),
  });
  server.logger = builtIn.logger;
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  cleanUps.push(() => new Promise<void>((resolve) => server.close(resolve)));
  const client = await greeted((server.server.address() as AddressInfo).port);
  return { client, reported };
}

const FROM = 'MAIL FROM:<ada@people.example>';
const sender = 'ada@people.example';

test.each([
  [
    'a sender with a syntax error',
    {},
    ['MAIL FROM:ada'],
    { stage: 'mail', reason: 'wrong_sender', sender: null, recipients: [] },
  ],
  [
    'a recipient with a syntax error',
    {},
    [FROM, 'RCPT TO:<one two>'],
    { stage: 'rcpt', reason: 'invalid_recipient', sender, recipients: [] },
  ],
  [
    'a recipient too many',
    {},
    [FROM, 'RCPT TO:<one@agents.test>', 'RCPT TO:<two@agents.test>'],
    { stage: 'rcpt', reason: 'too_many_recipients', sender, recipients: ['two@agents.test'] },
  ],
  [
    'a size that is too large',
    {},
    [`${FROM} SIZE=1001`, 'RCPT TO:<one@agents.test>', 'NOOP'],
    { stage: 'mail', reason: 'message_too_large', sender, recipients: ['one@agents.test'] },
  ],
  [
    'a sender without a login',
    { authOptional: false },
    [FROM],
    { stage: 'mail', reason: 'not_authenticated', sender, recipients: [] },
  ],
  [
    'a login without TLS',
    { allowInsecureAuth: false },
    ['AUTH PLAIN AGEAYg=='],
    { stage: 'auth', reason: 'not_authenticated', sender: null, recipients: [] },
  ],
] as const)('smtp-server reports %s to the listener, once', async (_case, options, commands, expected) => {
  const { client, reported } = await serve(options);
  const replies: string[] = [];
  for (const command of commands) replies.push(await client.command(command));
  const { reason, ...rest } = expected;
  expect(reported).toMatchObject([{ ...rest, error: { reason } }]);
  const error = reported[0]?.error;
  // The text without the enhanced status code, with the code that the client received.
  const refused = replies.find((reply) => /^[45]/.test(reply)) ?? '';
  expect(refused.startsWith(String(error?.responseCode))).toBe(true);
  expect(refused.trimEnd().endsWith(error?.message ?? 'none')).toBe(true);
});

test('smtp-server reports nothing for what it accepts, and for errors that concern no mail', async () => {
  const { client, reported } = await serve({});
  for (const command of [
    FROM,
    'RCPT TO:<one@agents.test>',
    'RSET',
    'FROB',
    'RCPT TO:<two@agents.test>',
    'QUIT',
  ])
    await client.command(command);
  expect(reported).toEqual([]);
});
