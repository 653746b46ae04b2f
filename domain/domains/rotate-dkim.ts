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

/** Persists a key with its private half sealed, on the caller's next flush. */
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
 * Adds a key under the unused selector and starts checking for its record.
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
      fix: 'Publish the records and verify the domain first.',
    });
  const pending = keys.find(({ state }) => state === 'pending');
  if (pending)
    throw new AppError('conflict', {
      detail: `The key of selector ${pending.selector} is still waiting for its record.`,
      fix: 'Publish that record; the key becomes active once it is found.',
    });
  const { em } = transaction;
  const active = keys.find(({ state }) => state === 'active');
  const selector = selectorsOf(domain.ownershipToken).find((name) => name !== active?.selector) ?? '';
  // A retired key frees its selector: it no longer signs, and the messages it signed were delivered long ago.
  for (const key of keys) if (key.selector === selector) em.remove(key);
  await em.flush();
  addDkimKey({ em, secretBox }, domain, { selector, state: 'pending', pair });
  domain.episode += 1;
  startEpisode(transaction, outbox, domain, new Date());
}
