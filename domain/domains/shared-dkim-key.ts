import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Config } from '../../platform/config.ts';

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
