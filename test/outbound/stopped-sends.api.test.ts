import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { AttachmentEntity } from '../../domain/attachments/attachment.entity.ts';
import { createAttachmentService } from '../../domain/attachments/attachment.service.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { UnsendableMessageError } from '../../domain/mime/build-mime.ts';
import { ensureMimeStored } from '../../domain/outbound/stored-mime.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { json } from '../../platform/database/json.ts';
import { accepted, deferred, unsigned } from '../support/mail-services.ts';
import {
  arrangeSending,
  dispatchOnce,
  readMessageState,
  recordOnce,
  type Sending,
} from '../support/outbound-mail.ts';
import { useObjectStorage, useStorage, useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();
const storage = useStorage(useObjectStorage());
const stateOf = (messageId: string) => readMessageState(database, messageId);

const setHeaders = (id: string, headers: Partial<Record<string, string>>) =>
  database.db
    .updateTable('messages')
    .set({ headers: json(headers as Record<string, string>) })
    .where('id', '=', id)
    .execute();

/** Runs the step of the workflow that transmits, and records the failure as the workflow does. */
async function failTransmission({ dispatch }: Sending, id: string) {
  await dispatch.prepare(id);
  const failure = await dispatch
    .transmit(id, () => false)
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  expect(failure).toBeInstanceOf(UnsendableMessageError);
  return dispatch.stop(id, { reason: (failure as Error).message, isFinal: true });
}

describe('a message that can never be sent', () => {
  test.each([
    { name: 'a control character', headers: { 'X-Campaign': 'a\u0085b' } },
    { name: 'a field of 1.2 MB', headers: { 'X-Campaign': 'x'.repeat(1_200_000) } },
    { name: 'a field that callers must not set', headers: { From: 'someone@else.example' } },
  ])('with $name in its row becomes failed and is announced', async ({ headers }) => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await setHeaders(id, headers);
    expect(await failTransmission(world, id)).toBe('settled');
    const { status, message, recipients, attempts, events } = await stateOf(id);
    expect({ status, recipients, attempts }).toEqual({
      status: 'failed',
      recipients: ['rejected'],
      attempts: [],
    });
    expect(message.statusDetail).toMatch(/^A custom header field /);
    expect(events.map(({ type, data }) => ({ type, data }))).toEqual([
      {
        type: 'message.rejected',
        data: expect.objectContaining({ rejection_detail: message.statusDetail }),
      },
    ]);
    expect(await world.dispatch.prepare(id)).toBe('finished');
  });

  test('stays failed, with its reason, when the end of its run records it again', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await setHeaders(id, { From: 'someone@else.example' });
    await failTransmission(world, id);
    const { message: failed } = await stateOf(id);
    expect(await world.dispatch.record(id)).toEqual({ status: 'failed', hasUnsent: false, ambiguous: [] });
    const { status, message } = await stateOf(id);
    expect([status, message.statusDetail]).toEqual(['failed', failed.statusDetail]);
  });

  test.each([1_000, 2_000_000])('lacks a file of %i bytes in storage', async (sizeBytes) => {
    const world = await arrangeSending(database);
    const file = await createAttachmentService({ database, storage }).storeUpload(
      world.scope,
      world.inbox.id,
      {
        filename: 'report.pdf',
        contentType: 'application/pdf',
        contentId: null,
        disposition: 'attachment',
      },
      Readable.from(Buffer.alloc(sizeBytes)),
    );
    const content = {
      to: [{ email: 'ada@people.example' }],
      cc: [],
      bcc: [],
      replyTo: [],
      subject: 'File',
      textBody: null,
      htmlBody: null,
      labels: [],
      headers: {},
    };
    const { message } = await world.sends.send(world.scope, world.inbox.id, content, [
      { kind: 'stored', file },
    ]);
    const row = await database.systemTransaction(async ({ db }) => {
      const { storageKey } = await db
        .selectFrom('attachments')
        .select(columnsOf(AttachmentEntity))
        .where('message_id', '=', message.id)
        .executeTakeFirstOrThrow();
      await storage.delete(storageKey);
      return db
        .selectFrom('messages')
        .select(columnsOf(MessageEntity, { lazy: ['textBody', 'htmlBody', 'headers'] }))
        .where('id', '=', message.id)
        .executeTakeFirstOrThrow();
    });
    const building = ensureMimeStored(database, storage, row, unsigned);
    await expect(building).rejects.toEqual(
      new UnsendableMessageError('A file of the message is missing from storage.'),
    );
  });

  test('stays sent for the recipients that already have it', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(async ({ recipient }) => (recipient.startsWith('bob') ? deferred : accepted));
    const id = await world.send('ada@people.example', 'bob@people.example');
    await dispatchOnce(world, id);
    expect(await world.dispatch.stop(id, { reason: 'Gone.', isFinal: true })).toBe('settled');
    expect(await stateOf(id)).toMatchObject({ status: 'sent', recipients: ['sent', 'rejected'] });
  });
});

describe('a send that is stopped after a defect', () => {
  const DEFECT = { reason: 'Sending failed repeatedly (TypeError).', isFinal: false };

  test('needs attention, states the reason, and is sent when it is retried', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    expect(await world.dispatch.stop(id, DEFECT)).toBe('needs_attention');
    const stopped = await stateOf(id);
    expect(stopped).toMatchObject({ status: 'needs_attention', recipients: ['pending'], types: [] });
    expect(stopped.message.statusDetail).toBe(DEFECT.reason);
    await expect(dispatchOnce(world, id)).resolves.toBe('settled');
    const { status, message } = await stateOf(id);
    expect([status, message.statusDetail]).toEqual(['sent', null]);
  });

  test('can be canceled', async () => {
    const world = await arrangeSending(database);
    const id = await world.send('ada@people.example');
    await world.dispatch.prepare(id);
    await world.dispatch.stop(id, DEFECT);
    expect((await world.sends.cancel(world.scope, id)).message.status).toBe('canceled');
    expect(await world.dispatch.prepare(id)).toBe('finished');
  });

  test('still needs attention after a report about another recipient', async () => {
    const world = await arrangeSending(database);
    world.transport.answerWith(async ({ recipient }) => (recipient.startsWith('bob') ? deferred : accepted));
    const id = await world.send('ada@people.example', 'bob@people.example');
    await dispatchOnce(world, id);
    await world.dispatch.stop(id, DEFECT);
    const report = { position: 0, kind: 'delivered', statusCode: '2.0.0', diagnosticCode: '250' } as const;
    await database.systemTransaction((transaction) => world.outcomes.apply(transaction, id, [report]));
    const { status, message, recipients } = await stateOf(id);
    expect({ status, recipients }).toEqual({
      status: 'needs_attention',
      recipients: ['delivered', 'deferred'],
    });
    expect(message.statusDetail).toBe(DEFECT.reason);
  });
});

test('a transmission that is retried after a cancellation builds and sends nothing', async () => {
  const world = await arrangeSending(database);
  const id = await world.send('ada@people.example');
  await world.dispatch.prepare(id);
  await setHeaders(id, { 'X-Campaign': 'a\u0085b' });
  await world.sends.cancel(world.scope, id);
  await world.dispatch.transmit(id, () => false);
  expect([await recordOnce(world, id), world.transport.transmissions]).toEqual(['settled', []]);
  expect(await stateOf(id)).toMatchObject({ status: 'canceled', attempts: [] });
});
