import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { SuppressionEntity } from '../../domain/deliverability/suppression.entity.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { arrangeInbox, type ReceiptFacts } from '../support/inbound-mail.ts';
import { arrangeSending, readMessageState } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

const sample = (name: string) => readFileSync(new URL(`../fixtures/bounces/${name}.eml`, import.meta.url));

/** A sent message, and an inbox that receives mail about it. */
async function arrange() {
  const { dispatch, send, inbox: sender } = await arrangeSending(database);
  const messageId = await send('gone@people.example');
  await dispatch.prepare(messageId);
  await dispatch.transmit(messageId, () => false);
  await dispatch.record(messageId);
  const { receive } = await arrangeInbox(database);
  const report = (raw: Buffer, facts: ReceiptFacts = {}) =>
    receive(raw, { kind: 'report', target: messageId, mailFrom: '', ...facts });
  const state = async () => (await readMessageState(database, messageId)).message.status;
  const bounces = async () => {
    const events = await database.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('inbox_id', '=', sender.id)
      .where('type', '=', 'message.bounced')
      .execute();
    return events.map(({ data }) => data as Record<string, unknown>);
  };
  const suppressed = async () => {
    const rows = await database.db
      .selectFrom('suppressions')
      .select(columnsOf(SuppressionEntity))
      .where('org_id', '=', sender.organizationId)
      .execute();
    return rows.map(({ email }) => email);
  };
  return { report, state, bounces, suppressed };
}

describe('mail to a signed return path', () => {
  test.each([
    { name: 'qmail-no-mailbox', type: 'Permanent', subType: 'NoEmail', status: '5.1.1' },
    { name: 'exim-quota', type: 'Transient', subType: 'General', status: '5.2.2' },
    { name: 'lang-es', type: 'Permanent', subType: 'NoEmail', status: '5.1.1' },
    { name: 'nobody-named', type: 'Permanent', subType: 'NoEmail', status: '5.1.1' },
  ])('a textual report ($name) is $type, $subType', async ({ name, type, subType, status }) => {
    const { report, state, bounces } = await arrange();
    expect((await report(sample(name))).outcome).toBe('report applied');
    expect(await state()).toBe('bounced');
    expect(await bounces()).toEqual([
      expect.objectContaining({
        bounce_type: type,
        bounce_sub_type: subType,
        // The return path identifies the recipient, not the text.
        bounced_recipients: [expect.objectContaining({ email_address: 'gone@people.example', status })],
      }),
    ]);
  });

  test.each([
    { name: 'dsn-full-as-unknown', type: 'Transient', addresses: [] },
    { name: 'dsn-full-in-notice', type: 'Transient', addresses: [] },
    { name: 'mdn-rejected-full', type: 'Transient', addresses: [] },
    { name: 'mdn-rejected-by-sieve', type: 'Permanent', addresses: [] },
    { name: 'qmail-no-mailbox', type: 'Permanent', addresses: ['gone@people.example'] },
  ])('$name is $type and suppresses $addresses', async ({ name, type, addresses }) => {
    const { report, bounces, suppressed } = await arrange();
    expect((await report(sample(name))).outcome).toBe('report applied');
    expect(await bounces()).toEqual([expect.objectContaining({ bounce_type: type })]);
    expect(await suppressed()).toEqual(addresses);
  });

  test('a delay whose subject says failure has no effect', async () => {
    const { report, state, bounces } = await arrange();
    expect((await report(sample('delay-under-failure-subject'))).outcome).toBe('report applied');
    expect([await state(), await bounces()]).toEqual(['sent', []]);
  });

  test('a bounce after delivery counts', async () => {
    const { report, state } = await arrange();
    await report(sample('dsn-delivered'));
    expect(await state()).toBe('delivered');
    await report(sample('qmail-no-mailbox'));
    expect(await state()).toBe('bounced');
  });

  test('a report without a readable author is applied', async () => {
    for (const from of ['From: MAILER-DAEMON', 'From: a@b@c', 'X-A: b']) {
      const { report, state } = await arrange();
      const raw = sample('qmail-no-mailbox')
        .toString('latin1')
        .replace(/^From:.*$/m, from);
      expect((await report(Buffer.from(raw, 'latin1'))).outcome).toBe('report applied');
      expect(await state()).toBe('bounced');
    }
  });

  test('a delay report has no effect', async () => {
    const { report, state, bounces } = await arrange();
    expect((await report(sample('exim-delay'))).outcome).toBe('report applied');
    expect([await state(), await bounces()]).toEqual(['sent', []]);
  });

  test.each([
    ['not-vacation'],
    ['not-vacation-left'],
    ['not-vacation-full'],
    ['not-challenge'],
    ['not-receipt'],
  ])('mail that is not a bounce (%s) is stored as a message and has no effect', async (name) => {
    const { report, state, bounces } = await arrange();
    expect((await report(sample(name))).outcome).toMatch(/^stored/);
    expect([await state(), await bounces()]).toEqual(['sent', []]);
  });
});

test('a report to an inbox is an ordinary message', async () => {
  const { report, state, bounces } = await arrange();
  for (const name of ['dsn-plain', 'qmail-no-mailbox', 'arf-abuse'])
    expect((await report(sample(name), { kind: 'mail', target: undefined })).outcome).toMatch(/^stored/);
  expect([await state(), await bounces()]).toEqual(['sent', []]);
});

test.each([
  { name: 'qmail-no-mailbox', automated: true },
  { name: 'exim-delay', automated: true },
  { name: 'dsn-plain', automated: true },
  { name: 'mdn-rejected-full', automated: true },
  { name: 'arf-abuse', automated: true },
  { name: 'lang-fr-plain-ascii', automated: true },
  { name: 'not-vacation-de', automated: true },
  { name: 'not-challenge', automated: true },
  { name: 'not-person-about-delivery', automated: false },
  { name: 'not-newsletter', automated: false },
])('with an envelope sender, $name has automated: $automated', async ({ name, automated }) => {
  const { receive } = await arrangeInbox(database);
  // Without the fields that say so themselves.
  const raw = sample(name)
    .toString('latin1')
    .replace(/^(?:auto-submitted|precedence|list-[a-z]+|x-auto[a-z-]*):.*\n(?:[ \t].*\n)*/gim, '');
  const { message } = await receive(Buffer.from(raw, 'latin1'), { mailFrom: 'someone@people.example' });
  expect(message?.automated).toBe(automated);
  expect(message?.signals.includes('automated')).toBe(automated);
});

test('mail that is not a report joins the thread of the return path', async () => {
  const { receive } = await arrangeInbox(database);
  const raw = Buffer.from(
    'From: a@people.example\r\nMessage-ID: <first@people.example>\r\nSubject: One\r\n\r\nx',
  );
  const first = await receive(raw);
  const facts = { kind: 'report', target: first.message?.id, mailFrom: '' } as const;
  const absence = await receive(sample('not-vacation'), facts);
  expect(absence.message?.threadId).toBe(first.message?.threadId);
});
