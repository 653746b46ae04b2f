import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { createSemaphore } from '../../platform/concurrency/semaphore.ts';

/** OWASP recommends these argon2id parameters if 64 MiB are affordable. */
const PARAMETERS = { memoryKib: 65_536, passes: 3, parallelism: 1 };
const TAG_BYTES = 32;
/** Each computation takes 64 MiB and a thread of libuv's pool, which files and DNS need too. */
const MAX_CONCURRENT_HASHES = 2;
const slots = createSemaphore(MAX_CONCURRENT_HASHES);

/** Returns a PHC string. It includes the parameters, so they can be raised later. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await compute(password, nonce, PARAMETERS, TAG_BYTES);
  const { memoryKib, passes, parallelism } = PARAMETERS;
  return `$argon2id$v=19$m=${memoryKib},t=${passes},p=${parallelism}$${unpaddedBase64(nonce)}$${unpaddedBase64(tag)}`;
}

const PHC_PATTERN =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,64})\$([A-Za-z0-9+/]{16,128})$/;

/**
 * Checks a password in constant time.
 *
 * @param phc null if there is no account or it has no password: takes as long as a check, and returns false.
 */
export async function verifyPassword(phc: string | null, password: string): Promise<boolean> {
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

async function compute(
  password: string,
  nonce: Buffer,
  { memoryKib, passes, parallelism }: typeof PARAMETERS,
  tagLength: number,
): Promise<Buffer> {
  const release = await slots.acquire();
  try {
    return await promisify(argon2)('argon2id', {
      message: password.normalize('NFKC'),
      nonce,
      parallelism,
      tagLength,
      memory: memoryKib,
      passes,
    });
  } finally {
    release();
  }
}

function unpaddedBase64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
