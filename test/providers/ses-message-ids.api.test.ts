import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { accepted } from '../support/mail-services.ts';
import { arrangeSending, dispatchOnce, readMessageState } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

/** A message sent with SES, with one SES id per recipient, and the inbox that receives the replies. */
async function arrange(...to: string[]) {
  const sending = await arrangeSending(database);
  const sesIds = to.map(() => `0102-${randomUUID()}-000000`);
  const unused = sesIds.values();
  sending.transport.answerWith(async () => ({
    ...accepted,
    providerMessageId: unused.next().value ?? null,
  }));
  const messageId = await sending.send(...to);
  await dispatchOnce(sending, messageId);
  const { message } = await readMessageState(database, messageId);
  const { receive } = await arrangeInbox(database, {}, sending.inbox);
  return { receive, sesIds, threadId: message.threadId, rfcMessageId: message.rfcMessageId };
}

describe('a reply to a message whose Message-ID SES replaced', () => {
  test.each([
    ['In-Reply-To', 'eu-west-1'],
    ['References', 'eu-west-1'],
    ['In-Reply-To', 'email'],
  ])('joins its thread by %s at %s, from any sender', async (field, host) => {
    const { receive, sesIds, threadId } = await arrange('ada@people.example', 'bob@people.example');
    for (const id of sesIds) {
      const { message } = await receive(
        mail({ Subject: `About ${id}`, [field]: `<${id}@${host}.amazonses.com>` }, `Answer to ${id}`),
      );
      expect(message?.threadId).toBe(threadId);
    }
  });

  test('joins the thread of In-Reply-To, whether or not the id is an alias', async () => {
    const { receive, sesIds, threadId } = await arrange('ada@people.example');
    const other = await receive(mail({ Subject: 'Other', 'Message-ID': `<${sesIds[0]}@people.example>` }));
    const byAlias = await receive(
      mail(
        {
          'In-Reply-To': `<${sesIds[0]}@email.amazonses.com>`,
          References: `<${sesIds[0]}@people.example>`,
        },
        'One',
      ),
    );
    expect(byAlias.message?.threadId).toBe(threadId);
    const byMessageId = await receive(
      mail(
        {
          'In-Reply-To': `<${sesIds[0]}@people.example>`,
          References: `<${sesIds[0]}@email.amazonses.com>`,
        },
        'Two',
      ),
    );
    expect(byMessageId.message?.threadId).toBe(other.message?.threadId);
  });

  test('never joins a thread of another inbox', async () => {
    const theirs = await arrange('ada@people.example');
    const mine = await arrange('ada@people.example');
    const forged = `<${theirs.sesIds[0]}@eu-west-1.amazonses.com>`;
    const { message } = await mine.receive(mail({ 'In-Reply-To': forged, References: forged }));
    expect([theirs.threadId, mine.threadId]).not.toContain(message?.threadId);
  });

  test('does not join the thread of a message that uses the alias as its Message-ID', async () => {
    const { receive, sesIds, threadId } = await arrange('ada@people.example');
    const id = `<${sesIds[0]}@email.amazonses.com>`;
    const copy = await receive(mail({ Subject: 'Copied', 'Message-ID': id }, 'Copy'));
    expect(copy.message?.threadId).not.toBe(threadId);
    const { message } = await receive(mail({ 'In-Reply-To': id }, 'Answer'));
    expect(message?.threadId).toBe(threadId);
  });
});
