import type { SecretBox } from '../../platform/crypto.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type DkimKeyPair, dkimKeyContext, selectorsOf } from './dkim-keys.ts';
import type { Domain } from './domain.entity.ts';
import type { DomainWithKeys } from './domain-with-keys.ts';
import { startVerification } from './verification-run.ts';

/** Stores a key with its private half sealed. */
export async function addDkimKey(
  { db, secretBox }: { db: Db; secretBox: SecretBox },
  domain: Pick<Domain, 'id' | 'organizationId'>,
  { selector, state, pair }: { selector: string; state: 'active' | 'pending'; pair: DkimKeyPair },
): Promise<void> {
  await db
    .insertInto('dkim_keys')
    .values({
      domain_id: domain.id,
      selector,
      org_id: domain.organizationId,
      state,
      public_key: pair.publicKey,
      private_key: secretBox.seal(pair.privateKey, dkimKeyContext({ domainId: domain.id, selector })),
    })
    .execute();
}

/**
 * Adds a key under the unused selector and starts checking for its record. The caller saves the domain.
 *
 * @throws AppError `conflict` unless the domain is verified and has no pending key.
 */
export async function rotateDkim(
  { outbox, secretBox }: { outbox: Outbox; secretBox: SecretBox },
  transaction: Transaction,
  { domain, keys }: DomainWithKeys,
  pair: DkimKeyPair,
): Promise<void> {
  if (domain.verificationStatus !== 'verified')
    throw new AppError('conflict', {
      detail: `The domain is ${domain.verificationStatus}; keys can only be rotated on a verified domain.`,
      fix: 'Publish the records and verify the domain first: POST /api/v1/domains/{id}/verify.',
    });
  const pending = keys.find(({ state }) => state === 'pending');
  if (pending)
    throw new AppError('conflict', {
      detail: `The key of selector ${pending.selector} is still waiting for its record.`,
      fix: 'Publish that record; the key becomes active once it is found, for example by POST /api/v1/domains/{id}/verify.',
    });
  const { db } = transaction;
  const active = keys.find(({ state }) => state === 'active');
  const selector = selectorsOf(domain.ownershipToken).find((name) => name !== active?.selector) ?? '';
  // A retired key frees its selector: it no longer signs, and the messages it signed were delivered long ago.
  await db
    .deleteFrom('dkim_keys')
    .where('domain_id', '=', domain.id)
    .where('selector', '=', selector)
    .execute();
  await addDkimKey({ db, secretBox }, domain, { selector, state: 'pending', pair });
  domain.generation += 1;
  startVerification(transaction, outbox, domain, new Date());
}
