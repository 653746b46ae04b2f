import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import type { MemberRole } from '../../domain/identity/roles.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import type { ApprovalMode } from '../../domain/policies/organization-policies.entity.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { DRAFT_REJECTED } from '../../workflows/drafts/await-approval.contract.ts';
import { asToolCall, createConnection } from '../support/connections.ts';
import { TEST_APPROVAL_MS, testUnsubscribeLinks } from '../support/mail-services.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();
const CONTENT = { to: ['ada@people.example'], subject: 'Offer', text_body: 'x' };
const IN_A_WEEK = new Date(Date.now() + 7 * 86_400_000).toISOString();

async function arrange(requireSendApproval: ApprovalMode = 'off') {
  const organization = await createOrganization(app.worker);
  const { organizationId } = organization;
  const inbox = await createInbox(app.worker, organization);
  await setPolicies(app.worker, organizationId, { require_send_approval: requireSendApproval });
  const signIn = async (role: MemberRole) => {
    const userId = await createTestUser(app.worker, { organizationId, role });
    return { userId, token: (await createTestSession(app.worker, userId)).token };
  };
  const post = (path: string, token: string, body?: object) =>
    app.call(path, { method: 'POST', token, body });
  const outbox = recordingOutbox();
  const drafts = createDraftService({
    database: app.worker,
    outbox: outbox.outbox,
    events: createWebhookEvents(outbox),
    notifications: createNotificationService(outbox),
    unsubscribeLinks: testUnsubscribeLinks,
    approvalMs: TEST_APPROVAL_MS,
  });
  return {
    organization,
    inbox,
    signIn,
    post,
    owner: await signIn('owner'),
    schedule: async (token: string) =>
      (await post(`/inboxes/${inbox.id}/messages`, token, { ...CONTENT, send_at: IN_A_WEEK })).json<{
        id: string;
        version: number;
        send_status: string;
      }>(),
    /** Sends the draft as its run does when it is due. */
    sendDue: async (draftId: string) => {
      const [row] = await query<{ version: number }>(
        app.worker,
        sql`update drafts set send_at = date_trunc('milliseconds', now()) where id = ${draftId} returning schedule_version as version`,
      );
      return drafts.sendDue(draftId, row?.version ?? 0);
    },
    readDraft: async (id: string) =>
      (await app.call(`/drafts/${id}`, { token: organization.token })).json<Record<string, unknown>>(),
    rejections: async () =>
      (
        await app.worker.db
          .selectFrom('events')
          .select(columnsOf(EventEntity))
          .where('org_id', '=', organizationId)
          .where('type', '=', 'draft.rejected')
          .execute()
      ).map(({ data }) => data),
    messages: () =>
      query<{ id: string }>(app.worker, sql`select id from messages where org_id = ${organizationId}`),
    emails: () =>
      query<{ userId: string; params: Record<string, string> }>(
        app.worker,
        sql`select user_id as "userId", params from notifications
        where org_id = ${organizationId} and template = 'act-refused' order by id`,
      ),
  };
}

type World = Awaited<ReturnType<typeof arrange>>;

const REFUSED = { send_status: 'rejected', send_error: 'requester_not_allowed', send_at: null };

/** What ends the right of a key to send. */
const KEY_ENDS: Record<string, (world: World, keyId: string) => Promise<unknown>> = {
  key_revoked: ({ owner }, keyId) => app.call(`/api-keys/${keyId}`, { method: 'DELETE', token: owner.token }),
  key_expired: (_world, keyId) =>
    query(
      app.worker,
      sql`update api_keys set expires_at = now() - interval '1 second' where id = ${keyId} returning id`,
    ),
  permission_lost: ({ owner }, keyId) =>
    app.call(`/api-keys/${keyId}`, {
      method: 'PATCH',
      token: owner.token,
      body: { permissions: ['drafts:read', 'drafts:write'] },
    }),
  out_of_reach: async ({ organization }, keyId) => {
    const other = await createInbox(app.worker, organization);
    await query(app.worker, sql`update api_keys set inbox_id = ${other.id} where id = ${keyId} returning id`);
  },
  unknown: (_world, keyId) => query(app.worker, sql`delete from api_keys where id = ${keyId} returning id`),
};

/** What ends the right of a connection to send: its own end, and that of its person. */
const CONNECTION_ENDS: Record<
  string,
  (world: World, connection: { id: string; userId: string }) => Promise<unknown>
> = {
  connection_ended: ({ owner }, { id }) =>
    app.call(`/connections/${id}`, { method: 'DELETE', token: owner.token }),
  connection_expired: (_world, { id }) =>
    query(
      app.worker,
      sql`update connections set expires_at = now() - interval '1 second' where id = ${id} returning id`,
    ),
  permission_lost: (_world, { id }) =>
    query(
      app.worker,
      sql`update connections set permissions = '{drafts:read,drafts:write}' where id = ${id} returning id`,
    ),
  'permission_lost by the person': ({ owner }, { userId }) =>
    app.call(`/org/members/${userId}`, { method: 'PATCH', token: owner.token, body: { role: 'viewer' } }),
  'not_a_member, without the end of the connection': (_world, { userId }) =>
    query(app.worker, sql`delete from members where user_id = ${userId}`),
  'connection_ended with the membership': ({ owner }, { userId }) =>
    app.call(`/org/members/${userId}`, { method: 'DELETE', token: owner.token }),
  account_closed: (_world, { userId }) =>
    query(app.worker, sql`update users set status = 'suspended' where id = ${userId} returning id`),
  out_of_reach: async ({ organization }, { id }) => {
    const other = await createInbox(app.worker, organization);
    await query(app.worker, sql`update connections set inbox_id = ${other.id} where id = ${id} returning id`);
  },
  unknown: (_world, { id }) => query(app.worker, sql`delete from connections where id = ${id} returning id`),
};

/** What ends the right of a person to send. */
const PERSON_ENDS: Record<string, (world: World, userId: string) => Promise<unknown>> = {
  not_a_member: ({ owner }, userId) =>
    app.call(`/org/members/${userId}`, { method: 'DELETE', token: owner.token }),
  permission_lost: ({ owner }, userId) =>
    app.call(`/org/members/${userId}`, { method: 'PATCH', token: owner.token, body: { role: 'viewer' } }),
  account_closed: (_world, userId) =>
    query(app.worker, sql`update users set status = 'suspended' where id = ${userId} returning id`),
};

describe('a scheduled send that is due', () => {
  test.each(Object.keys(KEY_ENDS))('of a key is refused: %s', async (problem) => {
    const world = await arrange();
    const { organization, schedule, sendDue, readDraft, rejections, messages, emails, owner } = world;
    const admin = await world.signIn('admin');
    await world.signIn('developer');
    const key = await createKey(app.worker, {
      ...organization,
      permissions: ['messages:send', 'drafts:read'],
    });
    const draft = await schedule(key.token);
    expect(draft.send_status).toBe('scheduled');
    await KEY_ENDS[problem]?.(world, key.keyId);
    expect(await sendDue(draft.id)).toBe('refused');
    expect(await readDraft(draft.id)).toMatchObject({ ...REFUSED, subject: 'Offer', text_body: 'x' });
    expect(await rejections()).toEqual([
      expect.objectContaining({
        draft_id: draft.id,
        decision: 'requester_not_allowed',
        note: null,
        rejected_by: null,
      }),
    ]);
    expect(await messages()).toEqual([]);
    const sent = await emails();
    expect(sent.map(({ userId }) => userId).sort()).toEqual(
      [organization.ownerId, owner.userId, admin.userId].sort(),
    );
    expect(sent[0]?.params).toMatchObject({ act: 'send', resourceId: draft.id });
    const [entry] = await query<{ details: object }>(
      app.worker,
      sql`select details from audit_entries where action = 'draft.rejected' and resource_id = ${draft.id}`,
    );
    expect(entry?.details).toMatchObject({ decision: 'requester_not_allowed', refused: 'send', problem });
    expect(await sendDue(draft.id)).toBe('gone');
  });

  test.each(Object.keys(CONNECTION_ENDS))('of a connection is refused: %s', async (reason) => {
    const world = await arrange();
    const { organization, signIn, schedule, sendDue, readDraft, messages } = world;
    const { userId } = await signIn('developer');
    const { connectionId, token } = await createConnection(app.worker, { ...organization, userId });
    const draft = await asToolCall(() => schedule(token));
    expect(draft.send_status).toBe('scheduled');
    await CONNECTION_ENDS[reason]?.(world, { id: connectionId, userId });
    expect(await sendDue(draft.id)).toBe('refused');
    expect(await readDraft(draft.id)).toMatchObject(REFUSED);
    expect(await messages()).toEqual([]);
    const [entry] = await query<{ details: object }>(
      app.worker,
      sql`select details from audit_entries where action = 'draft.rejected' and resource_id = ${draft.id}`,
    );
    expect(entry?.details).toMatchObject({ refused: 'send', problem: reason.split(/[ ,]/)[0] });
  });

  test('of a connection leaves while it may', async () => {
    const { organization, signIn, schedule, sendDue, messages } = await arrange();
    const { userId } = await signIn('developer');
    const { token } = await createConnection(app.worker, { ...organization, userId });
    const draft = await asToolCall(() => schedule(token));
    expect(await sendDue(draft.id)).toBe('sent');
    expect(await messages()).toHaveLength(1);
  });

  test.each(Object.keys(PERSON_ENDS))(
    'of a person is refused, whatever the policy is: %s',
    async (problem) => {
      for (const mode of ['off', 'all'] as const) {
        const world = await arrange(mode);
        const { signIn, schedule, sendDue, readDraft, messages } = world;
        const { userId, token } = await signIn('developer');
        const { id } = await schedule(token);
        await PERSON_ENDS[problem]?.(world, userId);
        expect(await sendDue(id)).toBe('refused');
        expect(await readDraft(id)).toMatchObject(REFUSED);
        expect(await messages()).toEqual([]);
      }
    },
  );

  test.each([
    ['nobody', null, null],
    ['the service', 'system', 'drf_x'],
    ['staff', 'staff', 'usr_x'],
  ])('that %s asked for is refused', async (_who, kind, id) => {
    const { organization, schedule, sendDue, readDraft } = await arrange();
    const draft = await schedule(organization.token);
    await query(
      app.worker,
      sql`update drafts set requested_by_kind = ${kind}, requested_by_id = ${id} where id = ${draft.id} returning id`,
    );
    expect(await sendDue(draft.id)).toBe('refused');
    expect(await readDraft(draft.id)).toMatchObject(REFUSED);
  });

  test('leaves after a rotation of its key, and when its address ranges changed', async () => {
    const { organization, owner, post, schedule, sendDue, messages } = await arrange();
    const { id } = await schedule(organization.token);
    const path = `/api-keys/${organization.keyId}`;
    expect((await post(`${path}/rotate`, owner.token, {})).statusCode).toBe(201);
    const body = { allowed_cidrs: ['192.0.2.1'] };
    expect((await app.call(path, { method: 'PATCH', token: owner.token, body })).statusCode).toBe(200);
    expect(await sendDue(id)).toBe('sent');
    expect(await messages()).toHaveLength(1);
  });

  test('leaves if its key is bound to its inbox, and a message that was accepted goes on', async () => {
    const { organization, inbox, owner, post, schedule, sendDue, messages } = await arrange();
    const { productionEnvironmentId: environmentId } = organization;
    const key = await createKey(app.worker, {
      ...organization,
      environmentId,
      inboxId: inbox.id,
      permissions: ['messages:send', 'messages:read'],
    });
    const { id } = await schedule(key.token);
    expect(await sendDue(id)).toBe('sent');
    expect((await post(`/inboxes/${inbox.id}/messages`, key.token, CONTENT)).statusCode).toBe(201);
    await app.call(`/api-keys/${key.keyId}`, { method: 'DELETE', token: owner.token });
    expect(await messages()).toHaveLength(2);
  });

  test('belongs to the credential that changed it last', async () => {
    const world = await arrange();
    const { organization, owner, schedule, sendDue } = world;
    const key = await createKey(app.worker, {
      ...organization,
      permissions: ['messages:send', 'drafts:write'],
    });
    const { id } = await schedule(key.token);
    const body = { subject: 'Mine' };
    expect((await app.call(`/drafts/${id}`, { method: 'PATCH', token: owner.token, body })).statusCode).toBe(
      200,
    );
    await KEY_ENDS.key_revoked?.(world, key.keyId);
    expect(await sendDue(id)).toBe('sent');
  });

  test('mails once an hour about the same requester, however many drafts are due', async () => {
    const world = await arrange();
    const { organization, schedule, sendDue, emails, rejections } = world;
    const key = await createKey(app.worker, {
      ...organization,
      permissions: ['messages:send', 'drafts:read'],
    });
    const ids = [await schedule(key.token), await schedule(key.token), await schedule(key.token)];
    await KEY_ENDS.key_revoked?.(world, key.keyId);
    for (const { id } of ids) expect(await sendDue(id)).toBe('refused');
    expect(await rejections()).toHaveLength(3);
    const recipients = (await emails()).map(({ userId }) => userId);
    expect(recipients).toHaveLength(new Set(recipients).size);
  });

  test('and a revocation at the same time: after the revocation was answered, nothing leaves', async () => {
    const world = await arrange();
    const { organization, schedule, sendDue, messages } = world;
    for (let round = 0; round < 5; round += 1) {
      const key = await createKey(app.worker, {
        ...organization,
        permissions: ['messages:send', 'drafts:read'],
      });
      const { id } = await schedule(key.token);
      const before = (await messages()).length;
      const due = sendDue(id);
      await KEY_ENDS.key_revoked?.(world, key.keyId);
      const after = (await messages()).length;
      const result = await due;
      expect((await messages()).length).toBe(result === 'sent' ? before + 1 : before);
      expect((await messages()).length).toBe(after);
    }
  });
});

describe('an approval', () => {
  const pend = async ({ inbox, post }: World, token: string) =>
    (await post(`/inboxes/${inbox.id}/messages`, token, CONTENT)).json<{ id: string; version: number }>();

  test.each(Object.keys(KEY_ENDS))(
    'of what a key asked for rejects the draft if the key may no longer send: %s',
    async (problem) => {
      const world = await arrange('all');
      const { organization, post, owner, readDraft, rejections, messages, emails } = world;
      const key = await createKey(app.worker, {
        ...organization,
        permissions: ['messages:send', 'drafts:read'],
      });
      const { id, version } = await pend(world, key.token);
      const preview = () => app.call(`/drafts/${id}/preview`, { token: owner.token });
      expect((await preview()).json().requester_problem).toBeNull();
      await KEY_ENDS[problem]?.(world, key.keyId);
      expect((await preview()).json().requester_problem).toBe(problem);
      const refused = await post(`/drafts/${id}/approve`, owner.token, { version });
      expect(expectProblem(refused, 'conflict')).toMatchObject({
        send_status: 'rejected',
        send_error: 'requester_not_allowed',
        requester_problem: problem,
      });
      expect(await readDraft(id)).toMatchObject(REFUSED);
      expect(await rejections()).toMatchObject([{ decision: 'requester_not_allowed' }]);
      expect(await emails()).not.toEqual([]);
      expect(await messages()).toEqual([]);
      expect(
        app.commands.some(
          ({ signal }) => signal?.signalName === DRAFT_REJECTED && signal.workflowId.includes(id),
        ),
      ).toBe(true);
      // A person may send it in their own name.
      expect((await post(`/drafts/${id}/send`, owner.token, { version })).statusCode).toBe(201);
    },
  );

  test('of a scheduled draft counts only while its approver may approve', async () => {
    for (const problem of Object.keys(PERSON_ENDS)) {
      const world = await arrange('all');
      const { organization, post, schedule, sendDue, readDraft, rejections, messages, signIn } = world;
      const approver = await signIn('developer');
      const { id, version } = await schedule(organization.token);
      const approved = await post(`/drafts/${id}/approve`, approver.token, { version });
      expect(approved.json()).toMatchObject({ send_status: 'scheduled' });
      await PERSON_ENDS[problem]?.(world, approver.userId);
      expect(await sendDue(id)).toBe('refused');
      expect(await readDraft(id)).toMatchObject(REFUSED);
      expect(await rejections()).toMatchObject([{ decision: 'requester_not_allowed' }]);
      expect(await messages()).toEqual([]);
      // Once more from the beginning: a key asks, and somebody who may approves.
      expect((await post(`/drafts/${id}/send`, organization.token)).statusCode).toBe(202);
    }
  });

  test('of a scheduled draft counts while its approver stays', async () => {
    const { organization, owner, post, schedule, sendDue } = await arrange('all');
    const { id, version } = await schedule(organization.token);
    await post(`/drafts/${id}/approve`, owner.token, { version });
    expect(await sendDue(id)).toBe('sent');
  });

  test('that remembered recipients counts only while its approver may approve', async () => {
    for (const problem of Object.keys(PERSON_ENDS)) {
      const world = await arrange('all');
      const { organization, inbox, post, signIn } = world;
      const approver = await signIn('developer');
      const { id, version } = await pend(world, organization.token);
      const body = { version, remember_recipients: true };
      expect((await post(`/drafts/${id}/approve`, approver.token, body)).statusCode).toBe(201);
      const send = () => post(`/inboxes/${inbox.id}/messages`, organization.token, CONTENT);
      expect((await send()).statusCode).toBe(201);
      await PERSON_ENDS[problem]?.(world, approver.userId);
      expect((await send()).statusCode).toBe(202);
    }
  });
});
