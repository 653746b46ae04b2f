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
import { MAIL_QUEUE } from '../../workflows/task-queues.contract.ts';
import { findReceiveListMatch } from '../deliverability/receive-lists.ts';
import { readReportBytes } from '../delivery-reports/dsn.ts';
import { parseFeedbackReport } from '../delivery-reports/feedback-report.ts';
import { findReportTarget } from '../delivery-reports/report-token.ts';
import { DomainEntity } from '../domains/domain.entity.ts';
import { type Inbox, InboxEntity } from '../inboxes/inbox.entity.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import { countWithinLimit } from '../usage/count-usage.ts';
import { createQuotaCache } from '../usage/quota-cache.ts';
import type { AcceptedMail, InboundRoute, TenantRoute } from './accepted-mail.ts';
import { toMessageId } from './inbound-ids.ts';
import { type Receipt, ReceiptEntity } from './receipt.entity.ts';
import { storeUnattributedReport } from './unattributed-reports.ts';

export interface ReceiptService {
  /**
   * Looks an envelope recipient up: an inbox (plus-tags reach the base address), a return path of ours, or the address
   * complaints come to.
   *
   * @param sender envelope sender; empty for `<>`.
   * @param others where the mail goes already: all of it has to find room.
   * @returns `blocked` where the inbox's receive lists refuse the sender, `full` where the organization has used up what
   * it may receive.
   */
  resolve(
    address: string,
    sender: string,
    others?: readonly InboundRoute[],
  ): Promise<InboundRoute | 'unknown' | 'blocked' | { kind: 'full'; route: InboundRoute }>;
  /** Whether each of these inboxes has a mail of that id already. False where reports or complaints are among them. */
  hasReceived(transportId: string, recipients: AcceptedMail['recipients']): Promise<boolean>;
  /**
   * Commits a receipt for each inbox or report, with the start of its workflow. Only then is the mail accepted. A
   * complaint becomes a report on the mail whose token it carries.
   *
   * @returns how many rows refer to its bytes now: none for a repeat, or for one of too many mails that are nobody's.
   * @throws AppError `usage_limit_exceeded` where the last unit went since the recipients were looked up; nothing is
   * committed then.
   */
  commit(mail: AcceptedMail): Promise<number>;
}

export interface ReceiptServiceOptions {
  database: Database;
  outbox: Outbox;
  returnPaths: ReturnPaths;
  storage: Pick<Storage, 'getStream'>;
  /** In lower case. */
  feedbackAddress: string;
  now?: () => Date;
}

export function createReceiptService(options: ReceiptServiceOptions): ReceiptService {
  const { database, outbox, returnPaths, feedbackAddress, now = () => new Date() } = options;
  const received = createQuotaCache({ counter: 'messages_received', now });
  return {
    resolve: (address, sender, others = []) =>
      database.autocommit(async (em) => {
        if (address.toLowerCase() === feedbackAddress) return { kind: 'feedback' };
        const target = returnPaths.parse(address);
        if (target) return (await findReportRoute(em, target)) ?? 'unknown';
        const email = storableText(baseAddress(address));
        const inbox = await em.findOne(InboxEntity, { email, deletedAt: null });
        if (!inbox || (await isDomainOfAnotherOrganization(em, inbox))) return 'unknown';
        const { organizationId, environmentId, id } = inbox;
        if ((await findReceiveListMatch(em, id, storableText(sender)))?.effect === 'block') return 'blocked';
        const room = await received.remaining(em, organizationId);
        const route = { kind: 'mail', organizationId, environmentId, inboxId: id } as const;
        const isFull = room !== null && room <= countOtherInboxes(organizationId, others, id);
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
        const mails = new Map<string, number>();
        let kept = unattributed && (await storeUnattributedReport(transaction, mail)) ? 1 : 0;
        for (const { address, route } of deduplicateRoutes(recipients)) {
          if (await isRepeat(transaction, mail.transportId, route)) continue;
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
          kept += 1;
          const { organizationId } = route;
          if (route.kind === 'mail') mails.set(organizationId, (mails.get(organizationId) ?? 0) + 1);
        }
        transaction.beforeCommit(() => countReceived(transaction.em, mails, now()));
        return kept;
      });
    },
  };
}

/** In one order for all, since each counter's row may be locked. @throws AppError `usage_limit_exceeded`. */
async function countReceived(em: EntityManager, mails: ReadonlyMap<string, number>, at: Date): Promise<void> {
  for (const [organizationId, amount] of [...mails].sort(([a], [b]) => (a < b ? -1 : 1)))
    await countWithinLimit(em, { organizationId, counter: 'messages_received', amount, at });
}

/** Other inboxes of the organization a mail goes to already. */
function countOtherInboxes(organizationId: string, others: readonly InboundRoute[], inboxId: string): number {
  const inboxes = others.flatMap((route) =>
    route.kind === 'mail' && route.organizationId === organizationId ? route.inboxId : [],
  );
  return new Set(inboxes.filter((id) => id !== inboxId)).size;
}

/** Whether the provider has handed this mail over before. Of two at once the unique index refuses one, which comes again. */
async function isRepeat(
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

/** Finds out whose the mail to the feedback address is; before the transaction, since its content is in storage. */
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

/** Two addresses of one inbox are one mail. */
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

/** The start of a mail's way in; also what the reconciler uses for one that has lost its run. */
export function buildReceiveStart(
  receipt: Pick<
    Receipt,
    'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'messageId' | 'kind' | 'sizeBytes'
  >,
) {
  return {
    workflowType: RECEIVE_MESSAGE,
    workflowId: receiveMessageWorkflowId(receipt.id),
    taskQueue: MAIL_QUEUE,
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

/** A name may have passed to another organization, with inboxes of the old one left: its mail is not theirs any more. */
async function isDomainOfAnotherOrganization(em: EntityManager, inbox: Inbox): Promise<boolean> {
  if (!inbox.domainId) return false;
  const holders = await em.count(DomainEntity, {
    domainName: inbox.domain,
    verificationStatus: 'verified',
    organizationId: { $ne: inbox.organizationId },
  });
  return holders > 0;
}
