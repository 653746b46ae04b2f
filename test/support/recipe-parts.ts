import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import type { ParsedMail } from 'mailparser';
import { type PublishedRecord, publishRecords } from './domains.ts';
import { eventually } from './eventually.ts';
import type { RecipeRun } from './recipe-run.ts';

const TIMEOUT_MS = 30_000;

const filesOf = (mail: ParsedMail) =>
  mail.attachments.map(({ filename, content }) => [filename, content.toString()]);
const addressesOf = (field: ParsedMail['to']) =>
  [field ?? []].flat().flatMap(({ value }) => value.map(({ address }) => address));

/** What a recipe printed. */
export interface Ran {
  output: string;
  /** Its lines that are JSON. */
  answers: Record<string, unknown>[];
}

export interface RecipeParts {
  /** What others do while a recipe runs, by the comment that says so. */
  meanwhile: Record<string, () => Promise<void>>;
  /** What each recipe promises beyond the answers that the document shows, in any language. */
  checks: Record<string, (ran: Ran) => Promise<void>>;
}

/**
 * What the samples of docs/recipes.md have in common in all languages.
 *
 * @param own reads the ids that the samples got by the names of the variables in bash.
 */
export function recipeParts(own: RecipeRun): RecipeParts {
  /** To a raw message and a file that the last recipe deletes. */
  let links: string[] = [];
  const keepWebhook = async (): Promise<{ body: string; headers: Record<string, unknown> }> => {
    const request = await eventually(() => {
      const found = own.receiver.received.find(({ headers }) => headers['x-service-test'] === 'true');
      if (!found) throw new Error('The test event has not arrived');
      return found;
    }, TIMEOUT_MS);
    await writeFile(join(own.bash.folder, 'body.json'), request.body);
    return request;
  };
  const meanwhile: RecipeParts['meanwhile'] = {
    'Meanwhile: Ada answers, with a copy to Bob and a photo.': async () => {
      const { messageId } = await own.arrived('Your invoice');
      await own.deliver({
        cc: 'Bob <bob@people.example>',
        subject: 'Re: Your invoice',
        inReplyTo: messageId,
        text: 'No, I have moved. See the photo.\n\nOn Mon, Nov 23, 2026 at 9:00 AM Orders wrote:\n> Here it is.\n',
        attachments: [{ filename: 'door.png', content: 'a photo' }],
      });
    },
    'Meanwhile: the shop sends a code.': () =>
      own.deliver({
        from: 'Shop <no-reply@shop.example>',
        subject: 'Sign in',
        text: 'Your code is 481516. It expires in 10 minutes.',
      }),
    'Meanwhile: your server keeps the body in body.json, and the headers x-service-timestamp and x-service-signature.':
      async () => {
        const { headers } = await keepWebhook();
        const { 'x-service-timestamp': timestamp, 'x-service-signature': signature } = headers;
        await own.bash.run(`TIMESTAMP=${timestamp} SIGNATURE=${signature}`);
      },
    'Meanwhile: your server keeps the body in body.json, and the headers in headers.json.': async () => {
      const { headers } = await keepWebhook();
      await writeFile(join(own.bash.folder, 'headers.json'), JSON.stringify(headers));
    },
    'Meanwhile: your DNS provider publishes the records.': async () => {
      const { body } = await own.call('GET', `/domains/${await own.read('DOMAIN_ID')}`);
      publishRecords(own.dns, body.records as PublishedRecord[]);
    },
    'Meanwhile: a person sets the policy require_send_approval to external.': async () => {
      const { status } = await own.person('PATCH', '/org/policies', { require_send_approval: 'external' });
      expect(status).toBe(200);
    },
    'Meanwhile: a person approves it on the page /approvals.': async () => {
      const path = `/drafts/${await own.read('OFFER_DRAFT')}/approve`;
      const { status } = await own.person('POST', path, { version: 1, note: 'Good price.' });
      expect(status).toBe(201);
    },
    'Meanwhile: Ada writes once more.': async () => {
      await own.deliver({ subject: 'One more thing', text: 'Is it blue?' });
      const { body: message } = await own.call('GET', `/messages/${await own.read('LAST')}`);
      const { body: raw } = await own.call('GET', `/messages/${message.id}/raw`);
      const { body: file } = await own.call('GET', `/attachments/${message.attachment_ids[0]}`);
      links = [String(raw.download_url), String(file.download_url)];
      for (const link of links) expect((await fetch(link)).status).toBe(200);
    },
  };
  const checks: RecipeParts['checks'] = {
    Setup: async ({ output }) => {
      expect(output).toBe('');
    },
    'Create once': async ({ answers }) => {
      expect(answers).toMatchObject([{ id: await own.read('INBOX'), email: await own.read('ADDRESS') }]);
      expect((await own.call('GET', '/inboxes')).body.data).toHaveLength(1);
    },
    'Attach files': async () => {
      expect(filesOf(await own.arrived('Your invoice'))).toEqual([
        ['invoice.csv', 'item,price\nbook,9\n'],
        ['note.txt', 'Thanks!'],
      ]);
    },
    'Wait for an outcome': async ({ answers }) => {
      expect(answers).toMatchObject([{ id: await own.read('MESSAGE') }]);
    },
    'Read what is new': async ({ answers }) => {
      const id = await own.read('LAST');
      expect(answers).toEqual([
        expect.objectContaining({ id }),
        { object: 'timeout', timed_out: true },
        expect.objectContaining({ data: [expect.objectContaining({ id })] }),
      ]);
    },
    'Reply to all': async ({ answers }) => {
      const mail = await own.arrived('Re: Your invoice');
      expect(addressesOf(mail.to)).toEqual(['ada@people.example']);
      expect(addressesOf(mail.cc)).toEqual(['bob@people.example']);
      const original = (await own.call('GET', `/messages/${await own.read('LAST')}`)).body;
      expect(mail.inReplyTo).toBe(`<${original.rfc_message_id}>`);
      expect(answers).toMatchObject([{ thread_id: original.thread_id }]);
    },
    Forward: async () => {
      const mail = await own.arrived('Fwd: Your invoice');
      expect(addressesOf(mail.to)).toEqual(['depot@people.example']);
      expect(filesOf(mail)).toEqual([['door.png', 'a photo']]);
      expect(mail.text).toContain('I have moved');
    },
    Find: async ({ answers }) => {
      expect(answers).toMatchObject([{ data: [{ id: await own.read('LAST') }] }]);
    },
    Label: async ({ answers }) => {
      expect(answers[1]).toMatchObject({ data: [{ id: await own.read('LAST'), labels: ['answered'] }] });
    },
    Schedule: async ({ answers }) => {
      const { date, messageId } = await own.arrived('A reminder');
      expect(messageId).toContain(String(answers[1]?.message_id));
      // A Date header has whole seconds.
      const sendAt = Math.floor(Date.parse(String(answers[0]?.send_at)) / 1000) * 1000;
      expect(date?.getTime()).toBeGreaterThanOrEqual(sendAt);
    },
    'Get a code': async () => {
      expect(await own.read('CODE')).toBe('481516');
    },
    'Verify webhooks and replay': async ({ output }) => {
      expect(output).toMatch(/^genuine\b/m);
      const missed = (await own.call('GET', '/events?type=message.received')).body.data.map(({ id }) => id);
      expect(missed).toHaveLength(2);
      await eventually(() => {
        const replayed = own.receiver.received.map(({ headers }) => headers['webhook-id']);
        expect(replayed).toEqual(expect.arrayContaining(missed));
      }, TIMEOUT_MS);
    },
    'Use your own domain': async ({ output }) => {
      expect(output).toContain(`_agent-email-verification.${own.domain}.`);
      const { body } = await own.call('GET', `/inboxes?email=sales@${own.domain}`);
      expect(body.data).toHaveLength(1);
    },
    'Understand a bounce': async ({ answers }) => {
      const email = 'bounce@people.example';
      expect(answers[1]).toMatchObject({
        data: [{ email, origin: 'bounce', message_id: await own.read('LOST') }],
      });
    },
    'Know the allowance': async ({ answers: [, usage, requests] }) => {
      expect(usage).toMatchObject({ counters: { messages_sent: { current: 5 } } });
      expect(requests?.data).toHaveLength(5);
    },
    'Give a sub-agent its own key': async ({ answers }) => {
      expect(answers[0]).toMatchObject({ inbox_id: await own.read('INBOX') });
      expect((await own.call('GET', `/api-keys/${answers[0]?.id}`)).status).toBe(404);
    },
    'Wait for an approval': async ({ answers }) => {
      expect((await own.arrived('Our offer')).messageId).toContain(String(answers[1]?.message_id));
    },
    'Follow and resume, then delete and prove it': async () => {
      const ids = [await own.read('GONE'), await own.read('LAST'), await own.read('MESSAGE')];
      for (const id of ids) expect((await own.call('GET', `/messages/${id}`)).status).toBe(404);
      for (const link of links) expect((await fetch(link)).status).toBe(404);
    },
  };
  return { meanwhile, checks };
}
