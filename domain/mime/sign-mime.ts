import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { createDkimSignature, type DkimSigningKey } from './dkim-signature.ts';

/** Signs a small message in memory. Returns it unchanged without a key. */
export async function signBytes(
  message: Buffer,
  key: DkimSigningKey | null,
  signedAt: Date,
): Promise<Buffer> {
  if (!key) return message;
  return Buffer.concat([
    Buffer.from(await createDkimSignature(Readable.from([message]), key, signedAt)),
    message,
  ]);
}

/**
 * Signs a message of any size. The signature precedes the body that it covers, so the message is written twice: once to
 * be signed, once to be read.
 *
 * @param write must produce the same bytes each time. If it does not, the returned stream fails at its end.
 */
export async function signStream(
  write: () => Readable,
  key: DkimSigningKey | null,
  signedAt: Date,
): Promise<Readable> {
  if (!key) return write();
  const signed = createHash('sha256');
  const signature = await createDkimSignature(Readable.from(hashChunks(write(), signed)), key, signedAt);
  return Readable.from(readUnchanged(signature, write(), signed.digest('hex')), { objectMode: false });
}

async function* hashChunks(message: Readable, hash: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  for await (const chunk of message) {
    hash.update(chunk);
    yield chunk;
  }
}

async function* readUnchanged(
  signature: string,
  message: Readable,
  signedHash: string,
): AsyncGenerator<Buffer> {
  yield Buffer.from(signature);
  const hash = createHash('sha256');
  yield* hashChunks(message, hash);
  if (hash.digest('hex') !== signedHash) throw new Error('The message differs from the signed message');
}
