import type { Db } from '../../platform/database/tables.ts';
import type { ReturnPathTarget } from '../../platform/return-path.ts';
import type { ProviderVerdicts } from './receipt.entity.ts';

/** The destination of a recipient address. For `feedback`, the content determines the organization. */
export type InboundRoute = TenantRoute | { kind: 'feedback' };

export type TenantRoute =
  | { kind: 'mail'; organizationId: string; environmentId: string; inboxId: string }
  | {
      kind: 'report';
      organizationId: string;
      environmentId: string;
      inboxId: string;
      messageId: string;
      recipientPosition: number;
    };

/** An SMTP transaction whose bytes are already in storage. */
export interface AcceptedMail {
  /**
   * The id assigned by the provider that delivered the message; an inbox accepts each id only once. Undefined for SMTP.
   */
  transportId?: string;
  rawKey: string;
  sizeBytes: number;
  sha256: Buffer;
  /** Empty string for `<>`. */
  mailFrom: string;
  /** Empty string if unknown. */
  clientIp: string;
  helo: string | null;
  /** Verdicts of the provider that received the message; undefined if this service received it. */
  verdicts?: ProviderVerdicts;
  tls: boolean;
  receivedAt: Date;
  recipients: { address: string; route: InboundRoute }[];
}

/** Where mail to an address goes, or why it is refused. */
export type ResolvedRoute =
  | InboundRoute
  | 'unknown'
  | 'blocked'
  | 'switched_off'
  | { kind: 'full'; route: InboundRoute };

/** Finds the inbox of the message that a signed return path names. */
export async function findReportRoute(
  db: Db,
  { messageId, position }: ReturnPathTarget,
): Promise<TenantRoute | null> {
  const message = await db
    .selectFrom('messages')
    .select(['org_id as organizationId', 'env_id as environmentId', 'inbox_id as inboxId'])
    .where('id', '=', messageId)
    .executeTakeFirst();
  return message ? { kind: 'report', ...message, messageId, recipientPosition: position } : null;
}

/**
 * Finds the inbox with an address if it may receive. A closed organization receives nothing, because its mail might
 * never be read, and the senders would not learn of that. A domain may have moved to another organization while inboxes
 * of the old one remain: they must not receive its mail.
 */
export function findReceivingInbox(
  db: Db,
  email: string,
): Promise<{ organizationId: string; environmentId: string; inboxId: string } | undefined> {
  return db
    .selectFrom('inboxes as i')
    .innerJoin('organizations as o', 'o.id', 'i.org_id')
    .select(['i.org_id as organizationId', 'i.env_id as environmentId', 'i.id as inboxId'])
    .where('i.email', '=', email)
    .where('i.deleted_at', 'is', null)
    .where('o.deleted_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('i.domain_id', 'is', null),
        eb.not(
          eb.exists(
            eb
              .selectFrom('domains as d')
              .select('d.id')
              .whereRef('d.domain_name', '=', 'i.domain')
              .whereRef('d.org_id', '<>', 'i.org_id')
              .where('d.verification_status', '=', 'verified'),
          ),
        ),
      ]),
    )
    .executeTakeFirst();
}

/** Counts other inboxes of the organization among the previous recipients. */
export function countOtherInboxes(
  organizationId: string,
  others: readonly InboundRoute[],
  inboxId: string,
): number {
  const inboxes = others.flatMap((route) =>
    route.kind === 'mail' && route.organizationId === organizationId ? route.inboxId : [],
  );
  return new Set(inboxes.filter((id) => id !== inboxId)).size;
}
