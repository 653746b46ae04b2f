import type { InsertObject } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { RateLimiter } from '../../platform/rate-limit/rate-limiter.ts';
import type { ReturnPaths } from '../../platform/return-path.ts';
import type { Storage } from '../../platform/storage.ts';
import {
  RECEIVE_MESSAGE,
  receiveMessageWorkflowId,
} from '../../workflows/inbound/receive-message.contract.ts';
import { INBOUND_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { findDecidingMatch, findReceiveListMatch, type ListMatch } from '../deliverability/list-match.ts';
import { readReportBytes } from '../delivery-reports/dsn.ts';
import { parseFeedbackReport } from '../delivery-reports/feedback-report.ts';
import { findReportTarget } from '../delivery-reports/report-token.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { domainOf } from '../mime/mail-address.ts';
import { isOff } from '../toggles/toggles.ts';
import { countWithinLimit } from '../usage/count-usage.ts';
import { createQuotaCache } from '../usage/quota-cache.ts';
import {
  type AcceptedMail,
  countOtherInboxes,
  findCatchAllInbox,
  findReceivingInbox,
  findReportRoute,
  type InboundRoute,
  type ResolvedRoute,
  type TenantRoute,
} from './inbound-routes.ts';
import type { Authenticate } from './mail-authentication.ts';
import { type Receipt, toMessageId } from './receipt.entity.ts';
import { checkSender, type SenderCheck } from './sender-authentication.ts';
import { storeUnattributedReport } from './unattributed-reports.ts';

export type ReceiptService = ReturnType<typeof createReceiptService>;

export interface ReceiptServiceOptions {
  database: Database;
  outbox: Outbox;
  returnPaths: ReturnPaths;
  storage: Pick<Storage, 'getStream'>;
  /** Lower case. */
  feedbackAddress: string;
  authenticate: Authenticate;
  rateLimiter: RateLimiter;
  /** Messages an hour that the catch-all inbox of a domain receives. */
  catchAllPerHour: number;
  now?: () => Date;
}

/** The share of the receive limit that is left to addresses that exist. */
const RESERVED_FROM_GUESSES = 0.5;

export function createReceiptService(options: ReceiptServiceOptions) {
  const { database, outbox, returnPaths, storage, authenticate, feedbackAddress, rateLimiter } = options;
  const { catchAllPerHour, now = () => new Date() } = options;
  const receiveQuota = createQuotaCache({ counter: 'messages_received', now });
  const mayGuess = async (domainId: string): Promise<boolean> => {
    const limit = { perSecond: catchAllPerHour / 3_600, burst: catchAllPerHour };
    return (await rateLimiter.take(`catch-all/${domainId}`, limit)).allowed;
  };
  return {
    /**
     * Resolves an envelope recipient: an inbox by its address or an alias (plus tags reach the base address), the catch-all
     * inbox of the domain, a signed return path, or the feedback address. Mail to the catch-all inbox may use half of the
     * organization's receive limit, so that guesses leave the rest to the addresses that exist.
     *
     * @param sender envelope sender; empty for `<>`.
     * @param others routes of the previous recipients, which also count toward the quota.
     * @param options.isDivisible the message may be accepted for some of its recipients only.
     * @returns `blocked` if a receive list blocks the sender, `full` if the organization has reached its receive limit, or the
     * domain the hourly limit of its catch-all inbox, `switched_off` for every address while staff have switched inbound mail
     * off, `separately` if the message needs a transaction of its own for this recipient.
     */
    async resolve(
      address: string,
      sender: string,
      others: readonly InboundRoute[] = [],
      { isDivisible = false } = {},
    ): Promise<ResolvedRoute> {
      const { db } = database;
      const accept = (route: TenantRoute) => (isDivisible ? route : aloneIfRequired(route, others));
      const storedSender = storableText(sender);
      const isFeedback = address.toLowerCase() === feedbackAddress;
      const target = isFeedback ? null : returnPaths.parse(address);
      if ((isFeedback || target) && (await isOff(db, 'inbound_mail'))) return 'switched_off';
      if (isFeedback) return { kind: 'feedback' };
      if (target) {
        const route = await findReportRoute(db, target);
        if (!route) return 'unknown';
        // Delivery reports have an empty sender. A message with a sender is ordinary mail, even to a return path.
        if (sender === '') return route;
        const required = toRequirement(await findReceiveListMatch(db, route.inboxId, storedSender));
        return required ? accept({ ...route, ...required }) : 'blocked';
      }
      const email = storableText(baseAddress(address));
      const named = await findReceivingInbox(db, email, storedSender);
      const guessed = named ? undefined : await findCatchAllInbox(db, email, storedSender);
      const found = named ?? guessed;
      if (found?.isSwitchedOff ?? (await isOff(db, 'inbound_mail'))) return 'switched_off';
      if (!found) return 'unknown';
      const { organizationId, environmentId, inboxId } = found;
      const required = toRequirement(findDecidingMatch(found.listMatches ?? []));
      if (!required) return 'blocked';
      const route = { kind: 'mail', organizationId, environmentId, inboxId, ...required } as const;
      if (guessed && !(await mayGuess(guessed.domainId)))
        return { kind: 'full', route, limit: 'catch_all_limit' };
      const remaining = await receiveQuota.remaining(db, organizationId, named ? 0 : RESERVED_FROM_GUESSES);
      const isFull = remaining !== null && remaining <= countOtherInboxes(organizationId, others, inboxId);
      if (!isFull) return accept(route);
      return { kind: 'full', route, limit: named ? 'receive_limit' : 'catch_all_limit' };
    },

    /**
     * Whether a stored message satisfies what the receive list of a recipient requires: that it is authenticated as the domain
     * of its sender.
     */
    async checkSender(mail: AcceptedMail, { authenticatedAs }: TenantRoute): Promise<SenderCheck> {
      if (authenticatedAs === undefined) return 'authenticated';
      const { rawKey, sizeBytes, clientIp, helo, mailFrom } = mail;
      const raw = { sizeBytes, open: () => storage.getStream(rawKey) };
      const checked = await authenticate({ raw, isSigned: true, clientIp, helo, mailFrom });
      return checkSender(checked, authenticatedAs);
    },

    /**
     * Whether all of these inboxes have already received the transport id. False if the recipients include reports or
     * complaints.
     */
    async hasReceived(transportId: string, recipients: AcceptedMail['recipients']): Promise<boolean> {
      const inboxIds = new Set(recipients.map(({ route }) => (route.kind === 'mail' ? route.inboxId : null)));
      const received = await findInboxesWith(
        database.db,
        transportId,
        [...inboxIds].filter((id) => id !== null),
      );
      return received.size === inboxIds.size;
    },

    /**
     * Commits a receipt and a workflow start for each inbox or report. The message counts as accepted only after the
     * commit. A complaint becomes a report on the message whose token it contains.
     *
     * @returns the number of rows that refer to the bytes: 0 for a repeated delivery, or beyond the limit of unattributed
     * reports.
     * @throws AppError `usage_limit_exceeded` if the limit was reached after the recipients were resolved. Nothing is
     * committed in that case.
     */
    async commit(mail: AcceptedMail): Promise<number> {
      const { recipients, unattributed } = await attributeFeedback(options, mail);
      return database.systemTransaction(async (transaction) => {
        const { db } = transaction;
        const isStored = unattributed && (await storeUnattributedReport(db, mail));
        const accepted = await withoutRedeliveries(db, mail.transportId, deduplicateRoutes(recipients));
        const receipts = accepted.map((recipient) => toReceipt(mail, recipient));
        if (receipts.length > 0) await db.insertInto('inbound_receipts').values(receipts).execute();
        for (const receipt of receipts)
          outbox.enqueue(transaction, receipt.org_id, {
            start: buildReceiveStart({
              id: receipt.id,
              organizationId: receipt.org_id,
              environmentId: receipt.env_id,
              inboxId: receipt.inbox_id,
              messageId: receipt.message_id,
              kind: receipt.kind,
              sizeBytes: receipt.size_bytes,
            }),
          });
        transaction.beforeCommit(() => countReceived(db, accepted, now()));
        return receipts.length + (isStored ? 1 : 0);
      });
    },
  };
}

/** What the receive lists require of a sender; null if they block it. */
function toRequirement(match: ListMatch | null): Pick<TenantRoute, 'authenticatedAs'> | null {
  if (match?.effect === 'block') return null;
  return match?.authenticated ? { authenticatedAs: domainOf(match.entry) } : {};
}

/** A reply after the data is for all recipients, so one whose acceptance depends on the content must be the only one. */
function aloneIfRequired(route: TenantRoute, others: readonly InboundRoute[]): TenantRoute | 'separately' {
  const isDependent = (other: InboundRoute) =>
    'authenticatedAs' in other && other.authenticatedAs !== undefined;
  const isAlone = others.every((other) => 'inboxId' in other && other.inboxId === route.inboxId);
  return !isAlone && [route, ...others].some(isDependent) ? 'separately' : route;
}

function toReceipt(mail: AcceptedMail, { address, route }: TenantRecipient) {
  const id = newId('receipt');
  return {
    id,
    org_id: route.organizationId,
    env_id: route.environmentId,
    inbox_id: route.inboxId,
    kind: route.kind,
    message_id: route.kind === 'report' ? route.messageId : toMessageId(id),
    recipient_position: route.kind === 'report' ? route.recipientPosition : null,
    raw_key: mail.rawKey,
    size_bytes: mail.sizeBytes,
    sha256: mail.sha256,
    transport_id:
      route.kind === 'mail' && mail.transportId !== undefined ? toTransportId(mail.transportId) : null,
    mail_from: storableText(mail.mailFrom, 1_000),
    rcpt_to: storableText(address, 1_000),
    client_ip: mail.clientIp,
    helo: mail.helo === null ? null : storableText(mail.helo, 255),
    verdicts: mail.verdicts ? json(mail.verdicts) : null,
    tls: mail.tls,
    received_at: mail.receivedAt,
  } satisfies InsertObject<Tables, 'inbound_receipts'>;
}

/** Counts in a fixed order, to prevent deadlocks on the counter rows. @throws AppError `usage_limit_exceeded`. */
async function countReceived(db: Db, accepted: readonly TenantRecipient[], at: Date): Promise<void> {
  const counts = new Map<string, number>();
  for (const { route } of accepted)
    if (route.kind === 'mail') counts.set(route.organizationId, (counts.get(route.organizationId) ?? 0) + 1);
  for (const [organizationId, amount] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
    await countWithinLimit(db, { organizationId, counter: 'messages_received', amount, at });
}

/**
 * Leaves out the inboxes to which the provider has already delivered the message. The unique index rejects one of two
 * concurrent deliveries, which is then retried.
 */
async function withoutRedeliveries(
  db: Db,
  transportId: string | undefined,
  recipients: TenantRecipient[],
): Promise<TenantRecipient[]> {
  if (transportId === undefined) return recipients;
  const inboxIds = recipients.flatMap(({ route }) => (route.kind === 'mail' ? [route.inboxId] : []));
  const received = await findInboxesWith(db, transportId, inboxIds);
  return recipients.filter(({ route }) => route.kind !== 'mail' || !received.has(route.inboxId));
}

/** Returns those of the inboxes that have received a message with this id. */
async function findInboxesWith(
  db: Db,
  transportId: string,
  inboxIds: readonly string[],
): Promise<Set<string>> {
  const rows = await db
    .selectFrom('inbound_receipts')
    .select('inbox_id as inboxId')
    .where('inbox_id', '=', anyOf(inboxIds))
    .where('transport_id', '=', toTransportId(transportId))
    .execute();
  return new Set(rows.map(({ inboxId }) => inboxId));
}

const toTransportId = (transportId: string): string => storableText(transportId, 500);

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
  const route = target && (await findReportRoute(database.db, target));
  if (!route) return { recipients, unattributed: true };
  return { recipients: [...recipients, { ...toFeedback, route }], unattributed: false };
}

/** A message to two addresses of one inbox is received once. */
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
