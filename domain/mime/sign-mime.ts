import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { createDkimSignature, type DkimSigningKey } from './dkim-signature.ts';

/** A mail that is small enough to be held, with its signature in front. Without a key it is as it was. */
export async function signBytes(mail: Buffer, key: DkimSigningKey | null, signedAt: Date): Promise<Buffer> {
  if (!key) return mail;
  return Buffer.concat([Buffer.from(await createDkimSignature(Readable.from([mail]), key, signedAt)), mail]);
}

/**
 * A mail of any size, with its signature in front. The signature comes first and covers the whole body, so the mail is
 * written twice: once to be signed and once to be read.
 *
 * @param write the same bytes each time; where they are not, the stream that is returned breaks at its end.
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

async function* hashChunks(mail: Readable, hash: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  for await (const chunk of mail) {
    hash.update(chunk);
    yield chunk;
  }
}

async function* readUnchanged(signature: string, mail: Readable, signedHash: string): AsyncGenerator<Buffer> {
  yield Buffer.from(signature);
  const hash = createHash('sha256');
  yield* hashChunks(mail, hash);
  if (hash.digest('hex') !== signedHash)
    throw new Error('The mail was written differently than it was signed');
}
