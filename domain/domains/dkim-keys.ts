import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Config } from '../../platform/config.ts';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { SealedColumn } from '../../platform/sealed-column.ts';
import type { DkimSigningKey } from '../mime/dkim-signature.ts';
import type { DkimKey } from './domain.entity.ts';

const KEY_BITS = 2048;

/** The public key as the record publishes it (SubjectPublicKeyInfo, base64), the private key as PKCS#8 PEM. */
export interface DkimKeyPair {
  publicKey: string;
  privateKey: string;
}

/** Takes 100 ms or more, off the main thread. Do not call it inside a transaction. */
export async function createDkimKeyPair(): Promise<DkimKeyPair> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: KEY_BITS,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return { publicKey: publicKey.toString('base64'), privateKey };
}

/** Binds a sealed key to its domain and selector: it cannot be opened after being copied to another row. */
export function dkimKeyContext({ domainId, selector }: Pick<DkimKey, 'domainId' | 'selector'>): string {
  return `dkim-key/${domainId}/${selector}`;
}

export const DKIM_PRIVATE_KEYS: SealedColumn = {
  table: 'dkim_keys',
  column: 'private_key',
  key: ['domain_id', 'selector'],
  context: ({ domain_id, selector }) =>
    dkimKeyContext({ domainId: String(domain_id), selector: String(selector) }),
};

/**
 * The two selectors of a domain. The prefix of the token keeps the selectors of several claims to one name, and of several
 * installations, distinct.
 */
export function selectorsOf(ownershipToken: string): [string, string] {
  const suffix = ownershipToken.slice(0, 8);
  return [`ae1-${suffix}`, `ae2-${suffix}`];
}

/** Finds the key that signs a message. */
export type DkimKeys = ReturnType<typeof createDkimKeys>;

export interface DkimKeysOptions {
  database: Pick<Database, 'db'>;
  secretBox: SecretBox;
  mailDomain: string;
  /** Key of the shared domain; null if none is configured. */
  shared: { selector: string; privateKey: KeyObject } | null;
  /** Header fields the transport writes itself, in lower case. */
  unsigned: readonly string[];
}

/** For workers: reads across tenants; the statement itself names the organization. */
export function createDkimKeys({ database, secretBox, mailDomain, shared, unsigned }: DkimKeysOptions) {
  const unsignedFields = new Set(unsigned);
  return {
    /** Returns null if there is no key for the domain. @param domain of the From address. */
    async findSigningKey(organizationId: string, domain: string): Promise<DkimSigningKey | null> {
      if (domain === mailDomain.toLowerCase())
        return (
          shared && {
            domain,
            selector: shared.selector,
            privateKey: shared.privateKey,
            excludedFields: unsignedFields,
          }
        );
      const key = await database.db
        .selectFrom('dkim_keys as k')
        .innerJoin('domains as d', 'd.id', 'k.domain_id')
        .select(['k.domain_id as domainId', 'k.selector', 'k.private_key as privateKey'])
        .where('d.org_id', '=', organizationId)
        .where('d.domain_name', '=', domain)
        .where('k.state', '=', 'active')
        .executeTakeFirst();
      if (!key) return null;
      const privateKey = createPrivateKey(secretBox.open(key.privateKey, dkimKeyContext(key)));
      return { domain, selector: key.selector, privateKey, excludedFields: unsignedFields };
    },
  };
}

type SharedKeyConfig = Pick<Config, 'DKIM_SHARED_SELECTOR' | 'DKIM_SHARED_PRIVATE_KEY_FILE'>;

/**
 * Loads the key that signs messages of the shared domain. Returns null if none is configured; then they are not signed.
 *
 * @throws Error if only one of the two settings is present, or the file has no RSA key of at least 2048 bits.
 */
export async function loadSharedDkimKey({
  DKIM_SHARED_SELECTOR: selector,
  DKIM_SHARED_PRIVATE_KEY_FILE: file,
}: SharedKeyConfig): Promise<{ selector: string; privateKey: KeyObject } | null> {
  if (selector === undefined && file === undefined) return null;
  if (selector === undefined || file === undefined)
    throw new Error('DKIM_SHARED_SELECTOR and DKIM_SHARED_PRIVATE_KEY_FILE must be set together');
  const privateKey = createPrivateKey(await readFile(file));
  const bits = privateKey.asymmetricKeyDetails?.modulusLength ?? 0;
  if (privateKey.asymmetricKeyType !== 'rsa' || bits < 2048)
    throw new Error('DKIM_SHARED_PRIVATE_KEY_FILE must contain an RSA key of at least 2048 bits');
  return { selector, privateKey };
}
