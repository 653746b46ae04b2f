import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  randomBytes,
  randomInt,
  timingSafeEqual,
} from 'node:crypto';

/** Encrypts secrets at rest: AES-256-GCM, stored as version (1) + nonce (12) + tag (16) + ciphertext. */
export interface SecretBox {
  seal(plaintext: string, context: string): Buffer;
  /** @throws Error if the bytes were altered or sealed with another key or context. */
  open(sealed: Uint8Array, context: string): string;
}

const VERSION = 1;

/** @param keyBase64 32 bytes in base64 (`ENCRYPTION_KEY`). */
export function createSecretBox(keyBase64: string): SecretBox {
  const key = decodeKey(keyBase64, 'ENCRYPTION_KEY');
  return {
    seal(plaintext, context) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
      return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), body]);
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed);
      if (bytes[0] !== VERSION) throw new Error('Sealed value has an unknown version');
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, 13))
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(13, 29));
      return decipher.update(bytes.subarray(29), undefined, 'utf8') + decipher.final('utf8');
    },
  };
}

/** Signs short values with a key derived for one purpose: a cursor can never be used as a return-path token. */
export interface Signer {
  sign(value: string | Uint8Array): Buffer;
  verify(value: string | Uint8Array, signature: Uint8Array): boolean;
}

/** @param lengthBytes length of the truncated HMAC-SHA256; 10 bytes suffice if each guess costs a network call. */
export function createSigner(keyBase64: string, purpose: string, lengthBytes = 32): Signer {
  const key = createHmac('sha256', decodeKey(keyBase64, 'SIGNING_KEY')).update(purpose).digest();
  const sign = (value: string | Uint8Array) =>
    createHmac('sha256', key).update(value).digest().subarray(0, lengthBytes);
  return {
    sign,
    verify: (value, signature) => signature.length === lengthBytes && timingSafeEqual(sign(value), signature),
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

function decodeKey(base64: string, name: string): Buffer {
  const key = Buffer.from(base64, 'base64');
  if (key.length !== 32) throw new Error(`${name} must be 32 bytes in base64, but has ${key.length} bytes`);
  return key;
}
