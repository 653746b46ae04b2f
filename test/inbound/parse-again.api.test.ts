import { expect, test } from '@jest/globals';
import { sql } from '@mikro-orm/core';
import { AttachmentEntity } from '../../domain/attachments/attachment.entity.ts';
import { createParseAgainService, startParsingAgain } from '../../domain/inbound/parse-again.service.ts';
import { emptyInboundMail } from '../../domain/mime/parser/pool.ts';
import { arrangeInbox, mail, sharedParserPool } from '../support/inbound-mail.ts';
import { createMemoryStorage } from '../support/mail-services.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const database = useWorkerDatabase();

const RAW = mail(
  { Subject: 'The quarterly zebra', 'Content-Type': 'multipart/mixed; boundary=b' },
  `--b\r\nContent-Type: text/plain\r\n\r\nHello from the herd\r\n--b\r\nContent-Type: text/plain; name=stripes.txt\r\nContent-Disposition: attachment; filename=stripes.txt\r\n\r\nblack\r\n--b--\r\n`,
);
const STOPPED = 'The message could not be parsed: its parser was stopped, it took too long.';

/** An inbox that got a message while its parser failed. */
async function arrangeUnparsed() {
  let failures = 0;
  const arranged = await arrangeInbox(database, {
    parserPool: { parse: async () => emptyInboundMail(STOPPED) },
    onParseFailure: () => {
      failures += 1;
    },
  });
  const { receiptId, message } = await arranged.receive(RAW);
  expect(message).toMatchObject({ parseError: STOPPED, subject: '' });
  expect(failures).toBe(1);
  const storage = createMemoryStorage(arranged.objects);
  const service = createParseAgainService({ database, storage, parserPool: sharedParserPool() });
  return { ...arranged, storage, service, messageId: message?.id ?? '', receiptId };
}

test('a message whose parser failed gets its content, is found by search, and is not announced again', async () => {
  const { service, messageId, messageOf, receiptId } = await arrangeUnparsed();
  const events = () =>
    database.query<{ count: number }>(
      sql`select count(*)::int as count from events where data ->> 'message_id' = ${messageId}`,
    );
  const before = await events();
  expect(await service.parseAgain(messageId)).toBe('parsed');
  expect(await messageOf(receiptId)).toMatchObject({
    parseError: null,
    subject: 'The quarterly zebra',
    textBody: expect.stringContaining('Hello from the herd'),
    hasAttachments: true,
  });
  const files = await database.systemTransaction(({ em }) => em.find(AttachmentEntity, { messageId }));
  expect(files).toMatchObject([{ filename: 'stripes.txt', sizeBytes: 5 }]);
  const [found] = await database.query<{ words: boolean; file: boolean; thread: string }>(
    sql`select s.document @@ to_tsquery('simple', 'zebra & herd') as words, s.document::text like '%stripes%' as file,
        t.preview as thread
      from message_search s join messages m on m.id = s.message_id join threads t on t.id = m.thread_id
      where s.message_id = ${messageId}`,
  );
  expect(found).toEqual({ words: true, file: true, thread: expect.stringContaining('Hello from the herd') });
  expect(await events()).toEqual(before);
  expect(await service.parseAgain(messageId)).toBe('already parsed');
  expect(await database.systemTransaction(({ em }) => em.count(AttachmentEntity, { messageId }))).toBe(1);
});

test('a message that still cannot be parsed keeps its error, and its files are released', async () => {
  const { storage, messageId, messageOf, receiptId } = await arrangeUnparsed();
  const service = createParseAgainService({
    database,
    storage,
    parserPool: {
      async parse(raw, options) {
        const { attachments } = await sharedParserPool().parse(raw, options);
        return { ...emptyInboundMail('again'), attachments };
      },
    },
  });
  expect(await service.parseAgain(messageId)).toBe('still cannot be parsed: again');
  expect(await messageOf(receiptId)).toMatchObject({ parseError: STOPPED, hasAttachments: false });
  const released = await database.query(
    sql`select from unclaimed_objects where storage_key like ${`attachments/${messageId}/again-%`}`,
  );
  expect(released).toHaveLength(1);
});

test('the command starts one workflow for each such message, or for the named one', async () => {
  const [first, second] = [await arrangeUnparsed(), await arrangeUnparsed()];
  await first.service.parseAgain(first.messageId);
  const all = recordingOutbox();
  await startParsingAgain({ database, outbox: all.outbox });
  const ids = all.commands.map(({ start }) => start?.input);
  expect(ids).toContainEqual({ messageId: second.messageId });
  expect(ids).not.toContainEqual({ messageId: first.messageId });
  const one = recordingOutbox();
  const requestedAt = new Date('2026-11-22T12:00:00.000Z');
  expect(
    await startParsingAgain({ database, outbox: one.outbox }, { messageId: second.messageId, requestedAt }),
  ).toBe(1);
  expect(one.commands).toMatchObject([
    {
      start: {
        workflowId: `parse-again/${second.messageId}/2026-11-22T12:00:00.000Z`,
        searchAttributes: { ResourceId: second.messageId },
      },
    },
  ]);
  expect(await second.service.parseAgain('msg_00000000000000000000000000')).toBe('gone');
});
