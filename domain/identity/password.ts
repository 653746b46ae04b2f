import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { createPasswordHashQueue } from './password-hash-queue.ts';

export interface Argon2Parameters {
  memoryKib: number;
  passes: number;
  parallelism: number;
}

/** OWASP recommends these argon2id parameters if 64 MiB are affordable. */
const PARAMETERS: Argon2Parameters = { memoryKib: 65_536, passes: 3, parallelism: 1 };
const TAG_BYTES = 32;

export type PasswordHashing = ReturnType<typeof createPasswordHashing>;

/** @param parameters for new hashes. A stored hash is checked with its own. */
export function createPasswordHashing(parameters = PARAMETERS) {
  const queue = createPasswordHashQueue();
  const { memoryKib, passes, parallelism } = parameters;
  return {
    /**
     * Returns a PHC string, which includes the parameters, so that they can be raised later.
     *
     * @param ip of the client; null for a program of the operator.
     * @throws AppError `rate_limited` if too many computations wait.
     */
    async hash(password: string, ip: string | null): Promise<string> {
      const nonce = randomBytes(16);
      const tag = await queue.run(ip, () => compute(password, nonce, parameters, TAG_BYTES));
      return `$argon2id$v=19$m=${memoryKib},t=${passes},p=${parallelism}$${unpaddedBase64(nonce)}$${unpaddedBase64(tag)}`;
    },

    /**
     * Checks a password in constant time.
     *
     * @param phc null if there is no account, or the account has no password: the call takes as long as a check, and
     * returns false.
     * @param ip of the client.
     * @throws AppError `rate_limited` if too many computations wait.
     */
    verify(phc: string | null, password: string, ip: string): Promise<boolean> {
      return queue.run(ip, () => verify(phc, password, parameters));
    },
  };
}

const PHC_PATTERN =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,64})\$([A-Za-z0-9+/]{16,128})$/;

async function verify(phc: string | null, password: string, parameters: Argon2Parameters): Promise<boolean> {
  const [, memoryKib, passes, parallelism, nonce, tag] = PHC_PATTERN.exec(phc ?? '') ?? [];
  if (nonce === undefined || tag === undefined) {
    await compute(password, randomBytes(16), parameters, TAG_BYTES);
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
  { memoryKib, passes, parallelism }: Argon2Parameters,
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
