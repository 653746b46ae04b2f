import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Config } from '../../platform/config.ts';

type SharedKeyConfig = Pick<Config, 'DKIM_SHARED_SELECTOR' | 'DKIM_SHARED_PRIVATE_KEY_FILE'>;

/**
 * The key mail of the shared domain is signed with. Null: none is configured, and that mail goes unsigned.
 *
 * @throws Error where only one of the two settings is there, or the file holds no RSA key of 2048 bits or more.
 */
export async function loadSharedDkimKey({
  DKIM_SHARED_SELECTOR: selector,
  DKIM_SHARED_PRIVATE_KEY_FILE: file,
}: SharedKeyConfig): Promise<{ selector: string; privateKey: KeyObject } | null> {
  if (selector === undefined && file === undefined) return null;
  if (selector === undefined || file === undefined)
    throw new Error('DKIM_SHARED_SELECTOR and DKIM_SHARED_PRIVATE_KEY_FILE belong together');
  const privateKey = createPrivateKey(await readFile(file));
  const bits = privateKey.asymmetricKeyDetails?.modulusLength ?? 0;
  if (privateKey.asymmetricKeyType !== 'rsa' || bits < 2048)
    throw new Error('DKIM_SHARED_PRIVATE_KEY_FILE must hold an RSA key of 2048 bits or more');
  return { selector, privateKey };
}
