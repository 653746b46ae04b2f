import { argon2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

/** OWASP recommends these argon2id parameters if 64 MiB are affordable. */
const MEMORY_KIB = 65_536;
const PASSES = 3;
const PARALLELISM = 1;

/** Returns a PHC string. It includes the parameters, so they can be raised later. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await promisify(argon2)('argon2id', {
    message: password.normalize('NFKC'),
    nonce,
    parallelism: PARALLELISM,
    tagLength: 32,
    memory: MEMORY_KIB,
    passes: PASSES,
  });
  const parameters = `m=${MEMORY_KIB},t=${PASSES},p=${PARALLELISM}`;
  return `$argon2id$v=19$${parameters}$${unpaddedBase64(nonce)}$${unpaddedBase64(tag)}`;
}

function unpaddedBase64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
