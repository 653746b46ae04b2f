import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { DkimSigningKey } from '../mime/dkim-signature.ts';
import type { DkimKey } from './dkim-key.entity.ts';

const KEY_BITS = 2048;

/** A key pair as it is kept: the public half as the record publishes it, the private one as PKCS#8 PEM. */
export interface DkimKeyPair {
  publicKey: string;
  privateKey: string;
}

/** Takes a tenth of a second or more, off the main thread: not inside of a transaction where it can be helped. */
export async function createDkimKeyPair(): Promise<DkimKeyPair> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: KEY_BITS,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return { publicKey: publicKey.toString('base64'), privateKey };
}

/** Binds a sealed key to its domain and selector: copied to another row it does not open. */
export function dkimKeyContext({ domainId, selector }: Pick<DkimKey, 'domainId' | 'selector'>): string {
  return `dkim-key/${domainId}/${selector}`;
}

/**
 * The selectors of a domain. The token's beginning keeps several claims to a name, and several installations, out of
 * each other's way.
 */
export function selectorsOf(ownershipToken: string): [string, string] {
  const suffix = ownershipToken.slice(0, 8);
  return [`ae1-${suffix}`, `ae2-${suffix}`];
}

/** Finds what a mail is signed with. */
export interface DkimKeys {
  /** Null: nobody signs for this domain. @param domain of the From address. */
  findSigningKey(organizationId: string, domain: string): Promise<DkimSigningKey | null>;
}

export interface DkimKeysOptions {
  database: Pick<Database, 'autocommit'>;
  secretBox: SecretBox;
  mailDomain: string;
  /** Of the shared domain; null where none is configured. */
  shared: { selector: string; privateKey: KeyObject } | null;
  /** Fields the transport writes itself; lower case. */
  unsigned: readonly string[];
}

/** For workers: looks across tenants, scoped by its own statement. */
export function createDkimKeys({
  database,
  secretBox,
  mailDomain,
  shared,
  unsigned,
}: DkimKeysOptions): DkimKeys {
  const unsignedFields = new Set(unsigned);
  return {
    async findSigningKey(organizationId, domain) {
      if (domain === mailDomain.toLowerCase())
        return (
          shared && {
            domain,
            selector: shared.selector,
            privateKey: shared.privateKey,
            excludedFields: unsignedFields,
          }
        );
      const [key] = await database.autocommit((em) =>
        em.execute<{ domainId: string; selector: string; privateKey: Buffer }[]>(
          `select k.domain_id as "domainId", k.selector, k.private_key as "privateKey"
           from dkim_keys k join domains d on d.id = k.domain_id
           where d.org_id = ? and d.domain_name = ? and k.state = 'active'`,
          [organizationId, domain],
        ),
      );
      if (!key) return null;
      const privateKey = createPrivateKey(secretBox.open(key.privateKey, dkimKeyContext(key)));
      return { domain, selector: key.selector, privateKey, excludedFields: unsignedFields };
    },
  };
}
