import { describe, expect, test } from '@jest/globals';
import type { ListEffect } from '../../domain/deliverability/list-match.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { newId } from '../../platform/ids.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { createTestReceiptService, testReturnPaths } from '../support/mail-services.ts';
import { createKey } from '../support/organizations.ts';
import { arrangeSending } from '../support/outbound-mail.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();

const withDmarcResult = (dmarc: 'pass' | 'none') => ({
  authenticate: async () => ({
    spf: 'none',
    dkim: 'none',
    dmarc,
    arc: 'none',
    policy: null,
  }),
  scanForSpam: async () => ({ verdict: 'spam' as const, score: 20 }),
});

async function arrange(overrides: Parameters<typeof arrangeInbox>[1] = {}) {
  const world = await arrangeInbox(app.worker, overrides);
  const { organizationId } = world.inbox;
  const list = (effect: ListEffect, entry: string, inboxId: string | null = null) =>
    app.worker.systemTransaction(async ({ db }) => {
      const environmentId = inboxId === null ? null : world.inbox.environmentId;
      const id = newId('listEntry');
      await db
        .insertInto('list_entries')
        .values({
          id,
          org_id: organizationId,
          direction: 'receive',
          effect,
          entry,
          env_id: environmentId,
          inbox_id: inboxId,
        })
        .execute();
    });
  const events = () =>
    app.worker.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('inbox_id', '=', world.inbox.id)
      .execute();
  return { ...world, list, events };
}

describe('receive lists and the From address', () => {
  test('label a blocked message, which has no event and is listed only by its label', async () => {
    const { inbox, list, receive, events } = await arrange();
    await list('block', 'people.example');
    // The envelope sender differs and is accepted.
    const { message } = await receive(mail({ From: 'Ada <Ada@Mail.People.example>', Subject: 'Hidden' }), {
      mailFrom: 'bounce@elsewhere.example',
    });
    expect(message).toMatchObject({ labels: ['blocked'], announced: false, subject: 'Hidden' });
    expect(await events()).toEqual([]);
    const { token } = await createKey(app.worker, inbox);
    const listed = async (query: string) =>
      (await app.call(`/inboxes/${inbox.id}/messages${query}`, { token })).json<{ data: object[] }>().data;
    expect(await listed('')).toEqual([]);
    expect(await listed('?label=blocked')).toMatchObject([{ id: message?.id }]);
  });

  test('do not label a message that a narrower scope allows', async () => {
    const { inbox, list, receive, events } = await arrange();
    await list('block', 'people.example');
    await list('allow', 'ada@people.example', inbox.id);
    const { message } = await receive(mail({ Subject: 'Welcome' }));
    expect(message).toMatchObject({ labels: [], announced: true });
    expect(await events()).toHaveLength(1);
  });

  test.each([
    ['pass', []],
    ['none', ['spam']],
  ] as const)(
    'keep an allowed message out of spam only if DMARC passes (%s: labels %j)',
    async (dmarc, labels) => {
      const { list, receive } = await arrange(withDmarcResult(dmarc));
      await list('allow', 'people.example');
      const { message } = await receive(mail({ Subject: 'Offer' }));
      expect(message).toMatchObject({ labels, spam: { verdict: 'spam' } });
    },
  );

  test.each(['', 'nobody', '"a\u0000b"@people.example', `${'x'.repeat(2_000)}@people.example`])(
    'accept the malformed address %j',
    async (from) => {
      const { list, receive } = await arrange();
      await list('block', 'people.example');
      expect((await receive(mail({ From: from }))).outcome).toMatch(/^(stored|hidden) as/);
    },
  );
});

test('a blocked sender is refused at return paths, too, unless it is a delivery report', async () => {
  const world = await arrangeSending(app.worker);
  const messageId = await world.send('ada@people.example');
  const { inbox } = world;
  await app.worker.db
    .insertInto('list_entries')
    .values({
      id: newId('listEntry'),
      org_id: inbox.organizationId,
      direction: 'receive',
      effect: 'block',
      entry: 'people.example',
      env_id: null,
      inbox_id: null,
    })
    .execute();
  const { outbox } = recordingOutbox();
  const receipts = createTestReceiptService({ database: app.worker, outbox });
  const returnPath = testReturnPaths.create(messageId, 0);
  expect(await receipts.resolve(returnPath, 'eve@people.example')).toBe('blocked');
  expect(await receipts.resolve(returnPath, '')).toMatchObject({ kind: 'report', messageId });
  expect(await receipts.resolve(returnPath, 'eve@elsewhere.example')).toMatchObject({ kind: 'report' });
});
