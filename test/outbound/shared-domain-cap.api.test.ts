import { describe, expect, test } from '@jest/globals';
import { sql, type Updateable } from 'kysely';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { createSendService } from '../../domain/outbound/send.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Tables } from '../../platform/database/tables.ts';
import { billingConfig } from '../support/billing-config.ts';
import { noApprovals, testUnsubscribeLinks } from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { testScope } from '../support/test-scope.ts';

const app = useTestApp({ config: { ...billingConfig(), SHARED_DOMAIN_DAILY_CAP: '3' } });
const uncapped = useTestApp({ config: { SHARED_DOMAIN_DAILY_CAP: '3' } });

/** Sends on the shared domain with a cap of 3 recipients and a clock of its own. */
async function arrange(environment: 'production' | 'sandbox' = 'production') {
  const organization = await createOrganization(app.worker);
  const environmentId =
    environment === 'sandbox' ? organization.sandboxEnvironmentId : organization.productionEnvironmentId;
  const inbox = await createInbox(app.worker, organization, { environmentId });
  const { outbox } = recordingOutbox();
  let now = new Date('2031-03-01T10:00:00Z');
  const sends = createSendService({
    drafts: noApprovals,
    database: app.worker,
    outbox,
    events: createWebhookEvents({ outbox }),
    unsubscribeLinks: testUnsubscribeLinks,
    sharedDomainLimit: { startingCap: 3, now: () => now },
  });
  const send = (recipients = 1) =>
    sends
      .send(testScope(organization, inbox), inbox.id, {
        to: Array.from({ length: recipients }, (_, index) => ({ email: `a${index}@people.example` })),
        cc: [],
        bcc: [],
        replyTo: [],
        subject: 'One',
        textBody: 'x',
        htmlBody: null,
        labels: [],
        headers: {},
      })
      .then(
        () => 'sent',
        (error: { code: string; extensions: { rejection_reason: string } }) =>
          `${error.code} ${error.extensions.rejection_reason}`,
      );
  return {
    organization,
    inbox,
    send,
    /** Sends to one recipient at a time until a send is refused. */
    async sendAll() {
      let sent = 0;
      while ((await send()) === 'sent') sent += 1;
      return sent;
    },
    setDay: (day: string) => {
      now = new Date(`${day}T00:00:00Z`);
    },
    addInbox: async () => (await createInbox(app.worker, organization, { environmentId })).id,
    setInbox: (patch: Updateable<Tables['inboxes']>, id: string = inbox.id) =>
      app.worker.db.updateTable('inboxes').set(patch).where('id', '=', id).execute(),
  };
}
const REFUSED = 'message_rejected rate_limited';

describe('the daily cap of the shared domain', () => {
  test('counts recipients, refuses what exceeds it whole, and doubles after each day of sending', async () => {
    const { send, sendAll, setDay } = await arrange();
    expect(await send(4)).toBe(REFUSED);
    expect(await send(2)).toBe('sent');
    expect(await send(2)).toBe(REFUSED);
    expect(await sendAll()).toBe(1);
    setDay('2031-03-02');
    expect(await sendAll()).toBe(6);
    // Days without a message do not count.
    setDay('2031-03-09');
    expect(await sendAll()).toBe(12);
    setDay('2031-03-08');
    expect(await send()).toBe(REFUSED);
  });

  test('does not double after a day on which an inbox was over the reputation limits', async () => {
    const { send, sendAll, setDay, setInbox } = await arrange();
    expect(await sendAll()).toBe(3);
    await setInbox({ send_paused: false, send_resumed_at: new Date('2031-03-01T12:00:00Z') });
    setDay('2031-03-02');
    expect(await sendAll()).toBe(3);
    setDay('2031-03-03');
    expect(await sendAll()).toBe(6);
    await setInbox({ send_paused: true });
    setDay('2031-03-04');
    expect(await send()).toBe('message_rejected account_paused');
  });

  test('does not double while the service pauses an inbox, and doubles if someone else has paused it', async () => {
    const { send, sendAll, setDay, setInbox, addInbox } = await arrange();
    expect(await sendAll()).toBe(3);
    const other = await addInbox();
    await setInbox({ send_paused: true, send_paused_by_kind: 'user' }, other);
    setDay('2031-03-02');
    expect(await sendAll()).toBe(6);
    await setInbox({ send_paused: true, reputation_paused: true }, other);
    setDay('2031-03-03');
    expect(await sendAll()).toBe(6);
    expect(await send()).toBe(REFUSED);
  });

  test('lets concurrent sends take no more than it allows', async () => {
    const { send } = await arrange();
    const results = await Promise.all(Array.from({ length: 20 }, () => send()));
    expect(results.filter((result) => result === 'sent')).toHaveLength(3);
    expect(new Set(results)).toEqual(new Set(['sent', REFUSED]));
  });

  test('does not apply to sandbox environments, custom domains and other organizations', async () => {
    const sandbox = await arrange('sandbox');
    expect(await sandbox.send(50)).toBe('sent');
    const { inbox, send, sendAll } = await arrange();
    expect(await sendAll()).toBe(3);
    expect(await (await arrange()).sendAll()).toBe(3);
    await query(
      app.worker,
      sql`with added as (insert into domains
        (id, org_id, domain_name, ownership_token, verification_status, observed, generation_started_at, created_at, updated_at)
        values (${inbox.id.replace('inb_', 'dom_')}, ${inbox.organizationId}, ${`${inbox.id.slice(4)}.example`}, 'x', 'verified', '{}', now(), now(), now())
        returning id) update inboxes set domain_id = added.id from added where inboxes.id = ${inbox.id}`,
    );
    expect(await send()).toBe('sent');
  });
});

describe('over the API', () => {
  const CONTENT = { to: [{ email: 'ada@people.example' }], text_body: 'x' };

  test('a send over the cap is a 422 with its event, and so are replies, forwards and drafts', async () => {
    const { organization, inbox } = await arrangeApi();
    const { token, organizationId } = organization;
    const post = (path: string, body?: unknown) => app.call(path, { method: 'POST', token, body });
    const first = await post(`/inboxes/${inbox.id}/messages`, CONTENT);
    await post(`/inboxes/${inbox.id}/messages`, CONTENT);
    await post(`/inboxes/${inbox.id}/messages`, CONTENT);
    const draft = await post(`/inboxes/${inbox.id}/drafts`, CONTENT);
    const sends: [string, unknown?][] = [
      [`/inboxes/${inbox.id}/messages`, CONTENT],
      [`/messages/${first.json().id}/reply`, { text_body: 'x' }],
      [`/messages/${first.json().id}/forward`, { to: CONTENT.to }],
      [`/drafts/${draft.json().id}/send`],
    ];
    for (const [path, body] of sends)
      expect(expectProblem(await post(path, body), 'message_rejected')).toMatchObject({
        rejection_reason: 'rate_limited',
      });
    const events = await app.worker.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('org_id', '=', organizationId)
      .execute();
    expect(events.map(({ type }) => type)).toEqual(Array(4).fill('message.rejected'));
  });

  test('there is no cap without billing', async () => {
    const { organization, inbox } = await arrangeApi();
    for (let index = 0; index < 5; index += 1) {
      const request = { method: 'POST' as const, token: organization.token, body: CONTENT };
      expect((await uncapped.call(`/inboxes/${inbox.id}/messages`, request)).statusCode).toBe(201);
    }
  });
});

async function arrangeApi() {
  const organization = await createOrganization(app.worker);
  return { organization, inbox: await createInbox(app.worker, organization) };
}
