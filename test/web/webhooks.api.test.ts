import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createBulkJobRunner } from '../../domain/webhooks/bulk-job-runner.ts';
import type { EgressResult } from '../../platform/egress/egress.ts';
import { createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { arrangeDeliveries } from '../support/webhook-deliveries.ts';

const app = useTestApp(() => ({ config: { TRUST_PROXY: '127.0.0.1' } }));

async function signIn(organizationId: string, role: 'developer' | 'viewer' = 'developer') {
  const userId = await createTestUser(app.worker, { organizationId, role });
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, userId)).token);
  return browser;
}

const FORM = { url: 'https://receiver.example.com/hook', description: 'Billing', event: 'message.sent' };

/** An endpoint that was made by the form, and its id. */
async function createEndpoint() {
  const organization = await createOrganization(app.worker);
  const browser = await signIn(organization.organizationId);
  await browser.open('/webhooks/new');
  const created = await browser.submit('/webhooks', FORM);
  const id = /whe_[a-z0-9]+/.exec(created.body)?.[0] ?? '';
  return { organization, browser, created, id, path: `/webhooks/${id}` };
}

const answered = (status: number, body: string): EgressResult => ({
  kind: 'response',
  status,
  body,
  headers: { 'content-type': 'text/plain', 'x-trace': '<b>t1</b>' },
  durationMs: 12,
});

describe('webhook endpoints', () => {
  test('the first one is created from the empty list, and its secret is shown once', async () => {
    const organization = await createOrganization(app.worker);
    const browser = await signIn(organization.organizationId);
    expect((await browser.open('/webhooks')).body).toContain('No webhook endpoints yet');
    expect((await browser.open('/webhooks/new')).body).toContain('Someone wrote to an inbox.');
    const created = await browser.submit('/webhooks', {
      ...FORM,
      event: ['message.sent', 'domain.verified'],
    });
    expect(created.statusCode).toBe(200);
    const secret = /whsec_[A-Za-z0-9+/=]+/.exec(created.body)?.[0] ?? '';
    expect(secret).toHaveLength(50);
    const { data } = (await app.call('/org/audit-log', { token: organization.token })).json();
    expect(data.map(({ resource }: { resource: { name: string } }) => resource.name)).toContain('Billing');
    const list = await browser.open('/webhooks');
    for (const shown of ['Billing', FORM.url, 'Message sent, Domain verified', 'Active', 'none yet'])
      expect(list.body).toContain(shown);
    const [id = ''] = /whe_[a-z0-9]+/.exec(list.body) ?? [];
    const page = await browser.open(`/webhooks/${id}`);
    expect(page.body).toContain('No deliveries yet');
    expect(page.body + list.body).not.toContain(secret);
  });

  test('a rejected form keeps what was entered, and says what is wrong at its field', async () => {
    const { organizationId } = await createOrganization(app.worker);
    const browser = await signIn(organizationId);
    await browser.open('/webhooks/new');
    const refused = await browser.submit('/webhooks', { ...FORM, url: 'https://10.0.0.1/x' });
    expect(refused.statusCode).toBe(422);
    expect(refused.body).toMatch(/field-url-error/);
    expect(refused.body).toContain('value="https://10.0.0.1/x"');
    expect(refused.body).toMatch(/name="event" value="message.sent" checked/);
    expect(refused.body).not.toMatch(/name="event" value="message.received" checked/);
    const { event: _event, ...withoutEvents } = FORM;
    const empty = await browser.submit('/webhooks', withoutEvents);
    expect(empty.statusCode).toBe(400);
    expect(empty.body).toContain('Choose at least one type of event.');
    const unknown = await browser.submit('/webhooks', { ...FORM, event: 'message.read' });
    expect(unknown.statusCode).toBe(400);
    expect((await browser.open('/webhooks')).body).toContain('No webhook endpoints yet');
  });

  test('one is changed, paused, enabled and deleted', async () => {
    const { browser, path, organization, id } = await createEndpoint();
    const inbox = await app.call('/inboxes', { method: 'POST', token: organization.token, body: {} });
    const edit = await browser.open(`${path}/edit`);
    expect(edit.body).toContain('value="Billing"');
    const changed = await browser.submit(`${path}/edit`, {
      url: 'https://new.example.com/',
      description: '',
      event: 'message.bounced',
      inbox: inbox.json().id,
    });
    for (const shown of ['Saved.', 'new.example.com', 'Message bounced', '1 chosen'])
      expect(changed.body).toContain(shown);
    const get = async () =>
      (await app.call(`/webhooks/endpoints/${id}`, { token: organization.token })).json();
    expect(await get()).toMatchObject({ description: null, inbox_ids: [inbox.json().id] });
    expect((await browser.submit(`${path}/pause`)).body).toContain('The endpoint is paused.');
    expect(await get()).toMatchObject({ disabled: true });
    expect((await browser.open('/webhooks')).body).toContain('Paused');
    await browser.open(path);
    expect((await browser.submit(`${path}/enable`)).body).toContain('The endpoint is enabled.');
    expect(await get()).toMatchObject({ disabled: false });
    expect((await browser.submit(`${path}/delete`)).body).toContain('The endpoint is deleted.');
    expect((await browser.open(path)).statusCode).toBe(404);
  });

  test('a rotation shows the new secret once, and until when the old one signs too', async () => {
    const { browser, path, created } = await createEndpoint();
    const secretOf = (html: string) => /whsec_[A-Za-z0-9+/=]+/.exec(html)?.[0];
    await browser.open(path);
    const rotated = await browser.submit(`${path}/rotate-secret`, { overlap: '3600' });
    expect(secretOf(rotated.body)).toBeDefined();
    expect(secretOf(rotated.body)).not.toBe(secretOf(created.body));
    expect(rotated.body).toContain('signed with the old secret too until');
    const page = await browser.open(path);
    expect(page.body).toContain('signs too until');
    expect(secretOf(page.body)).toBeUndefined();
  });

  test('a member who may only read sees no way to change them', async () => {
    const { organization, path, id } = await createEndpoint();
    const browser = await signIn(organization.organizationId, 'viewer');
    expect((await browser.open('/webhooks')).body).not.toContain('/webhooks/new');
    expect((await browser.open(path)).body).not.toContain('Delete');
    expect((await browser.open('/webhooks/new')).statusCode).toBe(403);
    expect((await browser.post(`${path}/pause`, {})).statusCode).toBe(403);
    const stranger = await signIn((await createOrganization(app.worker)).organizationId);
    for (const other of [path, `${path}/edit`, `${path}/replay`, `${path}/live`])
      expect((await stranger.open(other)).statusCode).toBe(404);
    expect((await app.call(`/webhooks/endpoints/${id}`, { token: organization.token })).statusCode).toBe(200);
  });

  test('a path without a page is not found', async () => {
    const { browser } = await createEndpoint();
    expect((await browser.open('/webhooks/deliveries')).statusCode).toBe(404);
  });
});

describe('deliveries', () => {
  test('one shows what was sent, what was answered, and why it failed, in words', async () => {
    const arranged = await arrangeDeliveries(app.worker, 1);
    const [id = ''] = arranged.deliveryIds;
    await arranged.worker(async () => answered(503, '<script>down</script>')).attempt(id, true);
    const browser = await signIn(arranged.organization.organizationId);
    const page = await browser.open(`/webhooks/deliveries/${id}`);
    for (const shown of [
      'Retrying',
      'The receiver answered 503: it failed.',
      'x-trace: &lt;b&gt;t1&lt;/b&gt;',
      '&lt;script&gt;down&lt;/script&gt;',
      'user-agent: agent-email-webhooks/1',
      '&quot;type&quot;: &quot;message.received&quot;',
      '<h1 dir="auto">Delivery of the event “Message received”</h1>',
      'not delivered yet',
      `/api/v1/webhooks/deliveries/${id}`,
    ])
      expect(page.body).toContain(shown);
    expect(page.body).not.toMatch(/signature: |whsec_/);
    await browser.submit(`/webhooks/deliveries/${id}/retry`);
    expect(browser.path).toContain('notice=delivery-retried');
    const canceled = await browser.submit(`/webhooks/deliveries/${id}/cancel`);
    expect(canceled.body).toContain('The delivery is canceled.');
    expect(canceled.body).not.toContain('Cancel the delivery');
  });

  test('are listed with filters by status and event, and pages', async () => {
    const arranged = await arrangeDeliveries(app.worker, 30);
    const [id = ''] = arranged.deliveryIds;
    await arranged
      .worker(async () => ({ kind: 'failed', error: 'CERT_HAS_EXPIRED', durationMs: 1 }))
      .attempt(id, true);
    await query(app.worker, sql`update webhook_deliveries set status = 'exhausted' where id = ${id}`);
    const browser = await signIn(arranged.organization.organizationId);
    const path = `/webhooks/${arranged.endpointId}`;
    const rows = (html: string) => html.match(/href="\/webhooks\/deliveries\//g)?.length ?? 0;
    const first = await browser.open(path);
    expect(rows(first.body)).toBe(25);
    const next = /rel="next" href="([^"]+)"/.exec(first.body)?.[1]?.replaceAll('&amp;', '&') ?? '';
    expect(rows((await browser.open(next)).body)).toBe(5);
    const failed = await browser.open(`${path}?status=exhausted&event_type=`);
    expect(rows(failed.body)).toBe(1);
    expect(failed.body).toContain('Its certificate has expired.');
    expect((await browser.open(`${path}?event_type=domain.verified`)).body).toContain('No such deliveries');
    const cursor = new URLSearchParams(next.split('?')[1]).get('cursor');
    expect((await browser.open(`${path}?status=held&cursor=${cursor}`)).statusCode).toBe(400);
  });

  test('a failing endpoint says since when, and that a test event is tried at once', async () => {
    const arranged = await arrangeDeliveries(app.worker, 2, {
      consecutive_failures: 12,
      failing_since: new Date(Date.now() - 3_600_000),
      holding_since: new Date(),
    });
    await query(
      app.worker,
      sql`update webhook_deliveries set status = 'held', held_for = 'endpoint_failing', next_attempt_at = null where endpoint_id = ${arranged.endpointId}`,
    );
    const browser = await signIn(arranged.organization.organizationId);
    const path = `/webhooks/${arranged.endpointId}`;
    const { body: list } = await browser.open('/webhooks');
    for (const shown of ['Failing', `href="${path}/replay"`]) expect(list).toContain(shown);
    const untried = await browser.open(path);
    for (const shown of [
      'Failing',
      '12',
      'send a test event: it is tried at once',
      'On hold',
      'Not tried yet.',
    ])
      expect(untried.body).toContain(shown);
    expect(untried.body).not.toContain('Last error');
    const [oldest = '', other = ''] = arranged.deliveryIds.toSorted();
    const { probeGeneration: generation } = await arranged.endpoint();
    await arranged
      .probe(async () => answered(502, 'down'))
      .attempt({ endpointId: arranged.endpointId, generation, now: true });
    const page = await browser.open(path);
    for (const shown of [
      'The service tries the oldest one every minute',
      '<strong>Last error:</strong> The receiver answered 502: it failed.',
      'class="wrap" dir="auto">The receiver answered 502: it failed.</td>',
      'the next to be tried, every minute',
      'when the receiver accepts deliveries again',
      'Try the oldest now',
    ])
      expect(page.body).toContain(shown);
    expect(page.body).not.toContain('>none</span></td>');
    for (const id of [oldest, other])
      expect(page.body).toContain(`action="/webhooks/deliveries/${id}/retry"`);
    expect((await browser.open(`/webhooks/deliveries/${other}`)).body).toContain(
      'None yet. It is delivered when the receiver accepts deliveries again.',
    );
    await browser.open(path);
    await browser.submit(`/webhooks/deliveries/${oldest}/retry`);
    const viewer = await signIn(arranged.organization.organizationId, 'viewer');
    expect((await viewer.open(path)).body).not.toMatch(/Try the oldest|>Retry</);
    await query(
      app.worker,
      sql`update webhook_endpoints set holding_since = now() - interval '11 minutes' where id = ${arranged.endpointId}`,
    );
    expect((await browser.open(path)).body).toContain('The service tries the oldest one every 5 minutes');
    const sent = await browser.submit(`/webhooks/${arranged.endpointId}/test`, {
      event_type: 'message.bounced',
    });
    for (const shown of ['The test event is on its way.', 'Message bounced', 'test'])
      expect(sent.body).toContain(shown);
  });

  test('a replay that starts nothing says why, and offers to try what is on hold', async () => {
    const arranged = await arrangeDeliveries(app.worker, 3, {
      consecutive_failures: 12,
      failing_since: new Date(),
      holding_since: new Date(),
    });
    await query(
      app.worker,
      sql`update webhook_deliveries set status = 'held', held_for = 'endpoint_failing', next_attempt_at = null where endpoint_id = ${arranged.endpointId}`,
    );
    const browser = await signIn(arranged.organization.organizationId);
    const path = `/webhooks/${arranged.endpointId}`;
    const form = await browser.open(`${path}/replay`);
    expect(form.body).toContain('3 deliveries are on hold</a>');
    expect(form.body).toContain('Try the oldest now');
    const replay = await browser.submit(`${path}/replay`, {
      since: '2020-01-01T00:00',
      until: '2099-01-01T00:00',
      only_failed: 'on',
    });
    expect(replay.body).not.toContain('nothing started');
    const [, jobId = ''] = /job=(\w+)/.exec(browser.path) ?? [];
    const jobs = createBulkJobRunner({
      database: app.worker,
      outbox: arranged.outbox,
      notifications: { notifyMembers: async () => {} },
    });
    await jobs.run(jobId, () => {});
    const ended = await browser.open(browser.path);
    for (const shown of [
      'nothing started',
      'No delivery of the time range has failed or was canceled.',
      '3 deliveries are on hold</a>. A replay does not start what is on hold',
      'delivered by itself when the receiver accepts deliveries again',
    ])
      expect(ended.body).toContain(shown);
    expect(ended.body).not.toMatch(/Replay <span class="badge good"/);
    expect(ended.body.match(/Try the oldest now/g)).toHaveLength(1);
    const [oldest = ''] = arranged.deliveryIds.toSorted();
    const tried = await browser.submit(`/webhooks/deliveries/${oldest}/retry`);
    expect(tried.body).toContain('The delivery is tried now.');
  });

  test('are replayed for a time range, with errors at their field, and canceled together', async () => {
    const { organization, endpointId } = await arrangeDeliveries(app.worker, 1);
    const browser = await signIn(organization.organizationId);
    const path = `/webhooks/${endpointId}`;
    await browser.open(`${path}/replay`);
    const wrong = await browser.submit(`${path}/replay`, {
      since: '2026-01-02T00:00',
      until: '2026-01-01T00:00',
      only_failed: 'on',
    });
    expect(wrong.statusCode).toBe(400);
    expect(wrong.body).toMatch(/id="field-until-error"/);
    expect(wrong.body).toContain('value="2026-01-02T00:00"');
    expect((await browser.submit(`${path}/replay`, { since: 'soon', until: 'later' })).body).toMatch(
      /field-since-error/,
    );
    const replay = await browser.submit(`${path}/replay`, {
      since: '2026-01-01T00:00',
      until: '2026-01-02T00:00',
    });
    expect(replay.body).toContain('0 deliveries started');
    const again = await browser.post(`${path}/cancel-pending`, { csrf: '' });
    expect(again.statusCode).toBe(403);
    const canceled = await browser.submit(`${path}/cancel-pending`);
    expect(canceled.body).toContain('Cancellation');
  });
});
