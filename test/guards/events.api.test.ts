import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import type { DeliveryOutcome } from '../../domain/delivery-reports/report-outcomes.ts';
import { createDomainService } from '../../domain/domains/domain.service.ts';
import { createVerificationService } from '../../domain/domains/verification.service.ts';
import { createApprovalService } from '../../domain/drafts/approval.service.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { serializeEnvelope } from '../../domain/events/envelope.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { EVENT_TYPES, type EventType } from '../../domain/events/event-types.ts';
import type { Person } from '../../domain/identity/person.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createUsageCheckService } from '../../domain/usage-alerts/usage-check.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createDnsLookup } from '../../platform/dns.ts';
import { newId } from '../../platform/ids.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { publishRecords } from '../support/domains.ts';
import { findSchemaError } from '../support/event-schema.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { administerLimits, setLimit } from '../support/limits.ts';
import { TEST_APPROVAL_MS, testUnsubscribeLinks } from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce } from '../support/outbound-mail.ts';
import { query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { testScope } from '../support/test-scope.ts';
import { useResource } from '../support/use-resource.ts';

const database = useWorkerDatabase();
const dnsServer = useResource(startDnsServer, (server) => server.stop());
const { outbox } = recordingOutbox();
const events = createWebhookEvents({ outbox });

const RECIPIENT = 'ada@people.example';

/** Each makes the service emit an event of its type, and returns the organization. A new type needs an entry to compile. */
const EMITTERS: Record<EventType, () => Promise<string>> = {
  'message.received': async () => {
    const { inbox, receive } = await arrangeInbox(database);
    await receive(mail({ Subject: 'Hello' }));
    return inbox.organizationId;
  },
  'message.sent': () => sendOne(),
  'message.delivered': () => sendOne({ kind: 'delivered', statusCode: '2.0.0' }),
  'message.bounced': () => sendOne({ kind: 'bounced', statusCode: '5.1.1' }),
  'message.complained': () => sendOne({ kind: 'complained', statusCode: null, feedbackType: 'abuse' }),
  'message.rejected': async () => {
    const { scope, send } = await arrangeSending(database);
    await query(
      database,
      sql`insert into suppressions (id, org_id, scope_id, email, origin, created_at)
          values (${newId('suppression')}, ${scope.organizationId}, ${scope.organizationId}, ${RECIPIENT}, 'manual', now())`,
    );
    await expect(send(RECIPIENT)).rejects.toThrow();
    return scope.organizationId;
  },
  'draft.pending_approval': async () => (await requestTestApproval()).organizationId,
  'draft.approved': async () => {
    const { organizationId, draftId, owner, sending } = await requestTestApproval();
    await createApprovalService(sending).approve(owner, draftId, { version: 1 });
    return organizationId;
  },
  'draft.rejected': async () => {
    const { organizationId, draftId, owner, sending } = await requestTestApproval();
    await createApprovalService(sending).reject(owner, draftId, { version: 1, note: 'Not to them.' });
    return organizationId;
  },
  'domain.verified': async () => {
    const organization = await createOrganization(database);
    const parts = {
      database,
      events,
      dns: createDnsLookup({ DNS_SERVERS: dnsServer.address, DNS_TIMEOUT_MS: 10_000, DNS_TRIES: 1 }),
      settings: { spfMechanism: 'include:bounces.mail.test', mxHost: 'mx.mail.test' },
    };
    const secretBox = createSecretBox(Buffer.alloc(32, 7).toString('base64'));
    const domains = createDomainService({ ...parts, outbox, secretBox, ownDomains: ['mail.test'] });
    const { domain, records } = await domains.create(testScope(organization), {
      domainName: `d${randomUUID().slice(0, 8)}.example`,
    });
    publishRecords(
      dnsServer,
      records.map((record) => ({ ...record, status: 'missing', found: null })),
    );
    await createVerificationService(parts).check(domain.id, 1, { now: true });
    return organization.organizationId;
  },
  'usage.warning': () => sendMessages(800),
  'usage.exceeded': () => sendMessages(1_000),
};

/** Creates a draft that waits for the approval of the owner. */
async function requestTestApproval() {
  const organization = await createOrganization(database);
  const { organizationId, ownerId } = organization;
  const inbox = await createInbox(database, organization);
  await query(
    database,
    sql`insert into organization_policies (org_id, require_send_approval, updated_at) values (${organizationId}, 'all', now())`,
  );
  const sending = {
    notifications: createNotificationService(recordingOutbox()),
    database,
    outbox,
    events,
    unsubscribeLinks: testUnsubscribeLinks,
    approvalMs: TEST_APPROVAL_MS,
  };
  const drafts = createDraftService(sending);
  const scope = testScope(organization, inbox);
  const { draft } = await drafts.create(scope, inbox.id, { to: [{ email: RECIPIENT }], textBody: 'x' });
  await drafts.send(scope, draft.id);
  const person = { sessionId: 'ses_test' } as Person;
  const owner: Scope = {
    ...scope,
    actor: { kind: 'user', id: ownerId },
    member: { person, role: 'owner' },
  };
  return { organizationId, draftId: draft.id, owner, sending };
}

/** Sends one message and applies an outcome, if given. */
async function sendOne(outcome?: Omit<DeliveryOutcome, 'position' | 'diagnosticCode'>): Promise<string> {
  const sending = await arrangeSending(database);
  const messageId = await sending.send(RECIPIENT);
  await dispatchOnce(sending, messageId);
  if (outcome)
    await database.systemTransaction((transaction) =>
      sending.outcomes.apply(transaction, messageId, [{ ...outcome, position: 0, diagnosticCode: null }]),
    );
  return sending.scope.organizationId;
}

/** Records usage against a limit of 1,000 messages. */
async function sendMessages(amount: number): Promise<string> {
  const { organizationId } = await createOrganization(database);
  await setLimit(administerLimits({ database }), organizationId, {
    resource: 'messages_sent',
    limit: 1_000,
  });
  await query(
    database,
    sql`insert into usage_deltas (org_id, counter, at, amount)
        values (${organizationId}, 'messages_sent', now(), ${amount})`,
  );
  await createUsageCheckService({
    database,
    events,
    notifications: createNotificationService({ outbox }),
    logger: pino({ level: 'silent' }),
  }).check({ from: { after: organizationId.slice(0, -1), organizations: 0, notified: 0 } });
  return organizationId;
}

test.each(EVENT_TYPES)('%s is emitted by the service and matches its schema', async (type) => {
  const organizationId = await EMITTERS[type]();
  const [event] = await database.db
    .selectFrom('events')
    .select(columnsOf(EventEntity))
    .where('org_id', '=', organizationId)
    .where('type', '=', type)
    .execute();
  if (!event) throw new Error(`No event of type ${type} was emitted`);
  expect(findSchemaError(serializeEnvelope(event))).toBeUndefined();
});
