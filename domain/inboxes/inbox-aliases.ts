import type { Db } from '../../platform/database/tables.ts';
import { invalid } from '../../platform/errors.ts';
import { toAddressKey } from '../mime/mail-address.ts';
import { requireOn } from '../toggles/toggles.ts';
import { requireQuota } from '../usage/resource-quotas.ts';
import { addressTaken, claimAddress, releaseAddresses } from './address-claims.ts';
import type { InboxRow } from './find-inbox.ts';
import { domainNotVerified, parseInboxAddress } from './inbox-address.ts';

export const MAX_ALIASES = 20;

export interface AliasOptions {
  /** The shared domain, on which every organization may create inboxes. */
  mailDomain: string;
  /** Receives feedback reports (complaints); lower case. No inbox may use it. */
  feedbackAddress: string;
  /**
   * Finds a domain that this organization has verified, and locks it against deletion until the transaction ends. Injected,
   * because `inboxes` must not import `domains`.
   */
  lockVerifiedDomain(db: Db, organizationId: string, domainName: string): Promise<string | null>;
}

/**
 * Claims the addresses that the inbox does not have yet, and releases those that it no longer has; these stay reserved for
 * the organization for 90 days. Each alias counts as an inbox of the plan.
 *
 * @param inbox locked by the caller's transaction.
 * @param requested all aliases that the inbox has afterwards, as the caller wrote them.
 * @returns them as stored: in lower case, in the order of the request.
 * @throws AppError `validation_error` with the path of the alias; `already_exists` for an address that is taken;
 * `plan_limit_reached`, `domain_not_verified`, `switched_off`.
 */
export async function replaceAliases(
  db: Db,
  inbox: InboxRow,
  requested: readonly string[],
  options: AliasOptions,
): Promise<string[]> {
  const aliases = requested.map((alias, index) => parseAlias(alias, { index, inbox, options }));
  aliases.forEach(({ email }, index) => {
    if (aliases.findIndex((other) => other.email === email) < index)
      throw invalid(pathOf(index), 'repeats an earlier entry', 'List each address once.');
  });
  const added = aliases.filter(({ email }) => !inbox.aliases.includes(email));
  const kept = new Set(aliases.map(({ email }) => email));
  const removed = inbox.aliases.filter((email) => !kept.has(email));
  if (added.length > 0) await requireOn(db, 'inbox_creation');
  if (added.length > removed.length)
    await requireQuota(db, inbox.organizationId, 'inboxes', added.length - removed.length);
  const changes = [
    ...removed.map((email) => ({ email, change: () => releaseAddresses(db, inbox.id, [email]) })),
    ...added.map((alias) => ({ email: alias.email, change: () => claimAlias(db, inbox, alias, options) })),
  ];
  // In one order for all requests, to prevent deadlocks: two inboxes may exchange addresses.
  for (const { change } of changes.toSorted((a, b) => (a.email < b.email ? -1 : 1))) await change();
  return aliases.map(({ email }) => email);
}

interface Alias {
  email: string;
  domain: string;
}

/** @throws AppError `validation_error`, `domain_not_verified` for a malformed domain. */
function parseAlias(
  alias: string,
  {
    index,
    inbox,
    options: { mailDomain, feedbackAddress },
  }: { index: number; inbox: InboxRow; options: AliasOptions },
): Alias {
  const path = pathOf(index);
  const { email, domain } = parseInboxAddress({ email: alias }, mailDomain, path);
  if (toAddressKey(email) === toAddressKey(feedbackAddress))
    throw invalid(path, 'is reserved', 'Choose another address.');
  if (domain === mailDomain.toLowerCase() && inbox.domainId !== null)
    throw invalid(
      path,
      'is on the shared domain, and the inbox is not',
      'Use an address on a verified domain of the organization.',
    );
  if (email === inbox.email)
    throw invalid(path, 'is the address of the inbox', 'List only its additional addresses.');
  return { email, domain };
}

const pathOf = (index: number): string => `/body/aliases/${index}`;

/** @throws AppError `already_exists`, `domain_not_verified`. */
async function claimAlias(
  db: Db,
  { id, organizationId }: InboxRow,
  { email, domain }: Alias,
  { mailDomain, lockVerifiedDomain }: AliasOptions,
): Promise<void> {
  const isShared = domain === mailDomain.toLowerCase();
  if (!isShared && (await lockVerifiedDomain(db, organizationId, domain)) === null)
    throw domainNotVerified(domain);
  if (await claimAddress(db, { email, organizationId, inboxId: id })) return;
  throw addressTaken(email);
}

/** The address and the aliases. */
export const ownAddresses = ({ email, aliases }: Pick<InboxRow, 'email' | 'aliases'>): string[] => [
  email,
  ...aliases,
];
