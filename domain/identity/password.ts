import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { createPasswordHashQueue } from './password-hash-queue.ts';

/** OWASP recommends these argon2id parameters if 64 MiB are affordable. */
const PARAMETERS = { memoryKib: 65_536, passes: 3, parallelism: 1 };
const TAG_BYTES = 32;
const queue = createPasswordHashQueue();

/**
 * Returns a PHC string, which includes the parameters, so that they can be raised later.
 *
 * @param ip of the client; null for a program of the operator.
 * @throws AppError `rate_limited` if too many computations wait.
 */
export async function hashPassword(password: string, ip: string | null): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await queue.run(ip, () => compute(password, nonce, PARAMETERS, TAG_BYTES));
  const { memoryKib, passes, parallelism } = PARAMETERS;
  return `$argon2id$v=19$m=${memoryKib},t=${passes},p=${parallelism}$${unpaddedBase64(nonce)}$${unpaddedBase64(tag)}`;
}

const PHC_PATTERN =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,64})\$([A-Za-z0-9+/]{16,128})$/;

/**
 * Checks a password in constant time.
 *
 * @param phc null if there is no account, or the account has no password: the call takes as long as a check, and returns
 * false.
 * @param ip of the client.
 * @throws AppError `rate_limited` if too many computations wait.
 */
export function verifyPassword(phc: string | null, password: string, ip: string): Promise<boolean> {
  return queue.run(ip, () => verify(phc, password));
}

async function verify(phc: string | null, password: string): Promise<boolean> {
  const [, memoryKib, passes, parallelism, nonce, tag] = PHC_PATTERN.exec(phc ?? '') ?? [];
  if (nonce === undefined || tag === undefined) {
    await compute(password, randomBytes(16), PARAMETERS, TAG_BYTES);
    return false;
  }
  const expected = Buffer.from(tag, 'base64');
  const actual = await compute(
    password,
    Buffer.from(nonce, 'base64'),
    { memoryKib: Number(memoryKib), passes: Number(passes), parallelism: Number(parallelism) },
    expected.length,
  );
  return timingSafeEqual(actual, expected);
}

function compute(
  password: string,
  nonce: Buffer,
  { memoryKib, passes, parallelism }: typeof PARAMETERS,
  tagLength: number,
): Promise<Buffer> {
  return promisify(argon2)('argon2id', {
    message: password.normalize('NFKC'),
    nonce,
    parallelism,
    tagLength,
    memory: memoryKib,
    passes,
  });
}

function unpaddedBase64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
