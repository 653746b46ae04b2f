import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createApprovalService } from '../../domain/drafts/approval.service.ts';
import { createApprovalRunService } from '../../domain/drafts/approval-run.service.ts';
import { DraftEntity } from '../../domain/drafts/draft.entity.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { overdueApprovals } from '../../domain/drafts/overdue-approvals.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import type { Person } from '../../domain/identity/person.ts';
import type { MemberRole } from '../../domain/identity/roles.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import { NotificationEntity } from '../../domain/notifications/notification.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import type { ApprovalMode } from '../../domain/policies/organization-policies.entity.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { awaitApprovalWorkflowId } from '../../workflows/drafts/await-approval.contract.ts';
import { administerLimits, setLimit } from '../support/limits.ts';
import { TEST_APPROVAL_MS, testUnsubscribeLinks } from '../support/mail-services.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { testScope } from '../support/test-scope.ts';

const app = useTestApp();
const CONTENT = { to: ['ada@people.example'], subject: 'Offer', text_body: 'x' };
const IN_A_WEEK = new Date(Date.now() + 7 * 86_400_000).toISOString();

async function arrange(requireSendApproval: ApprovalMode = 'all') {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  const inbox = await createInbox(app.worker, organization);
  const call =
    (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', credential: string) =>
    (path: string, body?: unknown, headers = {}) =>
      app.call(path, { method, token: credential, body, headers });
  const signIn = async (role: MemberRole) => {
    const userId = await createTestUser(app.worker, { organizationId, role });
    const session = await createTestSession(app.worker, userId);
    return {
      userId,
      token: session.token,
      post: call('POST', session.token),
      get: call('GET', session.token),
    };
  };
  const post = call('POST', token);
  const original = (await post(`/inboxes/${inbox.id}/messages`, CONTENT)).json().id as string;
  const setMode = (mode: ApprovalMode) =>
    setPolicies(app.worker, organizationId, { require_send_approval: mode });
  await setMode(requireSendApproval);
  const send = (body: object = {}, headers = {}) =>
    post(`/inboxes/${inbox.id}/messages`, { ...CONTENT, ...body }, headers);
  return {
    organization,
    inbox,
    original,
    post,
    send,
    setMode,
    signIn,
    approver: await signIn('developer'),
    get: call('GET', token),
    patch: call('PATCH', token),
    remove: call('DELETE', token),
    /** Sends a message that has to wait. Returns the draft. */
    pend: async (body: object = {}) => {
      const response = await send(body);
      expect(response.statusCode).toBe(202);
      return response.json<{ id: string; version: number; approval: { requested_at: string } }>();
    },
    events: async (type?: string) =>
      (
        await app.worker.db
          .selectFrom('events')
          .select(columnsOf(EventEntity))
          .where('org_id', '=', organizationId)
          .orderBy('id')
          .execute()
      ).filter((event) => type === undefined || event.type === type),
    messages: () =>
      query<{ id: string; draftId: string | null; autoSubmitted: string | null }>(
        app.worker,
        sql`select id, draft_id as "draftId", auto_submitted as "autoSubmitted" from messages
        where org_id = ${organizationId} and id <> ${original} order by id`,
      ),
    readDraft: (id: string) =>
      app.worker.db
        .selectFrom('drafts')
        .select(columnsOf(DraftEntity))
        .where('id', '=', id)
        .executeTakeFirst(),
    audit: () =>
      query<{ action: string; actorId: string; reason: string | null; details: object }>(
        app.worker,
        sql`select action, actor_id as "actorId", reason, details from audit_entries where org_id = ${organizationId} order by id`,
      ),
  };
}

describe('under require_send_approval', () => {
  test('each way in which a key sends makes a draft that waits, with an event and a run', async () => {
    const { inbox, original, post, send, messages, events, get } = await arrange();
    const draft = (await post(`/inboxes/${inbox.id}/drafts`, CONTENT)).json();
    const responses = [
      await send(),
      await post(`/messages/${original}/reply`, { text_body: 'My answer' }),
      await post(`/messages/${original}/forward`, { to: ['bob@people.example'] }),
      await post(`/drafts/${draft.id}/send`),
    ];
    for (const response of responses) {
      expect(response.statusCode).toBe(202);
      const pending = response.json();
      expect(pending).toMatchObject({
        send_status: 'pending_approval',
        send_error: null,
        approval: { requested_by: { kind: 'api_key' }, decided_by: null },
      });
      expect((await get(`/drafts/${pending.id}`)).json()).toEqual(pending);
      const { requested_at, expires_at } = pending.approval;
      expect(Date.parse(expires_at) - Date.parse(requested_at)).toBe(TEST_APPROVAL_MS);
      expect(app.commands.map(({ start }) => start?.workflowId)).toContain(
        awaitApprovalWorkflowId(pending.id, 1),
      );
    }
    const [, reply, forward, kept] = responses.map((response) => response.json());
    // Stored as final content.
    expect(reply).toMatchObject({ subject: 'Re: Offer', in_reply_to: original });
    expect(reply.text_body).toMatch(/My answer[\s\S]*> x/);
    expect(forward).toMatchObject({ subject: 'Fwd: Offer', to_addresses: ['bob@people.example'] });
    expect(kept).toMatchObject({ id: draft.id, version: draft.version });
    expect(await messages()).toEqual([]);
    expect((await events()).map(({ type, data }) => [type, (data as { draft_id: string }).draft_id])).toEqual(
      responses.map((response) => ['draft.pending_approval', response.json().id]),
    );
  });

  test('sending a waiting draft again answers with it and requests nothing', async () => {
    const { pend, post, events, readDraft } = await arrange();
    const { id } = await pend();
    const again = await post(`/drafts/${id}/send`);
    expect([again.statusCode, again.json().send_status]).toEqual([202, 'pending_approval']);
    expect(await events()).toHaveLength(1);
    expect((await readDraft(id))?.approvalGeneration).toBe(1);
  });

  test('an Idempotency-Key repeats the 202', async () => {
    const { send, events } = await arrange();
    const first = await send({}, { 'idempotency-key': 'once' });
    const second = await send({}, { 'idempotency-key': 'once' });
    expect([first.statusCode, second.statusCode]).toEqual([202, 202]);
    expect(second.json()).toEqual(first.json());
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(await events()).toHaveLength(1);
  });

  test('a key that may not read drafts gets a receipt', async () => {
    const { organization, inbox } = await arrange();
    const { organizationId } = organization;
    const key = await createKey(app.worker, { organizationId, permissions: ['messages:send'] });
    const response = await app.call(`/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      token: key.token,
      body: CONTENT,
    });
    expect(response.statusCode).toBe(202);
    expect(Object.keys(response.json()).sort()).toEqual([
      'env_id',
      'id',
      'inbox_id',
      'object',
      'send_status',
      'version',
    ]);
  });

  test('people need no approval for what they send', async () => {
    const { approver, inbox, original } = await arrange();
    for (const [path, body] of [
      [`/inboxes/${inbox.id}/messages`, CONTENT],
      [`/messages/${original}/reply`, { text_body: 'x' }],
    ] as const)
      expect((await approver.post(path, body)).statusCode).toBe(201);
  });

  test('what the gate refuses does not wait', async () => {
    const { send, events, organization } = await arrange();
    await setPolicies(app.worker, organization.organizationId, {
      blocked_recipient_domains: ['people.example'],
    });
    expectProblem(await send(), 'message_rejected');
    expectProblem(await send({ to: [] }), 'no_recipients');
    expect((await events()).map(({ type }) => type)).toEqual(['message.rejected']);
  });

  test('`external` asks only for recipients outside the inboxes and verified domains', async () => {
    const { send, organization, inbox } = await arrange('external');
    const { organizationId } = organization;
    const domain = `${inbox.id.slice(4)}.example`;
    const addDomain = (name: string, status: string) =>
      query(
        app.worker,
        sql`insert into domains (id, org_id, domain_name, ownership_token, verification_status, observed,
          generation_started_at, created_at, updated_at)
        values (${`dom_${name}`}, ${organizationId}, ${name}, 'x', ${status}, '{}', now(), now(), now())`,
      );
    await addDomain(domain, 'verified');
    await addDomain(`pending-${domain}`, 'pending');
    const stranger = await createInbox(app.worker, await createOrganization(app.worker));
    const statusFor = async (...to: string[]) => (await send({ to })).statusCode;
    const [local, host] = inbox.email.split('@');
    for (const own of [inbox.email, `${local}+tag@${host}`, `Boss@${domain.toUpperCase()}`])
      expect([own, await statusFor(own)]).toEqual([own, 201]);
    for (const other of [stranger.email, `a@sub.${domain}`, `a@pending-${domain}`, 'ada@people.example'])
      expect([other, await statusFor(inbox.email, other)]).toEqual([other, 202]);
  });
});

describe('an approval', () => {
  test('sends the draft as the key would have, and is recorded with who, why and which version', async () => {
    const { pend, approver, messages, events, audit, readDraft, organization } = await arrange();
    const draft = await pend();
    const approved = await approver.post(`/drafts/${draft.id}/approve`, {
      version: draft.version,
      note: 'Fine',
    });
    expect(approved.statusCode).toBe(201);
    expect(approved.json()).toMatchObject({ status: 'queued', subject: 'Offer', draft_id: draft.id });
    expect(await messages()).toEqual([
      { id: approved.json().id, draftId: draft.id, autoSubmitted: 'auto-generated' },
    ]);
    expect(await readDraft(draft.id)).toBeUndefined();
    const [event] = await events('draft.approved');
    expect(event?.data).toEqual({
      draft_id: draft.id,
      inbox_id: expect.any(String),
      to_addresses: ['ada@people.example'],
      subject: 'Offer',
      version: draft.version,
      message_id: approved.json().id,
      send_at: null,
      note: 'Fine',
      approved_by: approver.userId,
      approved_at: expect.any(String),
    });
    expect(await audit()).toEqual([
      {
        action: 'draft.approved',
        actorId: approver.userId,
        reason: 'Fine',
        details: {
          version: draft.version,
          inbox_id: expect.any(String),
          message_id: approved.json().id,
          send_at: null,
          requested_by: organization.keyId,
          remembered_recipients: 0,
        },
      },
    ]);
    expect(app.commands).toContainEqual(
      expect.objectContaining({
        signal: { workflowId: awaitApprovalWorkflowId(draft.id, 1), signalName: 'approved', args: [] },
      }),
    );
  });

  test('sends a reply in its thread with its quote, and the files of a forward', async () => {
    const { post, original, approver, get } = await arrange();
    const { thread_id } = (await get(`/messages/${original}`)).json();
    const reply = (await post(`/messages/${original}/reply`, { text_body: 'Answer' })).json();
    const sent = (await approver.post(`/drafts/${reply.id}/approve`, { version: reply.version })).json();
    expect(sent).toMatchObject({ thread_id, subject: 'Re: Offer', text_body: reply.text_body });
  });

  test('of a draft with a time in the future schedules it, and the run then sends it', async () => {
    const { pend, approver, messages, readDraft } = await arrange();
    const draft = await pend({ send_at: IN_A_WEEK });
    const approved = await approver.post(`/drafts/${draft.id}/approve`, { version: draft.version });
    expect(approved.statusCode).toBe(200);
    expect(approved.json()).toMatchObject({
      send_status: 'scheduled',
      send_at: IN_A_WEEK,
      approval: { decided_by: approver.userId },
    });
    await query(
      app.worker,
      sql`update drafts set send_at = date_trunc('milliseconds', now()) where id = ${draft.id}`,
    );
    expect(await dueDrafts().sendDue(draft.id, 1)).toBe('sent');
    expect(await messages()).toHaveLength(1);
    expect(await readDraft(draft.id)).toBeUndefined();
  });

  test('is bound to the version that was seen', async () => {
    const { pend, patch, approver, messages } = await arrange();
    const draft = await pend();
    await patch(`/drafts/${draft.id}`, { text_body: 'Something else' });
    for (const path of ['approve', 'reject'])
      expect(
        expectProblem(
          await approver.post(`/drafts/${draft.id}/${path}`, { version: draft.version }),
          'conflict',
        ),
      ).toMatchObject({ version: draft.version + 1 });
    expect(await messages()).toEqual([]);
    const current = { version: draft.version + 1 };
    expect((await approver.post(`/drafts/${draft.id}/approve`, current)).statusCode).toBe(201);
  });

  test('of two approvers, one wins', async () => {
    const { pend, approver, signIn, messages, events } = await arrange();
    const { id, version } = await pend();
    const other = await signIn('owner');
    const responses = await Promise.all(
      [approver, other, approver, other].map(({ post }) => post(`/drafts/${id}/approve`, { version })),
    );
    expect(responses.map(({ statusCode }) => statusCode).sort()).toEqual([201, 404, 404, 404]);
    expect(await messages()).toHaveLength(1);
    expect(await events('draft.approved')).toHaveLength(1);
  });

  test('or a rejection, or a change, at the same time: one wins', async () => {
    const { pend, approver, patch, messages, readDraft } = await arrange();
    for (let round = 0; round < 3; round += 1) {
      const before = (await messages()).length;
      const { id, version } = await pend();
      const [approved, rejected, patched] = await Promise.all([
        approver.post(`/drafts/${id}/approve`, { version }),
        approver.post(`/drafts/${id}/reject`, { version }),
        patch(`/drafts/${id}`, { text_body: 'Changed' }, { 'if-match': String(version) }),
      ]);
      const [sent, refused, changed] = [approved, rejected, patched].map(
        ({ statusCode }) => statusCode < 300,
      );
      const draft = await readDraft(id);
      expect((await messages()).length - before).toBe(sent ? 1 : 0);
      if (sent) expect([refused, changed, draft]).toEqual([false, false, undefined]);
      else expect(draft?.sendStatus).toBe(changed && !refused ? 'pending_approval' : draft?.sendStatus);
      // A change after the approval or before it: an unseen version is never sent.
      if (sent) expect(approved.json().text_body).toBe('x');
    }
  });

  test.each([
    ['viewer', 'viewer'],
    ['key', null],
  ] as const)('by a %s is refused', async (_who, role) => {
    const { pend, signIn, post, messages } = await arrange();
    const { id, version } = await pend();
    const decide = role ? (await signIn(role)).post : post;
    for (const path of ['approve', 'reject'])
      expectProblem(await decide(`/drafts/${id}/${path}`, { version }), 'permission_denied');
    expect(await messages()).toEqual([]);
  });

  test('is refused to a key whatever permissions its row has', async () => {
    const { pend, organization } = await arrange();
    const { id, version } = await pend();
    const { token } = await createKey(app.worker, {
      organizationId: organization.organizationId,
      permissions: ['messages:approve', 'messages:send', 'drafts:read'],
    });
    const body = { version };
    expectProblem(
      await app.call(`/drafts/${id}/approve`, { method: 'POST', token, body }),
      'permission_denied',
    );
  });

  test('is refused to an approver who was removed or demoted after looking', async () => {
    const { pend, signIn, organization, messages } = await arrange();
    const { organizationId } = organization;
    const { id, version } = await pend();
    const demoted = await signIn('developer');
    const removed = await signIn('admin');
    for (const { get } of [demoted, removed]) expect((await get(`/drafts/${id}`)).statusCode).toBe(200);
    await app.worker.systemTransaction(async ({ db }) => {
      await db
        .updateTable('members')
        .set({ role: 'viewer' })
        .where('org_id', '=', organizationId)
        .where('user_id', '=', demoted.userId)
        .execute();
      await db
        .deleteFrom('members')
        .where('org_id', '=', organizationId)
        .where('user_id', '=', removed.userId)
        .execute();
    });
    expectProblem(await demoted.post(`/drafts/${id}/approve`, { version }), 'permission_denied');
    expect((await removed.post(`/drafts/${id}/approve`, { version })).statusCode).toBeGreaterThanOrEqual(400);
    expect(await messages()).toEqual([]);
  });

  test('is checked again in its own transaction: the member was demoted after the request was authenticated', async () => {
    const { pend, signIn, organization, inbox, messages } = await arrange();
    const { organizationId } = organization;
    const { id, version } = await pend();
    const { userId } = await signIn('developer');
    const scope: Scope = {
      ...testScope(organization, inbox),
      actor: { kind: 'user', id: userId },
      member: { person: { sessionId: 'ses_test' } as Person, role: 'developer' },
    };
    await app.worker.db
      .updateTable('members')
      .set({ role: 'viewer' })
      .where('org_id', '=', organizationId)
      .where('user_id', '=', userId)
      .execute();
    const { outbox } = recordingOutbox();
    const approvals = createApprovalService({
      notifications: createNotificationService({ outbox }),
      database: app.database,
      outbox,
      events: createWebhookEvents({ outbox }),
      unsubscribeLinks: testUnsubscribeLinks,
      approvalMs: TEST_APPROVAL_MS,
    });
    await expect(approvals.approve(scope, id, { version })).rejects.toMatchObject({
      code: 'permission_denied',
    });
    await expect(approvals.reject(scope, id, { version })).rejects.toMatchObject({
      code: 'permission_denied',
    });
    expect(await messages()).toEqual([]);
  });

  test('finds no draft of another organization', async () => {
    const { pend } = await arrange();
    const { id, version } = await pend();
    const { approver, inbox } = await arrange();
    expectProblem(await approver.post(`/drafts/${id}/approve`, { version }), 'not_found');
    expectProblem(await approver.post(`/drafts/${id}/reject`, { version }), 'not_found');
    const list = await approver.get('/drafts?send_status=pending_approval');
    expect(list.json().data).toEqual([]);
    expect((await approver.get(`/inboxes/${inbox.id}/approved-recipients`)).statusCode).toBe(200);
    expectProblem(await approver.get(`/drafts/${id}/preview`), 'not_found');
  });

  test('of what may not be sent now is an error, and the draft still waits', async () => {
    const { pend, approver, organization, readDraft, inbox } = await arrange();
    const { organizationId } = organization;
    const { id, version } = await pend();
    const approve = () => approver.post(`/drafts/${id}/approve`, { version });
    const waits = async () => expect((await readDraft(id))?.sendStatus).toBe('pending_approval');
    await query(
      app.worker,
      sql`insert into suppressions (id, org_id, scope_id, email, origin, created_at)
      values ('sup_x', ${organizationId}, ${organizationId}, 'ada@people.example', 'manual', now())`,
    );
    expect(expectProblem(await approve(), 'message_rejected').rejection_reason).toBe('blocked_recipient');
    await waits();
    await query(app.worker, sql`delete from suppressions where org_id = ${organizationId}`);
    await query(app.worker, sql`update inboxes set status = 'suspended' where id = ${inbox.id}`);
    expectProblem(await approve(), 'inbox_suspended');
    await waits();
    await query(app.worker, sql`update inboxes set status = 'active' where id = ${inbox.id}`);
    await setLimit(administerLimits({ database: app.worker }), organizationId, {
      resource: 'messages_sent',
      limit: 0,
      kind: 'hard',
    });
    expectProblem(await approve(), 'usage_limit_exceeded');
    await waits();
  });

  test('with a malformed decision is a 400', async () => {
    const { pend, approver } = await arrange();
    const { id } = await pend();
    for (const body of [
      {},
      { version: 0 },
      { version: '1' },
      { version: 1.5 },
      { version: 1, note: 5 },
      { version: 1, note: 'x'.repeat(2_001) },
      { version: 1, remember_recipients: 'yes' },
      { version: 1, status: 'approved' },
    ])
      for (const path of ['approve', 'reject']) {
        if (path === 'reject' && 'remember_recipients' in body) continue;
        expectProblem(await approver.post(`/drafts/${id}/${path}`, body), 'validation_error');
      }
    expectProblem(await approver.post('/drafts/drf_none/approve', { version: 1 }), 'not_found');
  });
});

describe('a rejection', () => {
  test('keeps the draft with its reason; changed, it can be sent again', async () => {
    const { pend, approver, post, patch, get, events, audit } = await arrange();
    const { id, version } = await pend({ send_at: IN_A_WEEK });
    const rejected = await approver.post(`/drafts/${id}/reject`, { version, note: 'Too pushy' });
    expect(rejected.statusCode).toBe(200);
    expect(rejected.json()).toMatchObject({
      send_status: 'rejected',
      send_error: 'approval_rejected: Too pushy',
      send_at: null,
      approval: { decided_by: approver.userId, note: 'Too pushy' },
    });
    expect((await events('draft.rejected')).map(({ data }) => data)).toMatchObject([
      { draft_id: id, decision: 'rejected', rejected_by: approver.userId },
    ]);
    expect(await audit()).toMatchObject([
      { action: 'draft.rejected', details: { version, decision: 'rejected' } },
    ]);
    expectProblem(await approver.post(`/drafts/${id}/approve`, { version }), 'conflict');
    expectProblem(await post(`/drafts/${id}/send`), 'conflict');
    await patch(`/drafts/${id}`, { text_body: 'Kinder' });
    expect((await get(`/drafts/${id}`)).json()).toMatchObject({ send_status: 'draft', send_error: null });
    expect((await post(`/drafts/${id}/send`)).statusCode).toBe(202);
  });
});

describe('a change of a waiting draft', () => {
  test('voids the request, requests approval of the new version, and names the changed fields', async () => {
    const { pend, patch, events } = await arrange();
    const { id, version } = await pend();
    const changed = (
      await patch(`/drafts/${id}`, { text_body: 'y', subject: 'Offer', cc: ['eve@people.example'] })
    ).json();
    expect(changed).toMatchObject({
      send_status: 'pending_approval',
      version: version + 1,
      approval: {
        signals: ['external_recipient', 'first_contact', 'changed'],
        recipients: [
          { email: 'ada@people.example', external: true, first_contact: false },
          { email: 'eve@people.example', external: true, first_contact: true },
        ],
        changes: [{ version: version + 1, changed_at: expect.any(String), fields: ['cc', 'text_body'] }],
      },
    });
    expect((await events()).map(({ data }) => (data as { version: number }).version)).toEqual([
      version,
      version + 1,
    ]);
    expect(app.commands).toContainEqual(
      expect.objectContaining({
        signal: { workflowId: awaitApprovalWorkflowId(id, 1), signalName: 'voided', args: [] },
      }),
    );
    expect(app.commands.map(({ start }) => start?.workflowId)).toContain(awaitApprovalWorkflowId(id, 2));
  });

  test('needs messages:send, and a key cannot plan or change what a person scheduled without approval', async () => {
    const { organization, inbox, approver, patch, pend } = await arrange();
    const { id } = await pend();
    const { token } = await createKey(app.worker, {
      organizationId: organization.organizationId,
      permissions: ['drafts:write', 'drafts:read'],
    });
    const body = { text_body: 'y' };
    expectProblem(await app.call(`/drafts/${id}`, { method: 'PATCH', token, body }), 'permission_denied');
    const own = await approver.post(`/inboxes/${inbox.id}/messages`, { ...CONTENT, send_at: IN_A_WEEK });
    expect(own.json().send_status).toBe('scheduled');
    expect((await patch(`/drafts/${own.json().id}`, body)).json()).toMatchObject({
      send_status: 'pending_approval',
      send_at: IN_A_WEEK,
    });
  });

  test('of an approved, scheduled draft voids the approval', async () => {
    const { pend, approver, patch } = await arrange();
    const { id, version } = await pend({ send_at: IN_A_WEEK });
    await approver.post(`/drafts/${id}/approve`, { version });
    expect((await patch(`/drafts/${id}`, { text_body: 'y' })).json()).toMatchObject({
      send_status: 'pending_approval',
      send_at: IN_A_WEEK,
      approval: { decided_by: null },
    });
  });

  test('deleting it ends the request', async () => {
    const { pend, remove } = await arrange();
    const { id } = await pend();
    expect((await remove(`/drafts/${id}`)).statusCode).toBe(204);
    expect(app.commands).toContainEqual(
      expect.objectContaining({
        signal: expect.objectContaining({ workflowId: awaitApprovalWorkflowId(id, 1) }),
      }),
    );
  });

  test('of a submission is refused; deleting it leaves its bytes to the sweep, sending it does not', async () => {
    const { pend, patch, remove, approver, messages } = await arrange();
    const keyOf = (id: string) => `raw/submitted/${id}.eml`;
    const submit = async () => {
      const { id, version } = await pend();
      const submission = {
        storageKey: keyOf(id),
        envelope: [{ field: 'to', email: 'ada@people.example' }],
        messageId: `${id}@program`,
        inReplyTo: null,
        references: [],
        fromName: null,
      };
      await query(
        app.worker,
        sql`update drafts set submission = ${JSON.stringify(submission)}::jsonb where id = ${id}`,
      );
      return { id, version };
    };
    const released = async ({ id }: { id: string }) =>
      (await query(app.worker, sql`select 1 from unclaimed_objects where storage_key = ${keyOf(id)}`)).length;
    const [deleted, sent] = [await submit(), await submit()];
    expectProblem(await patch(`/drafts/${sent.id}`, { subject: 'Other' }), 'conflict');
    await remove(`/drafts/${deleted.id}`);
    await approver.post(`/drafts/${sent.id}/approve`, { version: sent.version });
    expect(await messages()).toHaveLength(1);
    expect([await released(deleted), await released(sent)]).toEqual([1, 0]);
  });

  test('a person cannot send it past its approval', async () => {
    const { pend, approver } = await arrange();
    const { id, version } = await pend();
    expect(expectProblem(await approver.post(`/drafts/${id}/send`), 'conflict')).toMatchObject({ version });
  });
});

describe('a draft that waits when the policy ends', () => {
  test('keeps waiting for a person, whatever a key does', async () => {
    const { pend, setMode, post, patch, readDraft, messages } = await arrange();
    const { id } = await pend();
    await setMode('off');
    const again = await post(`/drafts/${id}/send`);
    expect([again.statusCode, again.json().send_status]).toEqual([202, 'pending_approval']);
    for (const change of [{ text_body: 'Changed' }, { send_at: IN_A_WEEK }, { send_at: null }]) {
      expect((await patch(`/drafts/${id}`, change)).json()).toMatchObject({
        send_status: 'pending_approval',
      });
      expect((await post(`/drafts/${id}/send`)).statusCode).toBe(202);
    }
    expect((await readDraft(id))?.sendStatus).toBe('pending_approval');
    expect(await messages()).toEqual([]);
  });

  test('is sent by an approval', async () => {
    const { pend, setMode, approver } = await arrange();
    const { id, version } = await pend();
    await setMode('off');
    expectProblem(await approver.post(`/drafts/${id}/send`), 'conflict');
    expect((await approver.post(`/drafts/${id}/approve`, { version })).statusCode).toBe(201);
  });
});

test('a draft that was scheduled before the policy waits when it is due', async () => {
  const { send, setMode, readDraft, approver } = await arrange('off');
  const { id } = (await send({ send_at: IN_A_WEEK })).json();
  const own = (await approver.post(`/drafts/${id}/send`)).statusCode;
  expect(own).toBe(201);
  const later = (await send({ send_at: IN_A_WEEK })).json();
  await setMode('all');
  await query(
    app.worker,
    sql`update drafts set send_at = date_trunc('milliseconds', now()) where id = ${later.id}`,
  );
  expect(await dueDrafts().sendDue(later.id, 1)).toBe('pending_approval');
  expect((await readDraft(later.id))?.sendStatus).toBe('pending_approval');
  const approved = await approver.post(`/drafts/${later.id}/approve`, { version: later.version });
  expect(approved.statusCode).toBe(201);
});

function dueDrafts() {
  const { outbox } = recordingOutbox();
  return createDraftService({
    notifications: createNotificationService({ outbox }),
    database: app.worker,
    outbox,
    events: createWebhookEvents({ outbox }),
    unsubscribeLinks: testUnsubscribeLinks,
    approvalMs: TEST_APPROVAL_MS,
  });
}

describe('remembered recipients', () => {
  test('need no approval from that inbox for 30 days, until they are removed', async () => {
    const { pend, send, approver, organization, inbox } = await arrange();
    const draft = await pend({ cc: ['Bob@People.example'] });
    await approver.post(`/drafts/${draft.id}/approve`, { version: draft.version, remember_recipients: true });
    const list = async () => (await approver.get(`/inboxes/${inbox.id}/approved-recipients`)).json().data;
    const remembered = await list();
    expect(remembered.map(({ email }: { email: string }) => email).sort()).toEqual([
      'ada@people.example',
      'bob@people.example',
    ]);
    expect(remembered[0]).toMatchObject({ inbox_id: inbox.id, approved_by: approver.userId });
    expect((Date.parse(remembered[0].expires_at) - Date.now()) / 86_400_000).toBeCloseTo(30, 1);
    expect((await send({ to: ['bob@people.example'] })).statusCode).toBe(201);
    expect((await send({ cc: ['eve@people.example'] })).statusCode).toBe(202);
    const other = await createInbox(app.worker, organization);
    const elsewhere = { method: 'POST' as const, token: organization.token, body: CONTENT };
    expect((await app.call(`/inboxes/${other.id}/messages`, elsewhere)).statusCode).toBe(202);
    for (const { id } of remembered) {
      const request = { method: 'DELETE' as const, token: approver.token };
      expect((await app.call(`/approved-recipients/${id}`, request)).statusCode).toBe(204);
      expectProblem(await app.call(`/approved-recipients/${id}`, request), 'not_found');
    }
    expect((await send()).statusCode).toBe(202);
    expect(await list()).toEqual([]);
  });

  test('are not found from another organization', async () => {
    const { pend, approver, inbox } = await arrange();
    const draft = await pend();
    await approver.post(`/drafts/${draft.id}/approve`, { version: draft.version, remember_recipients: true });
    const path = `/inboxes/${inbox.id}/approved-recipients`;
    const [{ id }] = (await approver.get(path)).json().data;
    const stranger = (await arrange()).approver;
    expectProblem(await stranger.get(path), 'not_found');
    const request = { method: 'DELETE' as const, token: stranger.token };
    expectProblem(await app.call(`/approved-recipients/${id}`, request), 'not_found');
    expect((await approver.get(path)).json().data).toHaveLength(1);
  });

  test('end when they expire, and are not available to keys', async () => {
    const { pend, send, approver, inbox, get } = await arrange();
    const draft = await pend();
    await approver.post(`/drafts/${draft.id}/approve`, { version: draft.version, remember_recipients: true });
    await query(
      app.worker,
      sql`update approved_recipients set expires_at = date_trunc('milliseconds', now()) where inbox_id = ${inbox.id}`,
    );
    expect((await send()).statusCode).toBe(202);
    expectProblem(await get(`/inboxes/${inbox.id}/approved-recipients`), 'permission_denied');
  });
});

test('a preview shows a draft as its recipient will see it, and what changed since a version', async () => {
  const { post, original, inbox, patch, get, approver } = await arrange();
  const reply = (await post(`/messages/${original}/reply`, { text_body: 'Answer' })).json();
  await patch(`/drafts/${reply.id}`, {
    subject: 'Offer',
    text_body: null,
    html_body: '<p onclick="x()">Hi<script>1</script></p>',
  });
  const preview = (await approver.get(`/drafts/${reply.id}/preview`)).json();
  expect(preview).toMatchObject({
    draft_id: reply.id,
    version: reply.version + 1,
    from_address: inbox.email,
    to_addresses: ['ada@people.example'],
    subject: 'Re: Offer',
    text_body: 'Hi',
    html_body: '<p>Hi</p>',
    signals: ['external_recipient', 'changed'],
    recipients: [{ email: 'ada@people.example', external: true, first_contact: false }],
    changes: [{ version: reply.version + 1 }],
  });
  const since = await get(`/drafts/${reply.id}/preview?seen_version=${reply.version + 1}`);
  expect(since.json().changes).toEqual([]);
  const empty = (await post(`/inboxes/${inbox.id}/drafts`, {})).json();
  expect((await get(`/drafts/${empty.id}/preview`)).json()).toMatchObject({
    subject: '',
    text_body: null,
    html_body: null,
    recipients: [],
    changes: [],
  });
  expectProblem(await get('/drafts/drf_none/preview'), 'not_found');
});

describe('an approver compares a changed draft', () => {
  const compare = async (world: Awaited<ReturnType<typeof arrange>>, id: string, query = '') =>
    (await world.approver.get(`/drafts/${id}/preview${query}`)).json().comparison;

  test('with the version they saw: subject, recipients and text', async () => {
    const world = await arrange();
    const { id, version } = await world.pend();
    expect(await compare(world, id)).toBeNull();
    await world.patch(`/drafts/${id}`, { subject: 'Other offer', text_body: 'x\nand more' });
    await world.patch(`/drafts/${id}`, { to: ['eve@elsewhere.example'] });
    expect(await compare(world, id, `?seen_version=${version}`)).toEqual({
      seen_version: version,
      version: version + 2,
      too_long: false,
      differences: [
        {
          field: 'subject',
          lines: [
            { change: 'removed', line: 'Offer' },
            { change: 'added', line: 'Other offer' },
          ],
        },
        {
          field: 'to',
          lines: [
            { change: 'removed', line: 'ada@people.example' },
            { change: 'added', line: 'eve@elsewhere.example' },
          ],
        },
        {
          field: 'text',
          lines: [
            { change: 'same', line: 'x' },
            { change: 'added', line: 'and more' },
          ],
        },
      ],
    });
    const later = await compare(world, id, `?seen_version=${version + 1}`);
    expect(later.differences.map(({ field }: { field: string }) => field)).toEqual(['to']);
    expect(await compare(world, id, `?seen_version=${version + 2}`)).toBeNull();
    expect(await compare(world, id, '?seen_version=0')).toMatchObject({ seen_version: version });
  });

  test('of HTML by its text, and not of a text that is too long to be kept', async () => {
    const world = await arrange();
    const { id } = await world.pend({ text_body: null, html_body: '<p>One</p>' });
    await world.patch(`/drafts/${id}`, { html_body: '<p>Two</p>' });
    expect((await compare(world, id)).differences).toEqual([
      {
        field: 'text',
        lines: [
          { change: 'removed', line: 'One' },
          { change: 'added', line: 'Two' },
        ],
      },
    ]);
    await world.patch(`/drafts/${id}`, { text_body: 'x'.repeat(70_000), subject: 'Long' });
    expect(await compare(world, id)).toMatchObject({
      too_long: true,
      differences: [{ field: 'subject' }],
    });
  });
});

test('GET /drafts lists what waits in the whole organization, by pages', async () => {
  const { pend, approver, organization, get } = await arrange();
  const sandbox = await createInbox(app.worker, organization, {
    environmentId: organization.sandboxEnvironmentId,
  });
  const ids = [(await pend()).id, (await pend()).id];
  const inSandbox = await app.call(`/inboxes/${sandbox.id}/messages`, {
    method: 'POST',
    token: organization.token,
    headers: { 'x-env-id': organization.sandboxEnvironmentId },
    body: CONTENT,
  });
  expect(inSandbox.statusCode).toBe(202);
  const all = [...ids, inSandbox.json().id];
  const first = (await approver.get('/drafts?send_status=pending_approval&limit=2&order=asc')).json();
  const second = (
    await approver.get(`/drafts?send_status=pending_approval&limit=2&order=asc&cursor=${first.next_cursor}`)
  ).json();
  expect([...first.data, ...second.data].map(({ id }: { id: string }) => id)).toEqual(all);
  expect((await get(`/drafts?send_status=pending_approval&inbox_id=${sandbox.id}`)).json().data).toHaveLength(
    1,
  );
  const bound = await createKey(app.worker, {
    organizationId: organization.organizationId,
    environmentId: organization.sandboxEnvironmentId,
  });
  const ofSandbox = (await app.call('/drafts', { token: bound.token })).json();
  expect(ofSandbox.data.map(({ id }: { id: string }) => id)).toEqual([inSandbox.json().id]);
  // A selected environment binds the request, as everywhere.
  const headers = { 'x-env-id': organization.productionEnvironmentId };
  const inProduction = (await approver.get('/drafts', undefined, headers)).json();
  expect(inProduction.data.map(({ id }: { id: string }) => id).sort()).toEqual([...ids].sort());
  const decision = `/drafts/${inSandbox.json().id}/approve`;
  expectProblem(await approver.post(decision, { version: 1 }, headers), 'not_found');
  expect((await approver.post(decision, { version: 1 })).statusCode).toBe(201);
});

describe('the run of a request', () => {
  const approvalRuns = () => {
    const { outbox } = recordingOutbox();
    const events = createWebhookEvents({ outbox });
    return createApprovalRunService({
      database: app.worker,
      events,
      notifications: createNotificationService({ outbox }),
    });
  };

  test('rejects the draft when its time is over, and not before', async () => {
    const { pend, readDraft, events, audit } = await arrange();
    const { id } = await pend();
    const draft = await readDraft(id);
    expect(await approvalRuns().settle(id, 1)).toEqual({
      waitUntil: draft?.approvalExpiresAt?.toISOString(),
    });
    expect(await approvalRuns().settle(id, 0)).toBe('decided');
    await query(
      app.worker,
      sql`update drafts set approval_expires_at = now() - interval '1 second' where id = ${id}`,
    );
    expect(await approvalRuns().settle(id, 1)).toBe('expired');
    expect(await approvalRuns().settle(id, 1)).toBe('decided');
    expect(await readDraft(id)).toMatchObject({ sendStatus: 'rejected', sendError: 'approval_expired' });
    expect((await events('draft.rejected')).map(({ data }) => data)).toMatchObject([
      { decision: 'expired', rejected_by: null },
    ]);
    expect(await audit()).toMatchObject([{ action: 'draft.rejected', details: { decision: 'expired' } }]);
  });

  test('an expired draft can be sent again unchanged', async () => {
    const { pend, post } = await arrange();
    const { id } = await pend();
    await query(
      app.worker,
      sql`update drafts set approval_expires_at = date_trunc('milliseconds', now()) where id = ${id}`,
    );
    await approvalRuns().settle(id, 1);
    expect((await post(`/drafts/${id}/send`)).json()).toMatchObject({ send_status: 'pending_approval' });
  });

  test('an operator who cancels it rejects the draft', async () => {
    const { pend, readDraft } = await arrange();
    const { id } = await pend();
    await approvalRuns().cancel(id, 1);
    expect(await readDraft(id)).toMatchObject({ sendStatus: 'rejected', sendError: 'approval_canceled' });
  });

  test('is found by the reconciler when it is overdue', async () => {
    const { pend } = await arrange();
    const { id } = await pend();
    const ids = async () =>
      (await overdueApprovals(app.worker, approvalRuns()).take(10_000)).map(({ start }) => start.workflowId);
    expect(await ids()).not.toContain(awaitApprovalWorkflowId(id, 1));
    await query(
      app.worker,
      sql`update drafts set approval_expires_at = now() - interval '5 minutes', reconciled_at = null where id = ${id}`,
    );
    expect(await ids()).toContain(awaitApprovalWorkflowId(id, 1));
    expect(await ids()).not.toContain(awaitApprovalWorkflowId(id, 1));
  });

  test('emails those who may approve, at most one email in ten minutes however many drafts wait', async () => {
    const { pend, organization, approver, signIn } = await arrange();
    const { organizationId } = organization;
    await signIn('viewer');
    const emails = () =>
      app.worker.db
        .selectFrom('notifications')
        .select(columnsOf(NotificationEntity))
        .where('org_id', '=', organizationId)
        .orderBy('id')
        .execute();
    const runs = approvalRuns();
    const ids = [(await pend()).id, (await pend()).id, (await pend()).id];
    await Promise.all(ids.map((id) => runs.announce(id)));
    await runs.announce(ids[0] ?? '');
    const first = await emails();
    expect(first.map(({ userId }) => userId).sort()).toEqual([organization.ownerId, approver.userId].sort());
    expect(first[0]).toMatchObject({ template: 'approvals-pending', params: { count: 3 } });
    const more = await pend();
    await runs.announce(more.id);
    await runs.announceRest();
    expect(await emails()).toHaveLength(2);
    await query(
      app.worker,
      sql`update approval_digests set sent_at = now() - interval '11 minutes' where org_id = ${organizationId}`,
    );
    await runs.announceRest();
    await runs.announceRest();
    const all = await emails();
    expect(all).toHaveLength(4);
    expect(all[3]?.params).toMatchObject({ count: 4 });
    await query(
      app.worker,
      sql`update approval_digests set sent_at = now() - interval '11 minutes' where org_id = ${organizationId}`,
    );
    await runs.announceRest();
    expect(await emails()).toHaveLength(4);
  });
});
