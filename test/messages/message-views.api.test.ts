import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
let threadId: string;
const COUNT = 7;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
  for (let number = 0; number < COUNT; number += 1) {
    const body = {
      to: ['ada@people.example'],
      subject: `Report ${number}`,
      text_body: 'Text',
      html_body: '<p>Text</p>',
    };
    const sent = await app.call(`/inboxes/${inboxId}/messages`, {
      method: 'POST',
      token: organization.token,
      body,
    });
    threadId = sent.json<{ thread_id: string }>().thread_id;
  }
  await query(app.worker, sql`update messages set extracted_text = 'New text' where inbox_id = ${inboxId}`);
});

interface Listed {
  data: (Record<string, unknown> & { id: string })[];
  has_more: boolean;
  next_cursor: string | null;
}
const list = async (query: string): Promise<Listed> => {
  const response = await app.call(`/inboxes/${inboxId}/messages?${query}`, { token: organization.token });
  expect(response.statusCode).toBe(200);
  return response.json<Listed>();
};

describe('a list of messages', () => {
  test('carries the new text, without bodies and headers', async () => {
    const { data } = await list('limit=1');
    expect(data[0]).toMatchObject({ extracted_text: 'New text', to_addresses: ['ada@people.example'] });
    for (const name of ['text_body', 'html_body', 'headers']) expect(data[0]).not.toHaveProperty(name);
  });

  test('is compact on request', async () => {
    const { data } = await list('limit=1&view=compact');
    expect(Object.keys(data[0] ?? {}).sort()).toEqual(
      [
        ...[
          'object',
          'id',
          'thread_id',
          'from_address',
          'subject',
          'preview',
          'labels',
          'signals',
          'codes',
          'links',
          'invites',
          'created_at',
          'queued_at',
        ],
        ...['sent_at', 'delivered_at', 'bounced_at', 'complained_at', 'received_at'],
      ].sort(),
    );
  });

  test.each(['limit=3&view=full', 'limit=3&view=full&q=report'])(
    'has complete messages on request: %s',
    async (query) => {
      for (const message of (await list(query)).data) {
        const one = await app.call(`/messages/${message.id}`, { token: organization.token });
        expect(message).toEqual(one.json());
      }
    },
  );

  test('rejects an unknown view', async () => {
    const response = await app.call('/messages?view=tiny', { token: organization.token });
    expectProblem(response, 'validation_error');
  });
});

test('a thread carries the new text of its messages', async () => {
  const thread = (await app.call(`/threads/${threadId}`, { token: organization.token })).json<{
    messages: object[];
  }>();
  expect(thread.messages).toEqual([expect.objectContaining({ extracted_text: 'New text' })]);
});

describe('a page of large messages', () => {
  beforeAll(async () => {
    await query(
      app.worker,
      sql`update messages set extracted_text = repeat('x', 1500000), text_body = repeat('y', 5000000) where inbox_id = ${inboxId}`,
    );
  });

  test.each([
    ['', 2],
    ['q=report', 2],
    ['order=asc', 2],
    ['label=none', 0],
    ['view=full', 1],
    ['view=full&q=report', 1],
    ['view=compact', COUNT],
  ])('ends at 4 MiB and continues on the next: %s', async (query, perPage) => {
    const pages: Listed[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await list(`${query}${cursor ? `&cursor=${cursor}` : ''}`);
      pages.push(page);
      expect(page.has_more).toBe(page.next_cursor !== null);
      cursor = page.next_cursor;
    }
    const ids = pages.flatMap(({ data }) => data.map(({ id }) => id));
    expect(new Set(ids).size).toBe(perPage === 0 ? 0 : COUNT);
    expect(ids).toHaveLength(perPage === 0 ? 0 : COUNT);
    expect(pages[0]?.data).toHaveLength(perPage);
  });
});
