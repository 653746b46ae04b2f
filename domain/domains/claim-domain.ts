import { randomBytes } from 'node:crypto';
import type { SecretBox } from '../../platform/crypto.ts';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { Scope } from '../identity/scope.ts';
import {
  type DomainNameProblem,
  isWithinDomain,
  MAX_DOMAIN_LENGTH,
  parseDomainName,
} from '../mime/domain-name.ts';
import { requireQuota } from '../usage/resource-quotas.ts';
import { createDkimKeyPair, type DkimKeyPair, selectorsOf } from './dkim-keys.ts';
import { type Domain, DomainEntity } from './domain.entity.ts';
import { type DomainWithKeys, loadKeys } from './domain-with-keys.ts';
import { addDkimKey } from './rotate-dkim.ts';
import { buildVerificationStart, firstCheckAt } from './verification-run.ts';

export interface NewDomain {
  domainName: string;
  clientId?: string;
}

export interface ClaimOptions {
  database: Database;
  outbox: Outbox;
  secretBox: SecretBox;
  /** Domains of the service itself. Neither they nor their subdomains can be claimed. */
  ownDomains: string[];
}

/** See {@link DomainService.create}. */
export async function claimDomain(
  options: ClaimOptions,
  scope: Scope,
  { domainName, clientId }: NewDomain,
): Promise<DomainWithKeys & { created: boolean }> {
  requireWholeOrganization(scope);
  const { database, ownDomains } = options;
  const findExisting = ({ db }: Transaction) => findByClientId(db, scope, clientId);
  const toResult = async ({ db }: Transaction, domain: Domain, created: boolean) => ({
    ...(await loadKeys(db, domain)),
    created,
  });
  const existing = await database.transaction(scope, async (transaction) => {
    const found = await findExisting(transaction);
    return found && toResult(transaction, found, false);
  });
  if (existing) return existing;
  const name = parseClaimableName(domainName, ownDomains);
  const pair = await createDkimKeyPair();
  return database.transaction(scope, async (transaction) => {
    await lockClientId(transaction.db, scope, clientId);
    const found = await findExisting(transaction);
    if (found) return toResult(transaction, found, false);
    await requireUnclaimed(transaction.db, scope, name);
    await requireQuota(transaction.db, scope.organizationId, 'domains');
    const domain = await addDomain(options, transaction, { scope, name, clientId, pair });
    await recordAudit(transaction.db, scope, {
      action: 'domain.created',
      resourceType: 'domain',
      resourceId: domain.id,
      details: { domain_name: name },
    });
    return toResult(transaction, domain, true);
  });
}

/** Serializes creations with the same client_id, so that the second finds the domain of the first. */
async function lockClientId(db: Db, scope: Scope, clientId: string | undefined): Promise<void> {
  if (clientId === undefined) return;
  await lockKey(db, 'domain', scope.organizationId, clientId);
}

async function findByClientId(
  db: Db,
  { organizationId }: Scope,
  clientId: string | undefined,
): Promise<Domain | undefined> {
  if (clientId === undefined) return undefined;
  return db
    .selectFrom('domains')
    .select(columnsOf(DomainEntity))
    .where('org_id', '=', organizationId)
    .where('client_id', '=', clientId)
    .executeTakeFirst();
}

async function requireUnclaimed(db: Db, { organizationId }: Scope, domainName: string): Promise<void> {
  const existing = await db
    .selectFrom('domains')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('domain_name', '=', domainName)
    .executeTakeFirst();
  if (!existing) return;
  throw new AppError('already_exists', {
    detail: `The organization already has the domain ${domainName}.`,
    fix: `Use the domain (GET /api/v1/domains/${existing.id}), or delete it first (DELETE on the same path).`,
  });
}

interface Claim {
  scope: Scope;
  name: string;
  clientId: string | undefined;
  pair: DkimKeyPair;
}

async function addDomain(
  { outbox, secretBox }: ClaimOptions,
  transaction: Transaction,
  { scope: { organizationId }, name, clientId, pair }: Claim,
): Promise<Domain> {
  const { db } = transaction;
  const now = new Date();
  const domain = await db
    .insertInto('domains')
    .values({
      id: newId('domain'),
      org_id: organizationId,
      domain_name: name,
      client_id: clientId ?? null,
      ownership_token: randomBytes(16).toString('hex'),
      observed: json({}),
      generation_started_at: now,
      next_check_at: firstCheckAt(now),
    })
    .returning(columnsOf(DomainEntity))
    .executeTakeFirstOrThrow(() => new Error('The domain was not created'));
  await addDkimKey({ db, secretBox }, domain, {
    selector: selectorsOf(domain.ownershipToken)[0],
    state: 'active',
    pair,
  });
  outbox.enqueue(transaction, organizationId, { start: buildVerificationStart(domain) });
  return domain;
}

const NAME_PROBLEMS: Record<DomainNameProblem, [string, string]> = {
  malformed: ['is not a domain name', 'Use a name such as mail.example.com, without scheme, port or path.'],
  too_long: [
    `must not be longer than ${MAX_DOMAIN_LENGTH} characters`,
    'Use a shorter name; records are published below it.',
  ],
  address: ['is an IP address', 'Use a domain name.'],
  public_suffix: ['is a public suffix, not a registrable domain', 'Use a domain you have registered.'],
};

function parseClaimableName(input: string, ownDomains: string[]): string {
  const parsed = parseDomainName(input);
  if ('problem' in parsed) throw invalid('/body/domain_name', ...NAME_PROBLEMS[parsed.problem]);
  if (ownDomains.some((own) => isWithinDomain(parsed.name, own)))
    throw invalid(
      '/body/domain_name',
      'belongs to the service itself',
      'Use a domain of your own. Inboxes on the shared domain need none.',
    );
  return parsed.name;
}

export function requireWholeOrganization(scope: Scope): void {
  if (!scope.environmentBound && scope.inboxId === undefined) return;
  throw new AppError('permission_denied', {
    detail: 'Domains belong to the whole organization, but this credential is bound to a part of it.',
    fix: 'Use a key that is not bound to an environment or inbox.',
    extensions: { permission: 'domains:manage' },
  });
}
