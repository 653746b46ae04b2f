import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { DkimKey, Domain } from './domain.entity.ts';

/** A key without its private half. */
export type PublicDkimKey = Pick<DkimKey, 'domainId' | 'selector' | 'state' | 'publicKey' | 'retiredAt'>;

/** The verification rules change the domain in memory; {@link saveDomain} writes it. */
export interface DomainWithKeys {
  domain: Domain;
  /** In order of creation. */
  keys: PublicDkimKey[];
}

export const loadKeys = async (db: Db, domain: Domain): Promise<DomainWithKeys> => ({
  domain,
  keys: await findKeys(db, [domain.id]),
});

/** The keys of all domains, oldest first. */
export const findKeys = (db: Db, domainIds: readonly string[]): Promise<PublicDkimKey[]> =>
  db
    .selectFrom('dkim_keys')
    .select([
      'domain_id as domainId',
      'selector',
      'state',
      'public_key as publicKey',
      'retired_at as retiredAt',
    ])
    .where('domain_id', '=', anyOf(domainIds))
    .orderBy('created_at')
    .orderBy('selector')
    .execute();

/** Writes the columns that DNS checks change. The caller has locked the row. */
export async function saveDomain(db: Db, domain: Domain): Promise<void> {
  await db
    .updateTable('domains')
    .set({
      verification_status: domain.verificationStatus,
      spf_status: domain.spfStatus,
      dkim_status: domain.dkimStatus,
      dmarc_status: domain.dmarcStatus,
      status_reason: domain.statusReason,
      observed: json(domain.observed),
      failed_checks: domain.failedChecks,
      generation: domain.generation,
      generation_started_at: domain.generationStartedAt,
      next_check_at: domain.nextCheckAt,
      last_checked_at: domain.lastCheckedAt,
      verified_at: domain.verifiedAt,
      updated_at: sql`now()`,
    })
    .where('id', '=', domain.id)
    .execute();
}
