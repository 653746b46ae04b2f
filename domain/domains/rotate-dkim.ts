import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { DomainWithKeys } from './apply-dns-check.ts';
import { DkimKeyEntity } from './dkim-key.entity.ts';
import { type DkimKeyPair, dkimKeyContext, selectorsOf } from './dkim-keys.ts';
import type { Domain } from './domain.entity.ts';
import { startEpisode } from './verification-episode.ts';

/** Keeps the private key sealed; goes with the caller's flush. */
export function addDkimKey(
  { em, secretBox }: { em: EntityManager; secretBox: SecretBox },
  domain: Domain,
  { selector, state, pair }: { selector: string; state: 'active' | 'pending'; pair: DkimKeyPair },
): void {
  em.persist(
    em.create(DkimKeyEntity, {
      domainId: domain.id,
      selector,
      organizationId: domain.organizationId,
      state,
      publicKey: pair.publicKey,
      privateKey: secretBox.seal(pair.privateKey, dkimKeyContext({ domainId: domain.id, selector })),
      retiredAt: null,
    }),
  );
}

/**
 * Adds a key under the selector that is not in use, and begins to look for its record.
 *
 * @throws AppError `conflict` unless the domain is verified and no key waits.
 */
export async function rotateDkim(
  { outbox, secretBox }: { outbox: Outbox; secretBox: SecretBox },
  transaction: Transaction,
  { domain, keys }: DomainWithKeys,
  pair: DkimKeyPair,
): Promise<void> {
  if (domain.verificationStatus !== 'verified')
    throw new AppError('conflict', {
      detail: `The domain is ${domain.verificationStatus}; only a verified one has a key to rotate.`,
      fix: 'Publish its records and verify the domain first.',
    });
  const waiting = keys.find(({ state }) => state === 'pending');
  if (waiting)
    throw new AppError('conflict', {
      detail: `The key of selector ${waiting.selector} waits for its record already.`,
      fix: 'Publish that record; the key takes over as soon as it is seen.',
    });
  const { em } = transaction;
  const active = keys.find(({ state }) => state === 'active');
  const selector = selectorsOf(domain.ownershipToken).find((name) => name !== active?.selector) ?? '';
  // A key that retired a while ago gives up its selector: it signs nothing, and its mail has long arrived.
  for (const key of keys) if (key.selector === selector) em.remove(key);
  await em.flush();
  addDkimKey({ em, secretBox }, domain, { selector, state: 'pending', pair });
  domain.episode += 1;
  startEpisode(transaction, outbox, domain, new Date());
}
