import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createMailIntake } from '../../domain/providers/mail-intake.service.ts';
import { createSesMailService } from '../../domain/providers/ses-mail.service.ts';
import { sha256 } from '../../platform/crypto.ts';
import type { Storage } from '../../platform/storage.ts';
import type { RawSmtpClient } from '../inbound/raw-smtp-client.ts';
import { cleanUpAfterEach, greeted, listen } from '../inbound/test-listener.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { createTestReceiptService, testReturnPaths } from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { countRows, query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

cleanUpAfterEach();

const app = useTestApp();
let limits: TestLimits;
beforeAll(async () => {
  limits = administerLimits({ database: app.worker });
});

async function arrange(limit?: number) {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  const inboxes = [await createInbox(app.worker, organization), await createInbox(app.worker, organization)];
  const allow = (newLimit: number) =>
    setLimit(limits, organizationId, { resource: 'messages_received', limit: newLimit });
  if (limit !== undefined) await allow(limit);
  const received = async () =>
    (await app.call('/org/usage', { token })).json().counters.messages_received.current;
  const receipts = () =>
    countRows(app.worker.db.selectFrom('inbound_receipts').select('id').where('org_id', '=', organizationId));
  return { organization, organizationId, token, inboxes, allow, received, receipts };
}

const receiptsOf = () => createTestReceiptService({ database: app.worker, outbox: recordingOutbox().outbox });

describe('the SMTP listener', () => {
  const sendCommands = async (client: RawSmtpClient, ...lines: string[]) => {
    const answers: string[] = [];
    for (const line of lines) answers.push(await client.command(line));
    return answers;
  };
  const deliver = async (client: RawSmtpClient, to: string[], subject: string) => {
    await client.command('MAIL FROM:<ada@people.example>');
    const recipients = await sendCommands(client, ...to.map((email) => `RCPT TO:<${email}>`));
    if (!recipients.some((answer) => answer.startsWith('250'))) {
      await client.command('RSET');
      return { recipients, end: null };
    }
    await client.command('DATA');
    return { recipients, end: await client.command(`${mail({ Subject: subject })}\r\n.`) };
  };

  test('defers a recipient whose organization is over its limit and accepts the message once it is not', async () => {
    const { inboxes, allow, received, receipts } = await arrange(1);
    const to = inboxes.map(({ email }) => email);
    const { listener, objects } = await listen({ receipts: receiptsOf() });
    const client = await greeted(listener.port);

    const first = await deliver(client, to, 'One of two recipients over the limit');
    expect(first.recipients).toEqual([
      expect.stringMatching(/^250 /),
      expect.stringMatching(/^452 4\.2\.2 The recipient has reached its receive limit/),
    ]);
    expect(first.end).toMatch(/^250 2\.0\.0/);
    expect(await received()).toBe(1);

    const [address = ''] = to;
    expect((await deliver(client, [address], 'Later')).recipients).toEqual([
      expect.stringMatching(/^452 4\.2\.2 /),
    ]);
    expect([await received(), await receipts(), objects.size]).toEqual([1, 1, 1]);

    await allow(2);
    expect((await deliver(client, [address], 'Later')).end).toMatch(/^250 2\.0\.0/);
    expect([await received(), await receipts()]).toEqual([2, 2]);
  });

  test('leaves nothing behind if the limit is reached during the transfer', async () => {
    const { inboxes, received, receipts } = await arrange(1);
    const service = receiptsOf();
    const { listener, objects } = await listen({ receipts: service });
    const clients = await Promise.all([greeted(listener.port), greeted(listener.port)]);
    for (const [number, client] of clients.entries()) {
      await sendCommands(client, 'MAIL FROM:<ada@people.example>');
      expect(await client.command(`RCPT TO:<${inboxes[number]?.email}>`)).toMatch(/^250 /);
      await client.command('DATA');
    }
    const ends = await Promise.all(
      clients.map((client, number) => client.command(`${mail({ Subject: `Mail ${number}` })}\r\n.`)),
    );
    expect(ends.map((end) => end.slice(0, 9)).sort()).toEqual(['250 2.0.0', '452 4.2.2']);
    expect([await received(), await receipts(), objects.size]).toEqual([1, 1, 1]);
  });

  test('accepts DSNs and complaints regardless of the limit', async () => {
    const { inboxes, organizationId, token, received } = await arrange(0);
    const sent = await app.call(`/inboxes/${inboxes[0]?.id}/messages`, {
      method: 'POST',
      token,
      body: { to: [{ email: 'bob@people.example' }], subject: 'Hi', text_body: 'Hello' },
    });
    const messageId = sent.json().id;
    const receipts = receiptsOf();
    const route = await receipts.resolve(testReturnPaths.create(messageId, 0), '');
    expect(route).toMatchObject({ kind: 'report', organizationId, messageId });
    expect(await receipts.resolve('complaints@bounces.mail.test', '')).toEqual({ kind: 'feedback' });
    expect(await received()).toBe(0);
  });
});

describe('messages_received counts', () => {
  test('a message once per inbox, and not again for a duplicate', async () => {
    const { organizationId, received, inboxes } = await arrange();
    const { ingest, accept } = await arrangeInbox(app.worker, {}, inboxes[0]);
    const raw = mail({ Subject: 'Once' });
    // As the listener does: counted on commit, and refunded for a duplicate.
    const commit = async () => {
      const before = await accept(raw);
      await query(
        app.worker,
        sql`insert into usage_deltas (org_id, counter, at, amount) values (${organizationId}, 'messages_received', now(), 1)`,
      );
      return ingest.ingest(before);
    };
    expect(await commit()).toMatch(/^stored as/);
    expect(await commit()).toMatch(/^duplicate of/);
    expect(await received()).toBe(1);
  });

  test('an unreadable report that is stored as a message', async () => {
    const { received, inboxes } = await arrange(0);
    const { receive } = await arrangeInbox(app.worker, {}, inboxes[0]);
    const { outcome } = await receive(mail({ Subject: 'On holiday' }), {
      kind: 'report',
      target: 'msg_01kam0000000000000000000ab',
    });
    expect(outcome).toMatch(/^stored as/);
    expect(await received()).toBe(1);
  });
});

describe('providers', () => {
  const storage = (objects: Map<string, Buffer>): Pick<Storage, 'putStream' | 'delete'> => ({
    async putStream(key, source) {
      const bytes = await buffer(source as Readable);
      objects.set(key, bytes);
      return { sizeBytes: bytes.length, sha256: sha256(bytes) };
    },
    async delete(key) {
      objects.delete(key);
    },
  });

  test('SES retries for recipients over the limit; the others get the message', async () => {
    const full = await arrange(0);
    const free = await arrange();
    const objects = new Map<string, Buffer>();
    const intake = createMailIntake({
      storage: storage(objects),
      receipts: receiptsOf(),
      maxSizeBytes: 10_000,
    });
    const sesMail = createSesMailService({
      intake,
      objects: { open: () => Promise.reject(new Error('unused')) },
      buckets: [],
      onUnknownRecipients: () => undefined,
    });
    const take = () =>
      sesMail.accept({
        sesMessageId: full.organizationId,
        mailFrom: 'ada@people.example',
        recipients: [full, free].flatMap(({ inboxes: [inbox] }) => inbox?.email ?? []),
        receivedAt: new Date(),
        content: { kind: 'inline', bytes: Buffer.from(mail({ Subject: 'By SES' })) },
        verdicts: {
          isSpam: false,
          authentication: { spf: 'none', dkim: 'none', dmarc: 'none', arc: 'none', policy: null },
        },
      });
    await expect(take()).rejects.toMatchObject({ code: 'unavailable' });
    expect([await full.received(), await free.received(), objects.size]).toEqual([0, 1, 1]);
    await expect(take()).rejects.toMatchObject({ code: 'unavailable' });
    await full.allow(1);
    expect(await take()).toBe('stored');
    expect([await full.received(), await free.received()]).toEqual([1, 1]);
    // All recipients exist; this message itself uses up the limit of one of them.
    expect(await take()).toBe('stored');
    expect([await full.received(), await free.received(), await full.receipts()]).toEqual([1, 1, 1]);
  });

  test('removes the object of a message that is refused at commit', async () => {
    const { inboxes, allow, received } = await arrange(1);
    const objects = new Map<string, Buffer>();
    const receipts = receiptsOf();
    const intake = createMailIntake({ storage: storage(objects), receipts, maxSizeBytes: 10_000 });
    const { recipients } = await intake.resolve([inboxes[0]?.email ?? ''], 'ada@people.example');
    await allow(0);
    const taking = intake.accept({
      transportId: 'raw-id:1',
      mailFrom: 'ada@people.example',
      clientIp: '',
      helo: null,
      recipients,
      source: Readable.from([Buffer.from(mail({ Subject: 'Late' }))]),
    });
    await expect(taking).rejects.toMatchObject({ code: 'usage_limit_exceeded' });
    expect([await received(), objects.size]).toEqual([0, 0]);
  });
});
