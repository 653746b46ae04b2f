import { randomBytes } from 'node:crypto';

import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
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
import type { DomainWithKeys } from './apply-dns-check.ts';
import { createDkimKeyPair, type DkimKeyPair, selectorsOf } from './dkim-keys.ts';
import { type Domain, DomainEntity } from './domain.entity.ts';
import { addDkimKey } from './rotate-dkim.ts';
import { loadKeys } from './verification.service.ts';
import { startEpisode } from './verification-episode.ts';

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
  const findExisting = ({ em }: Transaction) => findByClientId(em, scope, clientId);
  const toResult = async ({ em }: Transaction, domain: Domain, created: boolean) => ({
    ...(await loadKeys(em, domain)),
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
    await lockClientId(transaction.em, scope, clientId);
    const found = await findExisting(transaction);
    if (found) return toResult(transaction, found, false);
    await requireUnclaimed(transaction.em, scope, name);
    await requireQuota(transaction.em, scope.organizationId, 'domains');
    const domain = addDomain(options, transaction, { scope, name, clientId, pair });
    await transaction.em.flush();
    await recordAudit(transaction.em, scope, {
      action: 'domain.created',
      resourceType: 'domain',
      resourceId: domain.id,
      details: { domain_name: name },
    });
    return toResult(transaction, domain, true);
  });
}

/** Serializes creations with the same client_id, so that the second finds the domain of the first. */
async function lockClientId(em: EntityManager, scope: Scope, clientId: string | undefined): Promise<void> {
  if (clientId === undefined) return;
  await lockKey(em, 'domain', scope.organizationId, clientId);
}

async function findByClientId(
  em: EntityManager,
  { organizationId }: Scope,
  clientId: string | undefined,
): Promise<Domain | null> {
  return clientId === undefined ? null : em.findOne(DomainEntity, { organizationId, clientId });
}

async function requireUnclaimed(
  em: EntityManager,
  { organizationId }: Scope,
  domainName: string,
): Promise<void> {
  const existing = await em.findOne(DomainEntity, { organizationId, domainName });
  if (!existing) return;
  throw new AppError('already_exists', {
    detail: `The organization already has the domain ${domainName}.`,
    fix: `Use the domain ${existing.id}, or delete it first.`,
  });
}

interface Claim {
  scope: Scope;
  name: string;
  clientId: string | undefined;
  pair: DkimKeyPair;
}

function addDomain(
  { outbox, secretBox }: ClaimOptions,
  transaction: Transaction,
  { scope, name, clientId, pair }: Claim,
): Domain {
  const { em } = transaction;
  const now = new Date();
  const domain = em.create(DomainEntity, {
    id: newId('domain'),
    organizationId: scope.organizationId,
    domainName: name,
    clientId: clientId ?? null,
    ownershipToken: randomBytes(16).toString('hex'),
    statusReason: null,
    observed: {},
    episodeStartedAt: now,
    nextCheckAt: null,
    lastCheckedAt: null,
    verifiedAt: null,
    reconciledAt: null,
  });
  em.persist(domain);
  addDkimKey({ em, secretBox }, domain, {
    selector: selectorsOf(domain.ownershipToken)[0],
    state: 'active',
    pair,
  });
  startEpisode(transaction, outbox, domain, now);
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
