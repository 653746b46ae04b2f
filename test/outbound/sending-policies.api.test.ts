import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { DraftEntity } from '../../domain/drafts/draft.entity.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { billingConfig } from '../support/billing-config.ts';
import { accepted, TEST_APPROVAL_MS, testUnsubscribeLinks } from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce, readMessageState } from '../support/outbound-mail.ts';
import { setPolicies, type TestPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();
const billed = useTestApp({ config: { ...billingConfig(), SHARED_DOMAIN_DAILY_CAP: '1' } });

async function arrange(policies: TestPolicies = {}) {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const { token, organizationId } = organization;
  const post = (path: string, body?: unknown) => app.call(path, { method: 'POST', token, body });
  const send = (...to: string[]) =>
    post(`/inboxes/${inbox.id}/messages`, { to, subject: 'Hello', text_body: 'x' });
  const original = (await send('ada@allowed.example')).json().id as string;
  const draftTo = async (...to: string[]) =>
    (await post(`/inboxes/${inbox.id}/drafts`, { to, text_body: 'x' })).json().id as string;
  await setPolicies(app.worker, organizationId, policies);
  /** Every way to send through the API, to these recipients. */
  const sendEveryWay = async (...to: string[]) => [
    await send(...to),
    await post(`/messages/${original}/forward`, { to }),
    await post(`/messages/${original}/reply`, { cc: to, text_body: 'x' }),
    await post(`/drafts/${await draftTo(...to)}/send`),
  ];
  const rejected = async () =>
    (
      await app.worker.db
        .selectFrom('events')
        .select(columnsOf(EventEntity))
        .where('org_id', '=', organizationId)
        .where('type', '=', 'message.rejected')
        .orderBy('id')
        .execute()
    ).map(({ data }) => data as { rejection_reason: string; rejection_detail: string });
  return { organization, inbox, post, send, sendEveryWay, draftTo, rejected, original };
}

describe('recipient domains', () => {
  test('a blocked domain and those below it are refused by every way of sending, with an event', async () => {
    const { sendEveryWay, send, rejected } = await arrange({ blocked_recipient_domains: ['rival.example'] });
    for (const response of await sendEveryWay('ada@allowed.example', 'eve@Sub.Rival.example'))
      expect(expectProblem(response, 'message_rejected')).toMatchObject({
        rejection_reason: 'blocked_recipient',
        policy: 'blocked_recipient_domains',
        detail: expect.stringContaining('eve@sub.rival.example'),
      });
    expect((await rejected()).map(({ rejection_reason }) => rejection_reason)).toEqual(
      Array(4).fill('blocked_recipient'),
    );
    expect((await send('eve@notrival.example')).statusCode).toBe(201);
  });

  test('only allowed domains are accepted, and a block takes precedence', async () => {
    const { sendEveryWay, send } = await arrange({
      allowed_recipient_domains: ['allowed.example', 'xn--bcher-kva.example'],
      blocked_recipient_domains: ['no.allowed.example'],
    });
    for (const response of await sendEveryWay('eve@elsewhere.example'))
      expect(expectProblem(response, 'message_rejected')).toMatchObject({
        policy: 'allowed_recipient_domains',
      });
    expectProblem(await send('eve@no.allowed.example'), 'message_rejected');
    for (const to of ['eve@allowed.example', 'eve@mx.allowed.example', 'eve@xn--bcher-kva.example'])
      expect((await send(to)).statusCode).toBe(201);
  });

  test('are stored in their ASCII form, and malformed ones are refused', async () => {
    const organization = await createOrganization(app.worker);
    const { token } = await createTestSession(app.worker, organization.ownerId);
    const patch = (body: unknown) => app.call('/org/policies', { method: 'PATCH', token, body });
    expect(
      (await patch({ blocked_recipient_domains: ['Bücher.example.', 'a.example'] })).json(),
    ).toMatchObject({ blocked_recipient_domains: ['xn--bcher-kva.example', 'a.example'] });
    const changed = {
      allowed_recipient_domains: ['b.example'],
      max_recipients_per_message: 3,
      daily_send_cap_per_inbox: 9,
      require_send_approval: 'external',
      auto_submitted_header: false,
    };
    expect((await patch(changed)).json()).toMatchObject(changed);
    expect((await app.call('/org/policies', { token })).json()).toMatchObject({
      ...changed,
      blocked_recipient_domains: ['xn--bcher-kva.example', 'a.example'],
    });
    for (const domain of [
      '',
      'com',
      '*.example.com',
      'a@b.example',
      'https://a.example',
      '10.0.0.1',
      'a b.example',
    ])
      expect(
        expectProblem(await patch({ allowed_recipient_domains: ['a.example', domain] }), 'validation_error')
          .errors,
      ).toMatchObject([{ path: 'allowed_recipient_domains[1]' }]);
    for (const body of [
      { max_recipients_per_message: 0 },
      { max_recipients_per_message: 51 },
      { daily_send_cap_per_inbox: -1 },
      { require_send_approval: 'some' },
      { auto_submitted_header: null },
    ])
      expectProblem(await patch(body), 'validation_error');
  });
});

test('a message with more recipients than the policy allows is refused, in to, cc and bcc together', async () => {
  const { post, inbox, send, rejected } = await arrange({ max_recipients_per_message: 2 });
  const refused = await post(`/inboxes/${inbox.id}/messages`, {
    to: ['a@allowed.example'],
    cc: ['b@allowed.example', 'A@allowed.example'],
    bcc: ['c@allowed.example'],
    text_body: 'x',
  });
  expect(expectProblem(refused, 'message_rejected')).toMatchObject({ policy: 'max_recipients_per_message' });
  expect(await rejected()).toHaveLength(1);
  expect((await send('a@allowed.example', 'b@allowed.example', 'A@allowed.example')).statusCode).toBe(201);
});

describe('the daily cap of an inbox', () => {
  test('counts messages of the UTC day, also those before it was set, and refuses every way of sending', async () => {
    const { send, sendEveryWay, rejected, inbox } = await arrange({ daily_send_cap_per_inbox: 2 });
    // The original was sent before the policy.
    expect((await send('a@allowed.example', 'b@allowed.example')).statusCode).toBe(201);
    for (const response of await sendEveryWay('a@allowed.example'))
      expect(expectProblem(response, 'message_rejected')).toMatchObject({
        rejection_reason: 'rate_limited',
        policy: 'daily_send_cap_per_inbox',
      });
    expect((await rejected()).map(({ rejection_reason }) => rejection_reason)).toEqual(
      Array(4).fill('rate_limited'),
    );
    await query(app.worker, sql`update inbox_daily_sends set day = day - 1 where inbox_id = ${inbox.id}`);
    await query(app.worker, sql`delete from messages where inbox_id = ${inbox.id}`);
    expect((await send('a@allowed.example')).statusCode).toBe(201);
  });

  test('lets one of 50 concurrent sends take the last message', async () => {
    const { send } = await arrange({ daily_send_cap_per_inbox: 2 });
    const responses = await Promise.all(Array.from({ length: 50 }, () => send('a@allowed.example')));
    const statuses = responses.map(({ statusCode }) => statusCode);
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(statuses.filter((status) => status === 422)).toHaveLength(49);
  });

  test('is not used up by a send that the cap of the shared domain refuses, nor the other way round', async () => {
    const { organization, inbox } = await arrange({ daily_send_cap_per_inbox: 3 });
    const body = { to: ['a@allowed.example'], text_body: 'x' };
    const send = () =>
      billed.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token: organization.token, body });
    const counts = async () => ({
      inbox: await query(
        app.worker,
        sql`select messages from inbox_daily_sends where inbox_id = ${inbox.id}`,
      ),
      shared: await query(
        app.worker,
        sql`select recipients from shared_domain_caps where org_id = ${organization.organizationId}`,
      ),
    });
    expect((await send()).statusCode).toBe(201);
    expectProblem(await send(), 'message_rejected');
    expect(await counts()).toEqual({ inbox: [{ messages: 2 }], shared: [{ recipients: 1 }] });
    await setPolicies(app.worker, organization.organizationId, { daily_send_cap_per_inbox: 2 });
    await query(
      app.worker,
      sql`update shared_domain_caps set cap = 100 where org_id = ${organization.organizationId}`,
    );
    expect(expectProblem(await send(), 'message_rejected')).toMatchObject({
      policy: 'daily_send_cap_per_inbox',
    });
    expect(await counts()).toEqual({ inbox: [{ messages: 2 }], shared: [{ recipients: 1 }] });
  });
});

describe('what waits to be sent', () => {
  test('is checked again at dispatch', async () => {
    const setup = await arrangeSending(app.worker);
    const id = await setup.send('eve@rival.example');
    await setPolicies(app.worker, setup.inbox.organizationId, {
      blocked_recipient_domains: ['rival.example'],
    });
    expect(await dispatchOnce(setup, id)).toBe('finished');
    const { status, types, message } = await readMessageState(app.worker, id);
    expect([status, types, setup.transport.transmissions]).toEqual(['rejected', ['message.rejected'], []]);
    expect(message.statusDetail).toContain('blocked_recipient_domains');
  });

  test('is checked when a scheduled draft is due', async () => {
    const { inbox, post, rejected } = await arrange({ daily_send_cap_per_inbox: 1 });
    const scheduled = await post(`/inboxes/${inbox.id}/messages`, {
      to: ['a@allowed.example'],
      text_body: 'x',
      send_at: '2020-01-01T00:00:00.000Z',
    });
    const { outbox } = recordingOutbox();
    const drafts = createDraftService({
      notifications: createNotificationService({ outbox }),
      approvalMs: TEST_APPROVAL_MS,
      database: app.worker,
      outbox,
      events: createWebhookEvents({ outbox }),
      unsubscribeLinks: testUnsubscribeLinks,
    });
    expect(await drafts.sendDue(scheduled.json().id, 1)).toBe('refused');
    const draft = await app.worker.db
      .selectFrom('drafts')
      .select(columnsOf(DraftEntity))
      .where('id', '=', scheduled.json().id)
      .executeTakeFirstOrThrow();
    expect(draft.sendStatus).toBe('failed');
    expect(draft.sendError).toContain('message_rejected');
    expect(await rejected()).toHaveLength(1);
  });
});

describe('Auto-Submitted', () => {
  const autoSubmittedOf = async (id: string) =>
    (await readMessageState(app.worker, id)).message.autoSubmitted;

  test('marks what a key sends, a reply as auto-replied, and nothing that a person sends', async () => {
    const { inbox, send, post, original, organization } = await arrange();
    const body = { to: ['a@allowed.example'], text_body: 'x' };
    const { token } = await createTestSession(app.worker, organization.ownerId);
    const own = await app.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token, body });
    const reply = await post(`/messages/${original}/reply`, { text_body: 'x' });
    const forward = await post(`/messages/${original}/forward`, { to: ['a@allowed.example'] });
    expect(
      await Promise.all(
        [original, own, reply, forward].map((sent) =>
          autoSubmittedOf(typeof sent === 'string' ? sent : sent.json().id),
        ),
      ),
    ).toEqual(['auto-generated', null, 'auto-replied', 'auto-generated']);
    await setPolicies(app.worker, organization.organizationId, { auto_submitted_header: false });
    expect(await autoSubmittedOf((await send('a@allowed.example')).json().id)).toBeNull();
  });

  test('is in the bytes that are sent', async () => {
    const setup = await arrangeSending(app.worker);
    setup.transport.answerWith(async () => accepted);
    const fieldOf = async (id: string) => {
      await dispatchOnce(setup, id);
      const source = setup.transport.transmissions.at(-1);
      const raw = source ? (await buffer(await source.openRaw())).toString() : '';
      return /^auto-submitted: (\S+)/im.exec(raw)?.[1];
    };
    expect(await fieldOf(await setup.send('a@allowed.example'))).toBe('auto-generated');
    await setPolicies(app.worker, setup.inbox.organizationId, { auto_submitted_header: false });
    expect(await fieldOf(await setup.send('a@allowed.example'))).toBeUndefined();
  });
});
