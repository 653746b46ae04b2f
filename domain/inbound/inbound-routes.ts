import type { Db } from '../../platform/database/tables.ts';
import type { ReturnPathTarget } from '../../platform/return-path.ts';
import { type ListMatch, selectReceiveMatches } from '../deliverability/list-match.ts';
import { isReservedEverywhere } from '../inboxes/inbox-address.ts';
import { domainOf } from '../mime/mail-address.ts';
import { isSwitchedOff } from '../toggles/toggles.ts';
import type { ProviderVerdicts } from './receipt.entity.ts';

/** The destination of a recipient address. For `feedback`, the content determines the organization. */
export type InboundRoute = TenantRoute | { kind: 'feedback' };

/** `authenticatedAs`: the message is accepted only if it is authenticated as this domain; see {@link checkSender}. */
export type TenantRoute = { authenticatedAs?: string } & (
  | { kind: 'mail'; organizationId: string; environmentId: string; inboxId: string }
  | {
      kind: 'report';
      organizationId: string;
      environmentId: string;
      inboxId: string;
      messageId: string;
      recipientPosition: number;
    }
);

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

/**
 * Where mail to an address goes, or why it is refused. `separately`: the message cannot have other recipients, because whether
 * this one accepts it depends on its content.
 */
export type ResolvedRoute =
  | InboundRoute
  | 'unknown'
  | 'blocked'
  | 'switched_off'
  | 'separately'
  | {
      kind: 'full';
      route: InboundRoute;
      /** The limit that was reached: the organization's on received messages, or the domain's on mail to its catch-all inbox. */
      limit: 'receive_limit' | 'catch_all_limit';
    };

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
 * Finds the inbox with an address or alias if it may receive, with what decides about a sender. A closed organization receives
 * nothing, because its mail might never be read, and the senders would not learn of that. A domain may have moved to another
 * organization while inboxes of the old one remain: they must not receive its mail.
 */
export function findReceivingInbox(
  db: Db,
  email: string,
  sender: string,
): Promise<ReceivingInbox | undefined> {
  return db
    .selectFrom('address_claims as c')
    .innerJoin('inboxes as i', 'i.id', 'c.inbox_id')
    .innerJoin('organizations as o', 'o.id', 'i.org_id')
    .select(['i.org_id as organizationId', 'i.env_id as environmentId', 'i.id as inboxId'])
    .select(selectDecision(sender))
    .where('c.email', '=', email)
    .where('c.released_at', 'is', null)
    .where('i.deleted_at', 'is', null)
    .where('o.deleted_at', 'is', null)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('domains as d')
            .select('d.id')
            .where('d.domain_name', '=', domainOf(email))
            .whereRef('d.org_id', '<>', 'i.org_id')
            .where('d.verification_status', '=', 'verified'),
        ),
      ),
    )
    .executeTakeFirst();
}

/**
 * Finds the catch-all inbox of the verified domain of an address that no inbox has. Names that are reserved for the domain's
 * operators and for reports have none: mail to them would reach an agent instead.
 *
 * @param email in lower case, without a plus-tag.
 */
export async function findCatchAllInbox(
  db: Db,
  email: string,
  sender: string,
): Promise<(ReceivingInbox & { domainId: string }) | undefined> {
  if (isReservedEverywhere(email.slice(0, email.lastIndexOf('@')))) return undefined;
  return db
    .selectFrom('domains as d')
    .innerJoin('inboxes as i', 'i.id', 'd.catch_all_inbox_id')
    .innerJoin('organizations as o', 'o.id', 'i.org_id')
    .select([
      'i.org_id as organizationId',
      'i.env_id as environmentId',
      'i.id as inboxId',
      'd.id as domainId',
    ])
    .select(selectDecision(sender))
    .where('d.domain_name', '=', domainOf(email))
    .where('d.verification_status', '=', 'verified')
    .whereRef('i.org_id', '=', 'd.org_id')
    .where('i.deleted_at', 'is', null)
    .where('o.deleted_at', 'is', null)
    .executeTakeFirst();
}

interface ReceivingInbox {
  organizationId: string;
  environmentId: string;
  inboxId: string;
  /** Staff have switched inbound mail off. */
  isSwitchedOff: boolean;
  /** Entries of the receive lists that match the sender. */
  listMatches: ListMatch[] | null;
}

/** What decides whether an inbox receives mail of a sender, in the statement that finds the inbox: `i` is its row. */
const selectDecision = (sender: string) =>
  [
    isSwitchedOff('inbound_mail').as('isSwitchedOff'),
    selectReceiveMatches(sender).as('listMatches'),
  ] as const;

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
