import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { releaseAllHeldDrafts } from '../../domain/drafts/held-drafts.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { releaseAllHeldSends } from '../../domain/outbound/held-sends.ts';
import { releaseOfRecoveredOrganizations } from '../../domain/webhooks/release-held-deliveries.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { createTestReceiptService, testUnsubscribeLinks } from '../support/mail-services.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce, readMessageState } from '../support/outbound-mail.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { arrangeDeliveries, httpAnswer } from '../support/webhook-deliveries.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
let owner: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  owner = (await createTestSession(app.worker, organization.ownerId)).token;
});

const close = (token = owner, body: unknown = { name: 'Test' }, headers = {}) =>
  app.call('/org', { method: 'DELETE', token, body, headers });
const recover = (token = owner, id = organization.organizationId) =>
  app.call(`/user/me/organizations/${id}/recover`, { method: 'POST', token });
const auditOf = async (organizationId: string) =>
  (
    await query<{ action: string }>(
      app.worker,
      sql`select action from audit_entries where org_id = ${organizationId} order by id`,
    )
  ).map(({ action }) => action);
const ownerMail = async (organizationId: string) =>
  (
    await query<{ template: string }>(
      app.worker,
      sql`select template from notifications where org_id = ${organizationId} order by id`,
    )
  ).map(({ template }) => template);

describe('closing an organization', () => {
  test('refuses its keys and sessions, mails its owners and starts the purge', async () => {
    const response = await close();
    expect(response.statusCode).toBe(202);
    const { deleted_at, recoverable_until } = response.json();
    expect(Date.parse(recoverable_until) - Date.parse(deleted_at)).toBe(30 * 86_400_000);
    const named = { 'x-org-id': organization.organizationId };
    for (const [token, headers] of [
      [organization.token, {}],
      [owner, named],
    ] as const) {
      const problem = expectProblem(await app.call('/org', { token, headers }), 'organization_deleted');
      expect(problem.fix).toContain(`/organizations/${organization.organizationId}/recover`);
      expectProblem(
        await app.call('/inboxes', { method: 'POST', token, headers, body: {} }),
        'organization_deleted',
      );
    }
    expectProblem(await app.call('/org', { token: owner }), 'permission_denied');
    expect(await ownerMail(organization.organizationId)).toEqual(['organization-deleted']);
    expect(await auditOf(organization.organizationId)).toEqual(['organization.deleted']);
    const start = app.commands.find(({ start: command }) =>
      command?.workflowId.startsWith(`purge-organization/${organization.organizationId}/del_`),
    );
    expect(start).toMatchObject({ start: { input: { dueAt: recoverable_until } } });
    expect((await app.call('/user/me/organizations', { token: owner })).json().data).toMatchObject([
      { id: organization.organizationId, deleted_at },
    ]);
  });

  test('reveals nothing to strangers', async () => {
    await close();
    const stranger = await createOrganization(app.worker);
    const { token } = await createTestSession(app.worker, stranger.ownerId);
    const headers = { 'x-org-id': organization.organizationId };
    expectProblem(await app.call('/org', { token, headers }), 'not_found');
    expectProblem(await app.call('/org', { token: stranger.token, headers }), 'not_found');
    expectProblem(await recover(token), 'not_found');
  });

  test('needs the name, a fresh sign-in, and an owner', async () => {
    expectProblem(await close(owner, { name: 'test' }), 'validation_error');
    expectProblem(await close(owner, {}), 'validation_error');
    expectProblem(await close(organization.token), 'permission_denied');
    for (const role of ['admin', 'developer', 'viewer'] as const) {
      const userId = await createTestUser(app.worker, { ...organization, role });
      expectProblem(await close((await createTestSession(app.worker, userId)).token), 'permission_denied');
    }
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where user_id = ${organization.ownerId}`,
    );
    expectProblem(await close(), 'session_expired');
    expect(await auditOf(organization.organizationId)).toEqual([]);
  });

  test('is done once by concurrent requests', async () => {
    const statuses = (await Promise.all([1, 2, 3].map(() => close()))).map(({ statusCode }) => statusCode);
    expect(statuses.filter((status) => status === 202)).toHaveLength(1);
    expect(await auditOf(organization.organizationId)).toEqual(['organization.deleted']);
    expect(await ownerMail(organization.organizationId)).toEqual(['organization-deleted']);
  });

  test('accepts no mail for its addresses, until it is recovered', async () => {
    const inbox = await createInbox(app.worker, organization);
    const receipts = createTestReceiptService({ database: app.worker, outbox: recordingOutbox().outbox });
    expect(await receipts.resolve(inbox.email, 'ada@people.example')).toMatchObject({ kind: 'mail' });
    await close();
    expect(await receipts.resolve(inbox.email, 'ada@people.example')).toBe('unknown');
    await recover();
    expect(await receipts.resolve(inbox.email, 'ada@people.example')).toMatchObject({ kind: 'mail' });
  });
});

/** Closes or recovers the organization of rows that other helpers created. */
const setDeleted = (organizationId: string, isDeleted: boolean) =>
  query(
    app.worker,
    sql`update organizations set deleted_at = case when ${isDeleted} then now() end where id = ${organizationId}`,
  );

describe('while an organization is closed', () => {
  test('accepted messages wait, and are sent after its recovery', async () => {
    const setup = await arrangeSending(app.worker);
    const { organizationId } = setup.inbox;
    const id = await setup.send('ada@people.example');
    await setDeleted(organizationId, true);
    expect(await dispatchOnce(setup, id)).toBe('held');
    expect((await readMessageState(app.worker, id)).types).toEqual([]);
    const { outbox, commands } = recordingOutbox();
    const started = () =>
      commands.filter(({ start }) => start?.workflowId === sendMessageWorkflowId(id)).length;
    await releaseAllHeldSends(app.worker, outbox);
    expect(started()).toBe(0);
    await setDeleted(organizationId, false);
    await releaseAllHeldSends(app.worker, outbox);
    expect(started()).toBe(1);
    await dispatchOnce(setup, id);
    expect((await readMessageState(app.worker, id)).types).toEqual(['message.sent']);
  });

  test('a submitted message is refused', async () => {
    const setup = await arrangeSending(app.worker);
    await setDeleted(setup.inbox.organizationId, true);
    await expect(setup.send('ada@people.example')).rejects.toMatchObject({ code: 'organization_deleted' });
  });

  test('scheduled drafts stay, and are sent after its recovery', async () => {
    const inbox = await createInbox(app.worker, organization);
    const created = await app.call(`/inboxes/${inbox.id}/drafts`, {
      method: 'POST',
      token: organization.token,
      body: {
        to: [{ email: 'ada@people.example' }],
        send_at: new Date(Date.now() + 3_600_000).toISOString(),
      },
    });
    expect(created.statusCode).toBe(201);
    const { id } = created.json();
    await close();
    await query(app.worker, sql`update drafts set send_at = now() - interval '1 minute' where id = ${id}`);
    const drafts = createDraftService({
      notifications: createNotificationService(recordingOutbox()),
      unsubscribeLinks: testUnsubscribeLinks,
      database: app.worker,
      outbox: recordingOutbox().outbox,
      events: createWebhookEvents({ outbox: recordingOutbox().outbox }),
      approvalMs: 7 * 86_400_000,
    });
    expect(await drafts.sendDue(id, 1)).toBe('held');
    await recover();
    const { outbox, commands } = recordingOutbox();
    await releaseAllHeldDrafts(app.worker, outbox);
    expect(commands.some(({ start }) => start?.workflowId === `scheduled/${id}/1`)).toBe(true);
    expect(await drafts.sendDue(id, 1)).toBe('sent');
  });

  test('webhook deliveries are held without an attempt, and continue after its recovery', async () => {
    const arranged = await arrangeDeliveries(app.worker, 1);
    const [deliveryId = ''] = arranged.deliveryIds;
    const organizationId = (await arranged.deliveries())[0]?.organizationId ?? '';
    await setDeleted(organizationId, true);
    const worker = arranged.worker(async () => httpAnswer(200));
    await worker.attempt(deliveryId, false, 1);
    expect(await arranged.deliveries()).toMatchObject([
      { status: 'held', heldFor: 'organization_deleted', attempts: 0 },
    ]);
    const { outbox, commands } = recordingOutbox();
    await releaseOfRecoveredOrganizations(app.worker, outbox);
    expect(await arranged.deliveries()).toMatchObject([{ status: 'held' }]);
    await setDeleted(organizationId, false);
    await releaseOfRecoveredOrganizations(app.worker, outbox);
    expect(await arranged.deliveries()).toMatchObject([{ status: 'pending', heldFor: null }]);
    expect(commands.filter(({ start }) => start?.searchAttributes.OrgId === organizationId)).toHaveLength(1);
  });
});

describe('recovering an organization', () => {
  test('opens it as it was', async () => {
    const before = (await app.call('/org', { token: owner })).json();
    await close();
    const response = await recover();
    expect(response.json()).toEqual({
      object: 'membership',
      id: organization.organizationId,
      name: before.name,
      slug: before.slug,
      role: 'owner',
      deleted_at: null,
    });
    for (const token of [owner, organization.token])
      expect((await app.call('/org', { token })).json()).toMatchObject({ id: before.id, status: 'active' });
    expect(await auditOf(organization.organizationId)).toEqual([
      'organization.deleted',
      'organization.recovered',
    ]);
    expect(await ownerMail(organization.organizationId)).toEqual([
      'organization-deleted',
      'organization-recovered',
    ]);
    const last = app.commands.findLast(({ signal }) =>
      signal?.workflowId.includes(organization.organizationId),
    );
    expect(last).toMatchObject({ signal: { signalName: 'cancel' } });
    expect((await close()).statusCode).toBe(202);
  });

  test('is done once by concurrent requests, which all succeed', async () => {
    await close();
    const responses = await Promise.all([1, 2, 3].map(() => recover()));
    for (const { statusCode } of responses) expect(statusCode).toBe(200);
    expect(await auditOf(organization.organizationId)).toEqual([
      'organization.deleted',
      'organization.recovered',
    ]);
  });

  test('is for owners alone, and keeps a suspension', async () => {
    await query(
      app.worker,
      sql`update organizations set status = 'suspended' where id = ${organization.organizationId}`,
    );
    await setDeleted(organization.organizationId, true);
    await query(
      app.worker,
      sql`insert into deletions (id, kind, subject_id, deleted_by, deleted_at, due_at)
      values (${`del_${organization.organizationId}`}, 'organization', ${organization.organizationId}, ${organization.ownerId},
        now(), now() + interval '1 day')`,
    );
    for (const role of ['admin', 'developer', 'viewer'] as const) {
      const userId = await createTestUser(app.worker, { ...organization, role });
      expectProblem(await recover((await createTestSession(app.worker, userId)).token), 'permission_denied');
    }
    expect((await recover()).statusCode).toBe(200);
    expect((await app.call('/org', { token: owner })).json()).toMatchObject({ status: 'suspended' });
  });

  test('requires a fresh session that satisfies its policies', async () => {
    await setPolicies(app.worker, organization.organizationId, { require_mfa: true });
    const strong = await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] });
    expect((await close(strong.token)).statusCode).toBe(202);
    expect(expectProblem(await recover(), 'policy_violation')).toMatchObject({ policy: 'require_mfa' });
    await setPolicies(app.worker, organization.organizationId, { allowed_cidrs: ['198.51.100.0/24'] });
    expect(expectProblem(await recover(strong.token), 'policy_violation')).toMatchObject({
      policy: 'allowed_cidrs',
    });
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where id = ${strong.id}`,
    );
    expectProblem(await recover(strong.token), 'session_expired');
  });

  test('takes an owner with a second factor if the organization enforces single sign-on', async () => {
    await close();
    await setPolicies(app.worker, organization.organizationId, { enforce_sso: true });
    expect(expectProblem(await recover(), 'policy_violation')).toMatchObject({ policy: 'enforce_sso' });
    const recovery = await createTestSession(app.worker, organization.ownerId, {
      method: 'recovery',
      factors: ['totp'],
    });
    expectProblem(await recover(recovery.token), 'policy_violation');
    const strong = await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] });
    expect((await recover(strong.token)).statusCode).toBe(200);
  });

  test('ends after 30 days', async () => {
    await close();
    await query(
      app.worker,
      sql`update deletions set due_at = date_trunc('milliseconds', now()) where subject_id = ${organization.organizationId}`,
    );
    expectProblem(await recover(), 'not_found');
  });
});
