import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { type RawBuilder, sql } from 'kysely';
import pg from 'pg';
import type { EventType } from '../../domain/events/event-types.ts';
import { json } from '../../platform/database/json.ts';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { expectWithin } from '../support/expect-within.ts';
import { impersonate } from '../support/impersonation.ts';
import { type LiveStream, type LiveStreamOptions, listen, openStream } from '../support/live-stream.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { testStack } from '../support/stack.ts';
import { startTestApp } from '../support/test-app.ts';

const config = { STREAM_HEARTBEAT_MS: '200', STREAMS_PER_CREDENTIAL: '250' };
/** Two API processes on one database. */
const first = useTestApp({ config });
const second = useTestApp({ config });
/** Its heartbeats are later than any test ends. */
const quiet = useTestApp({ config: { STREAM_HEARTBEAT_MS: '60000' } });
let firstUrl: string;
let secondUrl: string;
let quietUrl: string;
beforeAll(async () => {
  [firstUrl, secondUrl, quietUrl] = await Promise.all([listen(first), listen(second), listen(quiet)]);
});

const opened: LiveStream[] = [];
afterEach(() => {
  for (const stream of opened.splice(0)) stream.close();
});

async function open(baseUrl: string, options: LiveStreamOptions): Promise<LiveStream> {
  const stream = await openStream(baseUrl, options);
  opened.push(stream);
  return stream;
}

interface Recorded {
  id?: string;
  type?: EventType;
  inboxId?: string | null;
  environmentId?: string;
  data?: Record<string, unknown>;
}

async function record(organization: TestOrganization, event: Recorded = {}): Promise<string> {
  const id = event.id ?? newId('event');
  await first.worker.systemTransaction(async ({ db }) => {
    await db
      .insertInto('events')
      .values({
        id,
        org_id: organization.organizationId,
        env_id: event.environmentId ?? organization.productionEnvironmentId,
        inbox_id: event.inboxId === undefined ? 'inb_a' : event.inboxId,
        type: event.type ?? 'message.sent',
        data: json(event.data ?? { of: id }),
      })
      .execute();
  });
  return id;
}

const idsOf = (stream: LiveStream) => stream.events.map(({ data }) => data.id);
const expectIds = async (stream: LiveStream, ids: string[]) => {
  await stream.received(ids.length);
  expect(idsOf(stream)).toEqual(ids);
};

test('an event recorded by one process reaches a stream at another, in the envelope of webhooks', async () => {
  const organization = await createOrganization(first.worker);
  const { token } = organization;
  const inbox = await createInbox(first.worker, organization);
  const stream = await open(secondUrl, { token });
  expect(stream.headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
  });

  const block = await first.call('/lists/send/block', {
    method: 'POST',
    token,
    body: { entry: 'never@example.test' },
  });
  expect(block.statusCode).toBe(201);
  const send = { to: [{ email: 'never@example.test' }], subject: 'No' };
  const sent = await first.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token, body: send });
  expect(sent.statusCode).toBe(422);

  const [event] = await stream.received(1);
  expect(event?.type).toBe('message.rejected');
  expect(event?.data).toEqual({
    id: expect.stringMatching(/^evt_/),
    type: 'message.rejected',
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    org_id: organization.organizationId,
    env_id: organization.productionEnvironmentId,
    data: expect.objectContaining({ inbox_id: inbox.id, rejection_reason: 'blocked_recipient' }),
  });
});

describe('order and resuming', () => {
  test('another process resumes after the last id, with the missed events only', async () => {
    const organization = await createOrganization(first.worker);
    const { token } = organization;
    const stream = await open(firstUrl, { token });
    const ids = [await record(organization), await record(organization), await record(organization)];
    const [, middle] = await stream.received(3);
    stream.close();
    const missed = [await record(organization), await record(organization)];

    const resumed = await open(secondUrl, { token, lastEventId: middle?.id });
    await expectIds(resumed, [...ids.slice(2), ...missed]);
    const next = await record(organization);
    await expectIds(resumed, [...ids.slice(2), ...missed, next]);
    const byQuery = await open(secondUrl, { token, query: `?after=${resumed.events[2]?.id}` });
    await expectIds(byQuery, [next]);
    await expectIds(await open(firstUrl, { token, query: `?after=${ids[2]}` }), [...missed, next]);
  });

  test('a stream without events yet can be resumed', async () => {
    const organization = await createOrganization(first.worker);
    const { token } = organization;
    const stream = await open(firstUrl, { token });
    stream.close();
    const missed = await record(organization);
    await expectIds(await open(secondUrl, { token, lastEventId: stream.lastEventId }), [missed]);
  });

  test('live events follow many pages of older ones without a gap', async () => {
    const organization = await createOrganization(first.worker);
    const { token } = organization;
    const stream = await open(firstUrl, { token });
    stream.close();
    const ids: string[] = [];
    const writing = (async () => {
      while (ids.length < 230) ids.push(await record(organization));
    })();
    await eventually(() => expect(ids.length).toBeGreaterThan(60));
    const resumed = await open(secondUrl, { token, lastEventId: stream.lastEventId });
    await writing;
    await expectIds(resumed, ids);
  });

  test('no event is lost when transactions commit out of id order', async () => {
    const organization = await createOrganization(first.worker);
    const { token, organizationId, productionEnvironmentId } = organization;
    const late = new pg.Client({ connectionString: testStack().postgres.workerUrl });
    await late.connect();
    try {
      const stream = await open(secondUrl, { token });
      const lateId = newId('event');
      await late.query('begin');
      await late.query(
        `insert into events (id, org_id, env_id, inbox_id, type, data, created_at)
         values ($1, $2, $3, 'inb_a', 'message.sent', '{}', now())`,
        [lateId, organizationId, productionEnvironmentId],
      );
      const newer = await record(organization);
      // The newer one has been committed and signaled; it becomes visible once no event can precede it.
      const heartbeats = stream.comments.length;
      await eventually(() => expect(stream.comments.length).toBeGreaterThan(heartbeats + 1));
      expect(stream.events).toEqual([]);
      const meanwhile = await open(firstUrl, { token, lastEventId: stream.lastEventId });
      await late.query('commit');
      await expectIds(stream, [lateId, newer]);
      await expectIds(meanwhile, [lateId, newer]);
      await expectIds(await open(firstUrl, { token, lastEventId: stream.events[0]?.id }), [newer]);
    } finally {
      await late.end();
    }
  });

  test('an event held back by a transaction without events appears soon after it ends', async () => {
    const organization = await createOrganization(first.worker);
    const stream = await open(secondUrl, { token: organization.token });
    const other = new pg.Client({ connectionString: testStack().postgres.workerUrl });
    await other.connect();
    try {
      await other.query('begin');
      await other.query('select pg_current_xact_id()');
      const held = await record(organization);
      const heartbeats = stream.comments.length;
      await eventually(() => expect(stream.comments.length).toBeGreaterThan(heartbeats + 1));
      expect(stream.events).toEqual([]);
      await other.query('rollback');
      // Polling alone would take half a minute.
      await expectWithin(5_000, () => expectIds(stream, [held]));
    } finally {
      await other.end();
    }
  });
});

describe('visibility', () => {
  test('types and inbox filters apply to live and resumed streams', async () => {
    const organization = await createOrganization(first.worker);
    const { token } = organization;
    const inbox = await createInbox(first.worker, organization);
    const query = `?types=message.sent,message.received&inbox_id=${inbox.id}`;
    const stream = await open(firstUrl, { token, query });
    const start = stream.lastEventId;
    await record(organization);
    await record(organization, { inboxId: inbox.id, type: 'message.delivered' });
    await record(organization, { inboxId: null, type: 'domain.verified' });
    const sent = await record(organization, { inboxId: inbox.id });
    const received = await record(organization, { inboxId: inbox.id, type: 'message.received' });
    await expectIds(stream, [sent, received]);
    await expectIds(await open(secondUrl, { token, query, lastEventId: start }), [sent, received]);
  });

  test("a stream contains the events of the credential's environment or inbox, and organization-wide events", async () => {
    const organization = await createOrganization(first.worker);
    const stranger = await createOrganization(first.worker);
    const inbox = await createInbox(first.worker, organization);
    const environmentId = organization.productionEnvironmentId;
    const bound = await createKey(first.worker, { ...organization, environmentId, inboxId: inbox.id });
    const sandboxId = organization.sandboxEnvironmentId;
    const [organizationStream, inboxStream, sandboxStream] = await Promise.all([
      open(firstUrl, organization),
      open(firstUrl, bound),
      open(secondUrl, { ...organization, environmentId: sandboxId }),
    ]);
    await record(stranger, { inboxId: null });
    const other = await record(organization);
    const own = await record(organization, { inboxId: inbox.id });
    const inSandbox = await record(organization, { environmentId: sandboxId });
    const domain = await record(organization, { inboxId: null, type: 'domain.verified' });
    const last = await record(organization, { inboxId: inbox.id });
    await expectIds(organizationStream, [other, own, domain, last]);
    await expectIds(inboxStream, [own, last]);
    await expectIds(sandboxStream, [inSandbox, domain]);
    await expectIds(await open(secondUrl, { ...bound, lastEventId: inboxStream.events[0]?.id }), [last]);
  });

  test('a heartbeat carries the position, so that an idle stream can be resumed', async () => {
    const organization = await createOrganization(first.worker);
    const { token } = organization;
    const stream = await open(firstUrl, { token, query: '?types=message.bounced' });
    const start = stream.lastEventId;
    await record(organization);
    await eventually(() => expect(stream.lastEventId).not.toBe(start));
    expect(stream.comments).toContain('alive');
    expect(stream.events).toEqual([]);
  });
});

describe('rejections', () => {
  const rejected = async (options: LiveStreamOptions, status: number, code: string) => {
    const stream = await open(firstUrl, options);
    expect({ status: stream.status, ...JSON.parse(stream.text) }).toMatchObject({ status, code });
  };

  test('a wrong position is named, and so is what to pass instead', async () => {
    const { token } = await createOrganization(first.worker);
    const given: [LiveStreamOptions, string][] = [
      [{ token, lastEventId: 'AAAA' }, 'Last-Event-Id'],
      [{ token, query: '?after=AAAA' }, 'after'],
    ];
    for (const [options, path] of given) {
      const { text } = await open(firstUrl, options);
      const { detail, fix, errors } = JSON.parse(text);
      expect(detail).toMatch(/Last-Event-ID or after .* stream/);
      expect(fix).toMatch(/last id .* unchanged.*evt_/);
      expect(detail + fix).not.toMatch(/cursor|filters|list/);
      expect(errors).toEqual([{ path, message: 'is not a position of this stream' }]);
    }
  });

  test('rejects foreign and invalid positions, unknown types and inboxes outside the scope', async () => {
    const organization = await createOrganization(first.worker);
    const stranger = await createOrganization(first.worker);
    const { token } = organization;
    const foreign = (await open(firstUrl, stranger)).lastEventId;
    await rejected({ token, lastEventId: foreign }, 400, 'invalid_cursor');
    await rejected({ token, query: '?after=AAAA' }, 400, 'invalid_cursor');
    await rejected({ token, query: `?after=${newId('event')}` }, 404, 'not_found');
    await rejected({ token, query: '?types=message.sent,message.lost' }, 400, 'validation_error');
    const inbox = await createInbox(first.worker, stranger);
    await rejected({ token, query: `?inbox_id=${inbox.id}` }, 404, 'not_found');
  });

  test("rejects a stream above the credential's limit until another one is closed", async () => {
    const limited = await startTestApp({ config: { STREAMS_PER_CREDENTIAL: '2' } });
    try {
      const baseUrl = await listen(limited);
      const organization = await createOrganization(first.worker);
      const held = [await open(baseUrl, organization), await open(baseUrl, organization)];
      const inbox = await createInbox(first.worker, organization);
      const wait = await limited.call(`/inboxes/${inbox.id}/messages/wait`, organization);
      expectProblem(wait, 'rate_limited');
      expect(wait.headers['retry-after']).toBe('5');
      const other = await createKey(first.worker, organization);
      expect((await open(baseUrl, other)).status).toBe(200);
      held[0]?.close();
      await eventually(async () => expect((await open(baseUrl, organization)).status).toBe(200));
    } finally {
      await limited.close();
    }
  });
});

describe('a stream ends', () => {
  test('when the key is revoked', async () => {
    const organization = await createOrganization(first.worker);
    const { token, keyId } = await createKey(first.worker, organization);
    const stream = await open(firstUrl, { token });
    await first.worker.db
      .updateTable('api_keys')
      .set({ revoked_at: new Date() })
      .where('id', '=', keyId)
      .execute();
    await eventually(() => expect(stream.ended).toBe(true));
    expect(stream.comments).toContain('closing, unauthenticated');
    expect((await open(firstUrl, { token })).status).toBe(401);
  });

  test('when the key expires', async () => {
    const organization = await createOrganization(first.worker);
    const expiresAt = new Date(Date.now() + 1_500);
    const stream = await open(firstUrl, await createKey(first.worker, { ...organization, expiresAt }));
    expect(stream.status).toBe(200);
    await eventually(() => expect(stream.ended).toBe(true));
  });

  test('when the permission is removed or the organization is suspended', async () => {
    const organization = await createOrganization(first.worker);
    const { token, keyId } = await createKey(first.worker, organization);
    const [stream, other] = await Promise.all([open(firstUrl, { token }), open(firstUrl, organization)]);
    await first.worker.db
      .updateTable('api_keys')
      .set({ permissions: ['messages:read'] })
      .where('id', '=', keyId)
      .execute();
    await eventually(() => expect(stream.comments).toContain('closing, permission_denied'));
    await first.worker.db
      .updateTable('organizations')
      .set({ status: 'suspended' })
      .where('id', '=', organization.organizationId)
      .execute();
    await eventually(() => expect(other.comments).toContain('closing, organization_suspended'));
    expect((await open(firstUrl, organization)).status).toBe(403);
  });

  test('when the process shuts down, even for a client that reads nothing', async () => {
    const closing = await startTestApp();
    const baseUrl = await listen(closing);
    const organization = await createOrganization(first.worker);
    const { token } = organization;
    const [stream, stuck] = [await open(baseUrl, { token }), await open(baseUrl, { token })];
    stuck.pause();
    const event = await record(organization);
    for (let count = 0; count < 40; count += 1) await record(organization, LARGE);
    await stream.received(1);
    await closing.close();
    await eventually(() => expect(stream.ended).toBe(true));
    const [received] = await (
      await open(secondUrl, { token, query: `?after=${stuck.lastEventId}` })
    ).received(1);
    expect(received?.data.id).toBe(event);
  });
});

describe('between two heartbeats, a stream ends', () => {
  /** Runs a change at another process. It is to end the stream within seconds, and to leave `kept` open. */
  async function expectEnd(
    ended: { token: string; environmentId?: string },
    change: () => Promise<unknown>,
    { code, kept }: { code: string; kept?: { token: string } },
  ): Promise<void> {
    const stream = await open(quietUrl, ended);
    const other = kept && (await open(quietUrl, kept));
    // Far below the 60 s of a heartbeat.
    await expectWithin(5_000, async () => {
      await change();
      await eventually(() => expect(stream.ended).toBe(true), 5_000);
    });
    expect(stream.comments).toContain(`closing, ${code}`);
    expect(other?.ended ?? false).toBe(false);
  }
  const update = (statement: RawBuilder<unknown>) => () => query(first.worker, statement);

  test('when its organization or environment is suspended', async () => {
    const organization = await createOrganization(first.worker);
    const { organizationId: id, sandboxEnvironmentId } = organization;
    await expectEnd(
      { ...organization, environmentId: sandboxEnvironmentId },
      update(
        sql`update environments set status = 'suspended' where id = ${sandboxEnvironmentId} returning id`,
      ),
      { code: 'environment_suspended', kept: organization },
    );
    await expectEnd(
      organization,
      update(sql`update organizations set status = 'suspended' where id = ${id} returning id`),
      { code: 'organization_suspended', kept: await createOrganization(first.worker) },
    );
  });

  test('when its key is revoked, limited, or its inbox suspended', async () => {
    const organization = await createOrganization(first.worker);
    const inbox = await createInbox(first.worker, organization);
    const environmentId = organization.productionEnvironmentId;
    const bound = await createKey(first.worker, { ...organization, environmentId, inboxId: inbox.id });
    await expectEnd(
      bound,
      update(sql`update inboxes set status = 'suspended' where id = ${inbox.id} returning id`),
      { code: 'inbox_suspended', kept: organization },
    );
    const [limited, revoked] = [
      await createKey(first.worker, organization),
      await createKey(first.worker, organization),
    ];
    await expectEnd(
      limited,
      update(
        sql`update api_keys set permissions = '{messages:read}' where id = ${limited.keyId} returning id`,
      ),
      { code: 'permission_denied', kept: organization },
    );
    const revoke = () =>
      first.call(`/api-keys/${revoked.keyId}`, { method: 'DELETE', token: organization.token });
    await expectEnd(revoked, revoke, { code: 'unauthenticated', kept: organization });
  });

  test('when its key gets another token, at once or after the overlap', async () => {
    const organization = await createOrganization(first.worker);
    const rotate = (keyId: string, overlapSeconds: number) => async () => {
      const rotated = await first.call(`/api-keys/${keyId}/rotate`, {
        method: 'POST',
        token: organization.token,
        body: { overlap_seconds: overlapSeconds },
      });
      expect(rotated.statusCode).toBe(201);
      return rotated.json<{ token: string }>();
    };
    const key = await createKey(first.worker, organization);
    const end = { code: 'unauthenticated', kept: organization };
    await expectEnd(key, rotate(key.keyId, 0), end);
    // The token before a rotation ends with its overlap, or with the next rotation.
    const { token } = await rotate(key.keyId, 0)();
    await expectEnd({ token }, rotate(key.keyId, 1), end);
    const replaced = await rotate(key.keyId, 3_600)();
    await rotate(key.keyId, 3_600)();
    await expectEnd(replaced, rotate(key.keyId, 3_600), end);
  });

  test('when its environment is deleted', async () => {
    const organization = await createOrganization(first.worker);
    const created = await first.call('/org/environments', {
      method: 'POST',
      token: organization.token,
      body: { name: 'Short', kind: 'sandbox' },
    });
    const { id } = created.json<{ id: string }>();
    await expectEnd(
      { ...organization, environmentId: id },
      () => first.call(`/org/environments/${id}`, { method: 'DELETE', token: organization.token }),
      { code: 'not_found', kept: organization },
    );
  });

  test('when the session is over, or the membership', async () => {
    const organization = await createOrganization(first.worker);
    const { organizationId, ownerId } = organization;
    const session = () => createTestSession(first.worker, ownerId, { factors: ['totp'] });
    const ended = await session();
    await expectEnd(ended, () => first.call('/auth/logout', { method: 'POST', token: ended.token }), {
      code: 'unauthenticated',
      kept: organization,
    });
    await expectEnd(
      await session(),
      update(sql`
        insert into organization_policies (org_id, allowed_cidrs, updated_at)
        values (${organizationId}, '{192.0.2.0/24}', now()) returning org_id`),
      { code: 'policy_violation' },
    );
    await query(
      first.worker,
      sql`update organization_policies set allowed_cidrs = '{}' where org_id = ${organizationId} returning org_id`,
    );
    await expectEnd(
      await session(),
      update(sql`delete from members where org_id = ${organizationId} returning org_id`),
      { code: 'permission_denied' },
    );
  });

  test('when the single sign-on that made its session is stopped', async () => {
    const organization = await createOrganization(first.worker);
    const { organizationId, ownerId } = organization;
    const id = newId('ssoConfiguration');
    await query(
      first.worker,
      sql`insert into sso_configurations (id, org_id, type, status, name, domains, default_role, created_at, updated_at)
      values (${id}, ${organizationId}, 'oidc', 'active', 'IdP', '{}', 'viewer', now(), now()) returning id`,
    );
    const session = await createTestSession(first.worker, ownerId, { method: 'sso', ssoConfigurationId: id });
    await expectEnd(
      session,
      update(sql`update sso_configurations set status = 'disabled' where id = ${id} returning id`),
      { code: 'policy_violation', kept: organization },
    );
  });

  test('when the impersonation ends', async () => {
    const organization = await createOrganization(first.worker);
    const { id, token, staff } = await impersonate(first, organization.organizationId);
    const end = () =>
      first.call(`/admin/impersonation-sessions/${id}`, { method: 'DELETE', token: staff.token });
    await expectEnd({ token }, end, { code: 'session_expired', kept: organization });
  });

  /** The credential that `create` makes ends after the given seconds; more, if the machine is too busy to use it before. */
  async function openBeforeEnd(create: (seconds: number) => Promise<LiveStreamOptions>): Promise<LiveStream> {
    for (const seconds of [2, 4, 8]) {
      const stream = await open(quietUrl, await create(seconds));
      if (stream.status === 200) return stream;
    }
    throw new Error('The credential always ended before the stream was open.');
  }

  test('when the time of its key or session is over', async () => {
    const organization = await createOrganization(first.worker);
    const ofKey = await openBeforeEnd((seconds) =>
      createKey(first.worker, { ...organization, expiresAt: new Date(Date.now() + seconds * 1_000) }),
    );
    const ofSession = await openBeforeEnd(async (seconds) => {
      const session = await createTestSession(first.worker, organization.ownerId);
      await query(
        first.worker,
        sql`update sessions set expires_at = now() + ${seconds} * interval '1 second' where id = ${session.id} returning id`,
      );
      return session;
    });
    await eventually(() => expect(ofKey.comments).toContain('closing, unauthenticated'), 20_000);
    await eventually(() => expect(ofSession.comments).toContain('closing, session_expired'), 20_000);
  });

  test('when its time is over after that was changed', async () => {
    const organization = await createOrganization(first.worker);
    const { organizationId, ownerId } = organization;
    const key = await createKey(first.worker, {
      ...organization,
      expiresAt: new Date(Date.now() + 3_600_000),
    });
    const session = await createTestSession(first.worker, ownerId);
    const [ofKey, ofSession, kept] = [
      await open(quietUrl, key),
      await open(quietUrl, session),
      await open(quietUrl, organization),
    ];
    await query(
      first.worker,
      sql`update api_keys set expires_at = now() + interval '1 second' where id = ${key.keyId} returning id`,
    );
    await query(
      first.worker,
      sql`update sessions set authenticated_at = now() - interval '3599 seconds' where id = ${session.id} returning id`,
    );
    await query(
      first.worker,
      sql`insert into organization_policies (org_id, session_max_age_hours, updated_at)
      values (${organizationId}, 1, now()) returning org_id`,
    );
    await eventually(() => expect(ofKey.comments).toContain('closing, unauthenticated'), 20_000);
    await eventually(() => expect(ofSession.comments).toContain('closing, session_expired'), 20_000);
    expect(kept.ended).toBe(false);
  });

  test('and a waiting call is refused', async () => {
    const organization = await createOrganization(first.worker);
    const inbox = await createInbox(first.worker, organization);
    const waiting = quiet.call(`/inboxes/${inbox.id}/messages/wait?timeout_seconds=60`, organization);
    const probe = await open(quietUrl, organization);
    await query(
      first.worker,
      sql`update organizations set status = 'suspended' where id = ${organization.organizationId} returning id`,
    );
    await eventually(() => expect(probe.ended).toBe(true), 5_000);
    expectProblem(await waiting, 'organization_suspended');
  });
});

const LARGE: Recorded = { data: { text: 'x'.repeat(200_000) } };

test('a slow client delays no other client, causes no read-ahead and misses nothing', async () => {
  const organization = await createOrganization(first.worker);
  const { token } = organization;
  const [slow, quick] = [await open(firstUrl, { token }), await open(firstUrl, { token })];
  slow.pause();
  const ids: string[] = [];
  for (let count = 0; count < 160; count += 1) ids.push(await record(organization, LARGE));
  await expectIds(quick, ids);
  // The two sockets buffer a few megabytes; 32 were sent.
  expect(slow.events.length).toBeLessThan(100);
  slow.resume();
  await expectIds(slow, ids);
});

test('events still arrive after the listening connection is cut, and it is re-established', async () => {
  const organization = await createOrganization(first.worker);
  const owner = new pg.Client({ connectionString: testStack().postgres.ownerUrl });
  await owner.connect();
  try {
    const stream = await open(firstUrl, organization);
    const listening = async () => {
      const { rows } = await owner.query<{ pid: number }>(
        `select pid from pg_stat_activity where application_name = 'agent-email-signals' and query like '%pg_notify%'`,
      );
      return rows.map(({ pid }) => pid);
    };
    const cut = await eventually(async () => {
      const pids = await listening();
      expect(pids.length).toBeGreaterThan(0);
      return pids;
    });
    await owner.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [cut]);
    const during = await record(organization);
    await expectIds(stream, [during]);
    await eventually(async () => {
      const again = await listening();
      expect(again.length).toBeGreaterThan(0);
      expect(again.filter((pid) => cut.includes(pid))).toEqual([]);
    });
    const ids = [during];
    // Through signals: polling would take 5 s for each but the first.
    await expectWithin(3_000, async () => {
      for (let count = 0; count < 3; count += 1) {
        ids.push(await record(organization));
        await expectIds(stream, ids);
      }
    });
  } finally {
    await owner.end();
  }
});

test('polling finds events if the listening connection never works', async () => {
  const notListening = createServer((socket: Socket) => socket.destroy());
  notListening.listen(0, '127.0.0.1');
  await once(notListening, 'listening');
  const { port } = notListening.address() as { port: number };
  const polling = await startTestApp({
    config: { SIGNALS_DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/none` },
  });
  try {
    const organization = await createOrganization(first.worker);
    const stream = await open(await listen(polling), organization);
    await expectIds(stream, [await record(organization)]);
  } finally {
    await polling.close();
    notListening.close();
  }
});

test('200 concurrent streams get an event with one or two reads and bounded memory', async () => {
  const organization = await createOrganization(first.worker);
  const { token } = organization;
  const before = process.memoryUsage.rss();
  const streams = await Promise.all(Array.from({ length: 200 }, () => open(firstUrl, { token })));
  expect(streams.every(({ status }) => status === 200)).toBe(true);
  const ids = [await record(organization), await record(organization)];
  await Promise.all(streams.map((stream) => expectIds(stream, ids)));
  expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 1024 * 1024);
  for (const stream of streams) stream.close();
  const connections = () =>
    new Promise<number>((resolve) => first.app.server.getConnections((_error, count) => resolve(count)));
  await eventually(async () => expect(await connections()).toBe(0));
});
