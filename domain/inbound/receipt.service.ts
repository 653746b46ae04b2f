import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { ReturnPaths, ReturnPathTarget } from '../../platform/return-path.ts';
import type { Storage } from '../../platform/storage.ts';
import {
  RECEIVE_MESSAGE,
  receiveMessageWorkflowId,
} from '../../workflows/inbound/receive-message.contract.ts';
import { INBOUND_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { findReceiveListMatch } from '../deliverability/receive-lists.ts';
import { readReportBytes } from '../delivery-reports/dsn.ts';
import { parseFeedbackReport } from '../delivery-reports/feedback-report.ts';
import { findReportTarget } from '../delivery-reports/report-token.ts';
import { DomainEntity } from '../domains/domain.entity.ts';
import { type Inbox, InboxEntity } from '../inboxes/inbox.entity.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import { isOff } from '../toggles/find-toggle.ts';
import { countWithinLimit } from '../usage/count-usage.ts';
import { createQuotaCache } from '../usage/quota-cache.ts';
import type { AcceptedMail, InboundRoute, TenantRoute } from './accepted-mail.ts';
import { toMessageId } from './inbound-ids.ts';
import { type Receipt, ReceiptEntity } from './receipt.entity.ts';
import { storeUnattributedReport } from './unattributed-reports.ts';

export interface ReceiptService {
  /**
   * Resolves an envelope recipient: an inbox (plus tags reach the base address), a signed return path, or the feedback
   * address.
   *
   * @param sender envelope sender; empty for `<>`.
   * @param others routes of the previous recipients, which also count toward the quota.
   * @returns `blocked` if a receive list blocks the sender, `full` if the organization has reached its receive limit,
   * `switched_off` for every address while staff have switched inbound mail off.
   */
  resolve(
    address: string,
    sender: string,
    others?: readonly InboundRoute[],
  ): Promise<InboundRoute | 'unknown' | 'blocked' | 'switched_off' | { kind: 'full'; route: InboundRoute }>;
  /**
   * Whether all of these inboxes have already received the transport id. False if the recipients include reports or
   * complaints.
   */
  hasReceived(transportId: string, recipients: AcceptedMail['recipients']): Promise<boolean>;
  /**
   * Commits a receipt and a workflow start for each inbox or report. The message counts as accepted only after the
   * commit. A complaint becomes a report on the message whose token it contains.
   *
   * @returns the number of rows that refer to the bytes: 0 for a repeated delivery, or beyond the limit of unattributed
   * reports.
   * @throws AppError `usage_limit_exceeded` if the limit was reached after the recipients were resolved. Nothing is
   * committed in that case.
   */
  commit(mail: AcceptedMail): Promise<number>;
}

export interface ReceiptServiceOptions {
  database: Database;
  outbox: Outbox;
  returnPaths: ReturnPaths;
  storage: Pick<Storage, 'getStream'>;
  /** Lower case. */
  feedbackAddress: string;
  now?: () => Date;
}

export function createReceiptService(options: ReceiptServiceOptions): ReceiptService {
  const { database, outbox, returnPaths, feedbackAddress, now = () => new Date() } = options;
  const receiveQuota = createQuotaCache({ counter: 'messages_received', now });
  return {
    resolve: (address, sender, others = []) =>
      database.autocommit(async (em) => {
        if (await isOff(em, 'inbound_mail')) return 'switched_off';
        if (address.toLowerCase() === feedbackAddress) return { kind: 'feedback' };
        const target = returnPaths.parse(address);
        const isBlocked = async (inboxId: string) =>
          (await findReceiveListMatch(em, inboxId, storableText(sender)))?.effect === 'block';
        if (target) {
          const route = await findReportRoute(em, target);
          if (!route) return 'unknown';
          // Delivery reports have an empty sender. Anything else that knows the return path is ordinary mail.
          return sender !== '' && (await isBlocked(route.inboxId)) ? 'blocked' : route;
        }
        const email = storableText(baseAddress(address));
        const inbox = await em.findOne(InboxEntity, { email, deletedAt: null });
        if (!inbox || (await isDomainOfAnotherOrganization(em, inbox))) return 'unknown';
        if (await isOrganizationDeleted(em, inbox.organizationId)) return 'unknown';
        const { organizationId, environmentId, id } = inbox;
        if (await isBlocked(id)) return 'blocked';
        const remaining = await receiveQuota.remaining(em, organizationId);
        const route = { kind: 'mail', organizationId, environmentId, inboxId: id } as const;
        const isFull = remaining !== null && remaining <= countOtherInboxes(organizationId, others, id);
        return isFull ? { kind: 'full', route } : route;
      }),

    async hasReceived(transportId, recipients) {
      const inboxes = recipients.map(({ route }) => (route.kind === 'mail' ? route.inboxId : null));
      const distinct = new Set(inboxes);
      const known = await database.autocommit((em) =>
        em.count(ReceiptEntity, {
          inboxId: { $in: inboxes.filter((id) => id !== null) },
          transportId: toTransportId({ transportId }),
        }),
      );
      return known === distinct.size;
    },

    async commit(mail) {
      const { recipients, unattributed } = await attributeFeedback(options, mail);
      return database.systemTransaction(async (transaction) => {
        const receivedByOrganization = new Map<string, number>();
        let rowCount = unattributed && (await storeUnattributedReport(transaction, mail)) ? 1 : 0;
        for (const { address, route } of deduplicateRoutes(recipients)) {
          if (await isRedelivery(transaction, mail.transportId, route)) continue;
          const id = newId('receipt');
          const receipt = transaction.em.create(ReceiptEntity, {
            id,
            organizationId: route.organizationId,
            environmentId: route.environmentId,
            inboxId: route.inboxId,
            kind: route.kind,
            messageId: route.kind === 'report' ? route.messageId : toMessageId(id),
            recipientPosition: route.kind === 'report' ? route.recipientPosition : null,
            rawKey: mail.rawKey,
            sizeBytes: mail.sizeBytes,
            sha256: mail.sha256,
            transportId: route.kind === 'mail' ? toTransportId(mail) : null,
            mailFrom: storableText(mail.mailFrom, 1_000),
            rcptTo: storableText(address, 1_000),
            clientIp: mail.clientIp,
            helo: mail.helo === null ? null : storableText(mail.helo, 255),
            verdicts: mail.verdicts ?? null,
            tls: mail.tls,
            receivedAt: mail.receivedAt,
          });
          transaction.em.persist(receipt);
          outbox.enqueue(transaction, route.organizationId, { start: buildReceiveStart(receipt) });
          rowCount += 1;
          const { organizationId } = route;
          if (route.kind === 'mail')
            receivedByOrganization.set(organizationId, (receivedByOrganization.get(organizationId) ?? 0) + 1);
        }
        transaction.beforeCommit(() => countReceived(transaction.em, receivedByOrganization, now()));
        return rowCount;
      });
    },
  };
}

/** Counts in a fixed order, to prevent deadlocks on the counter rows. @throws AppError `usage_limit_exceeded`. */
async function countReceived(
  em: EntityManager,
  counts: ReadonlyMap<string, number>,
  at: Date,
): Promise<void> {
  for (const [organizationId, amount] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
    await countWithinLimit(em, { organizationId, counter: 'messages_received', amount, at });
}

/** Counts other inboxes of the organization among the previous recipients. */
function countOtherInboxes(organizationId: string, others: readonly InboundRoute[], inboxId: string): number {
  const inboxes = others.flatMap((route) =>
    route.kind === 'mail' && route.organizationId === organizationId ? route.inboxId : [],
  );
  return new Set(inboxes.filter((id) => id !== inboxId)).size;
}

/**
 * Whether the provider has already delivered the message. The unique index rejects one of two concurrent deliveries,
 * which is then retried.
 */
async function isRedelivery(
  { em }: Transaction,
  transportId: string | undefined,
  route: TenantRoute,
): Promise<boolean> {
  if (transportId === undefined || route.kind !== 'mail') return false;
  const { inboxId } = route;
  return (await em.count(ReceiptEntity, { inboxId, transportId: toTransportId({ transportId }) })) > 0;
}

function toTransportId({ transportId }: Pick<AcceptedMail, 'transportId'>): string | null {
  return transportId === undefined ? null : storableText(transportId, 500);
}

async function findReportRoute(em: EntityManager, target: ReturnPathTarget): Promise<TenantRoute | null> {
  const message = await em.findOne(
    MessageEntity,
    { id: target.messageId },
    { fields: ['organizationId', 'environmentId', 'inboxId'] },
  );
  if (!message) return null;
  const { organizationId, environmentId, inboxId } = message;
  return {
    kind: 'report',
    organizationId,
    environmentId,
    inboxId,
    messageId: target.messageId,
    recipientPosition: target.position,
  };
}

type TenantRecipient = AcceptedMail['recipients'][number] & { route: TenantRoute };

/** Attributes mail to the feedback address to an organization. Runs before the transaction, because it reads storage. */
async function attributeFeedback(
  { database, storage, returnPaths }: ReceiptServiceOptions,
  mail: AcceptedMail,
): Promise<{ recipients: TenantRecipient[]; unattributed: boolean }> {
  const recipients = mail.recipients.filter(
    (recipient): recipient is TenantRecipient => recipient.route.kind !== 'feedback',
  );
  const toFeedback = mail.recipients.find(({ route }) => route.kind === 'feedback');
  if (!toFeedback) return { recipients, unattributed: false };
  const feedback = parseFeedbackReport(await readReportBytes(await storage.getStream(mail.rawKey)));
  const target = feedback && findReportTarget(feedback, returnPaths);
  const route = target && (await database.autocommit((em) => findReportRoute(em, target)));
  if (!route) return { recipients, unattributed: true };
  return { recipients: [...recipients, { ...toFeedback, route }], unattributed: false };
}

/** Two addresses of the same inbox receive the message once. */
function deduplicateRoutes(recipients: TenantRecipient[]): TenantRecipient[] {
  const byTarget = new Map(
    recipients.map((recipient) => {
      const { route } = recipient;
      return [
        route.kind === 'mail' ? route.inboxId : `${route.messageId}/${route.recipientPosition}`,
        recipient,
      ];
    }),
  );
  return [...byTarget.values()];
}

/** Builds the command that starts the workflow of a receipt. The reconciler uses it to restart a lost run. */
export function buildReceiveStart(
  receipt: Pick<
    Receipt,
    'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'messageId' | 'kind' | 'sizeBytes'
  >,
) {
  return {
    workflowType: RECEIVE_MESSAGE,
    workflowId: receiveMessageWorkflowId(receipt.id),
    taskQueue: INBOUND_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: receipt.organizationId },
    input: { receiptId: receipt.id, sizeBytes: receipt.sizeBytes },
    searchAttributes: {
      OrgId: receipt.organizationId,
      EnvId: receipt.environmentId,
      InboxId: receipt.inboxId,
      ResourceId: receipt.id,
      RelatedId: receipt.messageId,
      Stage: 'receiving',
    },
    summary: `Receive ${receipt.kind} ${receipt.messageId}`,
  };
}

/** A closed organization receives nothing: stored mail may never be read, and its senders would not learn of it. */
async function isOrganizationDeleted(em: EntityManager, organizationId: string): Promise<boolean> {
  const rows = await em.execute<object[]>(
    sql`select from organizations where id = ${organizationId} and deleted_at is not null`,
  );
  return rows.length > 0;
}

/** A domain may have moved to another organization while inboxes of the old one remain. They must not receive its mail. */
async function isDomainOfAnotherOrganization(em: EntityManager, inbox: Inbox): Promise<boolean> {
  if (!inbox.domainId) return false;
  const holders = await em.count(DomainEntity, {
    domainName: inbox.domain,
    verificationStatus: 'verified',
    organizationId: { $ne: inbox.organizationId },
  });
  return holders > 0;
}
