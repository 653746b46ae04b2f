import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
  randomInt,
  timingSafeEqual,
} from 'node:crypto';

/**
 * Encrypts secrets at rest: AES-256-GCM, stored as version (1) + key id (4) + nonce (12) + tag (16) + ciphertext. The first
 * key of `ENCRYPTION_KEY` seals, every key opens.
 */
export interface SecretBox {
  /** Beginning of everything that `seal` returns: version and key id. A value that begins differently has an older key. */
  readonly currentPrefix: Buffer;
  seal(plaintext: string, context: string): Buffer;
  /**
   * @throws UnlistedKeyError if `ENCRYPTION_KEY` does not list the key of the value.
   * @throws Error if the bytes were altered or sealed with another context.
   */
  open(sealed: Uint8Array, context: string): string;
}

/** A value was sealed with a key that is not configured. */
export class UnlistedKeyError extends Error {
  override name = 'UnlistedKeyError';
  readonly keyId: string;
  constructor(keyId: string, listed: readonly string[]) {
    super(
      `ENCRYPTION_KEY does not list the key ${keyId}, with which a stored value is encrypted. It lists ${listed.join(', ')}.`,
    );
    this.keyId = keyId;
  }
}

/** Version 1 had no key id: every key is tried. */
const VERSION_WITHOUT_KEY_ID = 1;
const VERSION = 2;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param keysBase64 keys of 32 bytes in base64, separated by commas (`ENCRYPTION_KEY`). */
export function createSecretBox(keysBase64: string): SecretBox {
  const keys = decodeKeys(keysBase64, 'ENCRYPTION_KEY');
  const [current] = keys;
  const currentPrefix = Buffer.concat([Buffer.of(VERSION), current.id]);
  return {
    currentPrefix,
    seal(plaintext, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', current.bytes, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
      return Buffer.concat([currentPrefix, nonce, cipher.getAuthTag(), body]);
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed);
      if (bytes[0] === VERSION_WITHOUT_KEY_ID) return openWithAny(keys, bytes.subarray(1), context);
      if (bytes[0] !== VERSION) throw new Error('Sealed value has an unknown version');
      const id = bytes.subarray(1, 1 + KEY_ID_BYTES);
      const key = keys.find((listed) => listed.id.equals(id));
      if (!key) throw new UnlistedKeyError(id.toString('hex'), keys.map(nameKey));
      return decrypt(key, bytes.subarray(1 + KEY_ID_BYTES), context);
    },
  };
}

/** @param encrypted nonce, tag and ciphertext. */
function decrypt(key: Key, encrypted: Buffer, context: string): string {
  const bodyStart = NONCE_BYTES + TAG_BYTES;
  const decipher = createDecipheriv('aes-256-gcm', key.bytes, encrypted.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(context))
    .setAuthTag(encrypted.subarray(NONCE_BYTES, bodyStart));
  return decipher.update(encrypted.subarray(bodyStart), undefined, 'utf8') + decipher.final('utf8');
}

function openWithAny(keys: readonly Key[], encrypted: Buffer, context: string): string {
  let failure: unknown;
  for (const key of keys) {
    try {
      return decrypt(key, encrypted, context);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/**
 * Signs short values with a key derived for one purpose: a cursor can never be used as a return-path token. The first key of
 * `SIGNING_KEY` signs, signatures of every key are valid.
 */
export interface Signer {
  sign(value: string | Uint8Array): Buffer;
  verify(value: string | Uint8Array, signature: Uint8Array): boolean;
  /** The valid signatures of a value, one for each key: to find a stored signature. */
  signatures(value: string | Uint8Array): Buffer[];
}

/**
 * @param keysBase64 keys of 32 bytes in base64, separated by commas (`SIGNING_KEY`).
 * @param lengthBytes length of the truncated HMAC-SHA256; 10 bytes suffice if each guess costs a network call.
 */
export function createSigner(keysBase64: string, purpose: string, lengthBytes = 32): Signer {
  const [first, ...others] = decodeKeys(keysBase64, 'SIGNING_KEY').map(({ bytes }) =>
    // A key object costs a fifth of the same bytes, which each call would prepare again.
    createSecretKey(createHmac('sha256', bytes).update(purpose).digest()),
  ) as [KeyObject, ...KeyObject[]];
  const signWith = (key: KeyObject, value: string | Uint8Array) =>
    createHmac('sha256', key).update(value).digest().subarray(0, lengthBytes);
  return {
    sign: (value) => signWith(first, value),
    verify: (value, signature) =>
      signature.length === lengthBytes &&
      [first, ...others].some((key) => timingSafeEqual(signWith(key, value), signature)),
    signatures: (value) => [first, ...others].map((key) => signWith(key, value)),
  };
}

export function sha256(value: string | Uint8Array): Buffer {
  return createHash('sha256').update(value).digest();
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Random base62 characters, 5.95 bits each. */
export function randomBase62(length: number): string {
  return Array.from({ length }, () => BASE62.charAt(randomInt(BASE62.length))).join('');
}

interface Key {
  /** Identifies the key without revealing it. */
  id: Buffer;
  bytes: Buffer;
}

const nameKey = ({ id }: Key): string => id.toString('hex');

/**
 * The ids of the listed keys, in order, as logs and the table `installation_keys` name them.
 *
 * @throws Error if a key is malformed.
 */
export function listKeyIds(keysBase64: string, variable: string): [string, ...string[]] {
  return decodeKeys(keysBase64, variable).map(nameKey) as [string, ...string[]];
}

function decodeKeys(keysBase64: string, variable: string): [Key, ...Key[]] {
  const keys = keysBase64.split(',').map((text) => {
    const bytes = Buffer.from(text.trim(), 'base64');
    if (bytes.length !== 32)
      throw new Error(
        `${variable} must be 32 bytes in base64, or several such keys separated by commas; one has ${bytes.length} bytes`,
      );
    return { id: createHmac('sha256', bytes).update('key id').digest().subarray(0, KEY_ID_BYTES), bytes };
  });
  return keys as [Key, ...Key[]];
}

const TOKEN_LENGTH = 43;

/** A token for an email or a browser: 256 bits, of which only the hash is stored. */
export function createOneTimeToken(): { token: string; hash: Buffer } {
  const token = randomBase62(TOKEN_LENGTH);
  return { token, hash: sha256(token) };
}

export const hashOneTimeToken = (token: string): Buffer => sha256(token);
