import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { simpleParser } from 'mailparser';
import { NotificationEntity } from '../../domain/notifications/notification.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { overdueNotifications } from '../../domain/notifications/notification-run.ts';
import { createNotificationSendingService } from '../../domain/notifications/notification-sending.service.ts';
import { retryNotification } from '../../domain/notifications/retry-notification.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { TransmissionResult } from '../../platform/mail-transport/mail-transport.ts';
import { NOTIFICATION_RETRY_DELAYS_MS } from '../../workflows/notifications/send-notification.contract.ts';
import {
  accepted,
  ambiguous,
  deferred,
  refused,
  ScriptedTransport,
  unsigned,
} from '../support/mail-services.ts';
import { createOrganization } from '../support/organizations.ts';
import { countRows, query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const database = useWorkerDatabase();

const params = {
  endpointId: 'whe_1',
  environmentId: 'env_1',
  url: 'https://receiver.example/hook',
  reason: 'Every attempt failed for 5 days.',
  failingSince: null,
};

/** One email to an owner, and a relay that returns `answers` in order. */
async function arrange(answers: TransmissionResult[] = []) {
  const { organizationId, ownerId } = await createOrganization(database);
  const { outbox, commands } = recordingOutbox();
  const notifications = createNotificationService({ outbox });
  const notify = (dedupeKey = 'key') =>
    database.systemTransaction((transaction) =>
      notifications.notifyOwners(transaction, {
        organizationId,
        template: 'webhook-endpoint-disabled',
        params,
        dedupeKey: `${organizationId}/${dedupeKey}`,
      }),
    );
  await notify();
  const transport = new ScriptedTransport(async () => answers.shift() ?? accepted);
  const sending = createNotificationSendingService({
    database,
    mailTransport: transport,
    dkimKeys: unsigned,
    secretBox: createSecretBox(Buffer.alloc(32, 7).toString('base64')),
    publicUrl: 'https://mail.example',
    systemAddress: 'no-reply@mail.test',
    returnPath: 'notifications@bounces.mail.test',
  });
  const read = () =>
    database.db
      .selectFrom('notifications')
      .select(columnsOf(NotificationEntity))
      .where('org_id', '=', organizationId)
      .execute();
  const [{ id } = { id: '' }] = await read();
  const row = async () => (await read()).find((notification) => notification.id === id);
  return { id, ownerId, notify, commands, transport, sending, read, row };
}

describe('a system email', () => {
  test('is created and started once per dedupe key', async () => {
    const { id, notify, read, commands } = await arrange();
    await Promise.all([notify(), notify(), notify()]);
    expect(await read()).toHaveLength(1);
    expect(commands).toMatchObject([
      { start: { workflowId: `notification/${id}`, taskQueue: 'outbound', input: { notificationId: id } } },
    ]);
    await notify('another key');
    expect(await read()).toHaveLength(2);
  });

  test('is not created if its transaction rolls back', async () => {
    const { organizationId } = await createOrganization(database);
    const { outbox, commands } = recordingOutbox();
    const rolledBack = database.systemTransaction(async (transaction) => {
      await createNotificationService({ outbox }).notifyOwners(transaction, {
        organizationId,
        template: 'webhook-endpoint-disabled',
        params,
        dedupeKey: organizationId,
      });
      throw new Error('rolled back');
    });
    await expect(rolledBack).rejects.toThrow('rolled back');
    expect(commands).toEqual([]);
    const left = await countRows(
      database.db.selectFrom('notifications').select('id').where('org_id', '=', organizationId),
    );
    expect(left).toBe(0);
  });

  test('is marked auto-generated, requests no DSNs and comes from the system address', async () => {
    const { id, ownerId, transport, sending, row } = await arrange();
    await expect(sending.send(id)).resolves.toEqual({ kind: 'settled', status: 'sent' });
    const [transmission] = transport.transmissions;
    expect(transmission).toMatchObject({
      sender: 'notifications@bounces.mail.test',
      recipient: `${ownerId}@example.test`,
      envelopeId: id,
      reports: 'never',
    });
    const bytes = await buffer(
      await (transmission?.openRaw() ?? Promise.reject(new Error('nothing was sent'))),
    );
    expect(bytes.length).toBe(transmission?.sizeBytes);
    const mail = await simpleParser(bytes);
    expect(mail.headers.get('auto-submitted')).toBe('auto-generated');
    expect(mail).toMatchObject({
      subject: 'Webhook endpoint disabled: receiver.example',
      messageId: `<${id}@mail.test>`,
      text: expect.stringContaining('whe_1'),
      html: expect.stringContaining('whe_1'),
    });
    expect(mail.from?.value).toMatchObject([{ address: 'no-reply@mail.test' }]);
    expect(await row()).toMatchObject({ status: 'sent', attempts: 1, sentAt: expect.any(Date) });
    await expect(sending.send(id)).resolves.toEqual({ kind: 'settled', status: 'sent' });
    expect(transport.transmissions).toHaveLength(1);
  });

  test('is retried on its schedule when deferred, then fails', async () => {
    const tries = NOTIFICATION_RETRY_DELAYS_MS.length;
    const { id, sending, row, transport } = await arrange(Array.from({ length: tries + 1 }, () => deferred));
    for (const delayMs of NOTIFICATION_RETRY_DELAYS_MS)
      await expect(sending.send(id)).resolves.toMatchObject({ kind: 'retry', delayMs });
    await expect(sending.send(id)).resolves.toEqual({ kind: 'settled', status: 'failed' });
    expect(await row()).toMatchObject({ attempts: tries + 1, lastError: '451 4.7.1 greylisted' });
    expect(transport.transmissions).toHaveLength(tries + 1);
  });

  test('that a person has sent again is not failed by the late answer to the attempt before', async () => {
    const { id, sending, row, transport } = await arrange();
    transport.answerWith(async () => {
      await sending.stop(id, 'The worker is gone.');
      await database.systemTransaction((transaction) =>
        retryNotification(transaction, recordingOutbox().outbox, id),
      );
      return { ...deferred, kind: 'refused', scope: 'recipient' } as Awaited<
        ReturnType<typeof transport.transmit>
      >;
    });
    await expect(sending.send(id)).resolves.toEqual({ kind: 'settled', status: 'pending' });
    expect(await row()).toMatchObject({ status: 'pending', attempts: 0, generation: 2 });
  });

  test('deferred once is sent on the second attempt', async () => {
    const { id, sending, row } = await arrange([deferred]);
    await sending.send(id);
    expect(await row()).toMatchObject({ status: 'pending', nextAttemptAt: expect.any(Date) });
    await expect(sending.send(id)).resolves.toMatchObject({ status: 'sent' });
    expect(await row()).toMatchObject({ status: 'sent', lastError: null, nextAttemptAt: null });
  });

  test.each([
    ['refused', refused, '550 5.1.1'],
    ['ambiguous', ambiguous, 'the email may have been sent'],
  ])('%s fails and is not sent again', async (_name, result, why) => {
    const { id, sending, row, transport } = await arrange([result]);
    await expect(sending.send(id)).resolves.toMatchObject({ status: 'failed' });
    await expect(sending.send(id)).resolves.toMatchObject({ status: 'failed' });
    expect(transport.transmissions).toHaveLength(1);
    expect((await row())?.lastError).toContain(why);
  });

  test('is not sent twice if its worker crashes during the attempt', async () => {
    const { id, sending, row, transport } = await arrange();
    transport.answerWith(() => Promise.reject(new Error('killed')));
    await expect(sending.send(id)).rejects.toThrow('killed');
    transport.answerWith(async () => accepted);
    await expect(sending.send(id)).resolves.toMatchObject({ status: 'failed' });
    expect(transport.transmissions).toHaveLength(1);
    expect((await row())?.lastError).toContain('may have been sent');
  });

  test('is marked sent if the relay accepts it after the attempt was recorded as lost', async () => {
    const { id, sending, row, transport } = await arrange();
    const answer = Promise.withResolvers<TransmissionResult>();
    const attempted = Promise.withResolvers<void>();
    transport.answerWith(() => {
      attempted.resolve();
      return answer.promise;
    });
    const slow = sending.send(id);
    await attempted.promise;
    await expect(sending.send(id)).resolves.toMatchObject({ status: 'failed' });
    answer.resolve(accepted);
    await expect(slow).resolves.toMatchObject({ status: 'sent' });
    expect(await row()).toMatchObject({ status: 'sent', lastError: null });
  });

  test('is restarted if its run was lost, and fails if an operator stopped it', async () => {
    const { id, sending, row } = await arrange();
    await query(
      database,
      sql`update notifications set next_attempt_at = now() - interval '6 minutes' where id = ${id}`,
    );
    const runs = await overdueNotifications(database, sending).take(100_000);
    const run = runs.find(({ start }) => start.workflowId === `notification/${id}`);
    expect(run?.start.input).toEqual({ notificationId: id });
    if (typeof run?.whenStopped === 'function') await run.whenStopped();
    expect(await row()).toMatchObject({ status: 'failed', lastError: 'Stopped by an operator.' });
    await expect(sending.send(id)).resolves.toMatchObject({ status: 'failed' });
  });

  test('fails if an operator stops it after its worker died in an attempt', async () => {
    const { id, sending, row } = await arrange();
    await query(database, sql`update notifications set status = 'sending', attempts = 1 where id = ${id}`);
    expect(await sending.stop(id)).toBe('failed');
    expect(await row()).toMatchObject({
      status: 'failed',
      lastError: expect.stringMatching(/^Stopped by an operator\. .*not sent again/),
    });
    await expect(sending.send(id)).resolves.toMatchObject({ status: 'failed' });
  });
});
