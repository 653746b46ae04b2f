import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { buildEnvelope } from '../../domain/events/envelope.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import {
  EVENT_TYPES,
  type EventType,
  isOrganizationWide,
  MAX_EVENT_BYTES,
} from '../../domain/events/event-types.ts';
import { buildSampleData } from '../../domain/webhooks/sample-data.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { newId } from '../../platform/ids.ts';
import { closed } from '../support/contract.ts';
import { eventually } from '../support/eventually.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();

const { outbox } = recordingOutbox();
const events = createWebhookEvents({ outbox });

async function record(
  organization: TestOrganization,
  type: EventType,
  { inboxId = newId('inbox'), environmentId = organization.productionEnvironmentId } = {},
): Promise<void> {
  await app.worker.systemTransaction((transaction) =>
    events.record(transaction, {
      organizationId: organization.organizationId,
      environmentId,
      inboxId: isOrganizationWide(type) ? null : inboxId,
      type,
      data: buildSampleData(type, { inboxId, time: new Date() }),
    }),
  );
}

interface List {
  data: { id: string; type: string; timestamp: string; data: Record<string, unknown> }[];
  has_more: boolean;
  next_cursor: string | null;
}

async function list(token: string, query = '', headers: Record<string, string> = {}): Promise<List> {
  const response = await app.call(`/events${query}`, { token, headers });
  expect(response.statusCode).toBe(200);
  return response.json<List>();
}

/** Retries, because events wait for open transactions of other test files. */
const listed = (token: string, query: string, types: string[], headers: Record<string, string> = {}) =>
  eventually(async () => {
    const page = await list(token, query, headers);
    expect(page.data.map(({ type }) => type)).toEqual(types);
    return page;
  });

describe('GET /events', () => {
  test('lists newest first and supports order and filters by type, inbox and time', async () => {
    const organization = await createOrganization(app.worker);
    const inbox = await createInbox(app.worker, organization);
    const { token } = organization;
    await record(organization, 'message.sent', { inboxId: inbox.id });
    await record(organization, 'message.delivered');
    await record(organization, 'domain.verified');
    const newest = await listed(token, '', ['domain.verified', 'message.delivered', 'message.sent']);
    await listed(token, '?order=asc', ['message.sent', 'message.delivered', 'domain.verified']);
    await listed(token, '?type=message.delivered', ['message.delivered']);
    await listed(token, `?inbox_id=${inbox.id}`, ['message.sent']);
    const messageId = newest.data[2]?.data.message_id as string;
    expect(messageId).toMatch(/^msg_/);
    await listed(token, `?message_id=${newId('message')}`, []);
    expect((await list(token, `?message_id=${messageId}`)).data).toContainEqual(newest.data[2]);
    const time = newest.data[1]?.timestamp ?? '';
    expect((await list(token, `?after=${time}`)).data.map(({ type }) => type)).toContain('message.delivered');
    expect((await list(token, `?before=${time}`)).data.map(({ type }) => type)).not.toContain(
      'domain.verified',
    );
    const [event] = newest.data;
    expect((await app.call(`/events/${event?.id}`, { token })).json()).toEqual(event);
    expect(Object.keys(event ?? {})).toEqual(['id', 'type', 'timestamp', 'org_id', 'env_id', 'data']);
  });

  test('ends a page of large events early and continues on the next', async () => {
    const organization = await createOrganization(app.worker);
    const { token } = organization;
    const text = 'x'.repeat(240_000);
    for (let count = 0; count < 20; count += 1) {
      await app.worker.systemTransaction((transaction) =>
        events.record(transaction, {
          organizationId: organization.organizationId,
          environmentId: organization.productionEnvironmentId,
          inboxId: newId('inbox'),
          type: 'message.received',
          data: {
            ...buildSampleData('message.received', { inboxId: 'inb_a', time: new Date() }),
            extracted_text: text,
          },
        }),
      );
    }
    const collectPages = async () => {
      const pages: string[][] = [];
      for (let cursor: string | null = null; ; ) {
        const page: List = await list(token, `?order=asc&limit=100${cursor ? `&cursor=${cursor}` : ''}`);
        pages.push(page.data.map(({ id }) => id));
        expect(page.has_more).toBe(page.next_cursor !== null);
        cursor = page.next_cursor;
        if (cursor === null) return pages;
      }
    };
    await eventually(async () => {
      const pages = await collectPages();
      expect(new Set(pages.flat()).size).toBe(20);
      expect(pages.map(({ length }) => length)).toEqual([18, 2]);
    });
  });

  test('paginates by cursor and continues after a given event', async () => {
    const organization = await createOrganization(app.worker);
    const { token } = organization;
    for (let count = 0; count < 5; count += 1) await record(organization, 'message.sent');
    const all = await listed(token, '?order=asc', Array(5).fill('message.sent'));
    const ids = all.data.map(({ id }) => id);
    const collected: string[] = [];
    let cursor: string | null = null;
    do {
      const page: List = await list(token, `?order=asc&limit=2${cursor ? `&cursor=${cursor}` : ''}`);
      collected.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor;
    } while (cursor);
    expect(collected).toEqual(ids);
    const behind = await list(token, `?order=asc&starting_after=${ids[2]}`);
    expect(behind.data.map(({ id }) => id)).toEqual(ids.slice(3));
    const before = await list(token, `?starting_after=${ids[2]}`);
    expect(before.data.map(({ id }) => id)).toEqual(ids.slice(0, 2).toReversed());
    expectProblem(await app.call(`/events?starting_after=${newId('event')}`, { token }), 'not_found');
  });

  test('shows an environment its own and organization-wide events, and an inbox only its own', async () => {
    const organization = await createOrganization(app.worker);
    const inbox = await createInbox(app.worker, organization);
    const { sandboxEnvironmentId: environmentId, token } = organization;
    await record(organization, 'message.sent', { inboxId: inbox.id });
    await record(organization, 'domain.verified');
    await record(organization, 'message.bounced', { environmentId });
    await listed(token, '', ['domain.verified', 'message.sent']);
    const inSandbox = { 'x-env-id': environmentId };
    const { data } = await listed(token, '', ['message.bounced', 'domain.verified'], inSandbox);
    const domainEvent = `/events/${data[1]?.id}`;
    expect((await app.call(domainEvent, { token, headers: inSandbox })).statusCode).toBe(200);
    const inProduction = { 'x-env-id': organization.productionEnvironmentId };
    const bounce = `/events/${data[0]?.id}`;
    expectProblem(await app.call(bounce, { token, headers: inProduction }), 'not_found');
    const bound = await createKey(app.worker, {
      ...organization,
      environmentId: organization.productionEnvironmentId,
      inboxId: inbox.id,
    });
    await listed(bound.token, '', ['message.sent']);
    expectProblem(await app.call(domainEvent, { token: bound.token }), 'not_found');
    const other = await createInbox(app.worker, organization);
    expectProblem(await app.call(`/events?inbox_id=${other.id}`, { token: bound.token }), 'not_found');
    expectProblem(
      await app.call(domainEvent, { token: (await createOrganization(app.worker)).token }),
      'not_found',
    );
  });

  test.each([
    '?type=message.unknown',
    '?before=yesterday',
    '?limit=0',
    '?cursor=x',
    '?after=9999-99-99T00:00:00Z',
  ])('rejects %s', async (query) => {
    const { token } = await createOrganization(app.worker);
    expect((await app.call(`/events${query}`, { token })).statusCode).toBe(400);
  });

  test('requires events:read', async () => {
    const { token } = await createOrganization(app.worker, { permissions: ['webhooks:read'] });
    expect(expectProblem(await app.call('/events', { token }), 'permission_denied').permission).toBe(
      'events:read',
    );
  });
});

test('an event over 256 KiB is recorded with truncated text and a flag', async () => {
  const organization = await createOrganization(app.worker);
  const sample = buildSampleData('message.received', { inboxId: newId('inbox'), time: new Date() });
  const extracted_text = 'Grüße 😀 '.repeat(30_000);
  await app.worker.systemTransaction((transaction) =>
    events.record(transaction, {
      organizationId: organization.organizationId,
      environmentId: organization.productionEnvironmentId,
      inboxId: sample.inbox_id,
      type: 'message.received',
      data: { ...sample, extracted_text },
    }),
  );
  const [event] = (await listed(organization.token, '', ['message.received'])).data;
  expect(event?.data.truncated).toBe(true);
  expect(extracted_text.startsWith(String(event?.data.extracted_text))).toBe(true);
  const bytes = Buffer.byteLength(JSON.stringify(event));
  expect(bytes).toBeLessThanOrEqual(MAX_EVENT_BYTES);
  expect(bytes).toBeGreaterThan(MAX_EVENT_BYTES - 4);
});

describe('webhook schemas', () => {
  interface Described {
    webhooks: Record<
      string,
      { post: { requestBody: { content: Record<string, { schema: { $ref: string } }> } } }
    >;
  }
  const validators = () => {
    const description = closed(app.contract.description) as unknown as Described & object;
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    ajvFormats.default(ajv, ['date-time']);
    ajv.addSchema(description, 'api');
    return (type: string) => {
      const { $ref } = description.webhooks[type]?.post.requestBody.content['application/json']?.schema ?? {
        $ref: '',
      };
      return ajv.compile({ $ref: `api${$ref}` });
    };
  };

  test('are served for every event type', async () => {
    const { webhooks } = (await app.app.inject('/openapi.json')).json<Described>();
    expect(Object.keys(webhooks)).toEqual([...EVENT_TYPES]);
  });

  test.each(EVENT_TYPES)('match exactly what is recorded for %s', async (type) => {
    const organization = await createOrganization(app.worker);
    await record(organization, type);
    const [event] = await app.worker.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('org_id', '=', organization.organizationId)
      .execute();
    if (!event) throw new Error('nothing was recorded');
    const body = JSON.parse(JSON.stringify(buildEnvelope(event))) as Record<string, unknown>;
    const validate = validators()(type);
    expect([validate(body), validate.errors]).toEqual([true, null]);
    const data = body.data as Record<string, unknown>;
    expect(validate({ ...body, data: { ...data, more: 1 } })).toBe(false);
    for (const name of Object.keys(data)) {
      const { [name]: _left, ...incomplete } = data;
      expect(validate({ ...body, data: incomplete })).toBe(false);
    }
  });
});
