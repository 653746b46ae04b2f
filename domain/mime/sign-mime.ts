import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { type DkimSigningKey, dkimSignature } from './dkim-signature.ts';

/** A mail that is small enough to be held, with its signature in front. Without a key it is as it was. */
export async function signBytes(mail: Buffer, key: DkimSigningKey | null, signedAt: Date): Promise<Buffer> {
  if (!key) return mail;
  return Buffer.concat([Buffer.from(await dkimSignature(Readable.from([mail]), key, signedAt)), mail]);
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
  const signature = await dkimSignature(Readable.from(hashed(write(), signed)), key, signedAt);
  return Readable.from(sameAsSigned(signature, write(), signed.digest('hex')), { objectMode: false });
}

async function* hashed(mail: Readable, hash: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  for await (const chunk of mail) {
    hash.update(chunk);
    yield chunk;
  }
}

async function* sameAsSigned(signature: string, mail: Readable, signedHash: string): AsyncGenerator<Buffer> {
  yield Buffer.from(signature);
  const hash = createHash('sha256');
  yield* hashed(mail, hash);
  if (hash.digest('hex') !== signedHash)
    throw new Error('The mail was written differently than it was signed');
}
