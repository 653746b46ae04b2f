import { beforeAll, describe, expect, test } from '@jest/globals';
import { createUnsubscribeLinks } from '../../domain/deliverability/unsubscribe-links.ts';
import { DraftEntity } from '../../domain/drafts/draft.entity.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { newId } from '../../platform/ids.ts';
import { TEST_APPROVAL_MS, testUnsubscribeLinks } from '../support/mail-services.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp({ config: { PUBLIC_URL: 'https://agents.example/' } });
let organization: TestOrganization;
let inboxId: string;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

type Json = Record<string, unknown> & { id: string; headers: Record<string, string> };
const post = (path: string, body?: unknown) =>
  app.call(path, { method: 'POST', token: organization.token, body });
const newAddress = () => `${newId('message')}@people.example`;
const to = (...emails: string[]) => ({ to: emails.map((email) => ({ email })), text_body: 'x' });
const send = async (email: string) =>
  (await post(`/inboxes/${inboxId}/messages`, { ...to(email), unsubscribe: true })).json<Json>();
const suppressions = async (email: string) =>
  (await app.call(`/suppressions?email=${email}`, { token: organization.token })).json().data;

const HEADERS = {
  'List-Unsubscribe': expect.stringMatching(/^<https:\/\/agents\.example\/u\/[\w-]+>$/),
  'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
};
/** The path of the link in a message. */
const linkOf = ({ headers }: Pick<Json, 'headers'>) =>
  (headers['List-Unsubscribe'] ?? '').slice('<https://agents.example'.length, -1);
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const oneClick = (url: string, headers: Record<string, string> = FORM) =>
  app.app.inject({ method: 'POST', url, headers, payload: 'List-Unsubscribe=One-Click' });

describe('a message with unsubscribe', () => {
  test('has the fields of one-click unsubscription, sent in every way', async () => {
    const sent = await send(newAddress());
    expect(sent.headers).toEqual(HEADERS);
    const reply = await post(`/messages/${sent.id}/reply`, { text_body: 'x', unsubscribe: true });
    expect(reply.json<Json>().headers).toEqual(HEADERS);
    const forward = await post(`/messages/${sent.id}/forward`, { ...to(newAddress()), unsubscribe: true });
    expect(forward.json<Json>().headers).toEqual(HEADERS);
    const draft = (
      await post(`/inboxes/${inboxId}/drafts`, {
        ...to(newAddress()),
        unsubscribe: true,
        headers: { 'X-A': 'b' },
      })
    ).json<Json>();
    expect(draft).toMatchObject({ unsubscribe: true, headers: { 'X-A': 'b' } });
    const fromDraft = await post(`/drafts/${draft.id}/send`);
    expect(fromDraft.json<Json>().headers).toEqual({ ...HEADERS, 'X-A': 'b' });
  });

  test('and so has a scheduled one', async () => {
    const draft = (
      await post(`/inboxes/${inboxId}/drafts`, {
        ...to(newAddress()),
        subject: 'Scheduled',
        unsubscribe: true,
        send_at: new Date(Date.now() - 1_000).toISOString(),
      })
    ).json<Json>();
    const { outbox } = recordingOutbox();
    const drafts = createDraftService({
      notifications: createNotificationService({ outbox }),
      approvalMs: TEST_APPROVAL_MS,
      database: app.worker,
      outbox,
      events: createWebhookEvents({ outbox }),
      unsubscribeLinks: testUnsubscribeLinks,
    });
    const row = await app.worker.db
      .selectFrom('drafts')
      .select(columnsOf(DraftEntity))
      .where('id', '=', draft.id)
      .executeTakeFirstOrThrow();
    expect(await drafts.sendDue(draft.id, row.scheduleVersion)).toBe('sent');
    const message = await app.worker.db
      .selectFrom('messages')
      .select(columnsOf(MessageEntity, { lazy: ['headers'] }))
      .where('inbox_id', '=', inboxId)
      .where('subject', '=', 'Scheduled')
      .executeTakeFirstOrThrow();
    expect(Object.keys(message.headers ?? {})).toEqual(Object.keys(HEADERS));
  });

  test('is refused with several recipients or with fields of the caller', async () => {
    const content = { ...to(newAddress(), newAddress()), unsubscribe: true };
    expectProblem(await post(`/inboxes/${inboxId}/messages`, content), 'unprocessable');
    const copied = { ...to(newAddress()), bcc: [{ email: newAddress() }], unsubscribe: true };
    expectProblem(await post(`/inboxes/${inboxId}/messages`, copied), 'unprocessable');
    const own = {
      ...to(newAddress()),
      unsubscribe: true,
      headers: { 'list-unsubscribe': '<mailto:a@b.example>' },
    };
    expectProblem(await post(`/inboxes/${inboxId}/messages`, own), 'unprocessable');
    const draft = (await post(`/inboxes/${inboxId}/drafts`, content)).json<Json>();
    expectProblem(await post(`/drafts/${draft.id}/send`), 'unprocessable');
    expect((await app.call(`/drafts/${draft.id}`, { token: organization.token })).statusCode).toBe(200);
  });
});

describe('a link', () => {
  test('suppresses by POST alone, once, for the whole organization', async () => {
    const email = newAddress();
    const message = await send(email);
    const url = linkOf(message);
    const page = await app.app.inject({ url });
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain(email);
    expect(page.body).not.toContain('<script');
    expect(page.headers['content-security-policy']).toMatch(/default-src 'none'.*form-action 'self'/);
    await app.app.inject({ method: 'HEAD', url });
    expect(await suppressions(email)).toEqual([]);

    expect((await oneClick(url)).statusCode).toBe(200);
    expect((await oneClick(url, { 'content-type': 'multipart/form-data; boundary=x' })).statusCode).toBe(200);
    expect(await suppressions(email)).toMatchObject([
      { email, origin: 'unsubscribe', scope: 'organization', inbox_id: inboxId, message_id: null },
    ]);
    const again = await post(`/inboxes/${inboxId}/messages`, to(email));
    expect(expectProblem(again, 'message_rejected')).toMatchObject({ rejection_reason: 'blocked_recipient' });
    const filtered = await app.call('/suppressions?origin=unsubscribe', { token: organization.token });
    expect(filtered.json().data).toContainEqual(expect.objectContaining({ email }));
  });

  test('works without a body, for a deleted inbox, and while a manual suppression exists', async () => {
    const inbox = await createInbox(app.worker, organization);
    const email = newAddress();
    const sent = await post(`/inboxes/${inbox.id}/messages`, { ...to(email), unsubscribe: true });
    await app.call(`/inboxes/${inbox.id}`, { method: 'DELETE', token: organization.token });
    await post('/suppressions', { email });
    const response = await app.app.inject({ method: 'POST', url: linkOf(sent.json<Json>()) });
    expect(response.statusCode).toBe(200);
    expect(await suppressions(email)).toMatchObject([{ origin: 'manual' }]);
  });

  test('that was changed, truncated or signed by another key does nothing', async () => {
    const email = newAddress();
    const url = linkOf(await send(email));
    const foreign = createUnsubscribeLinks({
      signingKey: Buffer.alloc(32, 9).toString('base64'),
      publicUrl: 'https://agents.example',
    }).create({ organizationId: organization.organizationId, inboxId, email });
    const changed = `${url.slice(0, -2)}${url.endsWith('AA') ? 'BB' : 'AA'}`;
    for (const bad of [changed, url.slice(0, -8), '/u/x', new URL(foreign).pathname]) {
      expectProblem(await oneClick(bad), 'not_found');
      expectProblem(await app.app.inject({ url: bad }), 'not_found');
    }
    expect(await suppressions(email)).toEqual([]);
  });

  test('cannot be undone by a key that is bound to a part of the organization', async () => {
    const email = newAddress();
    await oneClick(linkOf(await send(email)));
    const { token } = await createKey(app.worker, {
      organizationId: organization.organizationId,
      environmentId: organization.productionEnvironmentId,
      inboxId,
    });
    const path = `/suppressions/${email}`;
    expectProblem(await app.call(path, { method: 'DELETE', token }), 'permission_denied');
    expect((await app.call(path, { method: 'DELETE', token: organization.token })).statusCode).toBe(204);
  });
});
