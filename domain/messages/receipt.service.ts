import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { ReturnPaths } from '../../platform/return-path.ts';
import {
  RECEIVE_MESSAGE,
  receiveMessageWorkflowId,
} from '../../workflows/messages/receive-message.contract.ts';
import { MAIL_QUEUE } from '../../workflows/task-queues.contract.ts';
import { DomainEntity } from '../domains/domain.entity.ts';
import { type Inbox, InboxEntity } from '../inboxes/inbox.entity.ts';
import { messageIdOfReceipt } from './inbound-ids.ts';
import { MessageEntity } from './message.entity.ts';
import { type Receipt, ReceiptEntity } from './receipt.entity.ts';

/** Where a recipient address of inbound mail leads. */
export type InboundRoute =
  | { kind: 'mail'; organizationId: string; environmentId: string; inboxId: string }
  | {
      kind: 'report';
      organizationId: string;
      environmentId: string;
      inboxId: string;
      messageId: string;
      recipientPosition: number;
    };

/** One SMTP transaction, its bytes already in storage. */
export interface AcceptedMail {
  /** What the provider that hands the mail over calls it: the same id comes to an inbox once. None over SMTP. */
  transportId?: string;
  rawKey: string;
  sizeBytes: number;
  sha256: Buffer;
  /** Empty string for `<>`. */
  mailFrom: string;
  clientIp: string;
  helo: string | null;
  tls: boolean;
  receivedAt: Date;
  recipients: { address: string; route: InboundRoute }[];
}

export interface ReceiptService {
  /** Looks an envelope recipient up: an inbox (plus-tags reach the base address), or a return path of ours. */
  resolve(address: string): Promise<InboundRoute | 'unknown'>;
  /** Commits a receipt for each inbox or report, with the start of its workflow. Only then is the mail accepted. */
  commit(mail: AcceptedMail): Promise<void>;
}

export interface ReceiptServiceOptions {
  database: Database;
  outbox: Outbox;
  returnPaths: ReturnPaths;
}

export function createReceiptService({
  database,
  outbox,
  returnPaths,
}: ReceiptServiceOptions): ReceiptService {
  return {
    resolve: (address) =>
      database.autocommit(async (em) => {
        const report = returnPaths.parse(address);
        if (report) {
          const message = await em.findOne(
            MessageEntity,
            { id: report.messageId },
            { fields: [...ROUTE_FIELDS] },
          );
          if (!message) return 'unknown';
          const { organizationId, environmentId, inboxId } = message;
          return {
            kind: 'report',
            organizationId,
            environmentId,
            inboxId,
            messageId: report.messageId,
            recipientPosition: report.position,
          };
        }
        const email = storableText(baseAddress(address));
        const inbox = await em.findOne(InboxEntity, { email, deletedAt: null });
        if (!inbox || (await isAnothersDomain(em, inbox))) return 'unknown';
        const { organizationId, environmentId, id } = inbox;
        return { kind: 'mail', organizationId, environmentId, inboxId: id };
      }),

    commit: (mail) =>
      database.systemTransaction(async (transaction) => {
        for (const { address, route } of distinctRoutes(mail.recipients)) {
          if (await isKnown(transaction, mail.transportId, route)) continue;
          const id = newId('receipt');
          const receipt = transaction.em.create(ReceiptEntity, {
            id,
            organizationId: route.organizationId,
            environmentId: route.environmentId,
            inboxId: route.inboxId,
            kind: route.kind,
            messageId: route.kind === 'report' ? route.messageId : messageIdOfReceipt(id),
            recipientPosition: route.kind === 'report' ? route.recipientPosition : null,
            rawKey: mail.rawKey,
            sizeBytes: mail.sizeBytes,
            sha256: mail.sha256,
            transportId: route.kind === 'mail' ? transportIdOf(mail) : null,
            mailFrom: storableText(mail.mailFrom, 1_000),
            rcptTo: storableText(address, 1_000),
            clientIp: mail.clientIp,
            helo: mail.helo === null ? null : storableText(mail.helo, 255),
            tls: mail.tls,
            receivedAt: mail.receivedAt,
          });
          transaction.em.persist(receipt);
          outbox.enqueue(transaction, route.organizationId, { start: startOfReceive(receipt) });
        }
      }),
  };
}

/** Whether the provider has handed this mail over before. Of two at once the unique index refuses one, which comes again. */
async function isKnown(
  { em }: Transaction,
  transportId: string | undefined,
  route: InboundRoute,
): Promise<boolean> {
  if (transportId === undefined || route.kind !== 'mail') return false;
  const { inboxId } = route;
  return (await em.count(ReceiptEntity, { inboxId, transportId: transportIdOf({ transportId }) })) > 0;
}

function transportIdOf({ transportId }: Pick<AcceptedMail, 'transportId'>): string | null {
  return transportId === undefined ? null : storableText(transportId, 500);
}

const ROUTE_FIELDS = ['organizationId', 'environmentId', 'inboxId'] as const;

/** Lower case and without the plus-tag: what an inbox's row holds. */
export function baseAddress(address: string): string {
  const at = address.lastIndexOf('@');
  const local = address.slice(0, at).split('+', 1)[0] ?? '';
  return `${local}${address.slice(at)}`.toLowerCase();
}

/** Two addresses of one inbox are one mail. */
function distinctRoutes(recipients: AcceptedMail['recipients']): AcceptedMail['recipients'] {
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
export function startOfReceive(
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
async function isAnothersDomain(em: EntityManager, inbox: Inbox): Promise<boolean> {
  if (!inbox.domainId) return false;
  const holders = await em.count(DomainEntity, {
    domainName: inbox.domain,
    verificationStatus: 'verified',
    organizationId: { $ne: inbox.organizationId },
  });
  return holders > 0;
}
